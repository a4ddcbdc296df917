// A byte stream to a host in an HTTP request of its own (tunneling_config): what follows an accepted CONNECT, or the bodies of a POST.
//
// As in Envoy, a tunnel over HTTP/1.1 ends as a whole with its first direction, and the response has no timeout of its own.

import type { StreamInfo } from '../../../../access-log/stream/stream-info.js';
import { Protocol } from '../../../../access-log/stream/stream-info.js';
import { Priority } from '../../../../common/priority.js';
import { type RequestEncoder, ResetReason } from '../../../../http/codec/streams.js';
import { type HeaderBlock, headerBlocks } from '../../../../http/headers/header-block.js';
import type { ConnectionSecurity } from '../../../../io/tls/connection-security.js';
import { ClusterStats } from '../../../../stats/layouts/cluster.js';
import type { Cluster, ClusterHost } from '../../../../upstream/cluster.js';
import type { ConnectOptions } from '../../../../upstream/connections/connect-options.js';
import type { HostConnection } from '../../../../upstream/connections/host-connection.js';
import type { HttpPool, PoolRequest } from '../../../../upstream/connections/http-pool.js';
import type { UpstreamSocketEvents } from '../../../../upstream/connections/upstream-socket.js';
import { PoolFailure } from '../../../../upstream/pool-failure.js';
import type { HostStream } from './host-stream.js';
import { propagate } from './propagated-headers.js';
import type { TunnelRequest } from './tunnel-request.js';

/** Informational responses that a host may send before its answer. */
const MAX_INFORMATIONAL = 100;

export interface TunnelEvents extends UpstreamSocketEvents {
  /** A circuit breaker of the cluster is open. */
  tunnelRefused(): void;
}

const enum State {
  /** Queued in the pool. */
  Pending = 0,
  /** The request is sent. */
  Requested = 1,
  Open = 2,
  Closed = 3,
}

export class HttpTunnel implements HostStream, PoolRequest {
  pendingPrev: PoolRequest | undefined = undefined;
  pendingNext: PoolRequest | undefined = undefined;
  readonly startMs: number;
  connectedMs = 0;
  halfCloses = false;
  /** The socket may carry other streams. */
  readonly connectedId = undefined;
  /** The connection sends what is pending by itself. */
  readonly pendingBytes = 0;
  readonly #events: TunnelEvents;
  readonly #cluster: Cluster;
  readonly #host: ClusterHost;
  readonly #request: TunnelRequest;
  readonly #hostname: string;
  readonly #info: StreamInfo;
  #pool: HttpPool | undefined;
  #encoder: RequestEncoder | undefined;
  #connection: HostConnection | undefined;
  #state: State = State.Pending;
  #informational = 0;
  #isSent = false;
  #isReceived = false;
  /** The host's connection accepts no more bytes for now. */
  #isBlocked = false;

  constructor(
    events: TunnelEvents,
    cluster: Cluster,
    host: ClusterHost,
    request: TunnelRequest,
    hostname: string,
    info: StreamInfo,
  ) {
    this.#events = events;
    this.#cluster = cluster;
    this.#host = host;
    this.#request = request;
    this.#hostname = hostname;
    this.#info = info;
    this.startMs = cluster.thread.clock.monotonicMs;
  }

