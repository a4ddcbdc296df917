// Runs a timing wheel on Node's event loop: one timeout for the earliest timer, none while there is no timer.
//
// Only a timer that is earlier than all before it touches Node; timeouts that come and go (15 s each, 100,000 a second)
// move no Node timer. The clock is CLOCK_MONOTONIC, as the shim reports it: a worker tells the wheel the time of each turn
// and calls advance() when the turn ends, and the driver serves the time in between.

import { LONGEST_TIMER_MS } from '../common/longest-timer.js';
import { Clock } from './clock.js';
import { type Timer, type Timers, TimingWheel } from './timing-wheel.js';

export class TimerDriver implements Timers {
  readonly wheel: TimingWheel;
  readonly #clock: Clock;
  #timeout: NodeJS.Timeout | undefined;
  #isFiring = false;
  #isClosed = false;

  /** `onError` gets what timers' callbacks throw, and must not throw itself; `clock` is the thread's, if it has one. */
  constructor(onError: (error: unknown) => void, clock = new Clock()) {
    this.#clock = clock;
    clock.refresh();
    this.wheel = new TimingWheel({ nowMs: clock.monotonicMs, onError, onEarlier: (atMs) => this.#arm(atMs) });
  }

  /** TimingWheel.reschedule() from now: for code outside a turn, where the wheel's own time is that of the last turn. */
  reschedule(timer: Timer, delayMs: number): void {
    this.#clock.refresh();
    this.wheel.setTime(this.#clock.monotonicMs);
    this.wheel.reschedule(timer, delayMs);
  }

  cancel(timer: Timer): void {
    this.wheel.cancel(timer);
  }

  /** No timer fires any more, and nothing keeps the event loop alive. */
  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timeout);
  }

  #arm(atMs: number): void {
    if (this.#isFiring || this.#isClosed) return;
    clearTimeout(this.#timeout);
    const delayMs = Math.min(Math.max(Math.ceil(atMs - monotonicMs()), 1), LONGEST_TIMER_MS);
    this.#timeout = setTimeout(this.#onTimeout, delayMs);
  }

  readonly #onTimeout = (): void => {
    this.#isFiring = true;
    this.#clock.refresh();
    this.wheel.advance(this.#clock.monotonicMs);
    this.#isFiring = false;
    const atMs = this.wheel.nextWakeMs();
    if (atMs !== Number.POSITIVE_INFINITY) this.#arm(atMs);
  };
}

/** CLOCK_MONOTONIC in milliseconds with fraction: one time base in all threads of the machine. */
export function monotonicMs(): number {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds * 1e3 + nanoseconds / 1e6;
}
