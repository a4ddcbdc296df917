// One HTTP connection from a client: socket events to the codec, requests to streams, and the connection's own timeouts.

import type { StreamInfo } from '../access-log/stream-info.js';
import { Timer } from '../io/timing-wheel.js';
import type { ConnectionHandler } from '../io/transport.js';
import type { DownstreamConnection } from '../listener/downstream-connection.js';
import { HttpStats } from '../stats/layouts/http.js';
import { type ByteSink, type CodecError, type RequestDecoder, ResetReason, type ResponseEncoder } from './codec.js';
import { H1ServerCodec, type H1ServerEvents } from './h1/server-codec.js';
import type { ManagerContext } from './manager-context.js';
import type { ServerStream, StreamConnection } from './server-stream.js';
import type { TurnPool } from './turn-pool.js';

export class ServerConnection implements ConnectionHandler, H1ServerEvents, ByteSink, StreamConnection {
  readonly manager: ManagerContext;
  readonly socket: DownstreamConnection;
  readonly #streams: TurnPool<ServerStream>;
  readonly #codec: H1ServerCodec;
  readonly #timer: Timer<ServerConnection>;
  /** The request that is being served. */
  #stream: ServerStream | undefined;
  #requests = 0;
  /** When bytes moved last, in either direction. */
  #activeMs: number;
  /** When the first byte of the current request arrived; UNSET between requests. */
  #requestStartMs = UNSET;
  #closesAfterResponse = false;
  /** It has reached max_connection_duration. */
  #isDraining = false;
  #endedByPeer = false;

