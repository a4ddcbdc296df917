// Numbers that identify the connections of a process, in logs. Each thread has its own sequence.

export class ConnectionSerials {
  #last = 0;
  #step = 1;

  /** Continues with every `step`-th number after `last`. */
  begin(last: number, step: number): void {
    this.#last = last;
    this.#step = step;
  }

  next(): number {
    this.#last += this.#step;
    return this.#last;
  }
}