  /** Begins. Events may follow before this returns. */
  start({ traits }: ConnectOptions): void {
    this.#pool = this.#cluster.pool(this.#host, Priority.Default, undefined, traits);
    if (this.#pool === undefined) this.onPoolFailure(PoolFailure.Overflow);
    else this.#pool.start(this);
  }

  // ── HostStream ───────────────────────────────────────────────────────────────────────────────────────────────────

  get isConnected(): boolean {
    return this.#state === State.Open;
  }
  get localText(): string {
    return this.#connection?.localText ?? '';
  }
  get peerText(): string {
    return this.#connection?.peerText ?? '';
  }
  get serial(): number {
    return this.#connection?.serial ?? 0;
  }
  get security(): ConnectionSecurity | undefined {
    return this.#connection?.security;
  }

  sendUnchecked(offset: number, length: number): void {
    if (this.#state === State.Open && !this.#isSent) this.#encoder!.data(offset, length, false);
  }

  shutdown(): void {
    if (this.#state !== State.Open || this.#isSent) return;
    this.#isSent = true;
    this.#encoder!.data(0, 0, true);
  }

  pause(): void {
    if (this.#state !== State.Open) return;
    this.#encoder!.pauseReading();
    this.#cluster.stats.increment(ClusterStats.at.upstream_flow_control_paused_reading_total);
  }

  resume(): void {
    if (this.#state !== State.Open) return;
    this.#encoder!.resumeReading();
    this.#cluster.stats.increment(ClusterStats.at.upstream_flow_control_resumed_reading_total);
  }

  close(): void {
    const wasOpen = this.#state === State.Open;
    // The host has ended its direction: the end of the other one completes the exchange.
    if (this.#isReceived) this.shutdown();
    this.#abandon(wasOpen ? ResetReason.LocalClose : ResetReason.LocalReset);
  }

  reset(): void {
    this.#abandon(ResetReason.LocalReset);
  }

  release(): void {
    this.reset();
  }

  // ── The pool ─────────────────────────────────────────────────────────────────────────────────────────────────────

  onPoolReady(encoder: RequestEncoder, connection: HostConnection): void {
    const { memory, random } = this.#cluster.thread;
    this.#state = State.Requested;
    this.#encoder = encoder;
    this.#connection = connection;
    this.halfCloses = encoder.protocol >= Protocol.Http2;
    this.#info.runningTryBytes = encoder.bytes;
    this.#cluster.requestBegan(this.#host);
    const head = headerBlocks(memory).take();
    try {
      const isSecure = this.#cluster.transportOf(this.#host)?.tls !== undefined;
      this.#request.write(head, this.#hostname, isSecure, this.#info, random);
      encoder.headers(head, false);
    } finally {
      head.drop();
    }
  }

  onPoolFailure(reason: PoolFailure, detail = ''): void {
    this.#finish();
    if (reason === PoolFailure.Overflow || reason === PoolFailure.PendingOverflow) return this.#events.tunnelRefused();
    if (reason === PoolFailure.ConnectTimeout) this.#host.monitor?.timedOut();
    else this.#host.monitor?.failed();
    this.#events.upstreamConnectFailed(detail);
  }

  // ── The response ─────────────────────────────────────────────────────────────────────────────────────────────────

  onInformational(): void {
    if (++this.#informational <= MAX_INFORMATIONAL || this.#state !== State.Requested) return;
    this.#refuse('tunnel_response:1xx');
  }

  onHeaders(headers: HeaderBlock, endStream: boolean): void {
    if (this.#request.propagatesHeaders) propagate('headers', headers, this.#info);
    const { status } = headers;
    const isAccepted = this.halfCloses ? status === 200 : status >= 200 && status < 300;
    if (!isAccepted || endStream) return this.#refuse(`tunnel_response:${status}`);
    this.#state = State.Open;
    this.#encoder!.keepOpen?.();
    this.connectedMs = this.#cluster.thread.clock.monotonicMs;
    this.#host.monitor?.tcpConnected();
    this.#events.upstreamConnected();
    if (this.#isBlocked) this.onWriteBlocked();
  }

  onData(offset: number, length: number, endStream: boolean): void {
    if (this.#state !== State.Open) return;
    if (length > 0) this.#events.upstreamData(offset, length);
    if (endStream) this.#ended();
  }

  onTrailers(trailers: HeaderBlock): void {
    if (this.#state !== State.Open) return;
    if (this.#request.propagatesTrailers) propagate('trailers', trailers, this.#info);
    this.#ended();
  }

  onReset(reason: ResetReason): void {
    if (this.#state === State.Closed) return;
    const wasOpen = this.#state === State.Open;
    if (reason === ResetReason.RemoteReset || reason === ResetReason.RefusedStream)
      this.#cluster.stats.increment(ClusterStats.at.upstream_rq_rx_reset);
    this.#finish();
    if (!wasOpen) return this.#connectFailed('');
    // As in Envoy, the client's connection is closed in order.
    this.halfCloses = false;
    this.#events.upstreamEnded();
  }

  onWriteBlocked(): void {
    this.#isBlocked = true;
    if (this.#state !== State.Open) return;
    this.#cluster.stats.increment(ClusterStats.at.upstream_flow_control_backed_up_total);
    this.#events.upstreamBlocked();
  }

  onWriteDrained(): void {
    this.#isBlocked = false;
    if (this.#state !== State.Open) return;
    this.#cluster.stats.increment(ClusterStats.at.upstream_flow_control_drained_total);
    this.#events.upstreamDrained();
  }

  // ── Inside ───────────────────────────────────────────────────────────────────────────────────────────────────────

  #ended(): void {
    if (this.#state !== State.Open) return;
    this.#isReceived = true;
    this.#events.upstreamEnded();
  }

  /** Ends a tunnel that the host has not opened. */
  #refuse(detail: string): void {
    this.#abandon(ResetReason.LocalReset);
    this.#connectFailed(detail);
  }

  #connectFailed(detail: string): void {
    this.#host.monitor?.failed();
    this.#events.upstreamConnectFailed(detail);
  }

  #abandon(reason: ResetReason): void {
    const encoder = this.#encoder;
    const wasPending = this.#state === State.Pending;
    const isComplete = this.#isSent && this.#isReceived;
    if (this.#state === State.Closed) return;
    this.#finish();
    if (wasPending) return this.#pool?.cancel(this);
    if (isComplete) return;
    // A stream of HTTP/1 is not reset but its connection closed.
    if (encoder!.protocol >= Protocol.Http2) this.#cluster.stats.increment(ClusterStats.at.upstream_rq_tx_reset);
    encoder!.reset(reason);
  }

  #finish(): void {
    const wasRequested = this.#state === State.Requested || this.#state === State.Open;
    this.#state = State.Closed;
    if (!wasRequested) return;
    this.#info.tryEnded(this.#encoder!.bytes);
    this.#encoder = undefined;
    this.#cluster.requestEnded(this.#host);
  }
}
