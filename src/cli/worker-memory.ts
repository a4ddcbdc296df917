// How much memory each worker may hold parts of requests and responses in.

import { usableMemory } from '../common/process/usable-memory.js';
import { LARGEST_ARENA } from '../io/memory.js';

const MEGABYTE = 1024 * 1024;
/** Below it few large messages would be too many. */
const LEAST_BYTES = 64 * MEGABYTE;

/** What fits in the option. */
export const MOST_MEGABYTES = LARGEST_ARENA / MEGABYTE;

/** In bytes: as asked for, or else half of the memory that there is, shared by the workers. */
export function workerMemory(askedMegabytes: number | undefined, workers: number, usable = usableMemory()): number {
  if (askedMegabytes !== undefined) return askedMegabytes * MEGABYTE;
  const share = Math.floor(usable / 2 / workers / MEGABYTE) * MEGABYTE;
  return Math.min(Math.max(share, LEAST_BYTES), LARGEST_ARENA);
}
