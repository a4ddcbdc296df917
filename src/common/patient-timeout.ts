// A time in which somebody else is to say something. Node looks at its timers before it looks at sockets: after a process or a
// machine has stood still, what has come in the meantime would find that its time is over. Here it is served first.

import { LONGEST_TIMER_MS } from './longest-timer.js';

/** Who has stood still may take as long to serve what has come, but no longer than this. */
const MOST_CATCHING_UP_MS = 1000;

export class PatientTimeout {
  readonly #callback: () => void;
  readonly #dueMs: number;
  #timer: NodeJS.Timeout;
  #immediate: NodeJS.Immediate | undefined;

  /** Calls back once, in so many milliseconds or a little more. */
  constructor(callback: () => void, delayMs: number) {
    const ms = Math.min(LONGEST_TIMER_MS, delayMs);
    this.#callback = callback;
    this.#dueMs = performance.now() + ms;
    this.#timer = setTimeout(() => this.#onDue(), ms);
  }

  clear(): void {
    clearTimeout(this.#timer);
    clearImmediate(this.#immediate);
  }

  #onDue(): void {
    const lateMs = Math.min(performance.now() - this.#dueMs, MOST_CATCHING_UP_MS);
    // By then sockets have been looked at once.
    this.#immediate = setImmediate(() => {
      this.#timer = setTimeout(this.#callback, lateMs);
    });
  }
}
