// The counters and gauges of a connection in the stats of its connection manager.

import { HttpStats } from '../../stats/layouts/http.js';
import type { Scope } from '../../stats/thread-stats.js';
import type { ServerProtocol } from '../codec/connections.js';

const { at } = HttpStats;

/** @param isNew it is not taken over from another process */
export function countOpened(http: Scope, isNew: boolean, isTls: boolean): void {
  if (isNew) http.increment(at.downstream_cx_total);
  http.increment(at.downstream_cx_active);
  if (!isTls) return;
  http.increment(at.downstream_cx_ssl_total);
  http.increment(at.downstream_cx_ssl_active);
}

/** Counts which end closes the connection. */
export function countClosing(http: Scope, isRemote: boolean, isAmidRequest: boolean): void {
  http.increment(isRemote ? at.downstream_cx_destroy_remote : at.downstream_cx_destroy_local);
  if (!isAmidRequest) return;
  http.increment(at.downstream_cx_destroy_active_rq);
  http.increment(isRemote ? at.downstream_cx_destroy_remote_active_rq : at.downstream_cx_destroy_local_active_rq);
}

export function countEnded(http: Scope, protocol: ServerProtocol | undefined, isTls: boolean, lengthMs: number): void {
  http.increment(at.downstream_cx_destroy);
  if (isTls) http.decrement(at.downstream_cx_ssl_active);
  http.record(at.downstream_cx_length_ms, lengthMs);
  countGone(http, protocol);
}

/** The connection has ended here or moves to another process. */
export function countGone(http: Scope, protocol: ServerProtocol | undefined): void {
  http.decrement(at.downstream_cx_active);
  if (protocol !== undefined) http.decrement(protocol.connectionsActive);
}
