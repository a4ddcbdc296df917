// A worker's HTTP connections to one host, for one priority and protocol. The most recently freed connection is used first.
// Requests that find none free are queued, and the first in the queue gets the next connection with room.

import { messageOf } from '../../common/errors/errors.js';
import type { Priority } from '../../common/priority.js';
import { shownName } from '../../common/text/shown.js';
import type { PoolProtocol } from '../../http/codec/connections.js';
import type { RequestEncoder, ResponseDecoder } from '../../http/codec/streams.js';
import { getLogger } from '../../log/logger.js';
import type { CounterSlot } from '../../stats/layout.js';
import { ClusterStats, HostStats } from '../../stats/layouts/cluster.js';
import type { Host } from '../hosts/host.js';
import { type ClusterLimits, LimitKind } from '../limits.js';
import { PoolFailure } from '../pool-failure.js';
import type { UpstreamThread } from '../upstream-thread.js';
import { type ConnectOptions, NO_CONNECT_OPTIONS } from './connect-options.js';
import { acquirePlace, releasePlace, tryAcquirePlace } from './connection-places.js';
import type { HostConnection } from './host-connection.js';
import { MAX_AHEAD, needsConnection, type StreamCounts } from './preconnect.js';
import { type ConnectionPool, type RequestedCluster, UpstreamConnection } from './upstream-connection.js';

const logger = getLogger('pool');

/** A request queued for a connection. The pool owns the links. */
export interface PoolRequest extends ResponseDecoder {
  /** Called when the request begins on a connection, perhaps from within HttpPool.start(). */
  onPoolReady(encoder: RequestEncoder, connection: HostConnection): void;
  /** Called when no connection is available. `detail`: the transport's connect error, or ''. */
  onPoolFailure(reason: PoolFailure, detail: string): void;
  pendingPrev: PoolRequest | undefined;
  pendingNext: PoolRequest | undefined;
}

/** A cluster with circuit breakers. */
export interface PooledCluster extends RequestedCluster {
  readonly limits: ClusterLimits;
  /** Closes connections that have had no request for `idleMs`. */
  closeIdle(idleMs: number): void;
  /** Of all its pools; undefined unless it connects to the hosts that are picked next. */
  readonly counts: StreamCounts | undefined;
  /** Returns whether the host may be connected in advance, and counts it if not. */
  connectsAhead(host: Host): boolean;
  /** Called when the pool has neither connections nor requests. */
  poolEmptied(pool: HttpPool): void;
}

/** Where a try of a request gets its connection. */
export interface RequestPool {
  /** Connections count themselves as requests of the host, and their own flow control. */
  readonly countsItself: boolean;
  /** Starts `request`, or queues it. See HttpPool.start(). */
  start(request: PoolRequest): void;
  /** Removes a queued request. */
  cancel(request: PoolRequest): void;
}

export class HttpPool implements ConnectionPool, RequestPool {
  readonly countsItself = false;

  readonly cluster: PooledCluster;
  readonly host: Host;
  readonly priority: Priority;
  readonly protocol: PoolProtocol;
  readonly options: ConnectOptions;
  streamsPerConnection: number;
  /** The host was removed: connections close after their request. */
  isDraining = false;
  activeRequests = 0;
  /** Connections for each request; 1: none in advance. */
  private readonly aheadRatio: number;
  /** What the cluster's counts have of this pool; undefined if it has none. */
  private readonly counted: StreamCounts | undefined;
  /** Connections that can take a request. Each holds its index. */
  readonly #free: UpstreamConnection[] = [];
  #connections = 0;
  #connecting = 0;
  #firstPending: PoolRequest | undefined;
  #lastPending: PoolRequest | undefined;
  #pending = 0;
  /** It holds a place in the circuit breaker of pools. */
  #isCounted = false;

  constructor(
    cluster: PooledCluster,
    host: Host,
    priority: Priority,
    protocol: PoolProtocol,
    options: ConnectOptions = NO_CONNECT_OPTIONS,
  ) {
    this.cluster = cluster;
    this.host = host;
    this.priority = priority;
    this.protocol = protocol;
    this.options = options;
    this.streamsPerConnection = protocol.streamsPerConnection;
    this.aheadRatio = cluster.spec.preconnect?.perHost ?? 1;
    this.counted = cluster.counts && { pending: 0, active: 0, free: 0 };
  }

  get thread(): UpstreamThread {
    return this.cluster.thread;
  }

  /**
   * Starts `request` on a connection with room, or queues it. Throws when no connect can begin; the request is queued all the
   * same, and the caller must cancel it.
   */
  start(request: PoolRequest): void {
    if (this.#hasFree()) {
      this.#attach(request);
      if (this.aheadRatio > 1) this.#connectAhead(MAX_AHEAD);
    } else this.#wait(request);
    if (this.counted !== undefined) this.#count(this.counted);
  }

