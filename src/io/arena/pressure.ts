// How near a thread is to the limit of its memory: the chunks of its arena, and what the shim holds for peers that do not take it. From each mark on less is granted, so that what can be finished is finished:
//
//   short     1/4 is left: connections that hold memory, wait for their clients and have stood still are ended
//   scarce    1/8: so are those that move
//   crowded   1/16: heads that are not complete wait until there is room; the rest is for what is complete
//
// In a small arena more is left than that: what a turn can bring comes before something is done about it.

import { CHUNK_BYTES, type ChunkPool } from './chunk-pool.js';
import { RoomQueue } from './room-queue.js';

/** Chunks: a turn receives a megabyte, and blocks are up to twice as long as what is in them. */
const SHORT_LEAST = 96;
const SCARCE_LEAST = 64;
const CROWDED_LEAST = 16;

export class Pressure {
  /** Connections whose heads wait for room. */
  readonly waiting: RoomQueue;
  /** What the shim holds of bytes that the kernel has not taken, in units of a chunk. The transport writes it. */
  unsent = 0;
  readonly #chunks: ChunkPool;
  readonly #shortAt: number;
  readonly #scarceAt: number;
  readonly #crowdedAt: number;

  constructor(chunks: ChunkPool) {
    this.#chunks = chunks;
    this.#shortAt = markAt(chunks.count, 4, SHORT_LEAST);
    this.#scarceAt = markAt(chunks.count, 8, SCARCE_LEAST);
    this.#crowdedAt = markAt(chunks.count, 16, CROWDED_LEAST);
    this.waiting = new RoomQueue((chunks.count * CHUNK_BYTES) / 16);
  }

  get isShort(): boolean {
    return this.#inUse > this.#shortAt;
  }

  get isScarce(): boolean {
    return this.#inUse > this.#scarceAt;
  }

  get isCrowded(): boolean {
    return this.#inUse > this.#crowdedAt;
  }

  /** Whether something is to be done about it when the turn is over. */
  get needsRelief(): boolean {
    return this.#inUse > this.#shortAt || !this.waiting.isEmpty;
  }

  /** Bytes that may be used until the arena is crowded. */
  get room(): number {
    return (this.#crowdedAt - this.#inUse) * CHUNK_BYTES;
  }

  /** Bytes above the first mark, and a sixteenth more, so that it is not reached again at once. */
  get excess(): number {
    return (this.#inUse - this.#shortAt + this.#chunks.count / 16) * CHUNK_BYTES;
  }

  get #inUse(): number {
    return this.#chunks.inUse + this.unsent;
  }
}

/** Chunks in use at which a part of them is left: at least so many, unless that is twice the part. */
function markAt(count: number, part: number, least: number): number {
  return count - Math.max(Math.ceil(count / part), Math.min(least, Math.floor((2 * count) / part)));
}