  constructor(manager: ManagerContext, streams: TurnPool<ServerStream>, socket: DownstreamConnection) {
    const { http } = manager.stats;
    this.manager = manager;
    this.#streams = streams;
    this.socket = socket;
    this.#activeMs = socket.startMonotonicMs;
    this.#codec = new H1ServerCodec(manager.thread.memory, this, this, manager.options.codec);
    this.#timer = new Timer<ServerConnection>(this, onTimer);
    http.increment(HttpStats.at.downstream_cx_total);
    http.increment(HttpStats.at.downstream_cx_http1_total);
    http.increment(HttpStats.at.downstream_cx_active);
    http.increment(HttpStats.at.downstream_cx_http1_active);
    if (manager.shortestTimeoutMs > 0) manager.thread.wheel.schedule(this.#timer, manager.shortestTimeoutMs);
  }

  describe(info: StreamInfo): void {
    info.connectionId = this.socket.serial;
    info.scheme = this.scheme;
    info.downstreamDirectRemoteAddress = info.downstreamRemoteAddress = this.socket.remoteText;
    info.downstreamLocalAddress = this.socket.localText;
  }

  shouldCloseAfterResponse(): boolean {
    const { maxRequestsPerConnection } = this.manager.options;
    if (maxRequestsPerConnection > 0 && this.#requests >= maxRequestsPerConnection && !this.#closesAfterResponse) {
      this.manager.stats.http.increment(HttpStats.at.downstream_cx_max_requests_reached);
      this.#closesAfterResponse = true;
    }
    return this.#closesAfterResponse;
  }

  streamFinished(stream: ServerStream): void {
    this.#stream = undefined;
    this.#streams.giveBack(stream);
    this.#activeMs = this.manager.thread.clock.monotonicMs;
    this.#requestStartMs = UNSET;
  }

  // ── EdgeConnection: what the forwarding rules ask ────────────────────────────────────────────────────────────────

  get remoteIp(): string {
    return this.socket.remote.ip;
  }
  get scheme(): 'http' | 'https' {
    return 'http';
  }

  // ── ByteSink: what the codec sends ───────────────────────────────────────────────────────────────────────────────

  send(offset: number, length: number): void {
    this.#activeMs = this.manager.thread.clock.monotonicMs;
    this.manager.stats.http.add(HttpStats.at.downstream_cx_tx_bytes_total, length);
    this.socket.send(offset, length);
  }
  pause(): void {
    this.socket.pause();
  }
  resume(): void {
    this.socket.resume();
  }

  // ── H1ServerEvents: what the codec finds ─────────────────────────────────────────────────────────────────────────

  newStream(encoder: ResponseEncoder): RequestDecoder {
    this.#requests++;
    // A pipelined request may have been received with the one before it.
    if (this.#requestStartMs === UNSET) this.#requestStartMs = this.manager.thread.clock.monotonicMs;
    const stream = this.#streams.take();
    this.#stream = stream;
    stream.start(this, encoder);
    return stream;
  }

  onInvalid(error: CodecError): void {
    this.manager.stats.http.increment(HttpStats.at.downstream_cx_protocol_error);
    this.#refuse(error);
  }

  onIdle(): void {
    this.#requestStartMs = UNSET;
  }

  onClose(abort: boolean): void {
    this.#countClose();
    this.#end();
    if (abort) this.socket.reset();
    else this.socket.close(this.#endedByPeer ? 0 : this.manager.options.delayedCloseMs);
  }

  // ── ConnectionHandler: what the socket tells ─────────────────────────────────────────────────────────────────────

  onConnected(): void {}

  onData(offset: number, length: number): void {
    const now = this.manager.thread.clock.monotonicMs;
    this.#activeMs = now;
    if (this.#requestStartMs === UNSET) this.#requestStartMs = now;
    this.manager.stats.http.add(HttpStats.at.downstream_cx_rx_bytes_total, length);
    this.#codec.receive(offset, length);
  }

  onEnd(): void {
    this.#endedByPeer = true;
    this.#codec.end();
  }

  onReset(): void {
    this.#endedByPeer = true;
    this.#countClose();
    this.#stream?.onReset(ResetReason.ConnectionTermination, undefined);
    this.#end();
    this.socket.close(0);
  }

  onBlocked(): void {
    this.#codec.blocked();
  }

  onDrained(): void {
    this.#activeMs = this.manager.thread.clock.monotonicMs;
    this.#codec.drained();
  }

  onFault(): void {
    const stream = this.#stream;
    if (stream !== undefined) {
      stream.info.responseCodeDetails = 'internal_error';
      stream.abandon();
    }
    if (!this.socket.isClosed) this.onClose(true);
  }

  // ── Timeouts ─────────────────────────────────────────────────────────────────────────────────────────────────────

  /**
   * One timer serves all timeouts and is not touched by traffic: when it fires it looks at the times that traffic left,
   * and sleeps for what remains, but never longer than the shortest timeout, which may have begun meanwhile.
   */
  checkTimeouts(): void {
    const { options, thread } = this.manager;
    const now = thread.clock.monotonicMs;
    let remaining = this.manager.shortestTimeoutMs;
    if (options.maxConnectionMs > 0) remaining = Math.min(remaining, this.#checkDuration(now));
    if (!this.socket.isClosed) {
      const left = this.#stream === undefined ? this.#checkBetweenRequests(now) : this.#checkStream(this.#stream, now);
      remaining = Math.min(remaining, left);
    }
    if (!this.socket.isClosed) thread.wheel.reschedule(this.#timer, remaining);
  }

  wakeWithin(timeoutMs: number): void {
    if (timeoutMs > 0 && timeoutMs < this.manager.shortestTimeoutMs)
      this.manager.thread.wheel.reschedule(this.#timer, timeoutMs);
  }

  /** Ends the request when it has taken too long; otherwise gives the milliseconds that are left. */
  #checkStream(stream: ServerStream, now: number): number {
    const { requestMs } = this.manager.options;
    let remaining = Number.POSITIVE_INFINITY;
    if (requestMs > 0 && !stream.isRequestComplete) {
      remaining = requestMs - (now - this.#requestStartMs);
      if (remaining <= 0) {
        stream.requestTimeout();
        return this.manager.shortestTimeoutMs;
      }
    }
    if (stream.idleMs === 0) return remaining;
    const idleLeft = stream.idleMs - (now - this.#activeMs);
    if (idleLeft > 0) return Math.min(remaining, idleLeft);
    stream.idleTimeout();
    return this.manager.shortestTimeoutMs;
  }

  #checkBetweenRequests(now: number): number {
    const { options, stats } = this.manager;
    // As may the beginning of its head.
    if (this.#requestStartMs === UNSET && this.#codec.bufferedBytes > 0) this.#requestStartMs = this.#activeMs;
    if (this.#requestStartMs !== UNSET) {
      const limit = options.requestHeadersMs > 0 ? options.requestHeadersMs : options.requestMs;
      if (limit > 0) {
        const left = limit - (now - this.#requestStartMs);
        if (left > 0) return left;
        stats.http.increment(HttpStats.at.downstream_rq_header_timeout);
        this.#refuse({ status: 408, detail: 'request_header_timeout' });
        return 0;
      }
    }
    if (options.idleMs === 0) return Number.POSITIVE_INFINITY;
    const left = options.idleMs - (now - this.#activeMs);
    if (left > 0) return left;
    stats.http.increment(HttpStats.at.downstream_cx_idle_timeout);
    this.onClose(false);
    return 0;
  }

  /** Answers and closes where no request could be read. It counts and is logged as one. */
  #refuse(error: CodecError): void {
    const stream = this.#streams.take();
    stream.start(this, this.#codec);
    stream.refuse(error);
    this.#codec.answerInvalid(error);
    this.onClose(false);
  }

  /** At the end of its time the connection has one more response, and drain_timeout for the request. */
  #checkDuration(now: number): number {
    const { options, stats } = this.manager;
    const left = this.socket.startMonotonicMs + options.maxConnectionMs - now;
    if (left > 0) return left;
    if (!this.#isDraining) {
      stats.http.increment(HttpStats.at.downstream_cx_max_duration_reached);
      this.#isDraining = this.#closesAfterResponse = true;
    }
    if (left + options.drainMs > 0) return left + options.drainMs;
    if (this.#stream === undefined) this.onClose(false);
    return Number.POSITIVE_INFINITY;
  }

  // ── The end ──────────────────────────────────────────────────────────────────────────────────────────────────────

  #countClose(): void {
    const { http } = this.manager.stats;
    const { at } = HttpStats;
    const isRemote = this.#endedByPeer;
    http.increment(isRemote ? at.downstream_cx_destroy_remote : at.downstream_cx_destroy_local);
    if (this.#stream === undefined) return;
    http.increment(at.downstream_cx_destroy_active_rq);
    http.increment(isRemote ? at.downstream_cx_destroy_remote_active_rq : at.downstream_cx_destroy_local_active_rq);
  }

  /** Everything but the socket: counters, timers, the codec with its stream. */
  #end(): void {
    const { stats, thread } = this.manager;
    thread.wheel.cancel(this.#timer);
    this.#codec.destroy();
    stats.http.increment(HttpStats.at.downstream_cx_destroy);
    stats.http.decrement(HttpStats.at.downstream_cx_active);
    stats.http.decrement(HttpStats.at.downstream_cx_http1_active);
    stats.http.record(
      HttpStats.at.downstream_cx_length_ms,
      Math.floor(thread.clock.monotonicMs - this.socket.startMonotonicMs),
    );
  }
}

const UNSET = -1;

function onTimer(connection: ServerConnection): void {
  connection.checkTimeouts();
}
