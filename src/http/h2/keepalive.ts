// connection_keepalive: a ping when an interval has passed, and the end of the connection without an answer.

import type { Http2Options } from '../codec/options.js';

export class Keepalive {
  /** Set by check(): send a ping now, or end the connection. */
  isPingDue = false;
  isPeerLost = false;
  readonly #options: Http2Options;
  /** When the next ping is due, and when the last one was sent (monotonic); 0: not yet. */
  #nextMs = 0;
  #sentMs = 0;

  constructor(options: Http2Options) {
    this.#options = options;
  }

  answered(): void {
    this.#sentMs = 0;
  }

  /** Returns the milliseconds after which to check again. */
  check(now: number): number {
    const { keepaliveIntervalMs: intervalMs, keepaliveTimeoutMs: timeoutMs } = this.#options;
    this.isPingDue = this.isPeerLost = false;
    if (intervalMs === 0) return Number.POSITIVE_INFINITY;
    if (this.#sentMs !== 0) {
      const left = this.#sentMs + timeoutMs - now;
      this.isPeerLost = left <= 0;
      // The answer may come at any time, and the next ping follows it.
      return Math.max(1, Math.min(left, intervalMs));
    }
    if (this.#nextMs === 0) this.#nextMs = now + intervalMs;
    if (now < this.#nextMs) return this.#nextMs - now;
    this.isPingDue = true;
    this.#sentMs = now;
    this.#nextMs = now + intervalMs;
    return Math.min(timeoutMs, intervalMs);
  }
}
