// The block allocator of an arena, from 1 KiB to megabytes. Small blocks are cut from chunks of 64 KiB, which are assigned to block sizes
// on demand; larger blocks are runs of chunks. So all sizes share one limit, and chunks return from one size to the others after a burst.

import { CHUNK_BYTES, CHUNK_SHIFT, ChunkPool, NO_CHUNK } from './chunk-pool.js';

/** Sizes of the blocks that chunks are cut into. */
export const CUT_SIZES = [1024, 2048, 4096, 8192, 16384, 32768] as const;
const MAX_CUT_BYTES = 32768;

/** No block is available. Offset 0 is never a block. */
export const NO_BLOCK = 0;

/** Uses of a chunk, besides an index in CUT_SIZES. */
const RUN = 254;
const FREE = 255;

export class Arena {
  readonly chunks: ChunkPool;
  readonly #start: number;
  readonly #cuts: readonly CutSize[] = CUT_SIZES.map((size) => new CutSize(size));
  /** The use of each chunk. */
  readonly #uses: Uint8Array;
  /** The number of allocated blocks of each cut chunk, including resting ones. */
  readonly #allocated: Uint8Array;
  /** The length of each run, indexed by its first chunk. */
  readonly #runs: Uint16Array;
  /** Resting blocks, which were released in this turn: the first #restingCount. */
  readonly #resting: number[] = [];
  #restingCount = 0;

  /** Manages `count` chunks from `start`, which must be above 0. */
  constructor(start: number, count: number) {
    this.#start = start;
    this.chunks = new ChunkPool(count);
    this.#uses = new Uint8Array(count).fill(FREE);
    this.#allocated = new Uint8Array(count);
    this.#runs = new Uint16Array(count);
  }

  /** Returns a block of the smallest size that holds `length` bytes, or NO_BLOCK. */
  take(length: number): number {
    return length > MAX_CUT_BYTES ? this.#takeRun(length) : this.#takeCut(cutFor(length));
  }

  /** Returns a block of a larger size than take() does, or NO_BLOCK. Larger sizes may have free blocks in their cut chunks. */
  takeLarger(length: number): number {
    if (length > MAX_CUT_BYTES) return NO_BLOCK;
    for (let index = cutFor(length) + 1; index < CUT_SIZES.length; index++) {
      const block = this.#takeCut(index);
      if (block !== NO_BLOCK) return block;
    }
    return NO_BLOCK;
  }

  /** Returns the largest available block below the size for `length` bytes, or NO_BLOCK. */
  takeSmaller(length: number): number {
    for (let index = length > MAX_CUT_BYTES ? CUT_SIZES.length - 1 : cutFor(length) - 1; index >= 0; index--) {
      const block = this.#takeCut(index);
      if (block !== NO_BLOCK) return block;
    }
    return NO_BLOCK;
  }

  /** Releases a block at the end of the turn; until then it rests. */
  release(block: number): void {
    this.#resting[this.#restingCount++] = block;
  }

  /** Makes resting blocks available again. */
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

  /** Returns the bytes of allocated blocks that do not rest. Scans all chunks. */
  bytesAllocated(): number {
    let sum = 0;
    for (let chunk = 0; chunk < this.#uses.length; chunk++) {
      const use = this.#uses[chunk]!;
      if (use === RUN) sum += this.#runs[chunk]! << CHUNK_SHIFT;
      else if (use !== FREE) sum += this.#allocated[chunk]! * CUT_SIZES[use]!;
    }
    return sum - this.bytesResting();
  }

  /** Returns the bytes of resting blocks. */
  bytesResting(): number {
    let sum = 0;
    for (let index = 0; index < this.#restingCount; index++) sum += this.sizeOf(this.#resting[index]!);
    return sum;
  }

  /** Returns chunks without allocated blocks to the pool. */
  collect(): void {
    for (let index = 0; index < this.#cuts.length; index++) if (this.#cuts[index]!.unused > 0) this.#collect(index);
  }

  /** Releases pages of free chunks, as ChunkPool.purge() does. `release` gets offsets and lengths in bytes. */
  purge(keep: number, maxChunks: number, release: (start: number, bytes: number) => void): number {
    return this.chunks.purge(keep, maxChunks, (first, length) =>
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
    const out = this.#allocated[chunk]!;
    if (out === 0) cut.unused--;
    this.#allocated[chunk] = out + 1;
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
      this.chunks.release(chunk, this.#runs[chunk]!);
      return;
    }
    const cut = this.#cuts[use]!;
    cut.free.push(block);
    if (--this.#allocated[chunk]! === 0) cut.unused++;
  }

  #collect(index: number): void {
    const cut = this.#cuts[index]!;
    const { free } = cut;
    let kept = 0;
    for (let at = 0; at < free.length; at++) {
      const block = free[at]!;
      const chunk = (block - this.#start) >>> CHUNK_SHIFT;
      if (this.#allocated[chunk]! > 0) free[kept++] = block;
      else if (this.#uses[chunk] === index) {
        this.#uses[chunk] = FREE;
        this.chunks.release(chunk, 1);
      }
    }
    free.length = kept;
    cut.unused = 0;
    // The chunk that is being cut may have been returned too.
    if (cut.next < cut.end && this.#uses[(cut.next - this.#start) >>> CHUNK_SHIFT] !== index) cut.next = cut.end = 0;
  }
}

/** The blocks of one size. Free blocks are reused last-in first-out, so that warm pages are used first. */
class CutSize {
  readonly size: number;
  readonly free: number[] = [];
  /** [next, end): the uncut rest of the last chunk. */
  next = 0;
  end = 0;
  /** Chunks of this size without allocated blocks. */
  unused = 0;

  constructor(size: number) {
    this.size = size;
  }
}

/** Returns the index in CUT_SIZES of the smallest size that holds `length` bytes, at most 32768. */
function cutFor(length: number): number {
  return length <= 1024 ? 0 : 22 - Math.clz32(length - 1);
}
