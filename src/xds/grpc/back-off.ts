// How long to wait before a stream is opened again: anything up to an interval that doubles, so that clients of a server that
// comes back do not come all at once.

import type { Random } from '../../common/random.js';

export class BackOff {
  readonly #baseMs: number;
  readonly #maxMs: number;
  readonly #random: Random;
  #intervalMs: number;

  constructor(baseMs: number, maxMs: number, random: Random) {
    this.#baseMs = baseMs;
    this.#maxMs = maxMs;
    this.#random = random;
    this.#intervalMs = baseMs;
  }

  /** Milliseconds to wait now. */
  next(): number {
    const intervalMs = this.#intervalMs;
    this.#intervalMs = Math.min(this.#maxMs, intervalMs * 2);
    return this.#random.fraction() * intervalMs;
  }

  /** It works again. */
  reset(): void {
    this.#intervalMs = this.#baseMs;
  }
}
