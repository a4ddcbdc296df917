// How many bytes of traces may be on their way from each worker to whoever taps: words that workers and primary share.
//
// A client that reads slowly must neither block traffic nor fill memory: what a worker has no budget for is lost, and counted.

/** Bytes of traces that the client has not taken, of all workers together. */
const LIMIT = 16 * 1024 * 1024;

export class TraceBudget {
  readonly buffer: SharedArrayBuffer;
  /** By worker; behind them how many traces were lost. */
  readonly #words: Int32Array;
  /** The part of each worker. */
  readonly #limit: number;

  constructor(buffer: SharedArrayBuffer) {
    this.buffer = buffer;
    this.#words = new Int32Array(buffer);
    this.#limit = LIMIT / (this.#words.length - 1);
  }

  static of(workers: number): TraceBudget {
    return new TraceBudget(new SharedArrayBuffer((workers + 1) * Int32Array.BYTES_PER_ELEMENT));
  }

  /**
   * On the worker: whether a trace of that size may be sent; it is counted as lost otherwise. One that is larger than the
   * whole budget may go alone.
   */
  tryTake(worker: number, bytes: number): boolean {
    // Nobody else adds to the word: what is free now stays free.
    const taken = Atomics.load(this.#words, worker);
    const isFree = taken <= 0 || taken + bytes <= this.#limit;
    if (isFree) Atomics.add(this.#words, worker, bytes);
    else Atomics.add(this.#words, this.#words.length - 1, 1);
    return isFree;
  }

  /** On the primary: a trace has left. */
  giveBack(worker: number, bytes: number): void {
    Atomics.sub(this.#words, worker, bytes);
  }

  /** On the primary: the worker is gone, and with it what it had sent and nobody has received. */
  forget(worker: number): void {
    Atomics.store(this.#words, worker, 0);
  }

  get lost(): number {
    return Atomics.load(this.#words, this.#words.length - 1);
  }
}
