// What the end of a try says about its host, whoever has tried: one success or one error, counted once, and whether the host was
// too slow. A refusal by a circuit breaker says nothing about it.

import { HostStats } from '../../stats/layouts/cluster.js';
import type { Host } from '../hosts/host.js';
import { PoolFailure } from '../pool-failure.js';

/** The head of its response has come. */
export function countHostResponse({ stats }: Host, status: number): void {
  stats.increment(status >= 500 ? HostStats.at.rq_error : HostStats.at.rq_success);
}

/** It has given no response, or one that another try is to replace. */
export function countHostFailure({ stats }: Host): void {
  stats.increment(HostStats.at.rq_error);
}

/** The try has got no connection. */
export function countNoConnection(host: Host, reason: PoolFailure): void {
  if (reason !== PoolFailure.Overflow && reason !== PoolFailure.PendingOverflow) countHostFailure(host);
}

/** It is not waited for any longer. A response that has begun has been counted. */
export function countHostTimeout(host: Host, hasResponse: boolean): void {
  host.stats.increment(HostStats.at.rq_timeout);
  if (!hasResponse) countHostFailure(host);
}
