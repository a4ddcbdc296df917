// One downstream HTTP connection: passes socket events to the codec and requests to streams, and handles the connection's timeouts.

import { ResponseFlag } from '../../access-log/stream/response-flags.js';
import type { Protocol, StreamInfo } from '../../access-log/stream/stream-info.js';
import type { RoomWaiter } from '../../io/arena/room-queue.js';
import type { BufferedBytes } from '../../io/buffered-bytes.js';
import type { ConnectionSecurity } from '../../io/tls/connection-security.js';
import type { Stall } from '../../io/transport/connection-handler.js';
import type { DownstreamConnection, DownstreamHandler } from '../../listener/downstream-connection.js';
import type { PreparedHandOver } from '../../listener/hand-over.js';
import { HttpStats } from '../../stats/layouts/http.js';
import { ExchangeEnd, type ServerCodec, type ServerCodecEvents, type ServerProtocol } from '../codec/connections.js';
import {
  type ByteSink,
  type CodecError,
  type RequestDecoder,
  ResetReason,
  type ResponseEncoder,
} from '../codec/streams.js';
import type { HeaderBlock } from '../headers/header-block.js';
import type { ManagerContext } from '../manager-context.js';
import type { StepPool } from '../step-pool.js';
import type { ServerStream, StreamConnection } from '../streams/server-stream.js';
import { TOO_SLOW } from '../streams/stream-answers.js';
import { type ClockedConnection, ConnectionClocks, UNSET } from './connection-clocks.js';
import { type HeadTimeout, refusal } from './head-timeouts.js';
import type { TakenOverRequests } from './taken-over-requests.js';
import type { DeviceStats } from './user-agent-stats.js';

/** Objects that a connection needs only while it is active. */
export interface ServerPools {
  readonly streams: StepPool<ServerStream>;
  /** The protocols that clients may use, one or both. */
  readonly http1: ServerProtocol | undefined;
  readonly http2: ServerProtocol | undefined;
}

