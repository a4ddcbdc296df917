// Contention of the whole process, while --enable-mutex-tracing asks for it: what workers count, and the primary's long turns.

import { addContention, Contention, type ContentionSums } from '../../common/process/contention.js';

/** How often the primary's turns are looked at; a turn that makes a timer later than this again has kept others waiting. */
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

  /** The numbers of a worker; they outlive it. */
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
