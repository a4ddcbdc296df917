// Collects the garbage that remains after a thread has loaded its code: up to half of a small server's resident memory.

import { getHeapStatistics } from 'node:v8';
import type { NativeShim } from './shim.js';

/** Above this heap size collection is left to V8, because it would block the thread for more than 100 ms. */
const MAX_HEAP_BYTES = 32 * 1024 * 1024;

/** Collects the garbage at once. V8 would keep it until the thread was idle for eight seconds, which never happens under traffic. */
export function collectStartGarbage(shim: NativeShim): void {
  if (getHeapStatistics().used_heap_size <= MAX_HEAP_BYTES) shim.collectGarbage();
}
