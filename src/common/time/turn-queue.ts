// A queue of steps before the event loop: each turn of the loop runs one of the waiting steps.

/**
 * However many tasks share one queue, everything else on the thread waits for one step at most. Tasks alternate: steps run
 * in the order in which they were awaited.
 */
export class TurnQueue {
  readonly #waiting: (() => void)[] = [];
  #isPostponed = false;
  /** Consecutive turns without a step. */
  #passed = 0;
  readonly #run = () => {
    if (this.#isPostponed && this.#passed < MAX_PASSED) {
      this.#isPostponed = false;
      this.#passed++;
      setImmediate(this.#run);
      return;
    }
    this.#isPostponed = false;
    this.#passed = 0;
    this.#waiting.shift()!();
    // The step itself runs in the promise jobs of this callback, before the loop continues.
    if (this.#waiting.length > 0) setImmediate(this.#run);
  };

  /** Resolves in a later turn of the loop that runs no other step of the queue. */
  next(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      if (this.#waiting.length === 1) setImmediate(this.#run);
    });
  }

  /** Skips the step of this turn in favour of more urgent work, at most MAX_PASSED times in a row. */
  postpone(): void {
    this.#isPostponed = true;
  }
}

/** Maximum number of consecutive turns in which steps are postponed. */
const MAX_PASSED = 16;
