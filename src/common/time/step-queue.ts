// Long work in steps, one task after the other: a new task waits for the one in progress.

import { nextTurn } from './next-turn.js';

export class StepQueue {
  /** Resolves when the last task has ended. */
  #last: Promise<unknown> = Promise.resolve();
  /** Number of unfinished tasks. */
  #pending = 0;
  #isClosed = false;

  /** A task is in progress. */
  get isBusy(): boolean {
    return this.#pending > 0;
  }

  /**
   * Takes the first step immediately unless another task is in progress, and each further step in a new turn of the loop.
   * Resolves with the result of `work`, or with undefined if the queue is closed first.
   */
  run<Result>(work: Iterator<void, Result>): Promise<Result | undefined> {
    const run = this.#run(work, this.isBusy ? this.#last : undefined);
    this.#last = run.catch(() => {});
    return run;
  }

  /** Stops before the next step. */
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
