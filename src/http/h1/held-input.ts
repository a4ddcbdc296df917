// Received bytes that cannot be handled yet (the stream is paused, or the answer to an earlier request is outstanding),
// in order, in arena blocks.

import { type Memory, NO_BLOCK, PIECE_BYTES } from '../../io/memory.js';

interface Segment {
  block: number;
  start: number;
  end: number;
}

export class HeldInput {
  readonly #memory: Memory;
  readonly #segments: Segment[] = [];

  constructor(memory: Memory) {
    this.#memory = memory;
  }

  get isEmpty(): boolean {
    return this.#segments.length === 0;
  }

  /** Bytes of the arena that they take. */
  get retained(): number {
    let sum = 0;
    for (const { block } of this.#segments) sum += this.#memory.blockSize(block);
    return sum;
  }

  get bytes(): number {
    let sum = 0;
    for (const { start, end } of this.#segments) sum += end - start;
    return sum;
  }

  /** The ranges in order, as [start, end). */
  *ranges(): IterableIterator<Readonly<Segment>> {
    yield* this.#segments;
  }

  /** The oldest bytes are [front.start, front.end). */
  get front(): Readonly<Segment> {
    return this.#segments[0]!;
  }

  /** Copies source[start, end). False when the arena has no room: a part may have been copied. */
  append(start: number, end: number, source = this.#memory.bytes): boolean {
    const { bytes } = this.#memory;
    while (start < end) {
      const block = this.#memory.retainPiece(end - start);
      if (block === NO_BLOCK) return false;
      const part = Math.min(end - start, PIECE_BYTES, this.#memory.blockSize(block));
      if (source === bytes) bytes.copyWithin(block, start, start + part);
      else bytes.set(source.subarray(start, start + part), block);
      this.#segments.push({ block, start: block, end: block + part });
      start += part;
    }
    return true;
  }

  /** The front's bytes before `at` are done with. They stay readable until the turn ends. */
  consume(at: number): void {
    const front = this.#segments[0]!;
    front.start = at;
    if (at >= front.end) {
      this.#segments.shift();
      this.#memory.release(front.block);
    }
  }

  clear(): void {
    for (const { block } of this.#segments) this.#memory.release(block);
    this.#segments.length = 0;
  }
}
