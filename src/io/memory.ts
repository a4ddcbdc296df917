// The bytes of one thread's traffic: a single address space in which every byte range is a pair of small integers.
//
//   [ receive window | scratch | arena: blocks from 1 KiB to 8.5 MiB ]
//
// Received bytes live until the turn ends, scratch until the next turn begins, arena blocks until they are released.
// The buffer is a SharedArrayBuffer because an ArrayBuffer can be detached under the native code that writes into it.
// Its pages cost memory only once they are touched; those of the arena that are not used any more go back to the kernel.

import { copyBytes } from '../common/copy-bytes.js';
import { Arena, NO_BLOCK } from './arena/arena.js';
import { CHUNK_BYTES, CHUNK_SHIFT } from './arena/chunk-pool.js';
import { PageReturn } from './arena/page-return.js';
import { Pressure } from './arena/pressure.js';

export { NO_BLOCK } from './arena/arena.js';

export interface MemoryLayout {
  /** Bytes the transport receives into in one turn. */
  receiveBytes: number;
  /** Bytes for what is written during a turn: rewritten head lines, local answers. */
  scratchBytes: number;
  /** The limit of all arena blocks together, a multiple of 64 KiB. The whole layout stays below 2 GiB. */
  arenaBytes: number;
}

export const DEFAULT_LAYOUT: MemoryLayout = {
  receiveBytes: 1024 * 1024,
  scratchBytes: 512 * 1024,
  arenaBytes: 256 * 1024 * 1024,
};

/** The default layout with another arena. Where so much address space cannot be had, it becomes smaller. */
export function openMemory(arenaBytes: number): Memory {
  for (let bytes = arenaBytes; ; bytes /= 2) {
    try {
      return new Memory({ ...DEFAULT_LAYOUT, arenaBytes: bytes });
    } catch (error) {
      if (!(error instanceof RangeError) || bytes < LEAST_ARENA) throw error;
    }
  }
}

/** What is tried at least. */
const LEAST_ARENA = 32 * 1024 * 1024;

/** What an arena can be at most: offsets are small integers, and the native code's are 32 bits wide. */
export const LARGEST_ARENA = 2032 * 1024 * 1024;

/** The longest range that one block holds: the largest head, and what is added to it. */
export const LARGEST_BLOCK = 8704 * 1024;

/** Up to here copyBytes() is faster than copyWithin(). */
const SHORT_COPY = 96;

/** Traffic needs more at the same time than there is: a message may be the last straw. */
export class NoRoomError extends RangeError {}

/** What may be in pieces is kept in blocks of at most this size. */
export const PIECE_BYTES = CHUNK_BYTES;

/** What has happened in an arena, and how much of it is used; bytes but for the counts. */
export interface MemoryUse {
  /** The limit. */
  readonly limit: number;
  /** In blocks. */
  readonly used: number;
  /** What the shim holds for peers that do not take it. */
  readonly unsent: number;
  /** Of the arena's pages, what was touched and not given back: an upper bound. */
  readonly resident: number;
  /** Blocks of another size than the one that was wanted. */
  readonly fallbacks: number;
  /** Blocks that could not be had. */
  readonly refusals: number;
}

export class Memory {
  /** All bytes. Offsets everywhere in the data plane are indexes into it. */
  readonly bytes: Uint8Array;
  /** The same bytes, four at a time at any offset. */
  readonly view: DataView;
  readonly receiveBytes: number;
  /** Counts what is handled: one event of a connection after the other. Callers hold nothing of an object from one to the next. */
  step = 0;
  /** The step with which this turn began: what is received in a turn has come before anything that is sent in it could go out. */
  turnStart = 0;

  /** How near the arena is to its limit. */
  readonly pressure: Pressure;
  readonly pageReturn: PageReturn;

  /** The same bytes with Buffer's methods. */
  readonly #buffer: Latin1Buffer;
  readonly #scratchStart: number;
  #scratchEnd = 0;
  #scratchNext = 0;
  readonly #arena: Arena;
  /** Arena blocks that stood in for a full scratch; they go with the turn. */
  readonly #overflow: number[] = [];
  #fallbacks = 0;
  #refusals = 0;

