// Counts what a try shows about its host: one success or one error, and a timeout. Outlier detection gets the same, and connects
// too. A request refused by a circuit breaker shows nothing about the host.

import { callStatus, outcomeStatus } from '../../http/headers/grpc-outcome.js';
import type { HeaderBlock } from '../../http/headers/header-block.js';
import { isServerError } from '../../http/headers/status-class.js';
import { HostStats } from '../../stats/layouts/cluster.js';
import type { Host } from '../hosts/host.js';
import { PoolFailure } from '../pool-failure.js';

/** Called when the try has a connection. */
export function countHostConnection({ monitor }: Host): void {
  monitor?.connected();
}

/** Called when the head of its response has arrived. */
export function countHostResponse({ monitor, stats }: Host, headers: HeaderBlock): void {
  stats.increment(isServerError(headers.status) ? HostStats.at.rq_error : HostStats.at.rq_success);
  if (monitor !== undefined) monitor.answered(outcomeStatus(headers));
}

/**
 * countHostResponse() for a gRPC call, whose grpc-status decides. Returns whether the end of the response decides: countHostCall() must
 * follow.
 */
export function countHostCallHead(host: Host, headers: HeaderBlock, endStream: boolean): boolean {
  const awaitsStatus = headers.status < 500 && !endStream;
  if (!awaitsStatus) countHostCall(host, headers.status < 500 ? callStatus(headers) : headers.status);
  host.monitor?.answered(outcomeStatus(headers));
  return awaitsStatus;
}

/** Called when the outcome of a gRPC call is known: `status` as from callStatus(). */
export function countHostCall({ stats }: Host, status: number): void {
  stats.increment(status === 0 || status >= 500 ? HostStats.at.rq_error : HostStats.at.rq_success);
}

/** Called when the head of a response has arrived that will be retried. */
export function countRetriedResponse({ monitor, stats }: Host, headers: HeaderBlock): void {
  stats.increment(HostStats.at.rq_error);
  if (monitor !== undefined) monitor.answered(outcomeStatus(headers));
}

/** Called when the head of its response has arrived, a redirect that is followed internally. As in Envoy, no stat of the host counts it. */
export function countRedirect({ monitor }: Host, headers: HeaderBlock): void {
  if (monitor !== undefined) monitor.answered(outcomeStatus(headers));
}

/** Called when the try could not get a connection. */
export function countNoConnection(host: Host, reason: PoolFailure): void {
  if (reason === PoolFailure.Overflow) host.stats.increment(HostStats.at.rq_error);
  else if (reason !== PoolFailure.PendingOverflow) countHostReset(host, false);
}

/** Called when the connection broke or the response is not valid HTTP. A response that had begun is counted already. */
export function countHostReset({ monitor, stats }: Host, hasResponse: boolean): void {
  if (!hasResponse) stats.increment(HostStats.at.rq_error);
  monitor?.failed();
}

/**
 * Called when the try timed out. A response that had begun is counted already. `isSlow`: countHostSlowness() was called for it.
 */
export function countHostTimeout({ monitor, stats }: Host, hasResponse: boolean, isSlow = false): void {
  stats.increment(HostStats.at.rq_timeout);
  if (hasResponse) return;
  stats.increment(HostStats.at.rq_error);
  if (!isSlow) monitor?.timedOut();
}

/** Called when a try timed out and goes on (hedging). */
export function countHostSlowness({ monitor }: Host): void {
  monitor?.timedOut();
}

/**
 * Called when the try reached its maximum duration without a response. The client may have caused that, so outlier detection
 * ignores it.
 */
export function countHostMaxDuration({ stats }: Host): void {
  stats.increment(HostStats.at.rq_error);
}
