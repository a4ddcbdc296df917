// A timeout that is set for each of many things in turn and is hardly ever reached: setting and lifting it is a number that
// changes, while its timer sleeps on and looks again when it wakes.

import { Timer, type TimingWheel } from './timing-wheel.js';

const NEVER = Number.POSITIVE_INFINITY;

/** A timer holds whoever waits for it: one that has gone since is let go after this long. */
const LONGEST_SLEEP_MS = 250;

export class Deadline {
  readonly #wheel: TimingWheel;
  readonly #timer: Timer<Deadline>;
  readonly #onReached: () => void;
  /** Both on the wheel's clock. The timer wakes no later than at the deadline. */
  #atMs = NEVER;
  #wakesAtMs = NEVER;

  /** `onReached` is called once each time that the deadline passes. */
  constructor(wheel: TimingWheel, onReached: () => void) {
    this.#wheel = wheel;
    this.#timer = new Timer<Deadline>(this, onTimer);
    this.#onReached = onReached;
  }

  /** The deadline is `delayMs` or a little more from the wheel's time; the one before does not count any more. */
  set(delayMs: number): void {
    this.#atMs = this.#wheel.nowMs + delayMs;
    if (this.#atMs < this.#wakesAtMs) this.#sleep(delayMs);
  }

  /** There is none. */
  lift(): void {
    this.#atMs = NEVER;
  }

  /** For the timer. */
  wake(): void {
    this.#wakesAtMs = NEVER;
    if (this.#atMs === NEVER) return;
    const leftMs = this.#atMs - this.#wheel.nowMs;
    if (leftMs > 0) return this.#sleep(leftMs);
    this.#atMs = NEVER;
    this.#onReached();
  }

  #sleep(leftMs: number): void {
    const forMs = leftMs < LONGEST_SLEEP_MS ? leftMs : LONGEST_SLEEP_MS;
    this.#wakesAtMs = this.#wheel.nowMs + forMs;
    this.#wheel.reschedule(this.#timer, forMs);
  }
}

function onTimer(deadline: Deadline): void {
  deadline.wake();
}