  /**
   * Opens a connection in advance if the requests of the pool, and one that is about to come, need it by `ratio`. Returns whether it
   * does.
   */
  preconnect(ratio: number): boolean {
    if (this.isDraining || this.host.isFailing || !needsConnection(this.#counts(), ratio, 1)) return false;
    if (!this.cluster.connectsAhead(this.host)) return false;
    const hasConnected = this.#connectInAdvance();
    if (this.counted !== undefined) this.#count(this.counted);
    return hasConnected;
  }

  /** Removes a queued request. */
  cancel(request: PoolRequest): void {
    this.#unlink(request);
    this.cluster.stats.increment(ClusterStats.at.upstream_rq_cancelled);
    this.#changed();
  }

  /** Counts the pool as long as it is not empty. Returns false if the circuit breaker of pools is open. */
  reserve(): boolean {
    this.#isCounted ||= this.cluster.limits.tryAcquirePool(this.priority);
    return this.#isCounted;
  }

  get isEmpty(): boolean {
    return this.#connections === 0 && this.#pending === 0;
  }

  /** Gives back what a pool without connections and requests must not hold. */
  reportEmpty(): void {
    if (!this.isEmpty) return;
    if (this.#isCounted) this.cluster.limits.releasePool(this.priority);
    this.#isCounted = false;
    this.cluster.poolEmptied(this);
  }

  /** Called when the host is no longer used. Closes idle connections now, busy ones after their request. */
  drain(): void {
    this.isDraining = true;
    for (const connection of this.#free.toReversed()) connection.closeWhenIdle();
  }

  /** Closes connections that have had no request for `idleMs`. */
  closeIdle(idleMs: number): void {
    const sinceMs = this.thread.clock.monotonicMs - idleMs;
    // In reverse order, because closing one moves the last one to its index.
    for (const connection of this.#free.toReversed()) {
      if (connection.isIdle && connection.idleSinceMs <= sinceMs) connection.close();
    }
  }

  // ── From connections ─────────────────────────────────────────────────────────────────────────────────────────────

  /** Called when the connection has connected or finished a request. */
  connectionReady(connection: UpstreamConnection, wasConnecting: boolean): void {
    if (wasConnecting) this.#connecting--;
    if (this.#free[connection.poolIndex] !== connection) {
      connection.poolIndex = this.#free.length;
      this.#free.push(connection);
    }
    // A request refused by the circuit breaker leaves the connection to the next one.
    while (this.#firstPending !== undefined && this.#hasFree()) {
      const next = this.#firstPending;
      this.#unlink(next);
      this.#attach(next);
    }
    // It may have connected after the host was removed.
    if (this.isDraining) this.drain();
    // It may take fewer requests than expected.
    else if (wasConnecting && 'negotiated' in this.protocol) while (this.#connectIfNeeded());
    if (this.counted !== undefined) this.#count(this.counted);
  }

  connectFailed(failure: PoolFailure, detail: string): void {
    this.#connections--;
    this.#connecting--;
    releasePlace(this.cluster, this.host, this.priority);
    // Each pending connect may serve some queued requests. Requests beyond that could only wait for other requests' connections:
    // they fail.
    while (this.#pending > this.#expectedStreams && this.#firstPending !== undefined) {
      const request = this.#firstPending;
      this.#unlink(request);
      this.cluster.stats.increment(ClusterStats.at.upstream_rq_pending_failure_eject);
      request.onPoolFailure(failure, detail);
    }
    this.#changed();
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
    releasePlace(this.cluster, this.host, this.priority);
    // A request may be waiting for the slot of this connection.
    this.#connectIfNeeded();
    this.#changed();
  }

  /** Called when it has fewer connections or requests. */
  #changed(): void {
    if (this.counted !== undefined) this.#count(this.counted);
    this.reportEmpty();
  }

  /** Returns whether the last free connection has room. The host has not ended that one. */
  #hasFree(): boolean {
    const free = this.#free;
    while (free.length > 0) {
      const last = free[free.length - 1]!;
      if (!last.endsInTurn && last.hasRoom) return true;
      if (last.isIdle && last.endsInTurn) last.closeEnded();
      else free.pop();
    }
    return false;
  }

  /** How many requests the pending connects are expected to take. */
  get #expectedStreams(): number {
    return this.#connecting * this.streamsPerConnection;
  }

  #wait(request: PoolRequest): void {
    const { cluster } = this;
    if (!cluster.limits.tryAcquire(LimitKind.PendingRequests, this.priority)) {
      this.#overflow(request, PoolFailure.PendingOverflow, ClusterStats.at.upstream_rq_pending_overflow);
      // The pool may have been made for this request.
      return this.reportEmpty();
    }
    const overload = this.thread.overload?.newUpstreamConnection;
    if (overload !== undefined && this.#pending >= this.#expectedStreams && overload.sheds()) {
      cluster.limits.release(LimitKind.PendingRequests, this.priority);
      cluster.stats.increment(ClusterStats.at.upstream_rq_pending_total);
      this.#overflow(request, PoolFailure.PendingOverflow, ClusterStats.at.upstream_rq_cancelled);
      return this.reportEmpty();
    }
    request.pendingPrev = this.#lastPending;
    request.pendingNext = undefined;
    if (this.#lastPending === undefined) this.#firstPending = request;
    else this.#lastPending.pendingNext = request;
    this.#lastPending = request;
    this.#pending++;
    cluster.stats.increment(ClusterStats.at.upstream_rq_pending_total);
    cluster.stats.increment(ClusterStats.at.upstream_rq_pending_active);
    this.host.stats.increment(HostStats.at.rq_pending_active);
    const isNew = this.#connectIfNeeded();
    if (this.aheadRatio > 1) this.#connectAhead(isNew ? MAX_AHEAD - 1 : MAX_AHEAD);
  }

  #overflow(request: PoolRequest, reason: PoolFailure, counter: CounterSlot): void {
    this.cluster.stats.increment(counter);
    if (logger.isDebug) logger.debug(`cluster '${shownName(this.cluster.spec.name)}': a circuit breaker is open`);
    request.onPoolFailure(reason, '');
  }

  /**
   * Opens a connection if there are more queued requests than pending connects can take, unless the circuit breaker is open. A pool
   * without a connection always gets one. Returns whether it did.
   */
  #connectIfNeeded(): boolean {
    if (this.#pending <= this.#expectedStreams) return false;
    if (!this.#hasPlace()) {
      if (this.#connections > 0) return false;
      // Pools that clients can make must not keep connections beyond the limit.
      if (this.options.traits !== undefined) this.cluster.closeIdle(0);
      acquirePlace(this.cluster, this.host, this.priority);
    }
    this.#connect();
    return true;
  }

  /** Acquires a place for a connection. Returns false, and counts that, if the circuit breaker is open. */
  #hasPlace(): boolean {
    if (tryAcquirePlace(this.cluster, this.host, this.priority)) return true;
    this.cluster.stats.increment(ClusterStats.at.upstream_cx_overflow);
    return false;
  }

  /** Opens a connection, which has its place. */
  #connect(): void {
    const { spec } = this.cluster;
    if (logger.isDebug) logger.debug(`cluster '${shownName(spec.name)}': connecting to ${this.host.address}`);
    try {
      new UpstreamConnection(this);
    } catch (error) {
      releasePlace(this.cluster, this.host, this.priority);
      throw error;
    }
    this.#connections++;
    this.#connecting++;
  }

