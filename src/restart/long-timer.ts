// A timer of seconds that may be as many as an option allows: Node's own end after 24 days.

import { LONGEST_TIMER_MS } from '../common/longest-timer.js';
import { PatientTimeout } from '../common/patient-timeout.js';

export class LongTimer {
  #timer: PatientTimeout | undefined;

  /** Calls back once, in that many milliseconds; what was set before is forgotten. */
  set(ms: number, callback: () => void): void {
    this.#timer?.clear();
    this.#timer =
      ms <= LONGEST_TIMER_MS
        ? new PatientTimeout(callback, ms)
        : new PatientTimeout(() => this.set(ms - LONGEST_TIMER_MS, callback), LONGEST_TIMER_MS);
  }

  clear(): void {
    this.#timer?.clear();
  }
}
