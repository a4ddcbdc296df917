// What a try says about its host, whoever has tried: one success or one error, counted once, and whether the host was too slow. It
// is the same to outlier detection, which also hears of connections. A refusal by a circuit breaker says nothing about the host.

import { outcomeStatus } from '../../http/headers/grpc-outcome.js';
import type { HeaderBlock } from '../../http/headers/header-block.js';
import { HostStats } from '../../stats/layouts/cluster.js';
import type { Host } from '../hosts/host.js';
import { PoolFailure } from '../pool-failure.js';

/** The try has a connection. */
export function countHostConnection({ monitor }: Host): void {
  monitor?.connected();
}

/** The head of its response has come. */
export function countHostResponse({ monitor, stats }: Host, headers: HeaderBlock): void {
  stats.increment(headers.status >= 500 ? HostStats.at.rq_error : HostStats.at.rq_success);
  if (monitor !== undefined) monitor.answered(outcomeStatus(headers));
}

/** It has come, and another try is to replace it. */
export function countRetriedResponse({ monitor, stats }: Host, headers: HeaderBlock): void {
  stats.increment(HostStats.at.rq_error);
  if (monitor !== undefined) monitor.answered(outcomeStatus(headers));
}

/** The try has got no connection. */
export function countNoConnection(host: Host, reason: PoolFailure): void {
  if (reason !== PoolFailure.Overflow && reason !== PoolFailure.PendingOverflow) countHostReset(host, false);
}

/** The connection has broken, or what came on it is no HTTP. A response that has begun has been counted, and is cut off now. */
export function countHostReset({ monitor, stats }: Host, hasResponse: boolean): void {
  if (!hasResponse) stats.increment(HostStats.at.rq_error);
  monitor?.failed();
}

/** It is not waited for any longer. A response that has begun has been counted. */
export function countHostTimeout({ monitor, stats }: Host, hasResponse: boolean): void {
  stats.increment(HostStats.at.rq_timeout);
  if (hasResponse) return;
  stats.increment(HostStats.at.rq_error);
  monitor?.timedOut();
}

/** Its try has lasted as long as any may, without a response: that may be the client's fault. */
export function countHostEnd({ stats }: Host): void {
  stats.increment(HostStats.at.rq_error);
}
