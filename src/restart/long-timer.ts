// A timer of seconds that may be as many as an option allows: Node's own end after 24 days.

import { LONGEST_TIMER_MS } from '../common/longest-timer.js';

export class LongTimer {
  #timer: NodeJS.Timeout | undefined;

  /** Calls back once, in that many milliseconds; what was set before is forgotten. */
  set(ms: number, callback: () => void): void {
    clearTimeout(this.#timer);
    this.#timer =
      ms <= LONGEST_TIMER_MS
        ? setTimeout(callback, ms)
        : setTimeout(() => this.set(ms - LONGEST_TIMER_MS, callback), LONGEST_TIMER_MS);
  }

  clear(): void {
    clearTimeout(this.#timer);
  }
}
