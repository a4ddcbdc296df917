// Back-off before a program that died is restarted: none at first, then longer and longer.

const FIRST_MS = 1000;
const MAX_MS = 30_000;
/** After this time live, a death is not caused by how the program was started. */
const HEALTHY_AFTER_MS = 60_000;

export class BackOff {
  #failures = 0;

  /** Returns the next delay in ms: 0, 1000, 2000, 4000 … 30000. */
  next(): number {
    const failures = this.#failures++;
    return failures === 0 ? 0 : Math.min(MAX_MS, FIRST_MS * 2 ** (failures - 1));
  }

  /** Records a death. `liveMs` is how long the program was live. */
  died(liveMs: number): void {
    if (liveMs >= HEALTHY_AFTER_MS) this.#failures = 0;
  }
}
