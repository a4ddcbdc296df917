// Finds the largest state of the heaps. No I/O.

import type { ThreadMemory } from '../../common/process/thread-memory.js';
import type { ProfileSet } from '../../common/profiling/pprof.js';
import { totalOf } from '../../common/profiling/profile.js';

/**
 * Reading the heaps costs a garbage collection, so a new maximum is read only if it exceeds the last one by the larger of these.
 */
const MIN_GROWTH = 1.05;
const MIN_GROWTH_BYTES = 1024 * 1024;

export class PeakHeap {
  #largest: ProfileSet | undefined;
  #largestBytes = 0;
  #highBytes = 0;

  /** The state at the peak; undefined before the first offer(). */
  get largest(): ProfileSet | undefined {
    return this.#largest;
  }

  /** Returns whether the heaps have reached a new maximum whose state is worth reading. */
  isHigh(threads: readonly ThreadMemory[]): boolean {
    const bytes = threads.reduce((sum, thread) => sum + lastingBytes(thread), 0);
    if (bytes < Math.max(this.#highBytes * MIN_GROWTH, this.#highBytes + MIN_GROWTH_BYTES)) return false;
    this.#highBytes = bytes;
    return true;
  }

  /** Keeps the state if it is the largest so far. */
  offer(set: ProfileSet): void {
    const bytes = set.threads.reduce((sum, thread) => sum + totalOf(thread), 0);
    if (bytes <= this.#largestBytes) return;
    this.#largest = set;
    this.#largestBytes = bytes;
  }
}

/** Returns the bytes in use without the young generation, in which megabytes of garbage come and go. */
function lastingBytes({ heap, spaces }: ThreadMemory): number {
  const young = spaces.filter((space) => space.space_name.startsWith('new_'));
  return heap.used_heap_size + heap.external_memory - young.reduce((sum, space) => sum + space.space_used_size, 0);
}
