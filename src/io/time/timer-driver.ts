// Runs a timing wheel on Node's event loop: one timeout for the earliest timer, none while there is no timer.
//
// Only a timer that is earlier than all before it touches Node; timeouts that come and go (15 s each, 100,000 a second)
// move no Node timer. The clock is CLOCK_MONOTONIC, as the shim reports it: a worker tells the wheel the time of each turn.
//
// Node looks at its timers before it looks at sockets. Timers fire when it has done both: after a thread or a machine has stood
// still, what has come in the meantime is served first, and is not late.

import { LONGEST_TIMER_MS } from '../../common/time/longest-timer.js';
import { MOST_CATCHING_UP_MS } from '../../common/time/patient-timeout.js';
import { Clock } from './clock.js';
import { type Timer, type Timers, TimingWheel } from './timing-wheel.js';

export class TimerDriver implements Timers {
  readonly wheel: TimingWheel;
  readonly #clock: Clock;
  #timeout: NodeJS.Timeout | undefined;
  /** When that is to fire. */
  #dueMs = 0;
  /** Timers are due, and wait for sockets. */
  #immediate: NodeJS.Immediate | undefined;
  #waitsUntilMs = 0;
  /** The wheel's time of the last turn that they have waited for. */
  #turnMs = 0;
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
    clearImmediate(this.#immediate);
  }

  #arm(atMs: number): void {
    if (this.#isFiring || this.#isClosed) return;
    clearTimeout(this.#timeout);
    this.#dueMs = atMs;
    const delayMs = Math.min(Math.max(Math.ceil(atMs - monotonicMs()), 1), LONGEST_TIMER_MS);
    this.#timeout = setTimeout(this.#onTimeout, delayMs);
  }

  readonly #onTimeout = (): void => {
    if (this.#immediate !== undefined) return;
    const now = monotonicMs();
    this.#waitsUntilMs = now + Math.min(now - this.#dueMs, MOST_CATCHING_UP_MS);
    this.#turnMs = this.wheel.nowMs;
    this.#immediate = setImmediate(this.#onServed);
  };

  /** Sockets have been looked at. Those that had something may have more. */
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

/** CLOCK_MONOTONIC in milliseconds with fraction: one time base in all threads of the machine. */
export function monotonicMs(): number {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds * 1e3 + nanoseconds / 1e6;
}
