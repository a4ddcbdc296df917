// A worker's HTTP connections to one host, for one priority and protocol, as the streams that they have room for: the connection that got room last is used first, and
// requests that find none wait in line for the next one that gets some, whichever that is.

import type { Priority } from '../../common/priority.js';
import { shownName } from '../../common/text/shown.js';
import type { ClientProtocol } from '../../http/codec/connections.js';
import type { RequestEncoder, ResponseDecoder } from '../../http/codec/streams.js';
import { getLogger } from '../../log/logger.js';
import { ClusterStats } from '../../stats/layouts/cluster.js';
import type { Host } from '../hosts/host.js';
import { type ClusterLimits, LimitKind } from '../limits.js';
import { PoolFailure } from '../pool-failure.js';
import type { UpstreamThread } from '../upstream-thread.js';
import { type ConnectionPool, type RequestedCluster, UpstreamConnection } from './upstream-connection.js';

const logger = getLogger('pool');

/** A request that wants a connection. The links are the pool's. */
export interface PoolRequest extends ResponseDecoder {
  /** A connection is there: the request begins on it. May be called from within HttpPool.start(). */
  onPoolReady(encoder: RequestEncoder, connection: UpstreamConnection): void;
  /** None can be had. `detail` is what the transport has to say of a failed connect, or ''. */
  onPoolFailure(reason: PoolFailure, detail: string): void;
  pendingPrev: PoolRequest | undefined;
  pendingNext: PoolRequest | undefined;
}

/** A cluster whose connections are limited. */
export interface PooledCluster extends RequestedCluster {
  readonly limits: ClusterLimits;
}

export class HttpPool implements ConnectionPool {
  readonly cluster: PooledCluster;
  readonly host: Host;
  readonly priority: Priority;
  readonly protocol: ClientProtocol;
  /** The host is gone: connections end with their request. */
  isDraining = false;
  /** Those that take another request; each knows its place. */
  readonly #free: UpstreamConnection[] = [];
  #connections = 0;
  #connecting = 0;
  #firstPending: PoolRequest | undefined;
  #lastPending: PoolRequest | undefined;
  #pending = 0;

  constructor(cluster: PooledCluster, host: Host, priority: Priority, protocol: ClientProtocol) {
    this.cluster = cluster;
    this.host = host;
    this.priority = priority;
    this.protocol = protocol;
  }

  get thread(): UpstreamThread {
    return this.cluster.thread;
  }

