// A connection to a host of a cluster, for any protocol. This is the only code that connects to hosts: it enforces the connect
// timeout and counts the connection, its bytes and its end. Subclasses do the rest.

import { shownName } from '../../common/text/shown.js';
import { addressText, decodeSockaddr, INTERNAL_CLIENT } from '../../io/addresses/address.js';
import type { BufferedBytes } from '../../io/buffered-bytes.js';
import { ConnectStep } from '../../io/shim.js';
import { Timer } from '../../io/time/timing-wheel.js';
import type { ConnectionSecurity } from '../../io/tls/connection-security.js';
import type { BufferLimits } from '../../io/transport/buffer-limits.js';
import type { ConnectionHandler, PresentedCertificate } from '../../io/transport/connection-handler.js';
import type { Transport } from '../../io/transport/transport.js';
import { getLogger } from '../../log/logger.js';
import { ClusterStats, HostStats } from '../../stats/layouts/cluster.js';
import type { Scope } from '../../stats/thread-stats.js';
import type { TlsHandshake } from '../../tls/handshake.js';
import type { ClusterSpec } from '../cluster-config.js';
import type { Host } from '../hosts/host.js';
import { connectFailureText, PoolFailure } from '../pool-failure.js';
import type { UpstreamThread } from '../upstream-thread.js';
import { type ConnectOptions, NO_CONNECT_OPTIONS } from './connect-options.js';
import { Answer, ConnectAnswer, type ConnectProxy } from './connect-proxy.js';
import type { HostTransport } from './host-transport.js';

const logger = getLogger('upstream');

/** The part of a cluster that its connections use. */
export interface ConnectingCluster {
  readonly thread: UpstreamThread;
  readonly spec: ClusterSpec;
  /** cluster.<name>. */
  readonly stats: Scope;
  readonly bufferLimits: BufferLimits;
  /** Returns undefined if connections to the host are plain. */
  transportOf(host: Host): HostTransport | undefined;
}

/** A connection that another process has made and frozen. */
export interface TakenOverConnection {
  readonly id: number;
  /** When it began to connect (monotonic). */
  readonly startMs: number;
}

