// A worker's HTTP/1.1 connections to one host: idle ones are used again, last-in first-out, and requests that find none
// wait in line for the next connection that becomes free, whichever that is.

import type { Priority } from '../../common/priority.js';
import type { RequestEncoder, ResponseDecoder } from '../../http/codec/streams.js';
import { getLogger } from '../../log/logger.js';
import { ClusterStats } from '../../stats/layouts/cluster.js';
import type { Host } from '../hosts/host.js';
import { type ClusterLimits, LimitKind } from '../limits.js';
import { PoolFailure } from '../pool-failure.js';
import type { UpstreamThread } from '../upstream-thread.js';
import { type ConnectingCluster, type ConnectionPool, UpstreamConnection } from './upstream-connection.js';

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
export interface PooledCluster extends ConnectingCluster {
  readonly limits: ClusterLimits;
}

export class HttpPool implements ConnectionPool {
  readonly cluster: PooledCluster;
  readonly host: Host;
  readonly priority: Priority;
  /** The host is gone: connections end with their request. */
  isDraining = false;
  readonly #idle: UpstreamConnection[] = [];
  #connections = 0;
  #connecting = 0;
  #firstPending: PoolRequest | undefined;
  #lastPending: PoolRequest | undefined;
  #pending = 0;

  constructor(cluster: PooledCluster, host: Host, priority: Priority) {
    this.cluster = cluster;
    this.host = host;
    this.priority = priority;
  }

  get thread(): UpstreamThread {
    return this.cluster.thread;
  }

  /**
   * Starts `request` on an idle connection at once, or when one becomes free. Throws when no connection can be begun; it waits all
   * the same, and is to be cancelled.
   */
  start(request: PoolRequest): void {
    const connection = this.#idle.pop();
    if (connection !== undefined) this.#attach(connection, request);
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
    while (this.#idle.length > 0) this.#idle[this.#idle.length - 1]!.close();
  }

  /** Closes connections that have had no request for `idleMs`. */
  closeIdle(idleMs: number): void {
    const sinceMs = this.thread.clock.monotonicMs - idleMs;
    // Backwards: the last one takes the place of one that goes.
    for (let index = this.#idle.length - 1; index >= 0; index--) {
      const connection = this.#idle[index]!;
      if (connection.idleSinceMs <= sinceMs) connection.close();
    }
  }

  // ── From connections ─────────────────────────────────────────────────────────────────────────────────────────────

  /** Connected, or through with a request. */
  connectionReady(connection: UpstreamConnection, wasConnecting: boolean): void {
    if (wasConnecting) this.#connecting--;
    this.#putIdle(connection);
    // A request that the circuit breaker refuses leaves the connection to the next one.
    while (this.#firstPending !== undefined && this.#idle.length > 0) {
      const next = this.#firstPending;
      this.#unlink(next);
      this.#attach(this.#idle.pop()!, next);
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

  connectionClosed(connection: UpstreamConnection): void {
    this.#connections--;
    this.cluster.limits.release(LimitKind.Connections, this.priority);
    const idle = this.#idle;
    if (idle[connection.idleIndex] === connection) {
      const last = idle.pop()!;
      if (last !== connection) {
        idle[connection.idleIndex] = last;
        last.idleIndex = connection.idleIndex;
      }
    }
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
    if (logger.isDebug) logger.debug(`cluster '${this.cluster.spec.name}': a circuit breaker is open`);
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
    if (logger.isDebug) logger.debug(`cluster '${spec.name}': connecting to ${this.host.address}`);
    try {
      new UpstreamConnection(this);
    } catch (error) {
      limits.release(LimitKind.Connections, this.priority);
      throw error;
    }
    this.#connections++;
    this.#connecting++;
  }

  #attach(connection: UpstreamConnection, request: PoolRequest): void {
    if (!this.cluster.limits.tryAcquire(LimitKind.Requests, this.priority)) {
      this.#putIdle(connection);
      this.cluster.stats.increment(ClusterStats.at.upstream_rq_active_overflow);
      return this.#overflow(request, PoolFailure.Overflow);
    }
    request.onPoolReady(connection.startRequest(request), connection);
  }

  #putIdle(connection: UpstreamConnection): void {
    connection.idleIndex = this.#idle.length;
    this.#idle.push(connection);
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