export class ServerConnection
  implements DownstreamHandler, ServerCodecEvents, ByteSink, StreamConnection, RoomWaiter, ClockedConnection
{
  readonly manager: ManagerContext;
  readonly socket: DownstreamConnection;
  readonly #pools: ServerPools;
  /** As in Envoy, a connection has a protocol from its first byte on. */
  #protocol: ServerProtocol | undefined;
  #isMultiplexed = false;
  /** The first bytes, while they do not show the protocol yet. */
  #beginning: Uint8Array | undefined;
  /** Undefined while the codec would have no state: most connections of a server are idle. */
  #codec: ServerCodec | undefined;
  readonly clocks: ConnectionClocks;
  /** Active requests, linked by ServerStream.next. */
  #streams: ServerStream | undefined;
  #activeStreams = 0;
  #requests = 0;
  /** Stats of the client's device type, which its first request determines. */
  #device: DeviceStats | undefined;
  #closesAfterResponse = false;
  #endedByPeer = false;
  /** The client has ended its direction of a tunnel first. */
  #wasTunnelEnded = false;
  /** Created by the first turn that the codec requests, usually for a pipelined request. */
  #takeTurn: (() => void) | undefined;
  /** Of a multiplexed connection: requests that ended, and those that the client caused to be reset early. */
  #endedRequests = 0;
  #earlyResets = 0;

  /** `former`: the state of a connection that another process has served. */
  constructor(
    manager: ManagerContext,
    pools: ServerPools,
    socket: DownstreamConnection,
    takenOver?: TakenOverRequests,
  ) {
    const { http } = manager.stats;
    this.manager = manager;
    this.#pools = pools;
    this.socket = socket;
    this.clocks = new ConnectionClocks(this, manager, socket.startMonotonicMs);
    if (takenOver === undefined) {
      http.increment(HttpStats.at.downstream_cx_total);
      this.clocks.begin();
    } else {
      this.#requests = takenOver.requests;
      this.clocks.activeMs = takenOver.activeMs;
      this.clocks.requestStartMs = takenOver.requestStartMs;
      if (takenOver.requests > 0) this.#useProtocol(pools.http1!);
      if (takenOver.isBlocked) this.onBlocked();
      this.#resumeTimeouts();
    }
    http.increment(HttpStats.at.downstream_cx_active);
    if (socket.chain.isTls) {
      http.increment(HttpStats.at.downstream_cx_ssl_total);
      http.increment(HttpStats.at.downstream_cx_ssl_active);
    }
  }

  describe(info: StreamInfo): void {
    info.connectionId = this.socket.serial;
    info.scheme = this.scheme;
    info.downstream = this.socket;
    info.connectionStartMs = this.socket.startMonotonicMs;
  }

  get activeRequests(): number {
    return this.#activeStreams;
  }

  countClient(headers: HeaderBlock, protocol: Protocol): void {
    if (this.socket.info !== undefined) this.socket.info.protocol = protocol;
    if (this.#requests === 1) {
      this.#device = this.manager.stats.userAgents.of(headers);
      this.#device?.connections.increment();
    }
    this.#device?.requests.increment();
  }

  shouldCloseAfterResponse(): boolean {
    const { maxRequestsPerConnection } = this.manager.options;
    if (maxRequestsPerConnection > 0 && this.#requests >= maxRequestsPerConnection && !this.#closesAfterResponse) {
      this.manager.stats.http.increment(HttpStats.at.downstream_cx_max_requests_reached);
      this.#beginEnd();
    }
    const { clock, random } = this.manager.thread;
    if (
      !this.#closesAfterResponse &&
      !this.#shouldHandOver &&
      this.socket.drain.shouldClose(clock.monotonicMs, random)
    ) {
      this.manager.stats.http.increment(HttpStats.at.downstream_cx_drain_close);
      this.#beginEnd();
    }
    return this.#closesAfterResponse;
  }

  /** The connection ends with this response, or after drain_timeout if it is multiplexed. */
  #beginEnd(): void {
    this.#closesAfterResponse = true;
    if (!this.#isMultiplexed) return;
    this.#codec!.announceClose();
    this.clocks.beginDrain();
  }

  later(act: () => void): void {
    this.socket.transport.defer(this.socket.id, () => {
      act();
      this.#releaseCodec();
    });
  }

  streamFinished(stream: ServerStream): void {
    this.#remove(stream);
    if (stream.isTunnel && !this.#isMultiplexed) this.#wasTunnelEnded = (stream.info.responseFlags & CLIENT_LEFT) !== 0;
    this.#pools.streams.release(stream);
    this.clocks.moved();
    if (this.#isMultiplexed) this.#countEnd(stream.info);
  }

  /** Ends a connection most of whose requests are reset by the client at once (CVE-2023-44487), by Envoy's rule. */
  #countEnd({ durationMs, responseFlags }: StreamInfo): void {
    this.#endedRequests++;
    if ((responseFlags & RESET_BY_CLIENT) === 0 || durationMs >= EARLY_RESET_MS) return;
    this.#earlyResets++;
    if (this.#earlyResets * 2 <= Math.max(EARLY_RESETS_OF, this.#endedRequests) || this.socket.isClosed) return;
    this.manager.stats.http.increment(HttpStats.at.downstream_rq_too_many_premature_resets);
    this.onClose(false);
  }

  // ── EdgeConnection: for the forwarding rules ─────────────────────────────────────────────────────────────────────

  get remoteIp(): string {
    return this.socket.remoteIp;
  }
  get scheme(): 'http' | 'https' {
    return this.socket.security === undefined ? 'http' : 'https';
  }
  get security(): ConnectionSecurity | undefined {
    return this.socket.security;
  }
  get localPort(): string {
    return /:(\d+)$/.exec(this.socket.localText)?.[1] ?? '';
  }

  // ── LocalEnd: for the normalization of hosts ─────────────────────────────────────────────────────────────────────

  get localText(): string {
    return this.socket.localText;
  }

  // ── ByteSink: called by the codec ────────────────────────────────────────────────────────────────────────────────

  send(offset: number, length: number): void {
    if (this.#isActive) this.clocks.moved();
    this.manager.stats.http.addBytes(HttpStats.at.downstream_cx_tx_bytes_total, length);
    const { info } = this.socket;
    if (info !== undefined) info.bytesSent += length;
    this.socket.transport.send(this.socket.id, offset, length);
  }
  pause(): void {
    this.socket.pause();
  }
  resume(): void {
    this.socket.resume();
  }
  get pendingBytes(): number {
    return this.socket.pendingBytes;
  }
  requestTurn(): void {
    this.#takeTurn ??= () => {
      this.#codec?.takeTurn();
      this.#releaseCodec();
    };
    this.socket.transport.defer(this.socket.id, this.#takeTurn);
  }

  // ── ServerCodecEvents: called by the codec ───────────────────────────────────────────────────────────────────────

  newStream(encoder: ResponseEncoder): RequestDecoder {
    this.#requests++;
    // A pipelined request may have been received with the previous one, and may have waited for another process.
    const now = this.manager.thread.clock.monotonicMs;
    const startMs = this.clocks.requestStartMs === UNSET ? now : this.clocks.requestStartMs;
    this.clocks.activeMs = now;
    this.clocks.requestStartMs = UNSET;
    const stream = this.#pools.streams.take();
    const first = this.#streams;
    stream.next = first;
    if (first !== undefined) first.previous = stream;
    this.#streams = stream;
    this.#activeStreams++;
    stream.start(this, encoder, this.#protocol!.requestsTotal, startMs);
    return stream;
  }

  #remove(stream: ServerStream): void {
    const { next, previous } = stream;
    if (next !== undefined) next.previous = previous;
    if (previous === undefined) this.#streams = next;
    else previous.next = next;
    stream.next = stream.previous = undefined;
    this.#activeStreams--;
  }

  /** Calls `act` for each stream; `act` may end the stream. */
  #forEachStream(act: (stream: ServerStream) => void): void {
    let stream = this.#streams;
    while (stream !== undefined) {
      const { next } = stream;
      act(stream);
      stream = next;
    }
  }

  onIdle(): void {
    this.clocks.requestStartMs = UNSET;
    // The response had begun when the drain did, so it could not announce the end.
    if (this.#closesAfterResponse && this.clocks.isDrained) return this.onClose(false);
    if (this.#shouldHandOver) this.#stopForHandOver();
    this.#releaseCodec();
  }

  onProtocolError({ flags = 0 }: CodecError): void {
    if ((flags & ResponseFlag.DownstreamProtocolError) === 0) return;
    this.manager.stats.http.increment(HttpStats.at.downstream_cx_protocol_error);
    this.noteProtocolError();
  }

  /** Records a protocol error of the client in the record of the connection. */
  noteProtocolError(): void {
    if (this.socket.info !== undefined) this.socket.info.responseFlags |= ResponseFlag.DownstreamProtocolError;
  }

  #countReceived(bytes: number): void {
    this.manager.stats.http.addBytes(HttpStats.at.downstream_cx_rx_bytes_total, bytes);
    if (this.socket.info !== undefined) this.socket.info.bytesReceived += bytes;
  }

  onHalfClose(): void {
    this.socket.shutdown();
  }

  onClose(abort: boolean, exchange = ExchangeEnd.None): void {
    const { lateClose, lateFlush, options } = this.manager;
    // Lingering is needed only if input of the client could cause an RST that discards the last response.
    const lingers = !this.#endedByPeer && !this.isUnused && exchange !== ExchangeEnd.Last && options.delayedCloseMs > 0;
    this.#countClose(exchange === ExchangeEnd.Broken || this.#wasTunnelEnded);
    this.#end();
    if (abort) return this.socket.reset();
    // After a complete exchange the close lingers too; but as in Envoy, a missing FIN of the client is not counted then.
    const late = lingers && exchange !== ExchangeEnd.Complete ? lateClose : lateFlush;
    this.socket.close(lingers ? options.delayedCloseMs : 0, late, options.flushMs);
  }

  // ── DownstreamHandler: called by the transport ───────────────────────────────────────────────────────────────────

  onConnected(): void {}

  onData(offset: number, length: number): void {
    const now = this.manager.thread.clock.monotonicMs;
    if (this.#protocol === undefined && !this.#findProtocol(offset, length)) return;
    if (this.#isActive) this.clocks.activeMs = now;
    if (this.#streams === undefined && (this.clocks.requestStartMs === UNSET || this.#codec?.holdsNoRequest))
      this.clocks.requestStartMs = now;
    this.#countReceived(length);
    const beginning = this.#beginning;
    if (beginning !== undefined) {
      this.#beginning = undefined;
      this.processInput(beginning);
      if (this.socket.isClosed) return;
    }
    this.#receive(offset, length);
  }

  /** Bytes show that the connection is in use. On a multiplexed one only requests do: pings keep no connection open. */
  get #isActive(): boolean {
    return !this.#isMultiplexed || this.#streams !== undefined;
  }

  /**
   * Determines the protocol: the configured one, or by ALPN, or by the first bytes. Returns false if more of them are needed, which are then
   * kept.
   */
  #findProtocol(offset: number, length: number): boolean {
    const { http1, http2 } = this.#pools;
    const { bytes } = this.manager.thread.memory;
    if (http2 === undefined || http1 === undefined) {
      this.#beginProtocol(http1 ?? http2!);
      return true;
    }
    const negotiated = this.socket.security?.applicationProtocol ?? '';
    if (negotiated !== '') {
      this.#beginProtocol(negotiated === ALPN_HTTP2 ? http2 : http1);
      return true;
    }
    const kept = this.#beginning?.length ?? 0;
    const compared = Math.min(PREFACE_START.length - kept, length);
    for (let i = 0; i < compared; i++) {
      if (bytes[offset + i] === PREFACE_START[kept + i]) continue;
      this.#beginProtocol(http1);
      return true;
    }
    if (kept + compared === PREFACE_START.length) {
      this.#beginProtocol(http2);
      return true;
    }
    this.#beginning = PREFACE_START.slice(0, kept + compared);
    this.#countReceived(length);
    this.clocks.activeMs = this.clocks.requestStartMs = this.manager.thread.clock.monotonicMs;
    return false;
  }

  #beginProtocol(protocol: ServerProtocol): void {
    this.manager.stats.http.increment(protocol.connectionsTotal);
    this.#useProtocol(protocol);
  }

  #useProtocol(protocol: ServerProtocol): ServerProtocol {
    this.#protocol = protocol;
    this.#isMultiplexed = protocol === this.#pools.http2;
    this.manager.stats.http.increment(protocol.connectionsActive);
    if (this.#isMultiplexed) this.clocks.wakeWithin(this.manager.options.http2.keepaliveIntervalMs);
    return protocol;
  }

  onEnd(): void {
    this.#endedByPeer = true;
    if (this.#codec === undefined) this.onClose(false);
    else this.#codec.end();
  }

  onReset(): void {
    this.#endedByPeer = true;
    const hadHead = this.#codec?.abandonNext() === true;
    this.#countClose(hadHead || this.#streams !== undefined);
    this.#forEachStream((stream) => stream.onReset(ResetReason.ConnectionTermination, undefined));
    this.#end();
    this.socket.close(0);
  }

  onBlocked(): void {
    this.#acquireCodec().blocked();
  }

  onDrained(): void {
    this.clocks.moved();
    this.clocks.requestStartMs = UNSET;
    this.#codec?.drained();
    this.#releaseCodec();
  }

  addBuffered(sums: BufferedBytes): void {
    const { at } = HttpStats;
    const { http } = this.manager.stats;
    const received = this.#codec?.bufferedBytes ?? 0;
    sums.add(
      http,
      at.downstream_cx_rx_bytes_buffered,
      received,
      at.downstream_cx_tx_bytes_buffered,
      this.socket.pendingBytes,
    );
  }

  // ── Memory pressure ──────────────────────────────────────────────────────────────────────────────────────────────

  /** Counts unsent responses and requests behind them, an incomplete head, or the held part of an incomplete request. */
  stalled(): Stall | undefined {
    const unsent = this.socket.pendingBytes;
    const bytes = unsent + this.#heldForClient(unsent > 0);
    if (bytes === 0) return undefined;
    const movedMs = this.clocks.activeMs;
    const beganMs = this.#streams?.info.startMonotonicMs ?? this.clocks.requestStartMs;
    const sinceMs = unsent > 0 || beganMs === UNSET ? movedMs : beganMs;
    return { id: this.socket.id, sinceMs, movedMs, bytes, unsent, end: () => this.#endStalled() };
  }

  #heldForClient(isBehindAnswers: boolean): number {
    const received = this.#codec?.retainedBytes ?? 0;
    if (isBehindAnswers || this.#streams === undefined) return received;
    let awaitsClient = false;
    let held = received;
    this.#forEachStream((stream) => {
      if (!stream.awaitsClient) return;
      awaitsClient = true;
      held += stream.heldRequestBytes;
    });
    return awaitsClient ? held : 0;
  }

  #endStalled(): void {
    if (this.socket.isClosed) return;
    // The client does not read the pending responses, so it would not see another one.
    if (this.socket.pendingBytes > 0) {
      if (this.#streams === undefined) return this.onClose(true);
      return this.#cut(TOO_SLOW.details, TOO_SLOW.flags);
    }
    if (this.#streams !== undefined) {
      return this.#forEachStream((stream) => {
        if (stream.awaitsClient) stream.sendLocalReply(TOO_SLOW);
      });
    }
    this.#acquireCodec().refuseNext(refusal(TOO_SLOW));
  }

  onNoRoom(bytes: number): boolean {
    if (!this.manager.thread.memory.pressure.waiting.add(this, bytes)) return false;
    this.clocks.awaitRoom();
    return true;
  }

  onRoom(): void {
    this.socket.transport.defer(this.socket.id, () => {
      const codec = this.#codec;
      if (codec?.isAwaitingRoom !== true) return;
      if (!codec.resumeHead() && !this.onNoRoom(codec.bufferedBytes)) codec.refuseHead();
      this.#releaseCodec();
    });
  }

  onFault(): void {
    if (this.#streams !== undefined) this.#cut('internal_error', ResponseFlag.None);
    else if (!this.socket.isClosed) this.onClose(true);
  }

  onFilterClose(): void {
    if (this.#streams !== undefined) return this.onListenerGone();
    this.#countClose();
    this.#end();
  }

  onListenerGone(): void {
    if (this.#streams === undefined) {
      this.#codec?.refuseStreams();
      return this.onClose(false, ExchangeEnd.Complete);
    }
    this.manager.stats.http.add(HttpStats.at.downstream_rq_rx_reset, this.#activeStreams);
    const isTunnel = this.#streams.isTunnel;
    this.#abandonStreams(
      'downstream_local_disconnect',
      ResponseFlag.DownstreamConnectionTermination,
      isTunnel ? ResetReason.LocalClose : ResetReason.LocalReset,
    );
    if (!isTunnel) return this.socket.reset();
    // As in Envoy: both peers may still be sending, and a reset could destroy what has been delivered.
    const { lateFlush, options } = this.manager;
    this.socket.close(options.delayedCloseMs, lateFlush, options.flushMs);
  }

  /** Resets the connection while requests are active, because truncated responses must not look complete. */
  #cut(details: string, flags: number): void {
    this.#abandonStreams(details, flags, ResetReason.LocalReset);
    this.socket.reset();
  }

  /** Ends everything except the socket. */
  #abandonStreams(details: string, flags: number, reason: ResetReason): void {
    this.#countClose();
    this.#forEachStream((stream) => stream.abandon(details, flags, reason));
    this.#end();
  }

  // ── The codec ────────────────────────────────────────────────────────────────────────────────────────────────────

  #receive(offset: number, length: number): void {
    this.#acquireCodec().receive(offset, length);
    this.#releaseCodec();
  }

  #acquireCodec(): ServerCodec {
    if (this.#codec !== undefined) return this.#codec;
    const codec = (this.#protocol ?? this.#useProtocol(this.#pools.http1 ?? this.#pools.http2!)).codecs.take();
    this.#codec = codec;
    codec.serve(this, this);
    return codec;
  }

  /** Releases the codec if it has no state. */
  #releaseCodec(): void {
    const codec = this.#codec;
    if (codec === undefined || !codec.isAtRest) return;
    this.#codec = undefined;
    this.#protocol!.codecs.release(codec);
  }

  // ── Moving to another process ────────────────────────────────────────────────────────────────────────────────────

  /** Possible only between two requests. The received part of the next one moves too. */
  prepareHandOver(): PreparedHandOver | undefined {
    const codec = this.#codec;
    const canMove = this.#shouldHandOver && this.#streams === undefined && codec?.isBetweenRequests !== false;
    if (!canMove || !this.socket.transport.freeze(this.socket.id)) {
      codec?.startRequests();
      return undefined;
    }
    const { pressure } = this.manager.thread.memory;
    pressure.waiting.remove(this);
    this.clocks.end();
    return {
      ids: [this.socket.id],
      progress: {
        requests: this.#requests,
        activeMs: this.clocks.activeMs,
        requestStartMs: this.clocks.requestStartMs,
      },
      input: codec?.copyBuffered() ?? this.#beginning ?? NOTHING,
      resume: () => this.#resume(),
      release: () => this.#release(),
    };
  }

  /** Processes the part of the next request that the previous process had received. */
  processInput(input: Uint8Array): void {
    const { memory } = this.manager.thread;
    // In pieces, so that each fits in a turn's scratch.
    for (let at = 0; at < input.length && !this.socket.isClosed; at += MAX_PIECE_BYTES) {
      const part = input.subarray(at, at + MAX_PIECE_BYTES);
      const offset = memory.scratch(part.length);
      memory.bytes.set(part, offset);
      this.#receive(offset, part.length);
    }
  }

  /** Whether the connection should move to another process at the next opportunity. */
  get #shouldHandOver(): boolean {
    return (
      this.socket.drain.handOverQueue !== undefined &&
      !this.socket.hasHandOverFailed &&
      !this.#isMultiplexed &&
      !this.#closesAfterResponse &&
      !this.#endedByPeer
    );
  }

  #stopForHandOver(): void {
    const handOverQueue = this.socket.drain.handOverQueue!;
    if (!handOverQueue.hasRoom) return handOverQueue.add(this.socket);
    this.#acquireCodec().holdRequests();
    handOverQueue.ready(this.socket);
  }

  #resume(): void {
    this.socket.transport.thaw(this.socket.id);
    if (this.#codec?.isAwaitingRoom === true) this.onRoom();
    this.#resumeTimeouts();
    this.#codec?.startRequests();
  }

  #release(): void {
    const { http } = this.manager.stats;
    this.#codec?.destroy();
    http.decrement(HttpStats.at.downstream_cx_active);
    if (this.#protocol !== undefined) http.decrement(this.#protocol.connectionsActive);
    this.socket.release();
  }

  // ── ClockedConnection: called by the clocks ──────────────────────────────────────────────────────────────────────

  /** Resumes the timeouts. Input that arrived during the move is received before a timeout is checked. */
  #resumeTimeouts(): void {
    this.clocks.begin();
    this.socket.transport.defer(this.socket.id, () => {
      if (this.clocks.isScheduled) this.clocks.check();
    });
  }

  wakeWithin(timeoutMs: number): void {
    this.clocks.wakeWithin(timeoutMs);
  }

  get isClosed(): boolean {
    return this.socket.isClosed;
  }

  get hasRequests(): boolean {
    return this.#streams !== undefined;
  }

  get isUnused(): boolean {
    return this.#protocol === undefined && this.#beginning === undefined;
  }

  get codec(): ServerCodec | undefined {
    return this.#codec;
  }

  checkRequests(now: number): number {
    let remaining = Number.POSITIVE_INFINITY;
    this.#forEachStream((stream) => (remaining = Math.min(remaining, stream.checkClocks(now))));
    return remaining;
  }

  checkCodec(now: number): number {
    return this.#codec?.check(now) ?? Number.POSITIVE_INFINITY;
  }

  headTimedOut({ answer }: HeadTimeout): void {
    this.#acquireCodec().refuseNext(answer);
  }

  beginDrain(): void {
    this.#closesAfterResponse = true;
    if (this.isUnused) this.close();
    else this.#codec?.announceClose();
  }

  close(): void {
    this.#codec?.refuseStreams();
    this.onClose(false);
  }

  // ── The end ──────────────────────────────────────────────────────────────────────────────────────────────────────

  #countClose(amidRequest = this.#streams !== undefined): void {
    const { http } = this.manager.stats;
    const { at } = HttpStats;
    const isRemote = this.#endedByPeer;
    http.increment(isRemote ? at.downstream_cx_destroy_remote : at.downstream_cx_destroy_local);
    if (!amidRequest) return;
    http.increment(at.downstream_cx_destroy_active_rq);
    http.increment(isRemote ? at.downstream_cx_destroy_remote_active_rq : at.downstream_cx_destroy_local_active_rq);
    if (isRemote) this.#device?.closedByPeer.increment();
  }

  /** Ends everything except the socket: counters, timers, the codec with its streams. */
  #end(): void {
    const { stats, thread } = this.manager;
    this.clocks.end();
    if (!thread.memory.pressure.waiting.isEmpty) thread.memory.pressure.waiting.remove(this);
    this.#codec?.destroy();
    this.#countReceived(this.socket.withheldBytes);
    stats.http.increment(HttpStats.at.downstream_cx_destroy);
    stats.http.decrement(HttpStats.at.downstream_cx_active);
    if (this.#protocol !== undefined) stats.http.decrement(this.#protocol.connectionsActive);
    if (this.socket.chain.isTls) stats.http.decrement(HttpStats.at.downstream_cx_ssl_active);
    const lengthMs = Math.floor(thread.clock.monotonicMs - this.socket.startMonotonicMs);
    stats.http.record(HttpStats.at.downstream_cx_length_ms, lengthMs);
    this.#device?.lengthMs.record(lengthMs);
  }
}

const CLIENT_LEFT = ResponseFlag.DownstreamConnectionTermination;

/** A client's reset, and faults of the client that reset its request (CVE-2025-8671). */
const RESET_BY_CLIENT = ResponseFlag.DownstreamRemoteReset | ResponseFlag.DownstreamProtocolError;
/** Envoy's defaults of overload.premature_reset_min_stream_lifetime_seconds and overload.premature_reset_total_stream_count. */
const EARLY_RESET_MS = 1000;
const EARLY_RESETS_OF = 500;

/** The name of HTTP/2 in ALPN. As in Envoy, any other one stands for HTTP/1. */
const ALPN_HTTP2 = 'h2';

/** The bytes by which Envoy recognizes HTTP/2. */
const PREFACE_START = new TextEncoder().encode('PRI * HTTP/2');

const NOTHING = new Uint8Array(0);

/** Maximum bytes of one piece. */
const MAX_PIECE_BYTES = 64 * 1024;
