// What one thread's V8 heap takes.

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

/** This thread's memory, as of now. */
export function threadMemory(name: string): ThreadMemory {
  return {
    name,
    heap: getHeapStatistics(),
    spaces: getHeapSpaceStatistics(),
    arrayBuffers: process.memoryUsage().arrayBuffers,
  };
}
