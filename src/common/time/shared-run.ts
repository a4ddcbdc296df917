// Flushes of the stats, one at a time.

export class StatsFlush {
  readonly #flush: () => Promise<void>;
  #running: Promise<void> | undefined;
  #next: Promise<void> | undefined;

  /** `flush` is one of them. */
  constructor(flush: () => Promise<void>) {
    this.#flush = flush;
  }

  get isRunning(): boolean {
    return this.#running !== undefined;
  }

  /** Resolves when a flush that began after this call has ended: all who ask while one runs share the next. */
  run(): Promise<void> {
    if (this.#next !== undefined) return this.#next;
    if (this.#running === undefined) return this.#start();
    const next = () => {
      this.#next = undefined;
      return this.#start();
    };
    this.#next = this.#running.then(next, next);
    return this.#next;
  }

  #start(): Promise<void> {
    const flush = this.#flush().finally(() => {
      if (this.#running === flush) this.#running = undefined;
    });
    this.#running = flush;
    return flush;
  }
}
