// The bytes of one thread's traffic: a single address space in which every byte range is a pair of small integers.
//
//   [ receive window | scratch | arena: blocks of 1, 4, 16, 64 and 512 KiB and 8.5 MiB ]
//
// Received bytes live until the turn ends, scratch until the next turn begins, arena blocks until they are released.
// The buffer is a SharedArrayBuffer because an ArrayBuffer can be detached under the native code that writes into it.
// Its pages cost memory only once they are touched, so the arena can be far larger than what a thread uses.

import { copyBytes } from '../common/copy-bytes.js';

export interface MemoryLayout {
  /** Bytes the transport receives into in one turn. */
  receiveBytes: number;
  /** Bytes for what is written during a turn: rewritten head lines, local answers. */
  scratchBytes: number;
  /** Address space for each of the block sizes; of sizes that do not fit in it there are no blocks. A multiple of 64 KiB. */
  arenaBytesPerSize: number;
}

export const DEFAULT_LAYOUT: MemoryLayout = {
  receiveBytes: 1024 * 1024,
  scratchBytes: 512 * 1024,
  arenaBytesPerSize: 64 * 1024 * 1024,
};

/** Sizes of arena blocks; a longer range does not fit in one block. The last two are for heads beyond what is usual. */
export const BLOCK_SIZES = [1024, 4096, 16384, 65536, 512 * 1024, 8704 * 1024] as const;
export const LARGEST_BLOCK = 8704 * 1024;

/** Up to here copyBytes() is faster than copyWithin(). */
const SHORT_COPY = 96;

/** Traffic needs more at the same time than there is: a message may be the last straw. */
export class NoRoomError extends RangeError {}

/** What may be in pieces is kept in blocks of at most this size. */
export const PIECE_BYTES = 65536;

/** No block could be had: the arena is full, or the wish is larger than LARGEST_BLOCK. Offset 0 is never a block. */
export const NO_BLOCK = 0;

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

  /** The same bytes with Buffer's methods. */
  readonly #buffer: Latin1Buffer;
  readonly #scratchStart: number;
  #scratchEnd = 0;
  #scratchNext = 0;
  readonly #arenaStart: number;
  readonly #arenaBytesPerSize: number;
  readonly #regions: BlockRegion[];
  /** Arena blocks that stood in for a full scratch; they go with the turn. */
  readonly #overflow: number[] = [];
  /** Blocks were given back in this turn. */
  #hasResting = false;

  constructor(layout: MemoryLayout = DEFAULT_LAYOUT) {
    this.receiveBytes = layout.receiveBytes;
    this.#scratchStart = layout.receiveBytes;
    this.#scratchNext = this.#scratchStart;
    this.#scratchEnd = this.#scratchStart + layout.scratchBytes;
    this.#arenaStart = this.#scratchEnd;
    this.#arenaBytesPerSize = layout.arenaBytesPerSize;
    this.#regions = BLOCK_SIZES.map(
      (size, index) =>
        new BlockRegion(this.#arenaStart + index * layout.arenaBytesPerSize, layout.arenaBytesPerSize, size),
    );
    const buffer = new SharedArrayBuffer(this.#arenaStart + BLOCK_SIZES.length * layout.arenaBytesPerSize);
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
    if (!this.#hasResting) return;
    this.#hasResting = false;
    for (let index = 0; index < BLOCK_SIZES.length; index++) this.#regions[index]!.endTurn();
  }

  /** An arena block of at least `length` bytes, or NO_BLOCK. The caller releases it. */
  retain(length: number): number {
    for (let index = 0; index < BLOCK_SIZES.length; index++) {
      if (length <= BLOCK_SIZES[index]!) {
        const block = this.#regions[index]!.take();
        if (block !== NO_BLOCK) return block;
      }
    }
    return NO_BLOCK;
  }

  /**
   * A block for the first of `length` bytes that may be in pieces: for PIECE_BYTES of them at most, and when no block is left
   * that is large enough, the largest one below. NO_BLOCK when there is none of any size.
   */
  retainPiece(length: number): number {
    const wanted = Math.min(length, PIECE_BYTES);
    const block = this.retain(wanted);
    if (block !== NO_BLOCK) return block;
    for (let index = BLOCK_SIZES.length - 1; index >= 0; index--) {
      if (BLOCK_SIZES[index]! >= wanted) continue;
      const smaller = this.#regions[index]!.take();
      if (smaller !== NO_BLOCK) return smaller;
    }
    return NO_BLOCK;
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
    this.#regions[this.#regionOf(block)]!.give(block);
    this.#hasResting = true;
  }

  /** Capacity of a block got from retain(). */
  blockSize(block: number): number {
    return BLOCK_SIZES[this.#regionOf(block)]!;
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
    let sum = 0;
    for (const region of this.#regions) sum += region.bytesOut;
    return sum;
  }

  #regionOf(block: number): number {
    return Math.floor((block - this.#arenaStart) / this.#arenaBytesPerSize);
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

/** Blocks of one size: those given back are taken again last-in first-out, so that warm pages are used first. */
class BlockRegion {
  readonly blockSize: number;
  readonly #start: number;
  readonly #end: number;
  #untouched: number;
  readonly #free: number[] = [];
  /** Given back in this turn. */
  readonly #resting: number[] = [];

  constructor(start: number, bytes: number, blockSize: number) {
    this.blockSize = blockSize;
    this.#start = start;
    this.#untouched = start;
    this.#end = start + bytes;
  }

  /** Bytes of the blocks that were taken and not given back. */
  get bytesOut(): number {
    return this.#untouched - this.#start - (this.#free.length + this.#resting.length) * this.blockSize;
  }

  take(): number {
    const free = this.#free.pop();
    if (free !== undefined) return free;
    if (this.#untouched + this.blockSize > this.#end) return NO_BLOCK;
    const block = this.#untouched;
    this.#untouched += this.blockSize;
    return block;
  }

  give(block: number): void {
    this.#resting.push(block);
  }

  endTurn(): void {
    while (this.#resting.length > 0) this.#free.push(this.#resting.pop()!);
  }
}
