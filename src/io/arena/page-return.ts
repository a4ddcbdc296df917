// Returns unused pages of an arena to the kernel. Pages up to the peak of the last seconds are kept, so that bursty traffic does not fault
// them in again with each burst.

import type { Arena } from './arena.js';

/** Length of a period in calls of step(). A peak counts until the end of the next period. */
const PERIOD = 3;

/** Maximum chunks that one call releases: 16 MiB, one to two milliseconds. */
const MAX_CHUNKS = 256;

export class PageReturn {
  readonly #arena: Arena;
  #peakBefore = 0;
  #calls = 0;

  constructor(arena: Arena) {
    this.#arena = arena;
  }

  /** Called once a second. Calls `release` with ranges of unused pages. Returns whether there are more, for purge(). */
  step(release: (start: number, bytes: number) => void): boolean {
    const { chunks } = this.#arena;
    this.#arena.collect();
    if (++this.#calls >= PERIOD) {
      this.#calls = 0;
      this.#peakBefore = chunks.resetPeak();
    }
    return this.purge(release);
  }

  /** Continues a step. Returns whether there are more pages to release. */
  purge(release: (start: number, bytes: number) => void): boolean {
    const { chunks } = this.#arena;
    const keep = Math.max(this.#peakBefore, chunks.peak) - chunks.inUse;
    return this.#arena.purge(keep, MAX_CHUNKS, release) === MAX_CHUNKS;
  }
}
