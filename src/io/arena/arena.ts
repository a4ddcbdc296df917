// Blocks of an arena, from 1 KiB to megabytes: short ones are cut from chunks of 64 KiB, which go to whatever size needs one;
// longer ones are runs of chunks. So there is one limit for all sizes together, and a burst of one size leaves room for the others.

import { CHUNK_BYTES, CHUNK_SHIFT, ChunkPool, NO_CHUNK } from './chunk-pool.js';

/** Sizes of the blocks that chunks are cut into. */
export const CUT_SIZES = [1024, 2048, 4096, 8192, 16384, 32768] as const;
const LARGEST_CUT = 32768;

/** No block is available. Offset 0 is never a block. */
export const NO_BLOCK = 0;

/** What a chunk is used for, beside the index of its size in CUT_SIZES. */
const RUN = 254;
const FREE = 255;

export class Arena {
  readonly chunks: ChunkPool;
  readonly #start: number;
  readonly #cuts: readonly CutSize[] = CUT_SIZES.map((size) => new CutSize(size));
  /** By chunk: what it is used for. */
  readonly #uses: Uint8Array;
  /** By chunk: how many of the blocks it is cut into are out, including those that rest. */
  readonly #out: Uint8Array;
  /** By the first chunk of a run: its length. */
  readonly #runs: Uint16Array;
  /** Blocks that were given back in this turn: the first #restingCount. */
  readonly #resting: number[] = [];
  #restingCount = 0;

  /** From `start` on, which is above 0, `count` chunks. */
  constructor(start: number, count: number) {
    this.#start = start;
    this.chunks = new ChunkPool(count);
    this.#uses = new Uint8Array(count).fill(FREE);
    this.#out = new Uint8Array(count);
    this.#runs = new Uint16Array(count);
  }

  /** A block of the smallest size that holds `length` bytes, or NO_BLOCK. */
  take(length: number): number {
    return length > LARGEST_CUT ? this.#takeRun(length) : this.#takeCut(cutFor(length));
  }

  /** A block of more than `length` bytes where take() has none: what is left of chunks that larger blocks are cut from. */
  takeLarger(length: number): number {
    if (length > LARGEST_CUT) return NO_BLOCK;
    for (let index = cutFor(length) + 1; index < CUT_SIZES.length; index++) {
      const block = this.#takeCut(index);
      if (block !== NO_BLOCK) return block;
    }
    return NO_BLOCK;
  }

  /** The largest block below `length` bytes, where there is none of that size. */
  takeSmaller(length: number): number {
    for (let index = length > LARGEST_CUT ? CUT_SIZES.length - 1 : cutFor(length) - 1; index >= 0; index--) {
      const block = this.#takeCut(index);
      if (block !== NO_BLOCK) return block;
    }
    return NO_BLOCK;
  }

  /** Gives a block back at the end of the turn. */
  give(block: number): void {
    this.#resting[this.#restingCount++] = block;
  }

  /** Blocks that were given back may be taken again. */
  endTurn(): void {
    const count = this.#restingCount;
    if (count === 0) return;
    this.#restingCount = 0;
    const resting = this.#resting;
    for (let index = 0; index < count; index++) this.#free(resting[index]!);
  }

