// One HTTP connection to a host. It belongs to a pool, and notifies it when it can take another request.

import type { Priority } from '../../common/priority.js';
import {
  type ClientCodec,
  type ClientCodecEvents,
  type ClientProtocol,
  type PoolProtocol,
  StreamEnd,
} from '../../http/codec/connections.js';
import { TUNNEL_FLUSH_MS } from '../../http/codec/options.js';
import type { ByteSink, RequestEncoder, ResponseDecoder } from '../../http/codec/streams.js';
import type { BufferedBytes } from '../../io/buffered-bytes.js';
import type { ConnectStep } from '../../io/shim.js';
import { ClusterStats } from '../../stats/layouts/cluster.js';
import type { Host } from '../hosts/host.js';
import { type ClusterLimits, LimitKind } from '../limits.js';
import type { PoolFailure } from '../pool-failure.js';
import type { UpstreamThread } from '../upstream-thread.js';
import type { ConnectOptions } from './connect-options.js';
import { type ConnectingCluster, EndedBy, HostConnection } from './host-connection.js';

/** A cluster whose connections serve requests. */
export interface RequestedCluster extends ConnectingCluster {
  readonly limits: Pick<ClusterLimits, 'release'>;
}

/** The part of a pool that its connections use. */
export interface ConnectionPool {
  readonly thread: UpstreamThread;
  readonly cluster: RequestedCluster;
  readonly host: Host;
  readonly priority: Priority;
  readonly protocol: PoolProtocol;
  readonly options: ConnectOptions;
  /** How many requests a new connection is expected to take at once: as many as the host has allowed on the last one. */
  streamsPerConnection: number;
  /** Requests on its connections. */
  activeRequests: number;
  /** The host was removed: connections close after their request. */
  readonly isDraining: boolean;
  /** Called when the connection has connected or finished a request: it can take another one. */
  connectionReady(connection: UpstreamConnection, wasConnecting: boolean): void;
  connectFailed(failure: PoolFailure, detail: string): void;
  /** Called when the connection takes no more requests and its current ones end. connectionClosed() follows. */
  connectionEnding(connection: UpstreamConnection): void;
  connectionClosed(connection: UpstreamConnection): void;
}

/** How long pending bytes may take when a connection is closed in order. */
const FLUSH_MS = 1000;
/** How long the host of a tunnel that is ended in order may go on sending. */
const TUNNEL_LINGER_MS = 5000;

export class UpstreamConnection extends HostConnection implements ClientCodecEvents, ByteSink {
  readonly pool: ConnectionPool;
  /** Index in the pool's list of free connections; meaningless while it is not free. */
  poolIndex = -1;
  /** Undefined until it is connected. */
  #codec: ClientCodec | undefined;
  #idleSinceMs = 0;
  #requests = 0;
  /** Requests in flight. */
  #active = 0;
  /** It has reached max_connection_duration. */
  #hasExpired = false;
  /** It has reached max_requests_per_connection. */
  #isUsedUp = false;
  /** The host closes it after the requests in flight. */
  #isEnding = false;
  /** See ClientCodec. */
  private idlePingMs = 0;
  /** When something was last received, or it connected (monotonic); only with idlePingMs. */
  private receivedMs = 0;

  constructor(pool: ConnectionPool) {
    super(pool.cluster, pool.host, undefined, pool.options);
    this.pool = pool;
    if (!('negotiated' in pool.protocol)) this.stats.increment(pool.protocol.connectionsTotal);
  }

  /** Connected, with no request in flight. */
  get isIdle(): boolean {
    return this.isConnected && this.#active === 0;
  }

  /** It can take another request. */
  get hasRoom(): boolean {
    return this.#codec!.freeStreams > 0 && !this.#isUsedUp && !this.#hasExpired;
  }

  /** How many more requests it can take now. */
  get freeStreams(): number {
    return this.hasRoom ? this.#codec!.freeStreams : 0;
  }

  /** The host has ended the connection, and the event follows in this turn: a request would be lost. */
  get endsInTurn(): boolean {
    return this.transport.endsInTurn(this.id);
  }

  /** When its last request ended or it connected (monotonic); meaningless while it is not idle. */
  get idleSinceMs(): number {
    return this.#idleSinceMs;
  }

  /** Begins a request. The connection must have room. */
  startRequest(decoder: ResponseDecoder): RequestEncoder {
    this.#active++;
    this.#requests++;
    const limit = this.pool.cluster.spec.maxRequestsPerConnection;
    if (limit > 0 && this.#requests >= limit) {
      this.#isUsedUp = true;
      this.stats.increment(ClusterStats.at.upstream_cx_max_requests);
    }
    if (this.idlePingMs > 0) this.#pingIfIdle();
    return this.#codec!.newStream(decoder);
  }

