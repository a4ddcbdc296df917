// Back-off before a stream is reopened: a random part of an interval that doubles, so that clients do not all reconnect at once
// to a restarted server.

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

  /** Returns the next delay in ms. */
  next(): number {
    const intervalMs = this.#intervalMs;
    this.#intervalMs = Math.min(this.#maxMs, intervalMs * 2);
    return this.#random.fraction() * intervalMs;
  }

  /** Restarts at the base interval after a success. */
  reset(): void {
    this.#intervalMs = this.#baseMs;
  }
}
