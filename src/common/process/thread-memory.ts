// Memory of one thread's V8 heap, and of the process.

import { getHeapSpaceStatistics, getHeapStatistics, type HeapInfo, type HeapSpaceInfo } from 'node:v8';

/** One thread's memory in bytes, as plain data. */
export interface ThreadMemory {
  /** `primary`, `worker_0`, … */
  readonly name: string;
  readonly heap: HeapInfo;
  readonly spaces: readonly HeapSpaceInfo[];
  /** Buffers of the thread outside its heap. Shared buffers count in each thread. */
  readonly arrayBuffers: number;
}

/** Returns the bytes of a heap, the memory outside it and V8's own memory: in use, and in use or reserved. */
export function heapBytes(heap: HeapInfo): { readonly allocated: number; readonly reserved: number } {
  const outside = heap.external_memory + heap.malloced_memory;
  return { allocated: heap.used_heap_size + outside, reserved: heap.total_heap_size + outside };
}

/** Returns the current heapBytes() of this thread. */
export function ownHeapBytes(): ReturnType<typeof heapBytes> {
  return heapBytes(getHeapStatistics());
}

/** Returns this thread's current memory. */
export function threadMemory(name: string): ThreadMemory {
  return {
    name,
    heap: getHeapStatistics(),
    spaces: getHeapSpaceStatistics(),
    arrayBuffers: arrayBufferBytes(),
  };
}

/** Returns the process's resident memory in bytes; if that cannot be read, its maximum so far. */
export function residentBytes(): number {
  try {
    return process.memoryUsage.rss();
  } catch {
    // rss() reads /proc, which may be missing, and needs a descriptor.
    return process.resourceUsage().maxRSS * 1024;
  }
}

/** Returns the bytes of this thread's buffers outside its heap; if Node cannot provide them, all memory outside the heap. */
export function arrayBufferBytes(): number {
  try {
    return process.memoryUsage().arrayBuffers;
  } catch {
    // Node reads them together with the memory of the process.
    return getHeapStatistics().external_memory;
  }
}