  /**
   * Starts `request` on a connection that has room at once, or when one gets some. Throws when no connection can be begun; it waits all
   * the same, and is to be cancelled.
   */
  start(request: PoolRequest): void {
    if (this.#free.length > 0) this.#attach(request);
    else this.#wait(request);
  }

  /** The request wants no connection any more; it has not got one yet. */
  cancel(request: PoolRequest): void {
    this.#unlink(request);
    this.cluster.stats.increment(ClusterStats.at.upstream_rq_cancelled);
  }

  /** The host is no longer used: idle connections end now, busy ones with their request. */
  drain(): void {
    this.isDraining = true;
    for (const connection of this.#free.toReversed()) connection.closeWhenIdle();
  }

  /** Closes connections that have had no request for `idleMs`. */
  closeIdle(idleMs: number): void {
    const sinceMs = this.thread.clock.monotonicMs - idleMs;
    // Backwards: the last one takes the place of one that goes.
    for (const connection of this.#free.toReversed()) {
      if (connection.isIdle && connection.idleSinceMs <= sinceMs) connection.close();
    }
  }

  // ── From connections ─────────────────────────────────────────────────────────────────────────────────────────────

  /** Connected, or through with a request. */
  connectionReady(connection: UpstreamConnection, wasConnecting: boolean): void {
    if (wasConnecting) this.#connecting--;
    if (this.#free[connection.poolIndex] !== connection) {
      connection.poolIndex = this.#free.length;
      this.#free.push(connection);
    }
    // A request that the circuit breaker refuses leaves the room to the next one.
    while (this.#firstPending !== undefined && this.#free.length > 0) {
      const next = this.#firstPending;
      this.#unlink(next);
      this.#attach(next);
    }
    // It may have connected after the host had left.
    if (this.isDraining) this.drain();
  }

  connectFailed(failure: PoolFailure, detail: string): void {
    this.#connections--;
    this.#connecting--;
    this.cluster.limits.release(LimitKind.Connections, this.priority);
    // Requests for which no connect is under way have nothing left to wait for but other requests' connections; as long as
    // there are connects, each may serve one.
    while (this.#pending > this.#connecting && this.#firstPending !== undefined) {
      const request = this.#firstPending;
      this.#unlink(request);
      this.cluster.stats.increment(ClusterStats.at.upstream_rq_pending_failure_eject);
      request.onPoolFailure(failure, detail);
    }
  }

  connectionEnding(connection: UpstreamConnection): void {
    const free = this.#free;
    if (free[connection.poolIndex] === connection) {
      const last = free.pop()!;
      if (last !== connection) {
        free[connection.poolIndex] = last;
        last.poolIndex = connection.poolIndex;
      }
    }
  }

  connectionClosed(): void {
    this.#connections--;
    this.cluster.limits.release(LimitKind.Connections, this.priority);
    // Somebody may be waiting for the connection that has just gone.
    this.#connectIfNeeded();
  }

  #wait(request: PoolRequest): void {
    const { cluster } = this;
    if (!cluster.limits.tryAcquire(LimitKind.PendingRequests, this.priority))
      return this.#overflow(request, PoolFailure.PendingOverflow);
    request.pendingPrev = this.#lastPending;
    request.pendingNext = undefined;
    if (this.#lastPending === undefined) this.#firstPending = request;
    else this.#lastPending.pendingNext = request;
    this.#lastPending = request;
    this.#pending++;
    cluster.stats.increment(ClusterStats.at.upstream_rq_pending_total);
    cluster.stats.increment(ClusterStats.at.upstream_rq_pending_active);
    this.#connectIfNeeded();
  }

  #overflow(request: PoolRequest, reason: PoolFailure): void {
    this.cluster.stats.increment(ClusterStats.at.upstream_rq_pending_overflow);
    if (logger.isDebug) logger.debug(`cluster '${shownName(this.cluster.spec.name)}': a circuit breaker is open`);
    request.onPoolFailure(reason, '');
  }

  /**
   * Opens a connection if more requests wait than connections are coming, unless the circuit breaker is open. A host without any
   * connection always gets one.
   */
  #connectIfNeeded(): void {
    if (this.#pending <= this.#connecting) return;
    const { limits, spec, stats } = this.cluster;
    if (!limits.tryAcquire(LimitKind.Connections, this.priority)) {
      stats.increment(ClusterStats.at.upstream_cx_overflow);
      if (this.#connections > 0) return;
      limits.acquire(LimitKind.Connections, this.priority);
    }
    if (logger.isDebug) logger.debug(`cluster '${shownName(spec.name)}': connecting to ${this.host.address}`);
    try {
      new UpstreamConnection(this);
    } catch (error) {
      limits.release(LimitKind.Connections, this.priority);
      throw error;
    }
    this.#connections++;
    this.#connecting++;
  }

  /** There is room for it. */
  #attach(request: PoolRequest): void {
    if (!this.cluster.limits.tryAcquire(LimitKind.Requests, this.priority)) {
      this.cluster.stats.increment(ClusterStats.at.upstream_rq_active_overflow);
      return this.#overflow(request, PoolFailure.Overflow);
    }
    const connection = this.#free[this.#free.length - 1]!;
    const encoder = connection.startRequest(request);
    if (!connection.hasRoom) this.#free.pop();
    request.onPoolReady(encoder, connection);
  }

  #unlink(request: PoolRequest): void {
    const { pendingPrev, pendingNext } = request;
    if (pendingPrev === undefined) this.#firstPending = pendingNext;
    else pendingPrev.pendingNext = pendingNext;
    if (pendingNext === undefined) this.#lastPending = pendingPrev;
    else pendingNext.pendingPrev = pendingPrev;
    request.pendingPrev = request.pendingNext = undefined;
    this.#pending--;
    this.cluster.limits.release(LimitKind.PendingRequests, this.priority);
    this.cluster.stats.decrement(ClusterStats.at.upstream_rq_pending_active);
  }
}
