// A TCP connection to a host of a cluster for a single owner. It also counts as a request, and forwards its events to the owner.

import { Priority } from '../../common/priority.js';
import type { BufferedBytes } from '../../io/buffered-bytes.js';
import { ClusterStats, HostStats } from '../../stats/layouts/cluster.js';
import type { Cluster } from '../cluster.js';
import type { Host } from '../hosts/host.js';
import { LimitKind } from '../limits.js';
import { PoolFailure } from '../pool-failure.js';
import type { ConnectOptions } from './connect-options.js';
import { acquirePlace, releasePlace, tryAcquirePlace } from './connection-places.js';
import { EndedBy, HostConnection, type TakenOverConnection } from './host-connection.js';

/** Close timeout: how long the host may accept none of the pending bytes. */
const FLUSH_MS = 5000;

/** The callbacks of an UpstreamSocket to its owner. */
export interface UpstreamSocketEvents {
  upstreamConnected(): void;
  /** `detail` is the transport's error, '' after a connect timeout. */
  upstreamConnectFailed(detail: string): void;
  upstreamData(offset: number, length: number): void;
  upstreamEnded(): void;
  upstreamReset(): void;
  /** The send queue has risen above its high watermark, or fallen below the low one. */
  upstreamBlocked(): void;
  upstreamDrained(): void;
  upstreamFault(): void;
}

export class UpstreamSocket extends HostConnection {
  /** Its directions end one by one. */
  readonly halfCloses = true;
  readonly #events: UpstreamSocketEvents;
  readonly #cluster: Cluster;
  readonly #priority: Priority;

  /** Returns whether the overload manager refuses a new connection; if so, counts the request for it. */
  static sheds({ stats, thread }: Cluster): boolean {
    if (thread.overload?.newUpstreamConnection?.sheds() !== true) return false;
    stats.increment(ClusterStats.at.upstream_rq_pending_total);
    stats.increment(ClusterStats.at.upstream_rq_cancelled);
    return true;
  }

  /**
   * Begins to connect. Returns undefined when a circuit breaker of the cluster is open: for connections, or for pending requests,
   * which limits pending connects. `priority`: of the circuit breakers.
   */
  static connect(
    events: UpstreamSocketEvents,
    cluster: Cluster,
    host: Host,
    options?: ConnectOptions,
    priority = Priority.Default,
  ): UpstreamSocket | undefined {
    const { limits, stats } = cluster;
    if (!tryAcquirePlace(cluster, host, priority)) {
      stats.increment(ClusterStats.at.upstream_cx_overflow);
      return undefined;
    }
    if (!limits.tryAcquire(LimitKind.PendingRequests, priority)) {
      releasePlace(cluster, host, priority);
      stats.increment(ClusterStats.at.upstream_rq_pending_overflow);
      return undefined;
    }
    try {
      return new UpstreamSocket(events, cluster, host, priority, undefined, options);
    } catch (error) {
      releasePlace(cluster, host, priority);
      limits.release(LimitKind.PendingRequests, priority);
      throw error;
    }
  }

  static takeOver(
    events: UpstreamSocketEvents,
    cluster: Cluster,
    host: Host,
    takenOver: TakenOverConnection,
  ): UpstreamSocket {
    // The connection exists already: no breaker may refuse it.
    acquirePlace(cluster, host, Priority.Default);
    return new UpstreamSocket(events, cluster, host, Priority.Default, takenOver);
  }

  private constructor(
    events: UpstreamSocketEvents,
    cluster: Cluster,
    host: Host,
    priority: Priority,
    takenOver?: TakenOverConnection,
    options?: ConnectOptions,
  ) {
    super(cluster, host, takenOver, options);
    this.#events = events;
    this.#cluster = cluster;
    this.#priority = priority;
    if (cluster.spec.closesOnHostFailure) (host.sockets ??= new Set()).add(this);
    if (takenOver !== undefined) {
      cluster.requestResumed(host);
      return;
    }
    cluster.stats.increment(ClusterStats.at.upstream_rq_pending_total);
    cluster.stats.increment(ClusterStats.at.upstream_rq_pending_active);
    host.stats.increment(HostStats.at.rq_pending_active);
  }

