// A TCP connection to a host of a cluster that carries many requests at once. Its owner counts the requests.

import { Priority } from '../../common/priority.js';
import { ClusterStats } from '../../stats/layouts/cluster.js';
import type { Cluster } from '../cluster.js';
import type { Host } from '../hosts/host.js';
import { PoolFailure } from '../pool-failure.js';
import { releasePlace, tryAcquirePlace } from './connection-places.js';
import { EndedBy, HostConnection } from './host-connection.js';

/** The callbacks of a PipelinedSocket to its owner. */
export interface PipelinedSocketEvents {
  /** Requests wait for their responses, which an end of the connection interrupts. */
  readonly hasRequests: boolean;
  socketConnected(): void;
  socketData(offset: number, length: number): void;
  /** Called once, unless the owner has closed it: the connect has failed, or the connection has ended. */
  socketClosed(): void;
  /** The send queue has risen above its high watermark, or fallen below the low one. */
  socketBlocked(): void;
  socketDrained(): void;
}

export class PipelinedSocket extends HostConnection {
  readonly #events: PipelinedSocketEvents;
  readonly #cluster: Cluster;

  /** Begins to connect. Returns undefined when a circuit breaker for connections is open. */
  static connect(events: PipelinedSocketEvents, cluster: Cluster, host: Host): PipelinedSocket | undefined {
    if (!tryAcquirePlace(cluster, host, Priority.Default)) {
      cluster.stats.increment(ClusterStats.at.upstream_cx_overflow);
      return undefined;
    }
    try {
      return new PipelinedSocket(events, cluster, host);
    } catch (error) {
      releasePlace(cluster, host, Priority.Default);
      throw error;
    }
  }

  private constructor(events: PipelinedSocketEvents, cluster: Cluster, host: Host) {
    super(cluster, host);
    this.#events = events;
    this.#cluster = cluster;
    if (cluster.spec.closesOnHostFailure) (host.sockets ??= new Set()).add(this);
  }

  close(): void {
    if (!this.isClosed) this.closeInOrder(0, 0);
  }

  /** Called when the host has become unhealthy. */
  hostFailed(): void {
    if (this.isConnected) this.#end();
  }

  // ── HostConnection ───────────────────────────────────────────────────────────────────────────────────────────────

  protected connected(): void {
    // Only replies are successes for outlier detection: a host that connects may still hang.
    this.#events.socketConnected();
  }

  protected connectFailed(failure: PoolFailure): void {
    if (failure === PoolFailure.ConnectFailed) this.host.monitor?.failed();
    else if (failure === PoolFailure.ConnectTimeout) this.host.monitor?.timedOut();
    this.#events.socketClosed();
  }

  protected received(offset: number, length: number): void {
    this.#events.socketData(offset, length);
  }

  protected hostEnded(): void {
    this.#end(EndedBy.Remote);
  }

  protected broken(): void {
    this.#events.socketClosed();
  }

  protected ended(by: EndedBy, wasConnected: boolean): void {
    this.host.sockets?.delete(this);
    releasePlace(this.#cluster, this.host, Priority.Default);
    if (wasConnected && this.#events.hasRequests) this.countInterrupted(by);
  }

  /** No-op: the owner has its own timers. */
  protected timerFired(): void {}

  onBlocked(): void {
    this.stats.increment(ClusterStats.at.upstream_flow_control_backed_up_total);
    this.#events.socketBlocked();
  }

  onDrained(): void {
    this.stats.increment(ClusterStats.at.upstream_flow_control_drained_total);
    this.#events.socketDrained();
  }

  onFault(): void {
    if (!this.isClosed) this.#end();
  }

  #end(by?: EndedBy): void {
    this.closeInOrder(0, 0, undefined, by);
    this.#events.socketClosed();
  }
}
