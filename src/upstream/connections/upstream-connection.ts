// One HTTP connection to a host: it belongs to a pool, and tells it when there is room for another request.

import type { Priority } from '../../common/priority.js';
import { type ClientCodec, type ClientCodecEvents, StreamEnd } from '../../http/codec/connections.js';
import type { ByteSink, RequestEncoder, ResponseDecoder } from '../../http/codec/streams.js';
import { h1Client } from '../../http/h1/protocol.js';
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
import { type ClusterLimits, LimitKind } from '../limits.js';
import { connectFailureText, PoolFailure } from '../pool-failure.js';
import type { UpstreamThread } from '../upstream-thread.js';

const logger = getLogger('upstream');

/** A cluster, as its connections see it. */
export interface ConnectingCluster {
  readonly thread: UpstreamThread;
  readonly spec: ClusterSpec;
  /** cluster.<name>. */
  readonly stats: Scope;
  readonly limits: Pick<ClusterLimits, 'release'>;
  readonly bufferLimits: BufferLimits;
}

/** The pool that a connection belongs to, as the connection sees it. */
export interface ConnectionPool {
  readonly thread: UpstreamThread;
  readonly cluster: ConnectingCluster;
  readonly host: Host;
  readonly priority: Priority;
  /** The host is gone: connections end with their request. */
  readonly isDraining: boolean;
  /** Connected, or through with a request: it takes another one. */
  connectionReady(connection: UpstreamConnection, wasConnecting: boolean): void;
  connectFailed(failure: PoolFailure, detail: string): void;
  connectionClosed(connection: UpstreamConnection): void;
}

const enum State {
  Connecting = 0,
  Connected = 1,
  Closed = 2,
}

/** How long bytes that are pending may still take when a connection is closed in order. */
const FLUSH_MS = 1000;

export class UpstreamConnection implements ConnectionHandler, ClientCodecEvents, ByteSink {
  readonly pool: ConnectionPool;
  /** Where it stands in the pool's list of those that take another request; meaningless while it does not. */
  poolIndex = -1;
  readonly #transport: Transport;
  readonly #stats: Scope;
  /** Undefined until it is connected. */
  #codec: ClientCodec | undefined;
  readonly #timer: Timer<UpstreamConnection>;
  #id = -1;
  #localText = '';
  #state: State = State.Connecting;
  #startMs = 0;
  #idleSinceMs = 0;
  #requests = 0;
  /** Of these, those that are under way. */
  #active = 0;
  /** It has reached max_connection_duration. */
  #isOld = false;

