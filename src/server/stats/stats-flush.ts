// Flushes of the stats, one at a time, in steps between which the primary answers others.

import { inTurns } from '../../common/next-turn.js';
import type { StatsStore } from '../../stats/store.js';

/** What surrounds the merging of histograms in a flush. */
export interface FlushSteps {
  begin(): Promise<void>;
  /** Whether this flush merges them. */
  mergesHistograms(): boolean;
  /** Gives the flush to whoever takes it: the flush is over when that is done. */
  end(): Promise<void>;
}

export class StatsFlush {
  readonly #store: StatsStore;
  readonly #steps: FlushSteps;
  #running: Promise<void> | undefined;
  #next: Promise<void> | undefined;

  constructor(store: StatsStore, steps: FlushSteps) {
    this.#store = store;
    this.#steps = steps;
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

  async #flush(): Promise<void> {
    await this.#steps.begin();
    if (this.#steps.mergesHistograms()) await inTurns(this.#store.flushInSteps());
    await this.#steps.end();
  }
}
