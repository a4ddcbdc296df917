// The last response of a host to a health check, cached for cache_time.

import type { Clock } from '../../../sdk.js';

export class CachedAnswer {
  /** 0: no host has answered yet. */
  status = 0;
  isDegraded = false;
  readonly #clock: Clock;
  readonly #forMs: number;
  #untilMs = 0;

  constructor(clock: Clock, forMs: number) {
    this.#clock = clock;
    this.#forMs = forMs;
  }

  get isFresh(): boolean {
    return this.#clock.monotonicMs < this.#untilMs;
  }

  keep(status: number, isDegraded: boolean): void {
    this.status = status;
    this.isDegraded = isDegraded;
    this.#untilMs = this.#clock.monotonicMs + this.#forMs;
  }
}
