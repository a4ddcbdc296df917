// The memory for one thread's traffic: a single address space, in which every byte range is a pair of small integers.
//
//   [ receive window | scratch | arena: blocks from 1 KiB to 8.5 MiB ]
//
// Received bytes are valid until the turn ends, scratch until the next turn begins, arena blocks until they are released. The buffer is a
// SharedArrayBuffer, because an ArrayBuffer can be detached while native code writes to it. Its pages use physical memory only once they
// are touched; unused pages of the arena are returned to the kernel.

import { copyBytes } from '../common/copy-bytes.js';
import { Arena, NO_BLOCK } from './arena/arena.js';
import { CHUNK_BYTES, CHUNK_SHIFT } from './arena/chunk-pool.js';
import { PageReturn } from './arena/page-return.js';
import { Pressure } from './arena/pressure.js';
import { OutsideMemory } from './outside-memory.js';

export { NO_BLOCK } from './arena/arena.js';

export interface MemoryLayout {
  /** Bytes that the transport can receive in one turn. */
  receiveBytes: number;
  /** Bytes that can be written during a turn: rewritten head lines, local replies. */
  scratchBytes: number;
  /** Limit of all arena blocks together, a multiple of 64 KiB. The whole layout must be below 2 GiB. */
  arenaBytes: number;
}

export const DEFAULT_LAYOUT: MemoryLayout = {
  receiveBytes: 1024 * 1024,
  scratchBytes: 512 * 1024,
  arenaBytes: 256 * 1024 * 1024,
};

/** Allocates the default layout with an arena of `arenaBytes`, or a smaller one if there is not enough address space. */
export function openMemory(arenaBytes: number): Memory {
  for (let bytes = arenaBytes; ; bytes /= 2) {
    try {
      return new Memory({ ...DEFAULT_LAYOUT, arenaBytes: bytes });
    } catch (error) {
      if (!(error instanceof RangeError) || bytes < MIN_ARENA) throw error;
    }
  }
}

/** Below this size openMemory() throws instead of trying a smaller arena. */
const MIN_ARENA = 32 * 1024 * 1024;

/** Maximum size of an arena: offsets are small integers, and native code has 32-bit offsets. */
export const MAX_ARENA_BYTES = 2032 * 1024 * 1024;

/** The longest range that one block can hold: the largest head with its additions. */
export const MAX_BLOCK_BYTES = 8704 * 1024;

/** Up to this length copyBytes() is faster than copyWithin(). */
const SHORT_COPY = 96;

/** Thrown when neither scratch nor the arena has room for the bytes of a message. */
export class NoRoomError extends RangeError {}

/** Bytes that may be split into pieces are kept in blocks of at most this size. */
export const PIECE_BYTES = CHUNK_BYTES;

/** Usage of an arena in bytes, and counts of allocation failures. */
export interface MemoryUse {
  /** The limit. */
  readonly limit: number;
  /** Bytes in allocated blocks. */
  readonly used: number;
  /** Unsent bytes that the shim holds. */
  readonly unsent: number;
  /** Bytes reserved outside of the arena. */
  readonly outside: number;
  /** Upper bound of the arena's resident pages: touched and not returned to the kernel. */
  readonly resident: number;
  /** Allocations that got a block of another size than requested. */
  readonly fallbacks: number;
  /** Allocations that failed. */
  readonly refusals: number;
}

export class Memory {
  /** All bytes. Offsets everywhere in the data plane are indexes into it. */
  readonly bytes: Uint8Array;
  /** A view of the same bytes. */
  readonly view: DataView;
  readonly receiveBytes: number;
  /** Number of the current step. Each event of a connection is a step. No caller on the stack keeps using an object across steps. */
  step = 0;
  /** The first step of this turn. Bytes that are received in a turn arrived before anything that is sent in it. */
  turnStart = 0;

  /** How close the arena is to its limit. */
  readonly pressure: Pressure;
  readonly pageReturn: PageReturn;
  /** May be half as much as the arena. */
  readonly outside: OutsideMemory;

  /** The same bytes as a Buffer. */
  readonly #buffer: Latin1Buffer;
  readonly #scratchStart: number;
  #scratchEnd = 0;
  #scratchNext = 0;
  readonly #arena: Arena;
  /** Arena blocks that replace a full scratch in this turn. */
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
    this.outside = new OutsideMemory(layout.arenaBytes / 2);
    const buffer = new SharedArrayBuffer(this.#scratchEnd + (chunks << CHUNK_SHIFT));
    this.bytes = new Uint8Array(buffer);
    this.view = new DataView(buffer);
    this.#buffer = Buffer.from(buffer) as Latin1Buffer;
  }

