// How close a thread is to its memory limit, which covers the chunks of its arena and the unsent bytes that the shim holds. At each mark
// less is allowed, so that requests in progress can finish:
//
//   short     1/4 is left: connections that hold memory and wait for clients without progress are ended
//   scarce    1/8 is left: so are those with progress
//   crowded   1/16 is left: incomplete request heads wait for room; the rest is for complete ones
//
// In a small arena the marks leave more than that, because relief runs only after a turn, which may receive a lot.

import { CHUNK_BYTES, type ChunkPool } from './chunk-pool.js';
import { RoomQueue } from './room-queue.js';

/** Minimum chunks left at each mark: a turn receives up to a megabyte, and blocks are up to twice as long as their contents. */
const MIN_SHORT = 96;
const MIN_SCARCE = 64;
const MIN_CROWDED = 16;

export class Pressure {
  /** Connections with a request head that waits for room. */
  readonly waiting: RoomQueue;
  /** Unsent bytes that the shim holds, in chunks. Set by the transport. */
  unsent = 0;
  readonly #chunks: ChunkPool;
  readonly #shortAt: number;
  readonly #scarceAt: number;
  readonly #crowdedAt: number;

  constructor(chunks: ChunkPool) {
    this.#chunks = chunks;
    this.#shortAt = markAt(chunks.count, 4, MIN_SHORT);
    this.#scarceAt = markAt(chunks.count, 8, MIN_SCARCE);
    this.#crowdedAt = markAt(chunks.count, 16, MIN_CROWDED);
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

  /** Whether MemoryRelief must run at the end of the turn. */
  get needsRelief(): boolean {
    return this.#inUse > this.#shortAt || !this.waiting.isEmpty;
  }

  /** Bytes that may still be used before the arena is crowded. */
  get room(): number {
    return (this.#crowdedAt - this.#inUse) * CHUNK_BYTES;
  }

  /** Bytes to free: those above the first mark plus a sixteenth of the arena, so that the mark is not reached again at once. */
  get excess(): number {
    return (this.#inUse - this.#shortAt + this.#chunks.count / 16) * CHUNK_BYTES;
  }

  get #inUse(): number {
    return this.#chunks.inUse + this.unsent;
  }
}

/** Returns the chunks in use at which 1/`part` of them is left, or `least` chunks if that is more, but at most 2/`part`. */
function markAt(count: number, part: number, least: number): number {
  return count - Math.max(Math.ceil(count / part), Math.min(least, Math.floor((2 * count) / part)));
}
