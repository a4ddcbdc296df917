// Which state of the heaps was the largest. No I/O.

import type { ThreadMemory } from '../../common/process/thread-memory.js';
import type { ProfileSet } from '../../common/profiling/pprof.js';
import { totalOf } from '../../common/profiling/profile.js';

/** Reading the heaps costs a collection of garbage: a new high is worth it when it is so much higher than the last one. */
const MIN_GROWTH = 1.05;
const MIN_GROWTH_BYTES = 1024 * 1024;

export class PeakHeap {
  #largest: ProfileSet | undefined;
  #largestBytes = 0;
  #highBytes = 0;

  /** The state at the peak; undefined before any was offered. */
  get largest(): ProfileSet | undefined {
    return this.#largest;
  }

  /** Whether the heaps have reached a new high, so that their state is worth reading. */
  isHigh(threads: readonly ThreadMemory[]): boolean {
    const bytes = threads.reduce((sum, thread) => sum + lastingBytes(thread), 0);
    if (bytes < Math.max(this.#highBytes * MIN_GROWTH, this.#highBytes + MIN_GROWTH_BYTES)) return false;
    this.#highBytes = bytes;
    return true;
  }

  /** A state that was read: it is kept if it is the largest. */
  offer(set: ProfileSet): void {
    const bytes = set.threads.reduce((sum, thread) => sum + totalOf(thread), 0);
    if (bytes <= this.#largestBytes) return;
    this.#largest = set;
    this.#largestBytes = bytes;
  }
}

/** What is in use but for the young generation, where garbage comes and goes by megabytes. */
function lastingBytes({ heap, spaces }: ThreadMemory): number {
  const young = spaces.filter((space) => space.space_name.startsWith('new_'));
  return heap.used_heap_size + heap.external_memory - young.reduce((sum, space) => sum + space.space_used_size, 0);
}
