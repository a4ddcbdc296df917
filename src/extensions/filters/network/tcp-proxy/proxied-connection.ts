// One proxied TCP connection: two sockets, and the bytes between them.
//
// A side whose send queue is full pauses the other one. A FIN on one side half-closes the other. The pair ends when both
// directions have ended, or when either side breaks.

import type { AccessLogger } from '../../../../access-log/access-logger.js';
import { ResponseFlag } from '../../../../access-log/stream/response-flags.js';
import { CloseType, StreamInfo } from '../../../../access-log/stream/stream-info.js';
import { isInternalText } from '../../../../io/addresses/address.js';
import type { BufferedBytes } from '../../../../io/buffered-bytes.js';
import { HeldBytes } from '../../../../io/held-bytes.js';
import { Timer } from '../../../../io/time/timing-wheel.js';
import type { Stall } from '../../../../io/transport/connection-handler.js';
import type { DownstreamConnection, DownstreamHandler } from '../../../../listener/downstream-connection.js';
import type { PreparedHandOver } from '../../../../listener/hand-over.js';
import { ClusterStats } from '../../../../stats/layouts/cluster.js';
import { TcpStats } from '../../../../stats/layouts/tcp.js';
import type { Cluster, ClusterHost } from '../../../../upstream/cluster.js';
import {
  type ConnectOptions,
  connectionTraits,
  NO_CONNECT_OPTIONS,
} from '../../../../upstream/connections/connect-options.js';
import { EndedBy } from '../../../../upstream/connections/host-connection.js';
import { UpstreamSocket } from '../../../../upstream/connections/upstream-socket.js';
import type { Host } from '../../../../upstream/hosts/host.js';
import { HostSearch, type HostSeeker, NoStart } from './host-search.js';
import type { HostStream } from './host-stream.js';
import { HttpTunnel, type TunnelEvents } from './http-tunnel.js';
import type { ProxyContext } from './proxy-context.js';
import { logConnection, PeriodicLog } from './proxy-logs.js';
import type { TakenOverPairFacts } from './taken-over-pair.js';

/** Time for peers to read pending bytes and to end their side when the connection is drained. */
const DRAIN_LINGER_MS = 5000;
/** Maximum flush time of the transport. */
const MAX_FLUSH_MS = 2 ** 31 - 1;

export class ProxiedConnection implements DownstreamHandler, TunnelEvents, HostSeeker {
  readonly proxy: ProxyContext;
  readonly downstream: DownstreamConnection;
  readonly info = new StreamInfo();
  readonly activeRequests = 0;
  readonly #timer: Timer<ProxiedConnection>;
  #upstream: HostStream | undefined;
  readonly #search = new HostSearch(this);
  #attempts = 0;
  #activeMs: number;
  /** The host has been connected: bytes of the client go to it. */
  #isOpen = false;
  /** Bytes of the client that network filters have passed on before; undefined: none. */
  #early: HeldBytes | undefined;
  #clientEnded = false;
  #serverEnded = false;
  #periodicLog: PeriodicLog | undefined;
  #isOver = false;
  /** Both sockets are frozen and offered to another process. */
  #isFrozen = false;
  #endsWhenThawed = false;

  constructor(proxy: ProxyContext, downstream: DownstreamConnection) {
    const { clock } = proxy.thread;
    this.proxy = proxy;
    this.downstream = downstream;
    this.#activeMs = clock.monotonicMs;
    this.#timer = new Timer<ProxiedConnection>(this, onTimer);
    this.info.reset(clock.realtimeMs, clock.monotonicMs);
    this.info.connectionId = downstream.serial;
    this.info.downstream = downstream;
    this.info.chain = proxy.options.chain;
    this.info.connectionStartMs = downstream.startMonotonicMs;
    if (downstream.dynamicMetadata !== undefined) this.info.shareDynamicMetadata(downstream.dynamicMetadata);
    if (downstream.info !== undefined) downstream.info = this.info;
  }