  /** Closes the connection. A request on it is reset. */
  close(): void {
    if (!this.isClosed) this.#close(StreamEnd.Complete);
  }

  /** Closes the idle connection, whose end follows in this turn. */
  closeEnded(): void {
    this.closedByHost();
  }

  /** Closes the connection if it is idle. The pool assigns no further requests to a busy one. */
  closeWhenIdle(): void {
    if (this.isIdle) this.close();
  }

  // ── ByteSink: send() is HostConnection's ─────────────────────────────────────────────────────────────────────────

  pause(): void {
    this.transport.pause(this.id);
  }
  resume(): void {
    this.transport.resume(this.id);
  }
  requestTurn(): void {
    this.transport.defer(this.id, () => this.#codec!.takeTurn());
  }

  override addBuffered(sums: BufferedBytes): void {
    const { at } = ClusterStats;
    const received = this.#codec?.bufferedBytes ?? 0;
    const sent = this.pendingBytes;
    sums.add(this.stats, at.upstream_cx_rx_bytes_buffered, received, at.upstream_cx_tx_bytes_buffered, sent);
  }

  // ── ClientCodecEvents ────────────────────────────────────────────────────────────────────────────────────────────

  onStreamComplete(reusable: boolean, end: StreamEnd): void {
    if (this.isClosed) return;
    // The connection ends with an active request, and counts so.
    if (end !== StreamEnd.Complete && !reusable) return this.#close(end);
    const { cluster, thread } = this.pool;
    cluster.limits.release(LimitKind.Requests, this.pool.priority);
    this.pool.activeRequests--;
    this.#active--;
    this.#idleSinceMs = thread.clock.monotonicMs;
    if (!reusable) this.close();
    // The host has ended the connection after its response.
    else if (this.endsInTurn) return;
    else if (this.#isUsedUp || this.#isEnding || this.pool.isDraining || this.#checkAge()) this.closeWhenIdle();
    else if (this.hasRoom) this.pool.connectionReady(this, false);
  }

  onCloseNotice(): void {
    this.stats.increment(ClusterStats.at.upstream_cx_close_notify);
    this.#isEnding = true;
    // A multiplexed connection still has room in the pool's view.
    this.pool.connectionEnding(this);
    this.closeWhenIdle();
  }

  onStreamLimit(streams: number): void {
    this.pool.streamsPerConnection = Math.max(1, streams);
    if (this.hasRoom && !this.#isEnding && !this.pool.isDraining) this.pool.connectionReady(this, false);
  }

  onSurplus(): void {
    this.stats.increment(ClusterStats.at.upstream_cx_protocol_error);
  }

  onProtocolError(): void {
    this.stats.increment(ClusterStats.at.upstream_cx_protocol_error);
    this.close();
  }

  onEnded(isCutOff: boolean): void {
    if (isCutOff) this.stats.increment(ClusterStats.at.upstream_cx_protocol_error);
    if (!this.isClosed) this.closedByHost();
  }

  onHalfClose(): void {
    this.transport.shutdown(this.id);
  }

  onCheckDue(): void {
    this.pool.thread.wheel.hasten(this.timer, 0);
  }

  // ── HostConnection ───────────────────────────────────────────────────────────────────────────────────────────────

  protected connected(): void {
    const { cluster, thread } = this.pool;
    this.#codec = this.#protocol().codec(this, this, this.pool.streamsPerConnection);
    this.#idleSinceMs = this.receivedMs = thread.clock.monotonicMs;
    this.idlePingMs = this.#codec.idlePingMs;
    this.#armTimer(cluster.spec.idleTimeoutMs, this.#codec.check(this.#idleSinceMs));
    this.pool.connectionReady(this, true);
  }

  #protocol(): ClientProtocol {
    const { pool } = this;
    if (!('negotiated' in pool.protocol)) return pool.protocol;
    const protocol = pool.protocol.negotiated(this.security?.applicationProtocol ?? '');
    this.stats.increment(protocol.connectionsTotal);
    // A host usually negotiates what it has negotiated before. A limit of streams that it has set remains.
    const isMultiplexed = protocol.streamsPerConnection > 1;
    if (!isMultiplexed || pool.streamsPerConnection === 1) pool.streamsPerConnection = protocol.streamsPerConnection;
    return protocol;
  }

  protected connectFailed(failure: PoolFailure, detail: string): void {
    this.pool.connectFailed(failure, detail);
  }

  protected received(offset: number, length: number): void {
    if (this.idlePingMs > 0) this.receivedMs = this.pool.thread.clock.monotonicMs;
    this.#codec!.receive(offset, length);
  }

  override onReset(errno: number, step: ConnectStep): void {
    if (this.isConnected) this.#codec!.interrupted();
    if (!this.isClosed) super.onReset(errno, step);
  }

  protected hostEnded(): void {
    this.hasHostEnded = true;
    // Data received before the end may still wait for the client: the codec calls onEnded() when all of it is consumed.
    this.#codec!.end();
  }

  /** Before the connection is ready, only a header of the PROXY protocol can wait. */
  onBlocked(): void {
    this.#codec?.blocked();
  }

  onDrained(): void {
    this.#codec?.drained();
  }

  onFault(): void {
    if (this.isConnected) this.close();
    else this.abandonConnect();
  }

  protected broken(): void {
    this.pool.connectionClosed(this);
  }

  protected ended(by: EndedBy, wasConnected: boolean): void {
    const { cluster, priority } = this.pool;
    if (!wasConnected) return;
    if (this.#active > 0) this.countInterrupted(by);
    this.stats.record(ClusterStats.at.upstream_rq_per_cx, this.#requests);
    // Requests that end here may be retried at once: they need another connection.
    this.pool.connectionEnding(this);
    this.#codec?.destroy();
    this.pool.activeRequests -= this.#active;
    for (; this.#active > 0; this.#active--) cluster.limits.release(LimitKind.Requests, priority);
  }

  /** Called when the connection may have been idle for too long, or something is due in its codec. */
  protected timerFired(): void {
    const { cluster, thread } = this.pool;
    const now = thread.clock.monotonicMs;
    const codecLeft = this.#codec!.check(now);
    if (this.isClosed) return;
    // The requests in flight are the last ones.
    if (this.#checkAge() && this.isIdle) return this.close();
    const { idleTimeoutMs } = cluster.spec;
    const idleLeft = this.isIdle ? idleTimeoutMs - (now - this.#idleSinceMs) : idleTimeoutMs;
    if (idleTimeoutMs > 0 && idleLeft <= 0) {
      this.stats.increment(ClusterStats.at.upstream_cx_idle_timeout);
      return this.close();
    }
    this.#armTimer(idleLeft, codecLeft);
  }

  // ── Inside ───────────────────────────────────────────────────────────────────────────────────────────────────────

  #pingIfIdle(): void {
    const { clock, wheel } = this.pool.thread;
    const now = clock.monotonicMs;
    if (now - this.receivedMs > this.idlePingMs && this.#codec!.requestPing()) wheel.hasten(this.timer, 0);
  }

  /** Sets the timer to the first of idle timeout (`idleLeft`; 0: none), maximum age, and what is due in the codec. */
  #armTimer(idleLeft: number, codecLeft: number): void {
    const { cluster, thread } = this.pool;
    const { maxConnectionDurationMs } = cluster.spec;
    const ageLeft = maxConnectionDurationMs - (thread.clock.monotonicMs - this.startMs);
    const delays = [idleLeft, ageLeft, codecLeft].filter((delay) => delay > 0 && delay < Number.POSITIVE_INFINITY);
    if (delays.length > 0) thread.wheel.reschedule(this.timer, Math.min(...delays));
  }

  #checkAge(): boolean {
    const { cluster, thread } = this.pool;
    const { maxConnectionDurationMs } = cluster.spec;
    if (this.#hasExpired || maxConnectionDurationMs === 0) return this.#hasExpired;
    if (thread.clock.monotonicMs - this.startMs < maxConnectionDurationMs) return false;
    this.stats.increment(ClusterStats.at.upstream_cx_max_duration_reached);
    this.#hasExpired = true;
    this.pool.connectionEnding(this);
    return true;
  }

  /** `end`: of the stream that the connection ends with. */
  #close(end: StreamEnd): void {
    if (end === StreamEnd.CutOff) this.abort();
    else {
      // Both sides have half-closed: the first one counts.
      const by = end === StreamEnd.EndedByClient ? EndedBy.Local : undefined;
      const isTunnel = end === StreamEnd.Closed || end === StreamEnd.EndedByHost || end === StreamEnd.EndedByClient;
      const lingerMs = end === StreamEnd.Closed ? TUNNEL_LINGER_MS : 0;
      this.closeInOrder(isTunnel ? TUNNEL_FLUSH_MS : FLUSH_MS, lingerMs, undefined, by);
    }
    this.pool.connectionClosed(this);
  }
}
