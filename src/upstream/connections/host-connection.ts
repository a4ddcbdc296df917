// A connection to a host of a cluster, whatever is spoken on it. This is the one place that connects: it limits how long connecting may
// take, counts the connection, its bytes and its end, and leaves the rest to those that extend it.

import { shownName } from '../../common/text/shown.js';
import { addressText, decodeSockaddr } from '../../io/addresses/address.js';
import type { BufferedBytes } from '../../io/buffered-bytes.js';
import { ConnectStep } from '../../io/shim.js';
import { Timer } from '../../io/time/timing-wheel.js';
import type { BufferLimits } from '../../io/transport/buffer-limits.js';
import type { ConnectionHandler } from '../../io/transport/connection-handler.js';
import type { Transport } from '../../io/transport/transport.js';
import { getLogger } from '../../log/logger.js';
import { ClusterStats, HostStats } from '../../stats/layouts/cluster.js';
import type { Scope } from '../../stats/thread-stats.js';
import type { ClusterSpec } from '../cluster-config.js';
import type { Host } from '../hosts/host.js';
import { connectFailureText, PoolFailure } from '../pool-failure.js';
import type { UpstreamThread } from '../upstream-thread.js';

const logger = getLogger('upstream');

/** A cluster, as its connections see it. */
export interface ConnectingCluster {
  readonly thread: UpstreamThread;
  readonly spec: ClusterSpec;
  /** cluster.<name>. */
  readonly stats: Scope;
  readonly bufferLimits: BufferLimits;
}

/** A connection that another process has made, frozen. */
export interface FormerConnection {
  readonly id: number;
  /** When it began to connect (monotonic). */
  readonly startMs: number;
}

/** Who has ended a connection. */
export const enum EndedBy {
  Local = 0,
  Remote = 1,
  /** Nobody: it goes on in another process. */
  Nobody = 2,
}

const enum State {
  Connecting = 0,
  Connected = 1,
  Closed = 2,
}

export abstract class HostConnection implements ConnectionHandler {
  readonly host: Host;
  /** When it began to connect (monotonic). */
  readonly startMs: number;
  protected readonly transport: Transport;
  protected readonly stats: Scope;
  protected readonly id: number;
  /** Measures the time to connect; afterwards free for the extending class, whose timerFired() is called. */
  protected readonly timer: Timer<HostConnection>;
  readonly #cluster: ConnectingCluster;
  #localText = '';
  #state = State.Connecting;

  /** Begins to connect, or goes on with `former`. Throws, with nothing counted, when no connection can be begun. */
  protected constructor(cluster: ConnectingCluster, host: Host, former?: FormerConnection) {
    const { spec, stats, thread } = cluster;
    this.#cluster = cluster;
    this.host = host;
    this.transport = thread.transport;
    this.stats = stats;
    this.timer = new Timer<HostConnection>(this, onTimer);
    this.startMs = former?.startMs ?? thread.clock.monotonicMs;
    this.id = former?.id ?? thread.transport.connect(host.sockaddr, spec, cluster.bufferLimits, this);
    stats.increment(ClusterStats.at.upstream_cx_active);
    host.stats.increment(HostStats.at.cx_active);
    if (former !== undefined) {
      this.#state = State.Connected;
      thread.transport.setHandler(former.id, this);
      return;
    }
    stats.increment(ClusterStats.at.upstream_cx_total);
    host.stats.increment(HostStats.at.cx_total);
    thread.wheel.schedule(this.timer, spec.connectTimeoutMs);
  }

  get isConnected(): boolean {
    return this.#state === State.Connected;
  }

  get isClosed(): boolean {
    return this.#state === State.Closed;
  }

  /** This end as text with port. Asked of the kernel the first time. */
  get localText(): string {
    if (this.#localText === '') {
      const raw = this.transport.localAddress(this.id);
      this.#localText = addressText(decodeSockaddr(raw, 0, raw.length));
    }
    return this.#localText;
  }

  /** Bytes that were sent and that the kernel has not taken yet. */
  get pendingBytes(): number {
    return this.isClosed ? 0 : this.transport.pendingBytes(this.id);
  }

  /** Queues memory[offset, offset + length), which is known to be inside. */
  send(offset: number, length: number): void {
    this.stats.addBytes(ClusterStats.at.upstream_cx_tx_bytes_total, length);
    this.transport.send(this.id, offset, length);
  }

  // ── For those that extend it ─────────────────────────────────────────────────────────────────────────────────────

  protected abstract connected(): void;
  /** It is closed, and ended() was called. `detail` is what the transport has to say of it, '' when it took too long. */
  protected abstract connectFailed(failure: PoolFailure, detail: string): void;
  protected abstract received(offset: number, length: number): void;
  /** The host has broken it. It is closed, and ended() was called. */
  protected abstract broken(): void;
  /** It is closed: releases what it holds. */
  protected abstract ended(by: EndedBy, wasConnected: boolean): void;
  /** The timer was set after connected(), and has fired. */
  protected abstract timerFired(): void;

