// A TCP connection to a host of a cluster: connecting, counting, and passing on what happens.

import { Priority } from '../../common/priority.js';
import { addressText, decodeSockaddr } from '../../io/addresses/address.js';
import type { BufferedBytes } from '../../io/buffered-bytes.js';
import { ConnectStep } from '../../io/shim.js';
import { Timer } from '../../io/time/timing-wheel.js';
import type { ConnectionHandler } from '../../io/transport/connection-handler.js';
import { getLogger } from '../../log/logger.js';
import { ClusterStats, HostStats } from '../../stats/layouts/cluster.js';
import type { Cluster } from '../cluster.js';
import type { Host } from '../hosts/host.js';
import { LimitKind } from '../limits.js';
import { connectFailureText, PoolFailure } from '../pool-failure.js';

const logger = getLogger('upstream');

/** How long the host may take nothing of the bytes that are pending when the connection is closed. */
const FLUSH_MS = 5000;

/** Who gets what comes from the host. */
export interface UpstreamSocketEvents {
  upstreamConnected(): void;
  /** `detail` is what the transport has to say of it, '' when the connect timed out. */
  upstreamConnectFailed(detail: string): void;
  upstreamData(offset: number, length: number): void;
  upstreamEnded(): void;
  upstreamReset(): void;
  /** The host takes less than comes, and again more. */
  upstreamBlocked(): void;
  upstreamDrained(): void;
  upstreamFault(): void;
}

export class UpstreamSocket implements ConnectionHandler {
  readonly #events: UpstreamSocketEvents;
  readonly #cluster: Cluster;
  readonly #host: Host;
  readonly #timer: Timer<UpstreamSocket>;
  readonly #startMs: number;
  #id = -1;
  #isConnected = false;
  #isClosed = false;

  /**
   * Begins to connect; undefined when a circuit breaker of the cluster is open: that for connections, or that for pending
   * requests, which limits those that are being made.
   */
  static connect(events: UpstreamSocketEvents, cluster: Cluster, host: Host): UpstreamSocket | undefined {
    const { limits, stats } = cluster;
    if (!limits.tryAcquire(LimitKind.Connections, Priority.Default)) {
      stats.increment(ClusterStats.at.upstream_cx_overflow);
      return undefined;
    }
    if (!limits.tryAcquire(LimitKind.PendingRequests, Priority.Default)) {
      limits.release(LimitKind.Connections, Priority.Default);
      stats.increment(ClusterStats.at.upstream_rq_pending_overflow);
      return undefined;
    }
    try {
      return new UpstreamSocket(events, cluster, host);
    } catch (error) {
      limits.release(LimitKind.Connections, Priority.Default);
      limits.release(LimitKind.PendingRequests, Priority.Default);
      throw error;
    }
  }

  /** Goes on with a frozen connection that another process has made; `startMs` is when that began (monotonic). */
  static takeOver(
    events: UpstreamSocketEvents,
    cluster: Cluster,
    host: Host,
    id: number,
    startMs: number,
  ): UpstreamSocket {
    // It is there: no breaker could make it come later.
    cluster.limits.acquire(LimitKind.Connections, Priority.Default);
    return new UpstreamSocket(events, cluster, host, { id, startMs });
  }

