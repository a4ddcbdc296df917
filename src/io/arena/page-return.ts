// Gives the kernel back what an arena has touched and no longer uses. What was in use at the peak of the last seconds stays, so
// that traffic in waves does not pay for its pages with each wave.

import type { Arena } from './arena.js';

/** Calls of step() for which a peak counts: until the end of the period after its own. */
const PERIOD = 3;

/** Chunks that are given back at a time: 16 MiB, one to two milliseconds. */
const MOST_CHUNKS = 256;

export class PageReturn {
  readonly #arena: Arena;
  #peakBefore = 0;
  #calls = 0;

  constructor(arena: Arena) {
    this.#arena = arena;
  }

  /**
   * Called once a second. `release` is called with ranges whose bytes are not needed. Returns whether there are more, for which it may
   * be called again at once.
   */
  step(release: (start: number, bytes: number) => void): boolean {
    const { chunks } = this.#arena;
    this.#arena.collect();
    if (++this.#calls >= PERIOD) {
      this.#calls = 0;
      this.#peakBefore = chunks.resetPeak();
    }
    return this.purge(release);
  }

  /** The rest of a step. */
  purge(release: (start: number, bytes: number) => void): boolean {
    const { chunks } = this.#arena;
    const keep = Math.max(this.#peakBefore, chunks.peak) - chunks.inUse;
    return this.#arena.purge(keep, MOST_CHUNKS, release) === MOST_CHUNKS;
  }
}
