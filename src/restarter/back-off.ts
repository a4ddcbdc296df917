// How long to wait before a program that died is started again: not at all at first, then longer and longer.

const FIRST_MS = 1000;
const LONGEST_MS = 30_000;
/** What was live for so long has not failed because of how it was started. */
const HEALTHY_AFTER_MS = 60_000;

export class BackOff {
  #failures = 0;

  /** Milliseconds to wait now: 0, 1000, 2000, 4000 … 30000. */
  next(): number {
    const failures = this.#failures++;
    return failures === 0 ? 0 : Math.min(LONGEST_MS, FIRST_MS * 2 ** (failures - 1));
  }

  /** Tells how long what died had been live. */
  died(liveMs: number): void {
    if (liveMs >= HEALTHY_AFTER_MS) this.#failures = 0;
  }
}
