// The memory in which each worker buffers requests and responses.

import { usableMemory } from '../common/process/usable-memory.js';
import { MAX_ARENA_BYTES } from '../io/memory.js';

const MEGABYTE = 1024 * 1024;
/** With less, a few large messages would exhaust it. */
const MIN_BYTES = 64 * MEGABYTE;

/** Upper bound of --worker-buffer-memory-mb. */
export const MAX_MEGABYTES = MAX_ARENA_BYTES / MEGABYTE;

/** Returns the bytes for each worker: the requested size, or else half of the available memory divided among the workers. */
export function workerMemory(requestedMegabytes: number | undefined, workers: number, usable = usableMemory()): number {
  if (requestedMegabytes !== undefined) return requestedMegabytes * MEGABYTE;
  const share = Math.floor(usable / 2 / workers / MEGABYTE) * MEGABYTE;
  return Math.min(Math.max(share, MIN_BYTES), MAX_ARENA_BYTES);
}