  /** Opens up to `most` connections in advance, as many as the requests need by the cluster's ratio. */
  #connectAhead(most: number): void {
    if (this.isDraining || this.host.isFailing) return;
    for (; most > 0 && needsConnection(this.#counts(), this.aheadRatio, 0); most--)
      if (!this.cluster.connectsAhead(this.host) || !this.#connectInAdvance()) return;
  }

  /** Opens a connection that no request waits for, unless the circuit breaker is open or connects are shed. Returns whether it did. */
  #connectInAdvance(): boolean {
    if (this.thread.overload?.newUpstreamConnection?.sheds() === true || !this.#hasPlace()) return false;
    try {
      this.#connect();
      return true;
    } catch (error) {
      // The request that caused it has a connection, or waits for another one.
      logger.debug(`cluster '${shownName(this.cluster.spec.name)}': cannot connect in advance: ${messageOf(error)}`);
      return false;
    }
  }

  #counts(): StreamCounts {
    let free = this.#expectedStreams;
    if (this.streamsPerConnection === 1) free += this.#free.length;
    else for (const connection of this.#free) free += connection.freeStreams;
    return { pending: this.#pending, active: this.activeRequests, free };
  }

  /** Updates the cluster's counts. */
  #count(counted: StreamCounts): void {
    const { counts } = this.cluster;
    const { active, free, pending } = this.#counts();
    counts!.active += active - counted.active;
    counts!.free += free - counted.free;
    counts!.pending += pending - counted.pending;
    counted.active = active;
    counted.free = free;
    counted.pending = pending;
  }

  /** Starts the request on a free connection, which must exist. */
  #attach(request: PoolRequest): void {
    if (!this.cluster.limits.tryAcquire(LimitKind.Requests, this.priority)) {
      return this.#overflow(request, PoolFailure.Overflow, ClusterStats.at.upstream_rq_active_overflow);
    }
    const connection = this.#free[this.#free.length - 1]!;
    const encoder = connection.startRequest(request);
    this.activeRequests++;
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
    this.host.stats.decrement(HostStats.at.rq_pending_active);
  }
}
