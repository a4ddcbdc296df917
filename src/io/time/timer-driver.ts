// Runs a timing wheel on Node's event loop, with one Node timeout for the earliest timer and none without timers.
//
// Only a timer that is earlier than all others rearms Node's timeout; timers that are scheduled and cancelled (15 s each, 100,000 a second)
// do not. The clock is CLOCK_MONOTONIC as reported by the shim: a worker sets the wheel's time in each turn.
//
// Node runs its timers before it polls sockets. The wheel's timers fire after both, so that after a stall of the thread or machine, input
// that arrived in time is handled before its timeout fires.

import { MAX_TIMER_MS } from '../../common/time/max-timer.js';
import { MAX_CATCH_UP_MS } from '../../common/time/patient-timeout.js';
import { Clock } from './clock.js';
import { type Timer, type Timers, TimingWheel } from './timing-wheel.js';

export class TimerDriver implements Timers {
  readonly wheel: TimingWheel;
  readonly #clock: Clock;
  #timeout: NodeJS.Timeout | undefined;
  /** When #timeout is due. */
  #dueMs = 0;
  /** Set while due timers wait for sockets to be served. */
  #immediate: NodeJS.Immediate | undefined;
  #waitsUntilMs = 0;
  /** The wheel's time of the last turn that due timers waited for. */
  #turnMs = 0;
  #isFiring = false;
  #isClosed = false;

  /** `onError` is called with errors of timer callbacks and must not throw. `clock` is the thread's clock, if it has one. */
  constructor(onError: (error: unknown) => void, clock = new Clock()) {
    this.#clock = clock;
    clock.refresh();
    this.wheel = new TimingWheel({ nowMs: clock.monotonicMs, onError, onEarlier: (atMs) => this.#arm(atMs) });
  }

  /** TimingWheel.reschedule() relative to the current time, for code outside a turn, where the wheel's time is that of the last turn. */
  reschedule(timer: Timer, delayMs: number): void {
    this.#clock.refresh();
    this.wheel.setTime(this.#clock.monotonicMs);
    this.wheel.reschedule(timer, delayMs);
  }

  cancel(timer: Timer): void {
    this.wheel.cancel(timer);
  }

  /** Stops all timers, so that they no longer keep the event loop alive. */
  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timeout);
    clearImmediate(this.#immediate);
  }

  #arm(atMs: number): void {
    if (this.#isFiring || this.#isClosed) return;
    clearTimeout(this.#timeout);
    this.#dueMs = atMs;
    const delayMs = Math.min(Math.max(Math.ceil(atMs - monotonicMs()), 1), MAX_TIMER_MS);
    this.#timeout = setTimeout(this.#onTimeout, delayMs);
  }

  readonly #onTimeout = (): void => {
    if (this.#immediate !== undefined) return;
    const now = monotonicMs();
    this.#waitsUntilMs = now + Math.min(now - this.#dueMs, MAX_CATCH_UP_MS);
    this.#turnMs = this.wheel.nowMs;
    this.#immediate = setImmediate(this.#onServed);
  };

  /** Called after sockets were polled. Sockets that had input may have more. */
  readonly #onServed = (): void => {
    const turnMs = this.wheel.nowMs;
    if (turnMs !== this.#turnMs && monotonicMs() < this.#waitsUntilMs) {
      this.#turnMs = turnMs;
      this.#immediate = setImmediate(this.#onServed);
      return;
    }
    this.#immediate = undefined;
    this.#fire();
  };

  #fire(): void {
    this.#isFiring = true;
    this.#clock.refresh();
    this.wheel.advance(this.#clock.monotonicMs);
    this.#isFiring = false;
    const atMs = this.wheel.nextWakeMs();
    if (atMs !== Number.POSITIVE_INFINITY) this.#arm(atMs);
  }
}

/** Returns CLOCK_MONOTONIC in milliseconds with fraction, the common time base of all threads of the machine. */
export function monotonicMs(): number {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds * 1e3 + nanoseconds / 1e6;
}
