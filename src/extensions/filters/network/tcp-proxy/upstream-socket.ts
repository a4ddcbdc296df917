// The host's side of a proxied TCP connection: connecting, counting, and passing events to the pair.

import { errorName } from '../../../../common/errno.js';
import { addressText, decodeSockaddr } from '../../../../io/address.js';
import { Timer } from '../../../../io/timing-wheel.js';
import type { ConnectionHandler } from '../../../../io/transport.js';
import { ClusterStats, HostStats } from '../../../../stats/layouts/cluster.js';
import type { Cluster } from '../../../../upstream/cluster.js';
import type { Host } from '../../../../upstream/host.js';
import { LimitKind, Priority } from '../../../../upstream/limits.js';

/** How long the host may take nothing of the bytes that are pending when the pair is over. */
const FLUSH_MS = 5000;

/** Who gets what comes from the host. */
export interface UpstreamEvents {
  upstreamConnected(): void;
  /** `reason` is empty when the connect timed out. */
  upstreamConnectFailed(reason: string, isTimeout: boolean): void;
  upstreamData(offset: number, length: number): void;
  upstreamEnded(): void;
  upstreamReset(): void;
  /** The host takes less than comes, and again more. */
  upstreamBlocked(): void;
  upstreamDrained(): void;
  upstreamFault(): void;
}

export class UpstreamSocket implements ConnectionHandler {
  readonly #pair: UpstreamEvents;
  readonly #cluster: Cluster;
  readonly #host: Host;
  readonly #timer: Timer<UpstreamSocket>;
  readonly #startMs: number;
  #id = -1;
  #isConnected = false;
  #isClosed = false;

  /** Begins to connect; undefined when the cluster's circuit breaker for connections is open. */
  static connect(pair: UpstreamEvents, cluster: Cluster, host: Host): UpstreamSocket | undefined {
    if (!cluster.limits.tryAcquire(LimitKind.Connections, Priority.Default)) {
      cluster.stats.increment(ClusterStats.at.upstream_cx_overflow);
      return undefined;
    }
    return new UpstreamSocket(pair, cluster, host);
  }

  private constructor(pair: UpstreamEvents, cluster: Cluster, host: Host) {
    const { thread } = cluster;
    this.#pair = pair;
    this.#cluster = cluster;
    this.#host = host;
    this.#timer = new Timer<UpstreamSocket>(this, onTimer);
    this.#startMs = thread.clock.monotonicMs;
    cluster.stats.increment(ClusterStats.at.upstream_cx_total);
    cluster.stats.increment(ClusterStats.at.upstream_cx_active);
    host.stats.increment(HostStats.at.cx_total);
    host.stats.increment(HostStats.at.cx_active);
    this.#id = thread.transport.connect(host.sockaddr, cluster.spec.sourceAddress, cluster.bufferLimits, this);
    thread.wheel.schedule(this.#timer, cluster.spec.connectTimeoutMs);
  }

  localText(): string {
    const raw = this.#cluster.thread.transport.localAddress(this.#id);
    return addressText(decodeSockaddr(raw, 0, raw.length));
  }

  send(offset: number, length: number): void {
    this.#cluster.stats.add(ClusterStats.at.upstream_cx_tx_bytes_total, length);
    this.#cluster.thread.transport.send(this.#id, offset, length);
  }
  pause(): void {
    this.#cluster.thread.transport.pause(this.#id);
  }
  resume(): void {
    this.#cluster.thread.transport.resume(this.#id);
  }
  shutdown(): void {
    this.#cluster.thread.transport.shutdown(this.#id);
  }

  close(): void {
    if (this.#isClosed) return;
    this.#cluster.stats.increment(ClusterStats.at.upstream_cx_destroy_local);
    this.#closed();
    this.#cluster.thread.transport.close(this.#id, FLUSH_MS, 0);
  }

  reset(): void {
    if (this.#isClosed) return;
    this.#cluster.stats.increment(ClusterStats.at.upstream_cx_destroy_local);
    this.#closed();
    this.#cluster.thread.transport.reset(this.#id);
  }

  // ── ConnectionHandler ────────────────────────────────────────────────────────────────────────────────────────────

  onConnected(): void {
    const { stats, thread } = this.#cluster;
    this.#isConnected = true;
    thread.wheel.cancel(this.#timer);
    stats.record(ClusterStats.at.upstream_cx_connect_ms, Math.floor(thread.clock.monotonicMs - this.#startMs));
    this.#pair.upstreamConnected();
  }

  onData(offset: number, length: number): void {
    this.#cluster.stats.add(ClusterStats.at.upstream_cx_rx_bytes_total, length);
    this.#pair.upstreamData(offset, length);
  }

  onEnd(): void {
    this.#pair.upstreamEnded();
  }

  onReset(errno: number): void {
    if (!this.#isConnected) return this.#connectFailed(errorName(errno), false);
    this.#cluster.stats.increment(ClusterStats.at.upstream_cx_destroy_remote);
    this.#closed();
    this.#cluster.thread.transport.close(this.#id, 0, 0);
    this.#pair.upstreamReset();
  }

  onBlocked(): void {
    this.#pair.upstreamBlocked();
    this.#cluster.stats.increment(ClusterStats.at.upstream_flow_control_backed_up_total);
  }

  onDrained(): void {
    this.#pair.upstreamDrained();
    this.#cluster.stats.increment(ClusterStats.at.upstream_flow_control_drained_total);
  }

  onFault(): void {
    this.#pair.upstreamFault();
  }

  connectTimeout(): void {
    this.#cluster.stats.increment(ClusterStats.at.upstream_cx_connect_timeout);
    this.#connectFailed('', true);
  }

  #connectFailed(reason: string, isTimeout: boolean): void {
    this.#cluster.stats.increment(ClusterStats.at.upstream_cx_connect_fail);
    this.#host.stats.increment(HostStats.at.cx_connect_fail);
    this.#closed();
    this.#cluster.thread.transport.close(this.#id, 0, 0);
    this.#pair.upstreamConnectFailed(reason, isTimeout);
  }

  #closed(): void {
    const { limits, stats, thread } = this.#cluster;
    this.#isClosed = true;
    thread.wheel.cancel(this.#timer);
    limits.release(LimitKind.Connections, Priority.Default);
    stats.increment(ClusterStats.at.upstream_cx_destroy);
    stats.decrement(ClusterStats.at.upstream_cx_active);
    this.#host.stats.decrement(HostStats.at.cx_active);
    if (this.#isConnected)
      stats.record(ClusterStats.at.upstream_cx_length_ms, Math.floor(thread.clock.monotonicMs - this.#startMs));
  }
}

function onTimer(socket: UpstreamSocket): void {
  socket.connectTimeout();
}
