// How often threads contended and how long they waited: counted with --enable-mutex-tracing, shown by GET /contention.
//
// Baton has no mutexes. Threads contend for limits that several of them change at the same moment (the loser retries), and
// for the primary's turns: a request to the primary waits until the current turn is over.

/** Sums of one or several threads, in nanoseconds. */
export interface ContentionSums {
  readonly count: number;
  /** The most recent wait. */
  readonly lastNs: number;
  readonly totalNs: number;
}

/** The numbers of one thread, which is their only writer. */
export class Contention {
  /** Shared with other threads by postMessage(). */
  readonly buffer: SharedArrayBuffer;
  readonly #numbers: Float64Array;

  /** @param buffer numbers to continue; allocated if absent */
  constructor(buffer: SharedArrayBuffer = new SharedArrayBuffer(3 * Float64Array.BYTES_PER_ELEMENT)) {
    this.buffer = buffer;
    this.#numbers = new Float64Array(buffer);
  }

  /** Records a wait that has ended. */
  record(waitedMs: number): void {
    const waitedNs = Math.round(waitedMs * 1e6);
    this.#numbers[0]! += 1;
    this.#numbers[1] = waitedNs;
    this.#numbers[2]! += waitedNs;
  }

  get sums(): ContentionSums {
    const [count = 0, lastNs = 0, totalNs = 0] = this.#numbers;
    return { count, lastNs, totalNs };
  }
}

/** Returns the sums of all threads; the last wait is the longest of their last waits. */
export function addContention(all: Iterable<ContentionSums>): ContentionSums {
  let sum: ContentionSums = { count: 0, lastNs: 0, totalNs: 0 };
  for (const { count, lastNs, totalNs } of all) {
    sum = { count: sum.count + count, lastNs: Math.max(sum.lastNs, lastNs), totalNs: sum.totalNs + totalNs };
  }
  return sum;
}
