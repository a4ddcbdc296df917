// Earliest deadline first: picks items in proportion to their weights, evenly spread (like nginx's smooth weighted round robin,
// but in O(log n) and with weights that may change while it runs).

import type { Random } from '../../common/random.js';

/**
 * Items 0 … n - 1 in a heap by deadline. Each turn moves the item's deadline by 1 / weight, so in every unit of virtual time each
 * integer weight w has exactly w turns.
 */
export class EdfSchedule {
  readonly #deadlines: Float64Array;
  /** Heap of items, the earliest deadline first. */
  readonly #heap: Int32Array;

  /** First deadlines are random within an item's period, so that threads that start together do not pick in step. */
  constructor(count: number, weightOf: (item: number) => number, random: Random) {
    this.#deadlines = new Float64Array(count);
    this.#heap = new Int32Array(count);
    for (let item = 0; item < count; item++) {
      this.#deadlines[item] = random.fraction() / weightOf(item);
      this.#heap[item] = item;
    }
    for (let at = (count >> 1) - 1; at >= 0; at--) this.#siftDown(at);
  }

  /** Returns the item whose turn it is. */
  first(): number {
    return this.#heap[0]!;
  }

  /** Ends the first item's turn; its next one is 1 / weight later. */
  advance(weight: number): void {
    this.#deadlines[this.#heap[0]!]! += 1 / weight;
    this.#siftDown(0);
  }

  #siftDown(at: number): void {
    const heap = this.#heap;
    const deadlines = this.#deadlines;
    const item = heap[at]!;
    const deadline = deadlines[item]!;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && deadlines[heap[child + 1]!]! < deadlines[heap[child]!]!) child++;
      if (deadline <= deadlines[heap[child]!]!) break;
      heap[at] = heap[child]!;
      at = child;
    }
    heap[at] = item;
  }
}
