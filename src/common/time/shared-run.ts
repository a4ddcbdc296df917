// Work requested by many callers at once, done one run at a time.

export class SharedRun {
  readonly #work: () => Promise<void>;
  #running: Promise<void> | undefined;
  #next: Promise<void> | undefined;

  /** `work` performs one run. */
  constructor(work: () => Promise<void>) {
    this.#work = work;
  }

  get isRunning(): boolean {
    return this.#running !== undefined;
  }

  /** Resolves when a run that began after this call has ended. Callers during a run share the next one. */
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
    const run = this.#work().finally(() => {
      if (this.#running === run) this.#running = undefined;
    });
    this.#running = run;
    return run;
  }
}
