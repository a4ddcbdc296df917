// Work that is done once for all requests of a turn, and not more often than the thread can bear.

import { Timer, type Timers } from './timing-wheel.js';

export interface PacedRunOptions {
  readonly timers: Timers;
  /** Monotonic milliseconds. */
  readonly now: () => number;
  readonly work: () => void;
  /** Called after each run. Returns the milliseconds before the next one. */
  readonly pauseMs: () => number;
}

export class PacedRun {
  readonly #options: PacedRunOptions;
  readonly #timer = new Timer<PacedRun>(this, run);
  #isDue = false;
  #isStopped = false;
  /** Monotonic time of the next run, at the earliest. */
  #nextMs = Number.NEGATIVE_INFINITY;

  constructor(options: PacedRunOptions) {
    this.#options = options;
  }

  /** Requests a run, in a later turn. */
  request(): void {
    if (this.#isDue || this.#isStopped) return;
    this.#isDue = true;
    const { now, timers } = this.#options;
    const leftMs = this.#nextMs - now();
    if (leftMs > 0) timers.reschedule(this.#timer, leftMs);
    else setImmediate(() => this.run());
  }

  stop(): void {
    this.#isStopped = true;
    this.#options.timers.cancel(this.#timer);
  }

  run(): void {
    this.#isDue = false;
    if (this.#isStopped) return;
    const { now, pauseMs, work } = this.#options;
    work();
    this.#nextMs = now() + pauseMs();
  }
}

function run(paced: PacedRun): void {
  paced.run();
}
