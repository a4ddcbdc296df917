// How often threads got into each other's way, and for how long: counted with --enable-mutex-tracing, shown by GET /contention.
//
// Baton has no mutexes. What contends is a limit that several threads change at the same moment (the one that comes too late
// tries again), and the primary's turns: whoever asks it for something waits until the turn before is over.

/** Sums of one thread or of several; nanoseconds. */
export interface ContentionSums {
  readonly count: number;
  /** The wait that ended last. */
  readonly lastNs: number;
  readonly totalNs: number;
}

/** The numbers of one thread, which is the only one that writes them. */
export class Contention {
  /** Crosses postMessage() as it is. */
  readonly buffer: SharedArrayBuffer;
  readonly #numbers: Float64Array;

  /** @param buffer numbers to count on; new ones without it */
  constructor(buffer: SharedArrayBuffer = new SharedArrayBuffer(3 * Float64Array.BYTES_PER_ELEMENT)) {
    this.buffer = buffer;
    this.#numbers = new Float64Array(buffer);
  }

  /** A wait has ended. */
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

/** All threads together; the last wait is the longest of their last ones. */
export function addContention(all: Iterable<ContentionSums>): ContentionSums {
  let sum: ContentionSums = { count: 0, lastNs: 0, totalNs: 0 };
  for (const { count, lastNs, totalNs } of all) {
    sum = { count: sum.count + count, lastNs: Math.max(sum.lastNs, lastNs), totalNs: sum.totalNs + totalNs };
  }
  return sum;
}
