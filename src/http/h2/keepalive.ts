// connection_keepalive: a ping when an interval has passed, and the end of the connection without an answer.

import type { Random } from '../../common/random.js';
import type { Http2Options } from '../codec/options.js';

export class Keepalive {
  /** Set by check(): send a ping now, or end the connection. */
  isPingDue = false;
  isPeerLost = false;
  readonly #options: Http2Options;
  readonly #random: Random;
  /** When the next ping is due, and when the last one was sent (monotonic); 0: not yet. */
  #nextMs = 0;
  #sentMs = 0;
  /** A ping is due before the interval has passed. */
  #isRequested = false;

  constructor(options: Http2Options, random: Random) {
    this.#options = options;
    this.#random = random;
  }

  answered(): void {
    this.#sentMs = 0;
  }

  /** Makes a ping due at the next check(). Returns false if there is one, or the last one was not answered yet. */
  request(): boolean {
    if (this.#sentMs !== 0 || this.#isRequested) return false;
    this.#isRequested = true;
    return true;
  }

  /** Returns the milliseconds after which to check again. */
  check(now: number): number {
    const { keepaliveIntervalMs: intervalMs, keepaliveTimeoutMs: timeoutMs } = this.#options;
    this.isPingDue = this.isPeerLost = false;
    if (this.#sentMs !== 0) {
      const left = this.#sentMs + timeoutMs - now;
      this.isPeerLost = left <= 0;
      // The answer may come at any time, and the next ping follows it.
      return Math.max(1, intervalMs === 0 ? left : Math.min(left, intervalMs));
    }
    if (!this.#isRequested) {
      if (intervalMs === 0) return Number.POSITIVE_INFINITY;
      if (this.#nextMs === 0) this.#nextMs = now + this.#jittered(intervalMs);
      if (now < this.#nextMs) return this.#nextMs - now;
    }
    this.#isRequested = false;
    this.isPingDue = true;
    this.#sentMs = now;
    if (intervalMs === 0) return timeoutMs;
    this.#nextMs = now + this.#jittered(intervalMs);
    return Math.min(timeoutMs, intervalMs);
  }

  #jittered(intervalMs: number): number {
    const jitterMs = Math.floor((this.#options.keepaliveJitterPercent * intervalMs) / 100);
    return jitterMs === 0 ? intervalMs : intervalMs + (this.#random.nextUint32() % jitterMs);
  }
}
