// How much memory this process may use: the machine's, or less where its cgroup has a limit.

import { totalmem } from 'node:os';

/** In bytes. */
export function usableMemory(): number {
  // 0 or undefined: there is no limit. A cgroup of version 1 without one says more than any machine has.
  const limit = process.constrainedMemory() ?? 0;
  return limit > 0 ? Math.min(limit, totalmem()) : totalmem();
}
