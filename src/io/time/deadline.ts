// A timeout that is set often and rarely reached. Setting and clearing it changes a number only; its timer keeps sleeping and checks the
// number when it wakes.

import { Timer, type TimingWheel } from './timing-wheel.js';

const NEVER = Number.POSITIVE_INFINITY;

/** A pending timer keeps its owner alive. An unused owner is released after this long. */
const MAX_SLEEP_MS = 250;

export class Deadline {
  readonly #wheel: TimingWheel;
  readonly #timer: Timer<Deadline>;
  readonly #onReached: () => void;
  /** Both are times of the wheel. The timer wakes at the deadline or earlier. */
  #atMs = NEVER;
  #wakesAtMs = NEVER;

  /** `onReached` is called once for each deadline that passes. */
  constructor(wheel: TimingWheel, onReached: () => void) {
    this.#wheel = wheel;
    this.#timer = new Timer<Deadline>(this, onTimer);
    this.#onReached = onReached;
  }

  /** Replaces the deadline: `delayMs` or slightly more after the wheel's time. */
  set(delayMs: number): void {
    this.#atMs = this.#wheel.nowMs + delayMs;
    if (this.#atMs < this.#wakesAtMs) this.#sleep(delayMs);
  }

  /** Removes the deadline. */
  clear(): void {
    this.#atMs = NEVER;
  }

  /** Called by the timer. */
  wake(): void {
    this.#wakesAtMs = NEVER;
    if (this.#atMs === NEVER) return;
    const leftMs = this.#atMs - this.#wheel.nowMs;
    if (leftMs > 0) return this.#sleep(leftMs);
    this.#atMs = NEVER;
    this.#onReached();
  }

  #sleep(leftMs: number): void {
    const forMs = leftMs < MAX_SLEEP_MS ? leftMs : MAX_SLEEP_MS;
    this.#wakesAtMs = this.#wheel.nowMs + forMs;
    this.#wheel.reschedule(this.#timer, forMs);
  }
}

function onTimer(deadline: Deadline): void {
  deadline.wake();
}
