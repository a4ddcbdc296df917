// Contention in the whole process, for --enable-mutex-tracing: the workers' counts and the primary's long turns.

import { addContention, Contention, type ContentionSums } from '../../common/process/contention.js';

/**
 * Interval of the timer that measures the primary's turns. A turn that delays the timer by more than another interval counts as
 * contention.
 */
const INTERVAL_MS = 10;

export class ContentionWatch {
  readonly #primary = new Contention();
  readonly #workers: readonly Contention[];
  readonly #timer: NodeJS.Timeout;

  constructor(workers: number) {
    this.#workers = Array.from({ length: workers }, () => new Contention());
    let expected = performance.now() + INTERVAL_MS;
    this.#timer = setInterval(() => {
      const now = performance.now();
      const lateMs = now - expected;
      expected = now + INTERVAL_MS;
      if (lateMs > INTERVAL_MS) this.#primary.record(lateMs);
    }, INTERVAL_MS).unref();
  }

  /** Returns the counts of a worker, which outlive it. */
  bufferOf(worker: number): SharedArrayBuffer {
    return this.#workers[worker]!.buffer;
  }

  get sums(): ContentionSums {
    return addContention([this.#primary, ...this.#workers].map((each) => each.sums));
  }

  close(): void {
    clearInterval(this.#timer);
  }
}