  constructor(pool: ConnectionPool) {
    const { thread, cluster } = pool;
    this.pool = pool;
    this.#transport = thread.transport;
    this.#stats = cluster.stats;
    this.#timer = new Timer<UpstreamConnection>(this, onTimer);
    this.#startMs = thread.clock.monotonicMs;
    // First: if it throws, nothing has been counted.
    this.#id = thread.transport.connect(pool.host.sockaddr, cluster.spec, cluster.bufferLimits, this);
    cluster.stats.increment(ClusterStats.at.upstream_cx_total);
    cluster.stats.increment(ClusterStats.at.upstream_cx_http1_total);
    cluster.stats.increment(ClusterStats.at.upstream_cx_active);
    pool.host.stats.increment(HostStats.at.cx_total);
    pool.host.stats.increment(HostStats.at.cx_active);
    thread.wheel.schedule(this.#timer, cluster.spec.connectTimeoutMs);
  }

  /** Connected, with no request under way. */
  get isIdle(): boolean {
    return this.#state === State.Connected && this.#active === 0;
  }

  /** It takes another request. */
  get hasRoom(): boolean {
    return this.#codec!.freeStreams > 0;
  }

  /** When its last request ended, or it was connected (monotonic); meaningless while it is not idle. */
  get idleSinceMs(): number {
    return this.#idleSinceMs;
  }

  /** This end as text with port. Asked of the kernel the first time. */
  get localText(): string {
    if (this.#localText === '') {
      const raw = this.#transport.localAddress(this.#id);
      this.#localText = addressText(decodeSockaddr(raw, 0, raw.length));
    }
    return this.#localText;
  }

  /** Begins a request; the connection has room for it. */
  startRequest(decoder: ResponseDecoder): RequestEncoder {
    this.#active++;
    this.#requests++;
    return this.#codec!.newStream(decoder);
  }

  /** Gives the connection up, whatever it does: a request on it ends with a reset. */
  close(): void {
    if (this.#state !== State.Closed) this.#end(false);
  }

  /** Without a request it ends now; the pool keeps one that has some from taking others. */
  closeWhenIdle(): void {
    if (this.isIdle) this.close();
  }

  // ── ByteSink ─────────────────────────────────────────────────────────────────────────────────────────────────────

  send(offset: number, length: number): void {
    this.#stats.addBytes(ClusterStats.at.upstream_cx_tx_bytes_total, length);
    this.#transport.send(this.#id, offset, length);
  }
  pause(): void {
    this.#transport.pause(this.#id);
  }
  resume(): void {
    this.#transport.resume(this.#id);
  }
  goOnLater(): void {
    this.#transport.later(this.#id, () => this.#codec!.takeTurn());
  }

  addBuffered(sums: BufferedBytes): void {
    const { at } = ClusterStats;
    const { cluster, thread } = this.pool;
    const received = this.#codec?.bufferedBytes ?? 0;
    const sent = thread.transport.pendingBytes(this.#id);
    sums.add(cluster.stats, at.upstream_cx_rx_bytes_buffered, received, at.upstream_cx_tx_bytes_buffered, sent);
  }

  // ── ClientCodecEvents ────────────────────────────────────────────────────────────────────────────────────────────

  onStreamComplete(reusable: boolean, end: StreamEnd): void {
    if (this.#state === State.Closed) return;
    // It ends amid its request, and counts so.
    if (end !== StreamEnd.Complete && !reusable) return this.#end(end === StreamEnd.CutOff);
    const { cluster, thread } = this.pool;
    cluster.limits.release(LimitKind.Requests, this.pool.priority);
    const limit = cluster.spec.maxRequestsPerConnection;
    const isWornOut = limit > 0 && this.#requests >= limit;
    if (isWornOut) cluster.stats.increment(ClusterStats.at.upstream_cx_max_requests);
    this.#active--;
    this.#idleSinceMs = thread.clock.monotonicMs;
    if (!reusable) this.close();
    else if (isWornOut || this.pool.isDraining || this.#isTooOld()) this.closeWhenIdle();
    else this.pool.connectionReady(this, false);
  }

  onCloseNotice(): void {
    this.pool.cluster.stats.increment(ClusterStats.at.upstream_cx_close_notify);
  }

  onProtocolError(): void {
    this.pool.cluster.stats.increment(ClusterStats.at.upstream_cx_protocol_error);
    this.close();
  }

  onEnded(): void {
    if (this.#state !== State.Closed) this.#closedByPeer();
  }

  // ── ConnectionHandler ────────────────────────────────────────────────────────────────────────────────────────────

  onConnected(): void {
    const { cluster, thread } = this.pool;
    const now = thread.clock.monotonicMs;
    cluster.stats.record(ClusterStats.at.upstream_cx_connect_ms, Math.floor(now - this.#startMs));
    this.#state = State.Connected;
    this.#codec = h1Client(thread.memory, this, this, cluster.spec.http1);
    this.#idleSinceMs = now;
    if (logger.isDebug) this.#log('connected');
    thread.wheel.cancel(this.#timer);
    this.#armTimer(cluster.spec.idleTimeoutMs);
    this.pool.connectionReady(this, true);
  }

  onData(offset: number, length: number): void {
    this.#stats.addBytes(ClusterStats.at.upstream_cx_rx_bytes_total, length);
    this.#codec!.receive(offset, length);
  }

  onEnd(): void {
    // What came before it may still wait for the client to take it: the codec tells when all of it is handled.
    this.#codec!.end();
  }

  onReset(errno: number, step: ConnectStep): void {
    if (this.#state === State.Connecting) {
      const failure = step === ConnectStep.Bind ? PoolFailure.BindFailed : PoolFailure.ConnectFailed;
      return this.#connectFailed(failure, connectFailureText(this.pool.cluster.spec, errno, step));
    }
    this.#closedByPeer();
  }

  onBlocked(): void {
    this.#codec!.blocked();
  }

  onDrained(): void {
    this.#codec!.drained();
  }

  onFault(): void {
    this.close();
  }

  onHalfClose(): void {
    this.#transport.shutdown(this.#id);
  }

  /** The connect has taken too long, or the connection may have been idle for too long. */
  onTimer(): void {
    const { cluster, thread } = this.pool;
    if (this.#state === State.Connecting) {
      cluster.stats.increment(ClusterStats.at.upstream_cx_connect_timeout);
      this.#connectFailed(PoolFailure.ConnectTimeout, '');
      return;
    }
    if (this.#isTooOld()) {
      // A request that is under way is the last one.
      this.closeWhenIdle();
      return;
    }
    const now = thread.clock.monotonicMs;
    const { idleTimeoutMs } = cluster.spec;
    const idleLeft = this.isIdle ? idleTimeoutMs - (now - this.#idleSinceMs) : idleTimeoutMs;
    if (idleTimeoutMs > 0 && idleLeft <= 0) {
      cluster.stats.increment(ClusterStats.at.upstream_cx_idle_timeout);
      return this.close();
    }
    this.#armTimer(idleLeft);
  }

  /** Sleeps until the connection may be idle for too long (0: never), or too old. */
  #armTimer(idleLeft: number): void {
    const { cluster, thread } = this.pool;
    const { maxConnectionDurationMs } = cluster.spec;
    const ageLeft = maxConnectionDurationMs - (thread.clock.monotonicMs - this.#startMs);
    const delays = [idleLeft, ageLeft].filter((delay) => delay > 0);
    if (delays.length > 0) thread.wheel.reschedule(this.#timer, Math.min(...delays));
  }

  #isTooOld(): boolean {
    const { cluster, thread } = this.pool;
    const { maxConnectionDurationMs } = cluster.spec;
    if (this.#isOld || maxConnectionDurationMs === 0) return this.#isOld;
    if (thread.clock.monotonicMs - this.#startMs < maxConnectionDurationMs) return false;
    cluster.stats.increment(ClusterStats.at.upstream_cx_max_duration_reached);
    this.#isOld = true;
    return true;
  }

  #connectFailed(failure: PoolFailure, detail: string): void {
    const { cluster, host, thread } = this.pool;
    const { at } = ClusterStats;
    const isRemote = failure === PoolFailure.ConnectFailed;
    cluster.stats.increment(at.upstream_cx_connect_fail);
    cluster.stats.increment(isRemote ? at.upstream_cx_destroy_remote : at.upstream_cx_destroy_local);
    if (failure === PoolFailure.BindFailed) cluster.stats.increment(at.bind_errors);
    host.stats.increment(HostStats.at.cx_connect_fail);
    if (logger.isDebug) this.#log(`connect failed: ${detail || 'timeout'}`);
    this.#closed();
    thread.transport.close(this.#id, 0, 0);
    this.pool.connectFailed(failure, detail);
  }

  #closedByPeer(): void {
    const { cluster, thread } = this.pool;
    if (logger.isDebug) this.#log('closed by the host');
    cluster.stats.increment(ClusterStats.at.upstream_cx_destroy_remote);
    if (this.#active > 0) {
      cluster.stats.increment(ClusterStats.at.upstream_cx_destroy_with_active_rq);
      cluster.stats.increment(ClusterStats.at.upstream_cx_destroy_remote_with_active_rq);
    }
    this.#closed();
    thread.transport.close(this.#id, 0, 0);
    this.pool.connectionClosed(this);
  }

  /** With `abort` the host sees a reset. */
  #end(abort: boolean): void {
    if (logger.isDebug) this.#log('closing');
    this.#countLocalClose();
    this.#closed();
    if (abort) this.#transport.reset(this.#id);
    else this.#transport.close(this.#id, FLUSH_MS, 0);
    this.pool.connectionClosed(this);
  }

  #countLocalClose(): void {
    const { cluster } = this.pool;
    cluster.stats.increment(ClusterStats.at.upstream_cx_destroy_local);
    if (this.#active > 0) {
      cluster.stats.increment(ClusterStats.at.upstream_cx_destroy_with_active_rq);
      cluster.stats.increment(ClusterStats.at.upstream_cx_destroy_local_with_active_rq);
    }
  }

  #log(text: string): void {
    const { cluster, host } = this.pool;
    logger.debug(`cluster '${cluster.spec.name}', host ${host.address}: ${text}`);
  }

  /** Everything but the socket and the pool's list. */
  #closed(): void {
    const { cluster, host, thread } = this.pool;
    const wasConnected = this.#state !== State.Connecting;
    this.#state = State.Closed;
    thread.wheel.cancel(this.#timer);
    this.#codec?.destroy();
    for (; this.#active > 0; this.#active--) cluster.limits.release(LimitKind.Requests, this.pool.priority);
    cluster.stats.increment(ClusterStats.at.upstream_cx_destroy);
    cluster.stats.decrement(ClusterStats.at.upstream_cx_active);
    host.stats.decrement(HostStats.at.cx_active);
    cluster.stats.record(ClusterStats.at.upstream_cx_length_ms, Math.floor(thread.clock.monotonicMs - this.#startMs));
    if (wasConnected) cluster.stats.record(ClusterStats.at.upstream_rq_per_cx, this.#requests);
  }
}

function onTimer(connection: UpstreamConnection): void {
  connection.onTimer();
}
