// A queue in front of the event loop: of all steps that wait in it, each turn of the loop has one.

/**
 * However many tasks go on in steps through one queue, everything else on the thread waits for one step at most. Tasks take
 * turns: a step that is awaited stands behind those that were awaited before.
 */
export class TurnQueue {
  readonly #waiting: (() => void)[] = [];
  #isPostponed = false;
  /** Turns in a row in which no step was made. */
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
    // The step itself runs before the loop goes on, in the promise jobs of this callback.
    if (this.#waiting.length > 0) setImmediate(this.#run);
  };

  /** Resolves in a later turn of the loop, which no other step of the queue has. */
  next(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      if (this.#waiting.length === 1) setImmediate(this.#run);
    });
  }

  /** No step is made in this turn of the loop, because something else goes first; unless there was none for too long. */
  postpone(): void {
    this.#isPostponed = true;
  }
}

/** Steps are postponed at most this often in a row. */
const MAX_PASSED = 16;
