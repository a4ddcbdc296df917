// Long work in steps, one after the other: what comes while one goes on waits behind it.

import { nextTurn } from './next-turn.js';

export class StepQueue {
  /** Resolves with the last work. */
  #last: Promise<unknown> = Promise.resolve();
  /** How many are not done. */
  #pending = 0;
  #isClosed = false;

  /** Work is under way. */
  get isBusy(): boolean {
    return this.#pending > 0;
  }

  /**
   * Takes the first step at once unless other work is under way, and each further one in another turn of the loop. Resolves with what
   * `work` returns, or with undefined if the queue is closed before.
   */
  run<Result>(work: Iterator<void, Result>): Promise<Result | undefined> {
    const run = this.#run(work, this.isBusy ? this.#last : undefined);
    this.#last = run.catch(() => {});
    return run;
  }

  /** Begins no further step. */
  close(): void {
    this.#isClosed = true;
  }

  async #run<Result>(work: Iterator<void, Result>, before: Promise<unknown> | undefined): Promise<Result | undefined> {
    this.#pending++;
    try {
      if (before !== undefined) await before;
      while (!this.#isClosed) {
        const { done, value } = work.next();
        if (done === true) return value;
        await nextTurn();
      }
      return undefined;
    } finally {
      this.#pending--;
    }
  }
}
