// Shows the primary that this worker's event loop is running.

import { monotonicMs } from '../../io/time/timer-driver.js';

/** Where and how often the time is recorded; plain data. */
export interface HeartbeatStart {
  /** A Float64 per worker: its last heartbeat, in ms of CLOCK_MONOTONIC; 0 before the first. */
  readonly beats: SharedArrayBuffer;
  readonly everyMs: number;
}

export class Heartbeat {
  readonly #words: Float64Array;
  readonly #index: number;
  readonly #timer: NodeJS.Timeout;

  /** `index`: that of the worker. The timer is unreferenced. */
  constructor({ beats, everyMs }: HeartbeatStart, index: number) {
    this.#words = new Float64Array(beats);
    this.#index = index;
    this.#timer = setInterval(() => this.beat(), everyMs).unref();
  }

  /** Also called when the worker begins to serve: it may be blocked by its first request, before the timer fires. */
  beat(): void {
    this.#words[this.#index] = monotonicMs();
  }

  stop(): void {
    clearInterval(this.#timer);
  }
}
