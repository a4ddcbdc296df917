// The outcomes of the requests of the last seconds, in one sample for each second with requests.

const SAMPLE_MS = 1000;

interface Sample {
  readonly startMs: number;
  requests: number;
  successes: number;
}

export class RecentOutcomes {
  requests = 0;
  successes = 0;
  readonly #windowMs: number;
  /** The oldest first; as many as the window has seconds at most. */
  readonly #samples: Sample[] = [];

  constructor(windowMs: number) {
    this.#windowMs = windowMs;
  }

  record(isSuccess: boolean, nowMs: number): void {
    this.advance(nowMs);
    let sample = this.#samples.at(-1);
    if (sample === undefined || nowMs - sample.startMs >= SAMPLE_MS)
      this.#samples.push((sample = { startMs: nowMs, requests: 0, successes: 0 }));
    sample.requests++;
    this.requests++;
    if (!isSuccess) return;
    sample.successes++;
    this.successes++;
  }

  /** Forgets samples that have left the window. */
  advance(nowMs: number): void {
    const samples = this.#samples;
    while (samples.length > 0 && nowMs - samples[0]!.startMs >= this.#windowMs) {
      const { requests, successes } = samples.shift()!;
      this.requests -= requests;
      this.successes -= successes;
    }
  }

  /** Returns the whole requests per second since the oldest sample. */
  averageRps(nowMs: number): number {
    this.advance(nowMs);
    const oldest = this.#samples[0];
    if (oldest === undefined) return 0;
    return Math.floor(this.requests / Math.max(1, Math.floor((nowMs - oldest.startMs) / 1000)));
  }
}