  constructor(layout: MemoryLayout = DEFAULT_LAYOUT) {
    this.receiveBytes = layout.receiveBytes;
    this.#scratchStart = layout.receiveBytes;
    this.#scratchNext = this.#scratchStart;
    this.#scratchEnd = this.#scratchStart + layout.scratchBytes;
    const chunks = layout.arenaBytes >>> CHUNK_SHIFT;
    this.#arena = new Arena(this.#scratchEnd, chunks);
    this.pressure = new Pressure(this.#arena.chunks);
    this.pageReturn = new PageReturn(this.#arena);
    const buffer = new SharedArrayBuffer(this.#scratchEnd + (chunks << CHUNK_SHIFT));
    this.bytes = new Uint8Array(buffer);
    this.view = new DataView(buffer);
    this.#buffer = Buffer.from(buffer) as Latin1Buffer;
  }

  /** Throws a RangeError unless [offset, offset + length) lies in the memory: for ranges that come from outside of Baton's own code. */
  checkRange(offset: number, length: number): void {
    const isRange = Number.isInteger(offset) && Number.isInteger(length) && offset >= 0 && length >= 0;
    if (isRange && offset + length <= this.bytes.length) return;
    throw new RangeError(
      `${length} bytes from ${offset} on are no part of the ${this.bytes.length} bytes of the memory`,
    );
  }

  /** Room for `length` bytes that live until the turn ends. Throws a NoRoomError when even the arena has none left. */
  scratch(length: number): number {
    const offset = this.#scratchNext;
    if (offset + length <= this.#scratchEnd) {
      this.#scratchNext = offset + length;
      return offset;
    }
    return this.#overflowingScratch(length);
  }

  /** Takes back the room that scratch() gave last: nobody needs its bytes any more in this turn. */
  withdrawScratch(offset: number): void {
    if (offset < this.#scratchEnd) this.#scratchNext = offset;
    else this.release(this.#overflow.pop()!);
  }

  /** Room for `length` bytes that are never given back: lines that are written once and sent many times. */
  permanent(length: number): number {
    if (this.#scratchEnd - length >= this.#scratchNext) return (this.#scratchEnd -= length);
    const block = this.retain(length);
    if (block === NO_BLOCK) throw new RangeError(`no room for ${length} permanent bytes`);
    return block;
  }

  /** The transport has taken all submissions: scratch may be written anew, and released blocks may be handed out again. */
  endTurn(): void {
    this.turnStart = ++this.step;
    this.#scratchNext = this.#scratchStart;
    if (this.#overflow.length > 0) {
      for (const block of this.#overflow) this.release(block);
      this.#overflow.length = 0;
    }
    this.#arena.endTurn();
  }

  /** An arena block of at least `length` bytes, of `wanted` bytes if there is one, or NO_BLOCK. The caller releases it. */
  retain(length: number, wanted = length): number {
    const block = wanted > LARGEST_BLOCK ? NO_BLOCK : this.#arena.take(wanted);
    return block === NO_BLOCK ? this.#retainOther(length, wanted) : block;
  }

  /**
   * A block for the first of `length` bytes that may be in pieces: for PIECE_BYTES of them at most, and when no block is left
   * that is large enough, the largest one below. NO_BLOCK when there is none of any size.
   */
  retainPiece(length: number): number {
    const wanted = Math.min(length, PIECE_BYTES);
    const block = this.#arena.take(wanted);
    if (block !== NO_BLOCK) return block;
    const other = this.#arena.takeLarger(wanted) || this.#arena.takeSmaller(wanted);
    if (other === NO_BLOCK) this.#refusals++;
    else this.#fallbacks++;
    return other;
  }

  /** A block that holds a copy of [start, end), or NO_BLOCK. */
  retainCopy(start: number, end: number): number {
    const block = this.retain(end - start);
    if (block !== NO_BLOCK) this.copy(block, start, end);
    return block;
  }

  /**
   * Gives a block back. Its bytes stay as they are until the turn ends, because submissions that wait for the flush may
   * name them.
   */
  release(block: number): void {
    this.#arena.give(block);
  }

  /** Capacity of a block got from retain(). */
  blockSize(block: number): number {
    return this.#arena.sizeOf(block);
  }

  /** Copies [start, end) to `to`, which is no part of it. */
  copy(to: number, start: number, end: number): void {
    if (end - start <= SHORT_COPY) copyBytes(this.view, to, this.view, start, end);
    else this.bytes.copyWithin(to, start, end);
  }

  /** The range as Latin-1 text: made only when somebody asks. */
  text(start: number, end: number): string {
    return this.#buffer.latin1Slice(start, end);
  }

  /** Writes Latin-1 text to the bytes from `offset` on. */
  write(offset: number, text: string): void {
    this.#buffer.latin1Write(text, offset, text.length);
  }

  /** Bytes of all blocks that are out: tests find by it what was not given back. */
  retainedBytes(): number {
    return this.#arena.bytesOut();
  }

  /** Bytes of blocks that were released in this turn. */
  restingBytes(): number {
    return this.#arena.bytesResting();
  }

  /** Makes what was released available to blocks of all sizes. */
  collect(): void {
    this.#arena.collect();
  }

  /** Counts the blocks that are out: for stats, not for each request. */
  use(): MemoryUse {
    const { chunks } = this.#arena;
    return {
      limit: chunks.count * CHUNK_BYTES,
      used: this.#arena.bytesOut(),
      unsent: this.pressure.unsent * CHUNK_BYTES,
      resident: (chunks.inUse + chunks.touched) * CHUNK_BYTES,
      fallbacks: this.#fallbacks,
      refusals: this.#refusals,
    };
  }

  #retainOther(length: number, wanted: number): number {
    let block = NO_BLOCK;
    if (wanted > length) block = this.#arena.take(length);
    if (block === NO_BLOCK) block = this.#arena.takeLarger(length);
    if (block === NO_BLOCK) this.#refusals++;
    else this.#fallbacks++;
    return block;
  }

  #overflowingScratch(length: number): number {
    const block = this.retain(length);
    if (block === NO_BLOCK)
      throw new NoRoomError(`no room for ${length} bytes in this turn: scratch and arena are full`);
    this.#overflow.push(block);
    return block;
  }
}

/** Node's own decoder, without the argument handling of toString(). */
type Latin1Buffer = Buffer & {
  latin1Slice(start: number, end: number): string;
  latin1Write(text: string, offset: number, length: number): number;
};
