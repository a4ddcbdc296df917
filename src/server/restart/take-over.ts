// The progress of a child process in taking over from this one.

export class TakeOver {
  #isDone = false;
  #settled: Promise<void> | undefined;
  #settle = () => {};

  /** A child process has the listen sockets but has not taken over yet. */
  get isBeginning(): boolean {
    return this.#settled !== undefined;
  }

  /** Resolves when that child has taken over or is gone; undefined without one. Never resolves if this process ends first. */
  get settled(): Promise<void> | undefined {
    return this.#settled;
  }

  /** A child process has taken over and is alive. */
  get isDone(): boolean {
    return this.#isDone;
  }

  begin(): void {
    // A repeated request of a child keeps the present promise.
    this.#settled ??= new Promise((resolve) => {
      this.#settle = resolve;
    });
  }

  done(): void {
    this.#isDone = true;
    this.lost();
  }

  /** Called when the child process that had taken over is dead, and this one serves again. */
  undone(): void {
    this.#isDone = false;
  }

  /** Called when the child process has ended before it took over. */
  lost(): void {
    this.#settled = undefined;
    this.#settle();
  }
}