  /** Undefined while connecting and after the close. */
  get connectedId(): number | undefined {
    return this.isConnected ? this.id : undefined;
  }

  /** Throws a RangeError when the bytes are outside of the memory. */
  override send(offset: number, length: number): void {
    this.#cluster.thread.memory.checkRange(offset, length);
    super.send(offset, length);
  }
  /** send() without the range check. */
  sendUnchecked(offset: number, length: number): void {
    super.send(offset, length);
  }

  override addBuffered(sums: BufferedBytes): void {
    const { at } = ClusterStats;
    sums.add(this.stats, at.upstream_cx_rx_bytes_buffered, 0, at.upstream_cx_tx_bytes_buffered, this.pendingBytes);
  }

  /** Called when the client accepts data more slowly than it arrives. */
  pause(): void {
    this.transport.pause(this.id);
    this.stats.increment(ClusterStats.at.upstream_flow_control_paused_reading_total);
  }
  resume(): void {
    this.transport.resume(this.id);
    this.stats.increment(ClusterStats.at.upstream_flow_control_resumed_reading_total);
  }
  shutdown(): void {
    this.transport.shutdown(this.id);
  }

  /** See closeInOrder(). */
  close(lingerMs = 0, flushMs = FLUSH_MS, gone?: () => void, by = EndedBy.Local): void {
    if (this.isClosed) return;
    this.#countCancelled();
    this.closeInOrder(flushMs, lingerMs, gone, by);
  }

  reset(): void {
    if (this.isClosed) return;
    this.#countCancelled();
    this.abort();
  }

  /** Releases the frozen connection, which another process continues. */
  release(): void {
    this.handOver();
  }

  /**
   * Called when the host has become unhealthy: the connection ends. A pending connect fails by itself, or shows that the host has
   * recovered.
   */
  hostFailed(): void {
    if (this.isConnected) this.#events.upstreamFault();
  }

  // ── HostConnection ───────────────────────────────────────────────────────────────────────────────────────────────

  protected connected(): void {
    this.#pendingEnded();
    this.#cluster.requestBegan(this.host);
    this.host.monitor?.tcpConnected();
    this.#events.upstreamConnected();
  }

  protected connectFailed(failure: PoolFailure, detail: string): void {
    this.stats.increment(ClusterStats.at.upstream_rq_pending_failure_eject);
    if (failure === PoolFailure.ConnectFailed) this.host.monitor?.failed();
    else if (failure === PoolFailure.ConnectTimeout) this.host.monitor?.timedOut();
    this.#events.upstreamConnectFailed(detail);
  }

  protected received(offset: number, length: number): void {
    this.#events.upstreamData(offset, length);
  }

  protected hostEnded(): void {
    this.#events.upstreamEnded();
  }

  protected broken(): void {
    this.#events.upstreamReset();
  }

  onBlocked(): void {
    this.#events.upstreamBlocked();
    this.stats.increment(ClusterStats.at.upstream_flow_control_backed_up_total);
  }

  onDrained(): void {
    this.#events.upstreamDrained();
    this.stats.increment(ClusterStats.at.upstream_flow_control_drained_total);
  }

  onFault(): void {
    this.#events.upstreamFault();
  }

  protected ended(by: EndedBy, wasConnected: boolean): void {
    this.host.sockets?.delete(this);
    releasePlace(this.#cluster, this.host, this.#priority);
    if (!wasConnected) return this.#pendingEnded();
    this.#cluster.requestEnded(this.host);
    // As in Envoy, the connection is a request that its end interrupts.
    if (by !== EndedBy.HandOver) this.countInterrupted(by);
  }

  /** No-op: the owner has its own timers. */
  protected timerFired(): void {}

  #countCancelled(): void {
    if (!this.isConnected) this.stats.increment(ClusterStats.at.upstream_rq_cancelled);
  }

  /** Called when the connect has ended. */
  #pendingEnded(): void {
    this.#cluster.limits.release(LimitKind.PendingRequests, this.#priority);
    this.stats.decrement(ClusterStats.at.upstream_rq_pending_active);
    this.host.stats.decrement(HostStats.at.rq_pending_active);
  }
}
