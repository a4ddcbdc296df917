// What a thread leaves behind when it has loaded its code: up to half of what a small server has resident.

import { getHeapStatistics } from 'node:v8';
import type { NativeShim } from './shim.js';

/** Above this many bytes in use it is left to V8: a thread would stand still for more than a tenth of a second. */
const LARGEST_HEAP = 32 * 1024 * 1024;

/** Collects it at once. V8 keeps it until the thread has been idle for eight seconds, which one with traffic never is. */
export function collectStartGarbage(shim: NativeShim): void {
  if (getHeapStatistics().used_heap_size <= LARGEST_HEAP) shim.collectGarbage();
}
