// A time in which somebody else is to say something. Node looks at its timers before it looks at sockets: after a process or a
// machine has stood still, what has come in the meantime would find that its time is over. Here it is served first.

import { LONGEST_TIMER_MS } from './longest-timer.js';

/** Who has stood still may take as long to serve what has come, but no longer than this. */
export const MOST_CATCHING_UP_MS = 1000;

export class PatientTimeout {
  readonly #callback: () => void;
  readonly #dueMs: number;
  #timer: NodeJS.Timeout;
  #immediate: NodeJS.Immediate | undefined;

  /** Calls back once, in so many milliseconds or a little more; they may be more than a timer of Node's takes. */
  constructor(callback: () => void, delayMs: number) {
    this.#callback = callback;
    this.#dueMs = performance.now() + delayMs;
    this.#timer = this.#wait();
  }

  clear(): void {
    clearTimeout(this.#timer);
    clearImmediate(this.#immediate);
  }

  #wait(): NodeJS.Timeout {
    const leftMs = Math.max(0, Math.ceil(this.#dueMs - performance.now()));
    if (leftMs <= LONGEST_TIMER_MS) return setTimeout(() => this.#onDue(), leftMs);
    return setTimeout(() => {
      this.#timer = this.#wait();
    }, LONGEST_TIMER_MS);
  }

  #onDue(): void {
    // Node's timers may be early by a part of a millisecond, and Node 24 warns the user of a negative time.
    const lateMs = Math.min(Math.max(0, performance.now() - this.#dueMs), MOST_CATCHING_UP_MS);
    // By then sockets have been looked at once.
    this.#immediate = setImmediate(() => {
      this.#timer = setTimeout(this.#callback, lateMs);
    });
  }
}