  private constructor(
    events: UpstreamSocketEvents,
    cluster: Cluster,
    host: Host,
    former?: { readonly id: number; readonly startMs: number },
  ) {
    const { thread } = cluster;
    this.#events = events;
    this.#cluster = cluster;
    this.#host = host;
    this.#timer = new Timer<UpstreamSocket>(this, onTimer);
    this.#startMs = former?.startMs ?? thread.clock.monotonicMs;
    // First: if it throws, nothing has been counted.
    this.#id = former?.id ?? thread.transport.connect(host.sockaddr, cluster.spec, cluster.bufferLimits, this);
    if (cluster.spec.closesOnHostFailure) (host.sockets ??= new Set()).add(this);
    cluster.stats.increment(ClusterStats.at.upstream_cx_active);
    host.stats.increment(HostStats.at.cx_active);
    if (former !== undefined) {
      this.#isConnected = true;
      thread.transport.setHandler(former.id, this);
      cluster.requestGoesOn(host);
      return;
    }
    cluster.stats.increment(ClusterStats.at.upstream_cx_total);
    cluster.stats.increment(ClusterStats.at.upstream_rq_pending_total);
    cluster.stats.increment(ClusterStats.at.upstream_rq_pending_active);
    host.stats.increment(HostStats.at.cx_total);
    thread.wheel.schedule(this.#timer, cluster.spec.connectTimeoutMs);
  }

  /** Undefined while it connects, and when it is closed. */
  get connectedId(): number | undefined {
    return this.#isConnected && !this.#isClosed ? this.#id : undefined;
  }

  get startMs(): number {
    return this.#startMs;
  }

  /** It was frozen, and is another process's now. */
  leave(): void {
    this.#cluster.thread.transport.letGo(this.#id);
    this.#gone();
  }

  localText(): string {
    const raw = this.#cluster.thread.transport.localAddress(this.#id);
    return addressText(decodeSockaddr(raw, 0, raw.length));
  }

  /** Throws a RangeError when the bytes are outside of the memory. */
  send(offset: number, length: number): void {
    this.#cluster.thread.transport.memory.checkRange(offset, length);
    this.pass(offset, length);
  }
  /** send() of bytes that are known to be inside. */
  pass(offset: number, length: number): void {
    this.#cluster.stats.addBytes(ClusterStats.at.upstream_cx_tx_bytes_total, length);
    this.#cluster.thread.transport.send(this.#id, offset, length);
  }
  /** Bytes that were sent and that the kernel has not taken yet. */
  get pendingBytes(): number {
    return this.#isClosed ? 0 : this.#cluster.thread.transport.pendingBytes(this.#id);
  }

  addBuffered(sums: BufferedBytes): void {
    const { at } = ClusterStats;
    const { stats } = this.#cluster;
    sums.add(stats, at.upstream_cx_rx_bytes_buffered, 0, at.upstream_cx_tx_bytes_buffered, this.pendingBytes);
  }

  /** The client takes less than comes. */
  pause(): void {
    this.#cluster.thread.transport.pause(this.#id);
    this.#cluster.stats.increment(ClusterStats.at.upstream_flow_control_paused_reading_total);
  }
  resume(): void {
    this.#cluster.thread.transport.resume(this.#id);
    this.#cluster.stats.increment(ClusterStats.at.upstream_flow_control_resumed_reading_total);
  }
  shutdown(): void {
    this.#cluster.thread.transport.shutdown(this.#id);
  }

  /** Closes behind what is pending, of which the host has to take some every `flushMs`; one that still sends gets `lingerMs` to end. `gone` is called when it is closed. */
  close(lingerMs = 0, flushMs = FLUSH_MS, gone?: () => void): void {
    if (this.#isClosed) return;
    this.#countLocalClose();
    this.#closed();
    this.#cluster.thread.transport.close(this.#id, flushMs, lingerMs, gone);
  }

  reset(): void {
    if (this.#isClosed) return;
    this.#countLocalClose();
    this.#closed();
    this.#cluster.thread.transport.reset(this.#id);
  }

  /** Its host was found to be unhealthy: it ends. One that is being made fails by itself, or shows that the host is well again. */
  hostFailed(): void {
    if (this.#isConnected && !this.#isClosed) this.#events.upstreamFault();
  }

  // ── ConnectionHandler ────────────────────────────────────────────────────────────────────────────────────────────

  onConnected(): void {
    const { stats, thread } = this.#cluster;
    this.#isConnected = true;
    this.#pendingEnded();
    if (logger.isDebug) this.#log('connected');
    thread.wheel.cancel(this.#timer);
    stats.record(ClusterStats.at.upstream_cx_connect_ms, Math.floor(thread.clock.monotonicMs - this.#startMs));
    this.#cluster.requestBegan(this.#host);
    this.#host.monitor?.connectedForGood();
    this.#events.upstreamConnected();
  }

  onData(offset: number, length: number): void {
    this.#cluster.stats.addBytes(ClusterStats.at.upstream_cx_rx_bytes_total, length);
    this.#events.upstreamData(offset, length);
  }

  onEnd(): void {
    this.#events.upstreamEnded();
  }

  onReset(errno: number, step: ConnectStep): void {
    if (!this.#isConnected) {
      const failure = step === ConnectStep.Bind ? PoolFailure.BindFailed : PoolFailure.ConnectFailed;
      return this.#connectFailed(failure, connectFailureText(this.#cluster.spec, errno, step));
    }
    this.#cluster.stats.increment(ClusterStats.at.upstream_cx_destroy_remote);
    this.#closed();
    this.#cluster.thread.transport.close(this.#id, 0, 0);
    this.#events.upstreamReset();
  }

  onBlocked(): void {
    this.#events.upstreamBlocked();
    this.#cluster.stats.increment(ClusterStats.at.upstream_flow_control_backed_up_total);
  }

  onDrained(): void {
    this.#events.upstreamDrained();
    this.#cluster.stats.increment(ClusterStats.at.upstream_flow_control_drained_total);
  }

  onFault(): void {
    this.#events.upstreamFault();
  }

  connectTimeout(): void {
    this.#cluster.stats.increment(ClusterStats.at.upstream_cx_connect_timeout);
    this.#connectFailed(PoolFailure.ConnectTimeout, '');
  }

  #connectFailed(failure: PoolFailure, detail: string): void {
    const { at } = ClusterStats;
    const isRemote = failure === PoolFailure.ConnectFailed;
    this.#cluster.stats.increment(isRemote ? at.upstream_cx_destroy_remote : at.upstream_cx_destroy_local);
    if (failure === PoolFailure.BindFailed) this.#cluster.stats.increment(at.bind_errors);
    this.#cluster.stats.increment(at.upstream_rq_pending_failure_eject);
    this.#countConnectFailure();
    if (isRemote) this.#host.monitor?.failed();
    else if (failure === PoolFailure.ConnectTimeout) this.#host.monitor?.timedOut();
    if (logger.isDebug) this.#log(`connect failed: ${detail || 'timeout'}`);
    this.#closed();
    this.#cluster.thread.transport.close(this.#id, 0, 0);
    this.#events.upstreamConnectFailed(detail);
  }

  /** As in Envoy a connect that nobody waits for any more counts as one that has failed, too. */
  #countLocalClose(): void {
    this.#cluster.stats.increment(ClusterStats.at.upstream_cx_destroy_local);
    if (this.#isConnected) return;
    this.#cluster.stats.increment(ClusterStats.at.upstream_rq_cancelled);
    this.#countConnectFailure();
  }

  #countConnectFailure(): void {
    this.#cluster.stats.increment(ClusterStats.at.upstream_cx_connect_fail);
    this.#host.stats.increment(HostStats.at.cx_connect_fail);
  }

  #log(text: string): void {
    logger.debug(`cluster '${this.#cluster.spec.name}', host ${this.#host.address}: ${text}`);
  }

  #closed(): void {
    const { stats, thread } = this.#cluster;
    if (logger.isDebug) this.#log('closed');
    this.#gone();
    stats.increment(ClusterStats.at.upstream_cx_destroy);
    stats.record(ClusterStats.at.upstream_cx_length_ms, Math.floor(thread.clock.monotonicMs - this.#startMs));
  }

  /** It is counted as open no longer. */
  #gone(): void {
    const { limits, stats, thread } = this.#cluster;
    this.#isClosed = true;
    this.#host.sockets?.delete(this);
    thread.wheel.cancel(this.#timer);
    limits.release(LimitKind.Connections, Priority.Default);
    if (this.#isConnected) this.#cluster.requestEnded(this.#host);
    else this.#pendingEnded();
    stats.decrement(ClusterStats.at.upstream_cx_active);
    this.#host.stats.decrement(HostStats.at.cx_active);
  }

  /** It waits for its host no longer. */
  #pendingEnded(): void {
    const { limits, stats } = this.#cluster;
    limits.release(LimitKind.PendingRequests, Priority.Default);
    stats.decrement(ClusterStats.at.upstream_rq_pending_active);
  }
}

function onTimer(socket: UpstreamSocket): void {
  try {
    socket.connectTimeout();
  } catch (error) {
    socket.onFault();
    throw error;
  }
}
