// What one thread's V8 heap takes, and the process as a whole.

import { getHeapSpaceStatistics, getHeapStatistics, type HeapInfo, type HeapSpaceInfo } from 'node:v8';

/** One thread's memory, in bytes; plain data. */
export interface ThreadMemory {
  /** `primary`, `worker_0`, … */
  readonly name: string;
  readonly heap: HeapInfo;
  readonly spaces: readonly HeapSpaceInfo[];
  /** Buffers of the thread outside its heap; those shared with other threads count in each. */
  readonly arrayBuffers: number;
}

/** Of a heap with what is outside it, and of V8's own: what is in use, and the same with what is reserved for it. */
export function heapBytes(heap: HeapInfo): { readonly allocated: number; readonly reserved: number } {
  const beside = heap.external_memory + heap.malloced_memory;
  return { allocated: heap.used_heap_size + beside, reserved: heap.total_heap_size + beside };
}

/** The same of this thread, as of now. */
export function ownHeapBytes(): ReturnType<typeof heapBytes> {
  return heapBytes(getHeapStatistics());
}

/** This thread's memory, as of now. */
export function threadMemory(name: string): ThreadMemory {
  return {
    name,
    heap: getHeapStatistics(),
    spaces: getHeapSpaceStatistics(),
    arrayBuffers: arrayBufferBytes(),
  };
}

/** What the process has in physical memory, in bytes; where that cannot be read, the most that it ever had. */
export function residentBytes(): number {
  try {
    return process.memoryUsage.rss();
  } catch {
    // It stands in /proc, which may be missing, and takes a descriptor to read.
    return process.resourceUsage().maxRSS * 1024;
  }
}

/** Buffers of this thread outside its heap; where Node cannot tell them, with what else is outside. */
export function arrayBufferBytes(): number {
  try {
    return process.memoryUsage().arrayBuffers;
  } catch {
    // Node reads what the whole process has with them.
    return getHeapStatistics().external_memory;
  }
}
