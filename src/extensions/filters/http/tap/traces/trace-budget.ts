// Limits the trace bytes in flight from each worker to the tapping client. The counts are in shared memory.
//
// A slow client must neither block traffic nor fill memory: a trace without budget is dropped and counted.

/** Maximum trace bytes in flight, of all workers together. */
const LIMIT = 16 * 1024 * 1024;

export class TraceBudget {
  readonly buffer: SharedArrayBuffer;
  /** Bytes in flight by worker; the last word counts lost traces. */
  readonly #words: Int32Array;
  /** The budget of each worker. */
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
   * On the worker: reserves the budget for a trace. Returns false, and counts the trace as lost, if there is none. A trace that
   * is larger than the whole budget may be sent alone.
   */
  tryTake(worker: number, bytes: number): boolean {
    // Only this worker adds to the word, so free budget stays free.
    const taken = Atomics.load(this.#words, worker);
    const isFree = taken <= 0 || taken + bytes <= this.#limit;
    if (isFree) Atomics.add(this.#words, worker, bytes);
    else Atomics.add(this.#words, this.#words.length - 1, 1);
    return isFree;
  }

  /** On the primary: called when a trace was sent to the client. */
  release(worker: number, bytes: number): void {
    Atomics.sub(this.#words, worker, bytes);
  }

  /** On the primary: called when a worker has died. Traces that it had sent may be lost. */
  releaseWorker(worker: number): void {
    Atomics.store(this.#words, worker, 0);
  }

  get lost(): number {
    return Atomics.load(this.#words, this.#words.length - 1);
  }
}