  /** Picks a host and connects to it. Bytes of the client stay in the kernel until it is connected. */
  start(): void {
    this.downstream.pause();
    const { options, stats, thread } = this.proxy;
    stats.increment(TcpStats.at.downstream_cx_total);
    const { start } = options.logs;
    if (start.length > 0) this.#record('TcpConnectionStart', start);
    this.#beginPeriodicLog();
    if (this.proxy.shortestTimeoutMs > 0) thread.wheel.schedule(this.#timer, this.proxy.shortestTimeoutMs);
    this.#search.begin();
  }

  /** Called when the cluster is known, before its host is searched for. Returns false if the connection has ended. */
  clusterFound(cluster: Cluster): boolean {
    this.info.upstreamCluster = cluster.spec;
    this.info.requestedHost = this.downstream.requestedHost;
    if (this.downstream.chain.overload?.tcpProxyConnect?.sheds() !== true) return true;
    this.#shed();
    return false;
  }

  /** Takes over a connection from another process. `id` is the socket to the host. */
  takeOver(takenOver: TakenOverPairFacts, cluster: Cluster, host: Host, id: number): void {
    const { info } = this;
    info.startRealtimeMs = takenOver.startRealtimeMs;
    info.startMonotonicMs = takenOver.startMs;
    info.bytesReceived = takenOver.bytesReceived;
    info.bytesSent = takenOver.bytesSent;
    info.upstreamCluster = cluster.spec;
    info.upstreamHost = takenOver.host;
    info.host = host;
    info.upstreamLocalAddress = takenOver.upstreamLocal;
    info.attemptCount = this.#attempts = takenOver.attempts;
    this.#activeMs = takenOver.activeMs;
    this.#clientEnded = takenOver.clientEnded;
    this.#serverEnded = takenOver.serverEnded;
    this.#search.cluster = cluster;
    this.#isOpen = true;
    const upstream = UpstreamSocket.takeOver(this, cluster, host, { id, startMs: takenOver.upstreamStartMs });
    this.#upstream = upstream;
    info.upstreamConnectionId = upstream.serial;
    info.upstreamRemoteAddress = upstream.peerText || takenOver.host;
    this.#beginPeriodicLog();
    this.#resumeTimeouts();
  }

  #beginPeriodicLog(): void {
    const { options, thread } = this.proxy;
    const { intervalMs, periodic } = options.logs;
    if (periodic.length === 0) return;
    this.#periodicLog = new PeriodicLog(thread.wheel, intervalMs, () => this.#record('TcpPeriodic', periodic));
  }

