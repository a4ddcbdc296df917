// A FIFO of bytes that must outlive the turn, copied into arena blocks: a body that waits for filters or a retry, or received bytes that
// cannot be handled yet.

import { type Memory, NO_BLOCK } from './memory.js';

/** The bytes [start, end) in `block`. */
interface Piece {
  readonly block: number;
  start: number;
  end: number;
}

export class HeldBytes {
  readonly #memory: Memory;
  readonly #pieces: Piece[] = [];
  #bytes = 0;

  constructor(memory: Memory) {
    this.#memory = memory;
  }

  get isEmpty(): boolean {
    return this.#pieces.length === 0;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Bytes of the arena that the held bytes occupy. */
  get retainedBytes(): number {
    let sum = 0;
    for (const { block } of this.#pieces) sum += this.#memory.blockSize(block);
    return sum;
  }

  /**
   * Appends a copy of source[offset, offset + length). Returns false if the arena is full; then only a part may have been appended, see
   * `bytes`.
   */
  append(offset: number, length: number, source = this.#memory.bytes): boolean {
    const { bytes } = this.#memory;
    let last = this.#pieces[this.#pieces.length - 1];
    while (length > 0) {
      const room = last === undefined ? 0 : last.block + this.#memory.blockSize(last.block) - last.end;
      if (last === undefined || room === 0) {
        // Small contents get small blocks; blocks become larger as the contents grow.
        const block = this.#memory.retainPiece(Math.max(length, this.#bytes));
        if (block === NO_BLOCK) return false;
        last = { block, start: block, end: block };
        this.#pieces.push(last);
        continue;
      }
      const part = Math.min(room, length);
      if (source === bytes) bytes.copyWithin(last.end, offset, offset + part);
      else bytes.set(source.subarray(offset, offset + part), last.end);
      last.end += part;
      this.#bytes += part;
      offset += part;
      length -= part;
    }
    return true;
  }

  /** Calls `visit` with each range in order. The bytes are kept. */
  forEach(visit: (offset: number, length: number) => void): void {
    for (const { start, end } of this.#pieces) visit(start, end - start);
  }

  /** The oldest range. Must not be empty. */
  get front(): { readonly start: number; readonly end: number } {
    return this.#pieces[0]!;
  }

  /** Removes the front's bytes before `at`. They stay readable until the turn ends. */
  consume(at: number): void {
    const front = this.#pieces[0]!;
    this.#bytes -= at - front.start;
    front.start = at;
    if (at < front.end) return;
    this.#pieces.shift();
    this.#memory.release(front.block);
  }

  clear(): void {
    if (this.#pieces.length === 0) return;
    for (const { block } of this.#pieces) this.#memory.release(block);
    this.#pieces.length = 0;
    this.#bytes = 0;
  }
}
