// A queue in front of the event loop: of all steps that wait in it, each turn of the loop has one.

/**
 * However many tasks go on in steps through one queue, everything else on the thread waits for one step at most. Tasks take
 * turns: a step that is awaited stands behind those that were awaited before.
 */
export class TurnQueue {
  readonly #waiting: (() => void)[] = [];
  readonly #run = () => {
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
}