  /** Possible whenever both sides are connected. */
  prepareHandOver(): PreparedHandOver | undefined {
    const { transport, wheel } = this.proxy.thread;
    const id = this.#upstream?.connectedId;
    // The other end of a connection to an internal listener is in this process.
    if (id === undefined || this.#isOver || isInternalText(this.info.upstreamHost)) return undefined;
    if (!transport.freeze(this.downstream.id)) return undefined;
    if (!transport.freeze(id)) {
      transport.thaw(this.downstream.id);
      return undefined;
    }
    wheel.cancel(this.#timer);
    this.#isFrozen = true;
    const ids = [this.downstream.id, id];
    return {
      ids,
      progress: { ...this.#facts() },
      input: new Uint8Array(0),
      resume: () => this.#resume(ids),
      release: () => this.#release(),
    };
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  // ── The client's side ────────────────────────────────────────────────────────────────────────────────────────────

  onConnected(): void {}

  onData(offset: number, length: number): void {
    this.#activeMs = this.proxy.thread.clock.monotonicMs;
    this.info.bytesReceived += length;
    this.proxy.stats.addBytes(TcpStats.at.downstream_cx_rx_bytes_total, length);
    if (this.downstream.chain.overload?.tcpProxyData?.sheds()) return this.#shed();
    if (!this.#isOpen) return this.#holdEarly(offset, length);
    this.#upstream?.sendUnchecked(offset, length);
    if (this.proxy.options.checksDrain) this.#checkDrain();
  }

  onEnd(): void {
    this.#clientEnded = true;
    // It follows the early bytes.
    if (!this.#isOpen) return;
    const upstream = this.#upstream;
    if (upstream?.halfCloses === true && !this.#serverEnded) return upstream.shutdown();
    // The host must see that this direction is complete, and not cut off.
    if (upstream?.halfCloses === false) upstream.shutdown();
    this.#bothEnded(EndedBy.Local);
  }

  onReset(): void {
    this.info.downstreamCloseType = CloseType.RemoteReset;
    this.#break();
  }

  onBlocked(): void {
    this.#upstream?.pause();
  }

  onDrained(): void {
    this.#activeMs = this.proxy.thread.clock.monotonicMs;
    this.#upstream?.resume();
  }

  /**
   * Called when the listener or the process ends. As in Envoy, the drain time ends no connection. Lingers: both peers may still be sending,
   * and a reset would discard bytes that were delivered before.
   */
  onListenerGone(): void {
    if (this.#isFrozen) {
      this.#endsWhenThawed = true;
      return;
    }
    this.info.connectionTerminationDetails = 'drain_close';
    this.#finish(DRAIN_LINGER_MS);
  }

  /** Ends the connection because the server is overloaded. */
  #shed(): void {
    this.proxy.stats.increment(TcpStats.at.downstream_cx_overload_close);
    this.info.responseFlags |= ResponseFlag.OverloadManager;
    this.info.downstreamLocalCloseReason = 'overload_manager_close';
    this.#finish();
  }

  /** check_drain_close: ends the connection when data passes, if the drain selects it. */
  #checkDrain(): void {
    const { clock, random } = this.proxy.thread;
    if (this.#isOver || !this.downstream.drain.shouldClose(clock.monotonicMs, random)) return;
    this.proxy.stats.increment(TcpStats.at.downstream_cx_drain_close);
    this.#finish(DRAIN_LINGER_MS);
  }

  addBuffered(sums: BufferedBytes): void {
    const { at } = TcpStats;
    const { pendingBytes } = this.downstream;
    sums.add(this.proxy.stats, at.downstream_cx_rx_bytes_buffered, 0, at.downstream_cx_tx_bytes_buffered, pendingBytes);
  }

  /** Reports a client that does not read the host's bytes, or whose own bytes wait for a host. */
  stalled(): Stall | undefined {
    const { id, pendingBytes: unsent } = this.downstream;
    const bytes = unsent + (this.#early?.bytes ?? 0);
    if (bytes === 0 || this.#isFrozen) return undefined;
    const movedMs = this.#activeMs;
    return { id, sinceMs: movedMs, movedMs, bytes, unsent, end: () => this.#endStalled() };
  }

  #endStalled(): void {
    if (this.#isOver) return;
    this.info.responseFlags |= ResponseFlag.OverloadManager;
    this.info.connectionTerminationDetails = 'memory_pressure';
    this.#break();
  }

  onFault(): void {
    this.#break();
  }

  onFilterClose(): void {
    this.#log();
    this.#upstream?.close();
  }

  upstreamFault(): void {
    this.#break();
  }

  upstreamBlocked(): void {
    this.downstream.pause();
    this.proxy.stats.increment(TcpStats.at.downstream_flow_control_paused_reading_total);
  }

  upstreamDrained(): void {
    this.downstream.resume();
    this.proxy.stats.increment(TcpStats.at.downstream_flow_control_resumed_reading_total);
  }

  // ── The host's side ──────────────────────────────────────────────────────────────────────────────────────────────

  upstreamConnected(): void {
    this.#activeMs = this.proxy.thread.clock.monotonicMs;
    const { info } = this;
    const { connectedId, connectedMs, localText, peerText, security, serial, startMs } = this.#upstream!;
    info.upstreamConnectionId = serial;
    info.upstreamConnectStartMs = startMs;
    info.upstreamConnectEndMs = info.poolReadyMs = connectedMs;
    info.upstreamLocalAddress = localText;
    info.upstreamSecurity = security;
    info.upstreamRemoteAddress = peerText || info.upstreamHost;
    const { connected } = this.proxy.options.logs;
    if (connected.length > 0) this.#record('TcpUpstreamConnected', connected);
    this.#sendEarly();
    if (this.#isOver) return;
    this.downstream.resume();
    if (connectedId !== undefined) this.downstream.drain.handOverQueue?.add(this.downstream);
  }

  /** Keeps bytes for the host that is not connected yet: the first one may fail, and a tunnel must not get them before it is open. */
  #holdEarly(offset: number, length: number): void {
    this.#early ??= new HeldBytes(this.proxy.thread.memory);
    if (this.#early.append(offset, length)) return;
    this.info.responseFlags |= ResponseFlag.OverloadManager;
    this.info.connectionTerminationDetails = 'memory_pressure';
    this.#break();
  }

  /** Sends what the client has sent before the host was connected. */
  #sendEarly(): void {
    this.#isOpen = true;
    this.#early?.forEach((offset, length) => {
      this.#upstream?.sendUnchecked(offset, length);
    });
    this.#early?.clear();
    if (this.#clientEnded && !this.#isOver) this.onEnd();
  }

  upstreamConnectFailed(detail: string): void {
    this.#upstream = undefined;
    this.info.poolReadyMs = this.proxy.thread.clock.monotonicMs;
    this.info.upstreamTransportFailureReason = detail;
    if (this.#attempts < this.proxy.options.maxConnectAttempts) return this.#search.retry(this.#attempts);
    this.#search.cluster!.stats.increment(ClusterStats.at.upstream_cx_connect_attempts_exceeded);
    // Also with a single attempt, as in Envoy.
    this.fail(ResponseFlag.UpstreamConnectionFailure | ResponseFlag.ConnectAttemptsExceeded, '', NoStart.Connect);
  }

  upstreamData(offset: number, length: number): void {
    this.#activeMs = this.proxy.thread.clock.monotonicMs;
    this.info.bytesSent += length;
    this.proxy.stats.addBytes(TcpStats.at.downstream_cx_tx_bytes_total, length);
    this.downstream.transport.send(this.downstream.id, offset, length);
    if (this.proxy.options.checksDrain) this.#checkDrain();
  }

  upstreamEnded(): void {
    this.#serverEnded = true;
    if (this.#clientEnded || this.#upstream?.halfCloses === false) return this.#bothEnded(EndedBy.Remote);
    this.downstream.shutdown();
  }

  upstreamReset(): void {
    this.info.responseFlags |= ResponseFlag.UpstreamRemoteReset;
    this.info.upstreamCloseType = CloseType.RemoteReset;
    this.info.downstreamCloseType = CloseType.LocalReset;
    this.#break();
  }

  // ── Both ─────────────────────────────────────────────────────────────────────────────────────────────────────────

  checkTimeouts(): void {
    const { options, shortestTimeoutMs, stats, thread } = this.proxy;
    const now = thread.clock.monotonicMs;
    let remaining = shortestTimeoutMs;
    // The idle timeout does not apply while connecting, which has its own timeout and may be repeated.
    if (options.idleMs > 0 && this.#upstream?.isConnected === true) {
      const left = options.idleMs - (now - this.#activeMs);
      if (left <= 0) {
        stats.increment(TcpStats.at.idle_timeout);
        this.info.connectionTerminationDetails = 'idle_timeout';
        this.#closedFor('tcp_session_idle_timeout');
        return this.#finish();
      }
      remaining = Math.min(remaining, left);
    }
    if (options.maxConnectionMs > 0) {
      const left = options.maxConnectionMs - (now - this.downstream.startMonotonicMs);
      if (left <= 0) {
        stats.increment(TcpStats.at.max_downstream_connection_duration);
        this.info.responseFlags |= ResponseFlag.DurationTimeout;
        this.#closedFor('max_connection_duration_reached');
        return this.#finish();
      }
      remaining = Math.min(remaining, left);
    }
    thread.wheel.reschedule(this.#timer, remaining);
  }

  /** Resumes the timeouts. They are first checked after bytes that arrived meanwhile were received. */
  #resumeTimeouts(): void {
    const { shortestTimeoutMs, thread } = this.proxy;
    if (shortestTimeoutMs === 0) return;
    thread.wheel.schedule(this.#timer, shortestTimeoutMs);
    thread.transport.defer(this.downstream.id, () => {
      if (this.#timer.isScheduled) this.checkTimeouts();
    });
  }

  #facts(): TakenOverPairFacts {
    const { info } = this;
    return {
      cluster: this.#search.cluster!.name,
      host: info.upstreamHost,
      upstreamLocal: info.upstreamLocalAddress,
      upstreamStartMs: this.#upstream!.startMs,
      startMs: info.startMonotonicMs,
      startRealtimeMs: info.startRealtimeMs,
      activeMs: this.#activeMs,
      attempts: this.#attempts,
      bytesReceived: info.bytesReceived,
      bytesSent: info.bytesSent,
      clientEnded: this.#clientEnded,
      serverEnded: this.#serverEnded,
    };
  }

  #resume(ids: readonly number[]): void {
    this.#isFrozen = false;
    for (const id of ids) this.proxy.thread.transport.thaw(id);
    this.#resumeTimeouts();
    if (this.#endsWhenThawed) this.onListenerGone();
  }

  #connectOptions({ namesClients, passesState }: Cluster): ConnectOptions {
    const shared = passesState ? this.info.filterState?.shared() : undefined;
    if (!namesClients && shared === undefined) return NO_CONNECT_OPTIONS;
    const client = namesClients ? this.downstream : undefined;
    return { ...NO_CONNECT_OPTIONS, traits: connectionTraits(undefined, client, shared) };
  }

  #release(): void {
    this.#isOver = true;
    this.#periodicLog?.stop();
    this.#upstream!.release();
    this.downstream.release();
  }

  /** Called for each attempt. `cluster`: the host's, of an aggregate. */
  hostFound(cluster: Cluster, host: ClusterHost): void {
    if (this.proxy.options.tunnel !== undefined) return this.#openTunnel(cluster, host);
    if (UpstreamSocket.sheds(cluster)) {
      this.#search.cluster!.stats.increment(ClusterStats.at.upstream_cx_connect_attempts_exceeded);
      return this.fail(ResponseFlag.ConnectAttemptsExceeded, '', NoStart.Connect);
    }
    const upstream = UpstreamSocket.connect(this, cluster, host, this.#connectOptions(cluster));
    if (upstream === undefined) return this.tunnelRefused();
    this.#begin(upstream, host);
  }

  /** Records an attempt. */
  #begin(upstream: HostStream, host: Host): void {
    this.#upstream = upstream;
    if (this.#attempts > 0) this.info.resetTry();
    this.info.tryStartMs = upstream.startMs;
    this.info.host = host;
    this.#attempts++;
    this.info.attemptCount = this.#attempts;
    this.info.upstreamHost = host.address;
  }

  #openTunnel(cluster: Cluster, host: ClusterHost): void {
    const request = this.proxy.options.tunnel!;
    const hostname = request.hostname(this.info);
    if (hostname === undefined)
      return this.fail(ResponseFlag.UpstreamConnectionFailure, 'invalid_tunnel_hostname', NoStart.Connect);
    const tunnel = new HttpTunnel(this, cluster, host, request, hostname, this.info);
    this.#begin(tunnel, host);
    tunnel.start(this.#connectOptions(cluster));
  }

  /** Called when a circuit breaker of the cluster is open. */
  tunnelRefused(): void {
    this.#upstream = undefined;
    this.fail(ResponseFlag.UpstreamOverflow, 'upstream_cx_overflow', NoStart.Limit);
  }

  /** Ends a connection without a host. */
  fail(flags: number, details: string, reason: NoStart): void {
    this.info.responseFlags |= flags;
    // Envoy's spelling.
    this.info.downstreamLocalCloseReason = `tcp_initializion_failure:${reason}`;
    this.info.connectionTerminationDetails = details;
    this.#finish();
  }

  /** Records why this side closes both connections. */
  #closedFor(reason: string): void {
    this.info.downstreamLocalCloseReason = this.info.upstreamLocalCloseReason = reason;
  }

  /** Closes a complete stream. A peer that has ended its side may read the rest as slowly as on an open connection. */
  #bothEnded(by: EndedBy): void {
    const { idleMs } = this.proxy.options;
    this.#finish(0, idleMs > 0 ? Math.min(idleMs, MAX_FLUSH_MS) : MAX_FLUSH_MS, by);
  }

  /**
   * Closes both sides in an orderly way: pending bytes are delivered as long as the peer reads some of them every `flushMs`.
   * Peers that are still sending get `lingerMs` to end. `by`: which side of the host's connection has ended it.
   */
  #finish(lingerMs = 0, flushMs?: number, by = EndedBy.Local): void {
    this.#log();
    const isFlushing = this.#upstream !== undefined && this.#upstream.pendingBytes > 0;
    this.#upstream?.close(lingerMs, flushMs, isFlushing ? this.proxy.beginFlush() : undefined, by);
    this.downstream.close(lingerMs, 0, flushMs);
  }

  /** Resets both sides: when one breaks, the other one must notice that the stream is incomplete. */
  #break(): void {
    this.#log();
    this.#upstream?.reset();
    this.downstream.reset();
  }

  #log(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    const { options, stats, thread } = this.proxy;
    const { withheldBytes } = this.downstream;
    thread.wheel.cancel(this.#timer);
    this.#periodicLog?.stop();
    this.#early?.clear();
    this.#search.stop();
    this.info.bytesReceived += withheldBytes;
    stats.addBytes(TcpStats.at.downstream_cx_rx_bytes_total, withheldBytes);
    this.info.connectionTerminationDetails ||= this.downstream.terminationDetails;
    this.info.connectionEndMs = thread.clock.monotonicMs;
    this.#record('TcpConnectionEnd', options.logs.end);
  }

  #record(type: Parameters<typeof logConnection>[1], loggers: readonly AccessLogger[]): void {
    const { options, thread } = this.proxy;
    logConnection(loggers, type, this.info, thread.clock, options.tunnel !== undefined);
  }
}

function onTimer(connection: ProxiedConnection): void {
  try {
    connection.checkTimeouts();
  } catch (error) {
    connection.onFault();
    throw error;
  }
}
