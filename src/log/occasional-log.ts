// A log that limits the rate of lines that peers can cause, and reports how many lines it omitted.

const PERIOD_MS = 10_000;

export class OccasionalLog {
  readonly #write: (text: string) => void;
  readonly #burst: number;
  readonly #periodMs: number;
  #sinceMs = Number.NEGATIVE_INFINITY;
  #written = 0;
  #omitted = 0;

  /** Writes at most `burst` lines per period. */
  constructor(write: (text: string) => void, burst = 1, periodMs = PERIOD_MS) {
    this.#write = write;
    this.#burst = burst;
    this.#periodMs = periodMs;
  }

  log(text: string): void {
    const now = performance.now();
    if (now - this.#sinceMs >= this.#periodMs) {
      this.#sinceMs = now;
      this.#written = 0;
    }
    if (this.#written >= this.#burst) {
      this.#omitted++;
      return;
    }
    this.#written++;
    const omitted = this.#omitted;
    this.#omitted = 0;
    this.#write(omitted === 0 ? text : `${text} (${omitted} similar lines were omitted before it)`);
  }
}