  /**
   * Closes behind what is pending, of which the host has to take some every `flushMs`; one that still sends gets `lingerMs` to end.
   * `gone` is called when it is closed.
   */
  protected closeInOrder(flushMs: number, lingerMs: number, gone?: () => void): void {
    this.#endLocally();
    this.transport.close(this.id, flushMs, lingerMs, gone);
  }

  /** The host sees a reset. */
  protected abort(): void {
    this.#endLocally();
    this.transport.reset(this.id);
  }

  /** The host has ended it. */
  protected closedByHost(): void {
    this.stats.increment(ClusterStats.at.upstream_cx_destroy_remote);
    this.#end(EndedBy.Remote);
    this.transport.close(this.id, 0, 0);
    this.broken();
  }

  /** It was frozen, and is another process's now. */
  protected handOver(): void {
    this.transport.releaseFrozen(this.id);
    this.#end(EndedBy.Nobody);
  }

  // ── ConnectionHandler ────────────────────────────────────────────────────────────────────────────────────────────

  onConnected(): void {
    const { clock, wheel } = this.#cluster.thread;
    this.#state = State.Connected;
    wheel.cancel(this.timer);
    this.stats.record(ClusterStats.at.upstream_cx_connect_ms, Math.floor(clock.monotonicMs - this.startMs));
    if (logger.isDebug) this.#log('connected');
    this.connected();
  }

  onData(offset: number, length: number): void {
    this.stats.addBytes(ClusterStats.at.upstream_cx_rx_bytes_total, length);
    this.received(offset, length);
  }

  onReset(errno: number, step: ConnectStep): void {
    if (this.#state !== State.Connecting) return this.closedByHost();
    const failure = step === ConnectStep.Bind ? PoolFailure.BindFailed : PoolFailure.ConnectFailed;
    this.#connectFailed(failure, connectFailureText(this.#cluster.spec, errno, step));
  }

  abstract onEnd(): void;
  abstract onBlocked(): void;
  abstract onDrained(): void;
  abstract onFault(): void;
  addBuffered?(sums: BufferedBytes): void;

  onTimer(): void {
    if (this.#state !== State.Connecting) return this.timerFired();
    this.stats.increment(ClusterStats.at.upstream_cx_connect_timeout);
    this.#connectFailed(PoolFailure.ConnectTimeout, '');
  }

  // ── Inside ───────────────────────────────────────────────────────────────────────────────────────────────────────

  #connectFailed(failure: PoolFailure, detail: string): void {
    const { at } = ClusterStats;
    const isRemote = failure === PoolFailure.ConnectFailed;
    this.stats.increment(isRemote ? at.upstream_cx_destroy_remote : at.upstream_cx_destroy_local);
    if (failure === PoolFailure.BindFailed) this.stats.increment(at.bind_errors);
    this.#countConnectFailure();
    if (logger.isDebug) this.#log(`connect failed: ${detail || 'timeout'}`);
    this.#end(isRemote ? EndedBy.Remote : EndedBy.Local);
    this.transport.close(this.id, 0, 0);
    this.connectFailed(failure, detail);
  }

  /** As in Envoy a connect that nobody waits for any more counts as one that has failed, too. */
  #endLocally(): void {
    this.stats.increment(ClusterStats.at.upstream_cx_destroy_local);
    if (this.#state === State.Connecting) this.#countConnectFailure();
    this.#end(EndedBy.Local);
  }

  #countConnectFailure(): void {
    this.stats.increment(ClusterStats.at.upstream_cx_connect_fail);
    this.host.stats.increment(HostStats.at.cx_connect_fail);
  }

  #end(by: EndedBy): void {
    const { clock, wheel } = this.#cluster.thread;
    const wasConnected = this.isConnected;
    this.#state = State.Closed;
    wheel.cancel(this.timer);
    this.stats.decrement(ClusterStats.at.upstream_cx_active);
    this.host.stats.decrement(HostStats.at.cx_active);
    if (by !== EndedBy.Nobody) {
      this.stats.increment(ClusterStats.at.upstream_cx_destroy);
      this.stats.record(ClusterStats.at.upstream_cx_length_ms, Math.floor(clock.monotonicMs - this.startMs));
      if (logger.isDebug) this.#log(by === EndedBy.Remote ? 'closed by the host' : 'closed');
    }
    this.ended(by, wasConnected);
  }

  #log(text: string): void {
    logger.debug(`cluster '${shownName(this.#cluster.spec.name)}', host ${this.host.address}: ${text}`);
  }
}

function onTimer(connection: HostConnection): void {
  try {
    connection.onTimer();
  } catch (error) {
    connection.onFault();
    throw error;
  }
}