  /** Throws a RangeError unless [offset, offset + length) is in the memory. For ranges from code outside of Baton. */
  checkRange(offset: number, length: number): void {
    const isRange = Number.isInteger(offset) && Number.isInteger(length) && offset >= 0 && length >= 0;
    if (isRange && offset + length <= this.bytes.length) return;
    throw new RangeError(
      `${length} bytes from ${offset} on are not within the ${this.bytes.length} bytes of the memory`,
    );
  }

  /** Allocates `length` bytes that are valid until the turn ends. Throws NoRoomError if the arena is full too. */
  scratch(length: number): number {
    const offset = this.#scratchNext;
    if (offset + length <= this.#scratchEnd) {
      this.#scratchNext = offset + length;
      return offset;
    }
    return this.#overflowingScratch(length);
  }

  /** The turn has used up scratch, and takes blocks of the arena in its place. */
  get isScratchFull(): boolean {
    return this.#overflow.length > 0;
  }

  /** Frees the last allocation of scratch(), whose bytes are no longer needed in this turn. */
  withdrawScratch(offset: number): void {
    if (offset < this.#scratchEnd) this.#scratchNext = offset;
    else this.release(this.#overflow.pop()!);
  }

  /** Allocates `length` bytes that are never released, for lines that are written once and sent often. */
  permanent(length: number): number {
    if (this.#scratchEnd - length >= this.#scratchNext) return (this.#scratchEnd -= length);
    const block = this.retain(length);
    if (block === NO_BLOCK) throw new RangeError(`no room for ${length} permanent bytes`);
    return block;
  }

  /**
   * Called when the transport has processed all submissions: scratch and released blocks can be reused. `continuesBatch`: the bytes of
   * the events that follow were received before the turn that ends now.
   */
  endTurn(continuesBatch = false): void {
    this.step++;
    if (!continuesBatch) this.turnStart = this.step;
    this.#scratchNext = this.#scratchStart;
    if (this.#overflow.length > 0) {
      for (const block of this.#overflow) this.release(block);
      this.#overflow.length = 0;
    }
    this.#arena.endTurn();
  }

  /**
   * Allocates an arena block of `wanted` bytes, or else of at least `length` bytes. Returns NO_BLOCK if there is none. The caller releases
   * the block.
   */
  retain(length: number, wanted = length): number {
    const block = wanted > MAX_BLOCK_BYTES ? NO_BLOCK : this.#arena.take(wanted);
    return block === NO_BLOCK ? this.#retainOther(length, wanted) : block;
  }

  /**
   * Allocates a block for the first of `length` bytes that may be split into pieces: at most PIECE_BYTES, or the largest available size
   * below if no block is large enough. Returns NO_BLOCK if no block of any size is left.
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

  /** Returns a block with a copy of [start, end), or NO_BLOCK. */
  retainCopy(start: number, end: number): number {
    const block = this.retain(end - start);
    if (block !== NO_BLOCK) this.copy(block, start, end);
    return block;
  }

  /** Releases a block. Its bytes are kept until the turn ends, because queued submissions may refer to them. */
  release(block: number): void {
    this.#arena.release(block);
  }

  /** Returns the capacity of a block from retain(). */
  blockSize(block: number): number {
    return this.#arena.sizeOf(block);
  }

  /** Copies [start, end) to `to`, which must not overlap. */
  copy(to: number, start: number, end: number): void {
    if (end - start <= SHORT_COPY) copyBytes(this.view, to, this.view, start, end);
    else this.bytes.copyWithin(to, start, end);
  }

  /** Returns the range as Latin-1 text. */
  text(start: number, end: number): string {
    return this.#buffer.latin1Slice(start, end);
  }

  /** Writes Latin-1 text to the bytes from `offset` on. */
  write(offset: number, text: string): void {
    this.#buffer.latin1Write(text, offset, text.length);
  }

  /** Returns the bytes of all allocated blocks, by which tests find leaks. */
  retainedBytes(): number {
    return this.#arena.bytesAllocated();
  }

  /** Returns the bytes of blocks that were released in this turn. */
  restingBytes(): number {
    return this.#arena.bytesResting();
  }

  /** Makes released chunks available to all block sizes. */
  collect(): void {
    this.#arena.collect();
  }

  /** Returns the usage of the arena. Scans all chunks: for stats, not for each request. */
  use(): MemoryUse {
    const { chunks } = this.#arena;
    return {
      limit: chunks.count * CHUNK_BYTES,
      used: this.#arena.bytesAllocated(),
      unsent: this.pressure.unsent * CHUNK_BYTES,
      outside: this.outside.reserved,
      resident: (chunks.inUse + chunks.touched) * CHUNK_BYTES,
      fallbacks: this.#fallbacks,
      refusals: this.#refusals + this.outside.refusals,
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

/** Node's internal Latin-1 methods, without the argument handling of toString(). */
type Latin1Buffer = Buffer & {
  latin1Slice(start: number, end: number): string;
  latin1Write(text: string, offset: number, length: number): number;
};