/** Which side ended a connection. */
export const enum EndedBy {
  Local = 0,
  Remote = 1,
  /** Neither side: another process continues it. */
  HandOver = 2,
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
  /** When it was connected; 0 before. */
  connectedMs = 0;
  /** Unique in the process, as in %UPSTREAM_CONNECTION_ID%. */
  readonly serial: number;
  protected readonly transport: Transport;
  protected readonly stats: Scope;
  protected readonly id: number;
  /** The connect timeout. Once connected, subclasses may use it: timerFired() is called. */
  protected readonly timer: Timer<HostConnection>;
  readonly #cluster: ConnectingCluster;
  /** The host has half-closed. */
  protected hasHostEnded = false;
  #localText = '';
  #state = State.Connecting;
  /** What its TLS handshake has established; undefined without TLS. */
  security: ConnectionSecurity | undefined = undefined;
  /** Undefined without TLS. */
  #handshake: TlsHandshake | undefined;
  /** The address of the HTTP proxy that it goes through; '': none. */
  readonly proxyText: string;
  readonly #proxy: ConnectProxy | undefined;
  /** The proxy's answer to CONNECT, as far as it has arrived; undefined: none is awaited. */
  #answer: ConnectAnswer | undefined;
  /** What the connection begins with once it is connected; undefined: nothing, or it has begun. */
  #opening: { readonly transport: HostTransport; readonly options: ConnectOptions } | undefined;

  /** Begins to connect, or takes over `takenOver`. Throws, with nothing counted, when the connect cannot begin. */
  protected constructor(
    cluster: ConnectingCluster,
    host: Host,
    takenOver?: TakenOverConnection,
    options: ConnectOptions = NO_CONNECT_OPTIONS,
  ) {
    const { spec, stats, thread } = cluster;
    this.#cluster = cluster;
    this.host = host;
    this.transport = thread.transport;
    this.serial = thread.transport.serials.next();
    this.stats = stats;
    this.timer = new Timer<HostConnection>(this, onTimer);
    this.startMs = takenOver?.startMs ?? thread.clock.monotonicMs;
    this.#proxy = cluster.transportOf(host)?.proxyOf(host);
    this.proxyText = this.#proxy?.text ?? '';
    this.id = takenOver?.id ?? this.#connect(options);
    if (takenOver === undefined) this.#prepare(options);
    stats.increment(ClusterStats.at.upstream_cx_active);
    host.stats.increment(HostStats.at.cx_active);
    if (takenOver !== undefined) {
      this.#state = State.Connected;
      thread.transport.setHandler(takenOver.id, this);
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

  /** The local address with port as text. The first call reads it from the kernel. */
  get localText(): string {
    if (this.#localText === '') {
      const raw = this.transport.localAddress(this.id);
      this.#localText = addressText(decodeSockaddr(raw, 0, raw.length));
    }
    return this.#localText;
  }

  /** The address of the host with port, as text. */
  get remoteText(): string {
    return this.host.address;
  }

  /** Sent bytes that the kernel has not accepted yet. */
  get pendingBytes(): number {
    return this.isClosed ? 0 : this.transport.pendingBytes(this.id);
  }

  /** Queues memory[offset, offset + length). The caller guarantees that the range is valid. */
  send(offset: number, length: number): void {
    this.stats.addBytes(ClusterStats.at.upstream_cx_tx_bytes_total, length);
    this.transport.send(this.id, offset, length);
  }

  // ── For subclasses ───────────────────────────────────────────────────────────────────────────────────────────────

  protected abstract connected(): void;
  /** Called after a failed connect, after ended(). `detail` is the transport's error, '' after a timeout. */
  protected abstract connectFailed(failure: PoolFailure, detail: string): void;
  protected abstract received(offset: number, length: number): void;
  /** Called when the host has half-closed. */
  protected abstract hostEnded(): void;
  /** Called when the host ended the connection, after ended(). */
  protected abstract broken(): void;
  /** Called when the connection has closed. Releases what the subclass holds. */
  protected abstract ended(by: EndedBy, wasConnected: boolean): void;
  /** Called when the timer fires after connected(). */
  protected abstract timerFired(): void;

  /**
   * Closes after the pending bytes are sent; the host must accept some of them every `flushMs`. A host that is still sending gets
   * `lingerMs` to half-close. `gone` is called when the connection has closed. `by`: whose end of a direction has ended it; by
   * default the host's, if it has half-closed.
   */
  protected closeInOrder(flushMs: number, lingerMs: number, gone?: () => void, by?: EndedBy): void {
    this.#endLocally(by);
    this.transport.close(this.id, flushMs, lingerMs, gone);
  }

  /** Counts the end of a connection with an active request. */
  protected countInterrupted(by: EndedBy): void {
    const { at } = ClusterStats;
    this.stats.increment(at.upstream_cx_destroy_with_active_rq);
    const side =
      by === EndedBy.Remote
        ? at.upstream_cx_destroy_remote_with_active_rq
        : at.upstream_cx_destroy_local_with_active_rq;
    this.stats.increment(side);
  }

  /** Ends a connect in which an exception was thrown. A no-op afterwards. */
  protected abandonConnect(): void {
    if (this.#state === State.Connecting) this.#connectFailed(PoolFailure.ConnectFailed, 'internal error');
  }

  /** Resets the connection. */
  protected abort(): void {
    this.#endLocally();
    this.transport.reset(this.id);
  }

  /** Called when the host has ended the connection. */
  protected closedByHost(): void {
    this.stats.increment(ClusterStats.at.upstream_cx_destroy_remote);
    this.#end(EndedBy.Remote);
    this.transport.close(this.id, 0, 0);
    this.broken();
  }

  /** Releases the frozen connection, which another process continues. */
  protected handOver(): void {
    this.transport.releaseFrozen(this.id);
    this.#end(EndedBy.HandOver);
  }

  // ── ConnectionHandler ────────────────────────────────────────────────────────────────────────────────────────────

  onConnected(): void {
    if (this.#opening !== undefined) this.#open(this.#opening);
    if (this.#handshake === undefined && this.#answer === undefined) this.#ready();
  }

  onSecured(): void {
    this.security = this.#handshake?.secured(this.transport, this.id, this);
    this.#ready();
  }

  onHandshakeFailed(reasons: string): void {
    this.#connectFailed(
      PoolFailure.ConnectFailed,
      this.#handshake?.failed(this.transport, this.id, this, reasons) ?? '',
    );
  }

  judgePeer(peer: PresentedCertificate): number {
    return this.#handshake!.judge(peer);
  }

  /** Begins to connect, and returns the ID of the connection. */
  #connect(options: ConnectOptions): number {
    const { bufferLimits, spec, thread } = this.#cluster;
    const { host } = this;
    const passed = this.#cluster
      .transportOf(host)
      ?.passthrough?.values(host.metadata, spec.metadata, options.traits?.shared);
    const sockaddr = this.#proxy?.sockaddr ?? host.sockaddr;
    if (!host.isInternal) return thread.transport.connect(sockaddr, spec, bufferLimits, this);
    const { address } = host;
    const { internal, transport } = thread;
    this.#localText = INTERNAL_CLIENT;
    return transport.within.connect(
      bufferLimits,
      internal?.bufferBytes,
      this,
      (fd) => internal?.listeners?.acceptWithin(fd, address, passed) ?? false,
    );
  }

  #prepare(options: ConnectOptions): void {
    const transport = this.#cluster.transportOf(this.host);
    if (transport !== undefined && (transport.namesClient || this.#proxy?.request !== undefined))
      this.#opening = { transport, options };
    else this.#handshake = transport?.tls?.begin(this.transport, this.id, this.host, options);
  }

  #open({ options, transport }: { readonly transport: HostTransport; readonly options: ConnectOptions }): void {
    if (this.#proxy?.request !== undefined) {
      this.#answer = new ConnectAnswer();
      this.#send(this.#proxy.request);
      return;
    }
    this.#opening = undefined;
    const own = () => ({ localText: this.host.address, remoteText: this.localText });
    this.#send(transport.opening(options.traits?.client, own));
    this.#handshake = transport.tls?.begin(this.transport, this.id, this.host, options);
  }

  #send(bytes: Uint8Array): void {
    const { memory } = this.#cluster.thread;
    const offset = memory.scratch(bytes.length);
    memory.bytes.set(bytes, offset);
    this.send(offset, bytes.length);
  }

  /** Receives the proxy's answer to CONNECT. */
  #answered(offset: number, length: number): void {
    const { bytes } = this.#cluster.thread.memory;
    const taken = this.#answer!.receive(bytes.subarray(offset, offset + length));
    if (taken === Answer.Incomplete) return;
    const { options, transport } = this.#opening!;
    // A host that is spoken to by TLS says nothing first.
    if (taken === Answer.Refused || (transport.tls !== undefined && taken < length)) return this.#refused();
    this.#answer = this.#opening = undefined;
    this.#handshake = transport.tls?.begin(this.transport, this.id, this.host, options);
    if (this.#handshake !== undefined) return;
    this.#ready();
    if (taken < length && this.#state === State.Connected) this.onData(offset + taken, length - taken);
  }

  #ready(): void {
    const { clock, wheel } = this.#cluster.thread;
    this.#state = State.Connected;
    wheel.cancel(this.timer);
    this.connectedMs = clock.monotonicMs;
    this.stats.record(ClusterStats.at.upstream_cx_connect_ms, Math.floor(clock.monotonicMs - this.startMs));
    if (logger.isDebug) this.#log('connected');
    this.connected();
  }

  onData(offset: number, length: number): void {
    if (this.#answer !== undefined) return this.#answered(offset, length);
    this.stats.addBytes(ClusterStats.at.upstream_cx_rx_bytes_total, length);
    if (this.#state === State.Connecting) this.#refused();
    else this.received(offset, length);
  }

  onEnd(): void {
    if (this.#state === State.Connecting) this.#refused();
    else this.hostEnded();
  }

  onReset(errno: number, step: ConnectStep): void {
    if (this.#state !== State.Connecting) return this.closedByHost();
    const failure = step === ConnectStep.Bind ? PoolFailure.BindFailed : PoolFailure.ConnectFailed;
    this.#connectFailed(failure, connectFailureText(this.#cluster.spec, errno, step));
  }

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

  /** Called when the host sends or ends before TLS has begun, which follows a header of the PROXY protocol. */
  #refused(): void {
    this.onHandshakeFailed('');
  }

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

  /** As in Envoy, a connect that is abandoned counts as failed. */
  #endLocally(by = this.hasHostEnded ? EndedBy.Remote : EndedBy.Local): void {
    const { at } = ClusterStats;
    this.stats.increment(by === EndedBy.Remote ? at.upstream_cx_destroy_remote : at.upstream_cx_destroy_local);
    if (this.#state === State.Connecting) this.#countConnectFailure();
    this.#end(by);
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
    if (by !== EndedBy.HandOver) {
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
