// A timeout for a message from a peer. Node runs timers before it polls sockets: after the process or the machine was
// stopped for a while, the timeout would fire before messages that arrived in the meantime. Here they are handled first.

import { MAX_TIMER_MS } from './max-timer.js';

/** After a stop, received messages are handled for as long as the timer is late, but at most for this time. */
export const MAX_CATCH_UP_MS = 1000;

export class PatientTimeout {
  readonly #callback: () => void;
  readonly #dueMs: number;
  #timer: NodeJS.Timeout;
  #immediate: NodeJS.Immediate | undefined;

  /** Calls `callback` once after `delayMs` or slightly more; `delayMs` may exceed Node's longest timer. */
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
    if (leftMs <= MAX_TIMER_MS) return setTimeout(() => this.#onDue(), leftMs);
    return setTimeout(() => {
      this.#timer = this.#wait();
    }, MAX_TIMER_MS);
  }

  #onDue(): void {
    // Node's timers may fire a fraction of a millisecond early, and Node 24 warns about a negative time.
    const lateMs = Math.min(Math.max(0, performance.now() - this.#dueMs), MAX_CATCH_UP_MS);
    // Sockets are polled once before that.
    this.#immediate = setImmediate(() => {
      this.#timer = setTimeout(this.#callback, lateMs);
    });
  }
}