  sizeOf(block: number): number {
    const chunk = (block - this.#start) >>> CHUNK_SHIFT;
    const use = this.#uses[chunk]!;
    return use === RUN ? this.#runs[chunk]! << CHUNK_SHIFT : CUT_SIZES[use]!;
  }

  /** Bytes of the blocks that are out and do not rest. Counted when asked for. */
  bytesOut(): number {
    let sum = 0;
    for (let chunk = 0; chunk < this.#uses.length; chunk++) {
      const use = this.#uses[chunk]!;
      if (use === RUN) sum += this.#runs[chunk]! << CHUNK_SHIFT;
      else if (use !== FREE) sum += this.#out[chunk]! * CUT_SIZES[use]!;
    }
    return sum - this.bytesResting();
  }

  /** Bytes of the blocks that were given back in this turn. */
  bytesResting(): number {
    let sum = 0;
    for (let index = 0; index < this.#restingCount; index++) sum += this.sizeOf(this.#resting[index]!);
    return sum;
  }

  /** Gives chunks of which no block is out back to the pool. */
  collect(): void {
    for (let index = 0; index < this.#cuts.length; index++) if (this.#cuts[index]!.unused > 0) this.#collect(index);
  }

  /** Gives pages of free chunks back, as ChunkPool.purge(). `release` is called with offsets. */
  purge(keep: number, most: number, release: (start: number, bytes: number) => void): number {
    return this.chunks.purge(keep, most, (first, length) =>
      release(this.#start + (first << CHUNK_SHIFT), length << CHUNK_SHIFT),
    );
  }

  #takeCut(index: number): number {
    const cut = this.#cuts[index]!;
    let block = cut.free.pop();
    if (block === undefined) {
      if (cut.next === cut.end && !this.#cutChunk(cut, index)) return NO_BLOCK;
      block = cut.next;
      cut.next += cut.size;
    }
    const chunk = (block - this.#start) >>> CHUNK_SHIFT;
    const out = this.#out[chunk]!;
    if (out === 0) cut.unused--;
    this.#out[chunk] = out + 1;
    return block;
  }

  #cutChunk(cut: CutSize, index: number): boolean {
    const chunk = this.#takeChunk();
    if (chunk === NO_CHUNK) return false;
    this.#uses[chunk] = index;
    cut.unused++;
    cut.next = this.#start + (chunk << CHUNK_SHIFT);
    cut.end = cut.next + CHUNK_BYTES;
    return true;
  }

  #takeChunk(): number {
    const chunk = this.chunks.take();
    if (chunk !== NO_CHUNK) return chunk;
    this.collect();
    return this.chunks.take();
  }

  #takeRun(length: number): number {
    const count = (length + CHUNK_BYTES - 1) >>> CHUNK_SHIFT;
    const chunk = count === 1 ? this.#takeChunk() : this.#takeChunks(count);
    if (chunk === NO_CHUNK) return NO_BLOCK;
    this.#uses[chunk] = RUN;
    this.#runs[chunk] = count;
    return this.#start + (chunk << CHUNK_SHIFT);
  }

  #takeChunks(count: number): number {
    if (count > this.chunks.count - this.chunks.inUse) this.collect();
    const chunk = this.chunks.takeRun(count);
    if (chunk !== NO_CHUNK) return chunk;
    this.collect();
    return this.chunks.takeRun(count);
  }

  #free(block: number): void {
    const chunk = (block - this.#start) >>> CHUNK_SHIFT;
    const use = this.#uses[chunk]!;
    if (use === RUN) {
      this.#uses[chunk] = FREE;
      this.chunks.give(chunk, this.#runs[chunk]!);
      return;
    }
    const cut = this.#cuts[use]!;
    cut.free.push(block);
    if (--this.#out[chunk]! === 0) cut.unused++;
  }

  #collect(index: number): void {
    const cut = this.#cuts[index]!;
    const { free } = cut;
    let kept = 0;
    for (let at = 0; at < free.length; at++) {
      const block = free[at]!;
      const chunk = (block - this.#start) >>> CHUNK_SHIFT;
      if (this.#out[chunk]! > 0) free[kept++] = block;
      else if (this.#uses[chunk] === index) {
        this.#uses[chunk] = FREE;
        this.chunks.give(chunk, 1);
      }
    }
    free.length = kept;
    cut.unused = 0;
    // The chunk that is being cut may be one of them.
    if (cut.next < cut.end && this.#uses[(cut.next - this.#start) >>> CHUNK_SHIFT] !== index) cut.next = cut.end = 0;
  }
}

/** One size. Blocks that were given back are taken last-in first-out, so that warm pages are used first. */
class CutSize {
  readonly size: number;
  readonly free: number[] = [];
  /** [next, end): what is left of the chunk that was cut last. */
  next = 0;
  end = 0;
  /** Chunks of this size of which no block is out. */
  unused = 0;

  constructor(size: number) {
    this.size = size;
  }
}

/** Index in CUT_SIZES of the smallest size that holds `length` bytes, at most 32768. */
function cutFor(length: number): number {
  return length <= 1024 ? 0 : 22 - Math.clz32(length - 1);
}
