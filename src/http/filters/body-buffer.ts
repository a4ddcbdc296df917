// A part of a body that must outlive the turn: copied into arena blocks, in order, up to a limit.

import { type Memory, NO_BLOCK } from '../../io/memory.js';

interface Piece {
  block: number;
  length: number;
}

export class BodyBuffer {
  readonly #memory: Memory;
  readonly #pieces: Piece[] = [];
  #bytes = 0;

  constructor(memory: Memory) {
    this.#memory = memory;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Copies source[offset, offset + length). False when the arena is full: nothing more was kept than bytes tells. */
  append(offset: number, length: number, source = this.#memory.bytes): boolean {
    const bytes = this.#memory.bytes;
    let last = this.#pieces[this.#pieces.length - 1];
    while (length > 0) {
      const room = last === undefined ? 0 : this.#memory.blockSize(last.block) - last.length;
      if (last === undefined || room === 0) {
        // Small bodies get small blocks; a body that grows gets larger ones.
        const block = this.#memory.retainPiece(Math.max(length, this.#bytes));
        if (block === NO_BLOCK) return false;
        last = { block, length: 0 };
        this.#pieces.push(last);
        continue;
      }
      const part = Math.min(room, length);
      const to = last.block + last.length;
      if (source === bytes) bytes.copyWithin(to, offset, offset + part);
      else bytes.set(source.subarray(offset, offset + part), to);
      last.length += part;
      this.#bytes += part;
      offset += part;
      length -= part;
    }
    return true;
  }

  /** Gives each range in order. The bytes stay until clear(). */
  forEach(visit: (offset: number, length: number) => void): void {
    for (const piece of this.#pieces) visit(piece.block, piece.length);
  }

  clear(): void {
    if (this.#pieces.length === 0) return;
    for (const piece of this.#pieces) this.#memory.release(piece.block);
    this.#pieces.length = 0;
    this.#bytes = 0;
  }
}
