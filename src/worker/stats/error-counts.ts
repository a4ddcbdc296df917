// Counts the internal errors of a thread in the scope `server.`

import type { ErrorCounts } from '../../log/internal-errors.js';
import { ServerStats } from '../../stats/layouts/server.js';
import type { Scope } from '../../stats/thread-stats.js';

/** `stats`: the scope `server.` of the thread. */
export function errorCounts(stats: Scope): ErrorCounts {
  return {
    internal: () => stats.increment(ServerStats.at.envoy_bug_failures),
    uncaught: () => stats.increment(ServerStats.at.uncaught_exceptions),
  };
}
