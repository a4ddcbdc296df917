// How much memory this process may use: the machine's memory, or the limit of its cgroup if that is lower.

import { totalmem } from 'node:os';

/** Returns the usable memory in bytes. */
export function usableMemory(): number {
  // 0 or undefined: no limit. Without a limit, a cgroup of version 1 reports more than any machine has.
  const limit = process.constrainedMemory() ?? 0;
  return limit > 0 ? Math.min(limit, totalmem()) : totalmem();
}
