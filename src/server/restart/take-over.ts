// How far a child process is with taking over from this one.

export class TakeOver {
  #isDone = false;
  #settled: Promise<void> | undefined;
  #settle = () => {};

  /** A child process has been given the listen sockets, and has not taken over. */
  get isBeginning(): boolean {
    return this.#settled !== undefined;
  }

  /** Resolves when that one has taken over, or is gone; undefined when none begins. Never if this process ends before. */
  get settled(): Promise<void> | undefined {
    return this.#settled;
  }

  /** A child process has taken over, and lives. */
  get isDone(): boolean {
    return this.#isDone;
  }

  begin(): void {
    // A child that asks again finds those who wait for it still waiting.
    this.#settled ??= new Promise((resolve) => {
      this.#settle = resolve;
    });
  }

  done(): void {
    this.#isDone = true;
    this.lost();
  }

  /** The child process that had taken over is dead, and this one serves again. */
  undone(): void {
    this.#isDone = false;
  }

  /** The child process is gone before it took over. */
  lost(): void {
    this.#settled = undefined;
    this.#settle();
  }
}
