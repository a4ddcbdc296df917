// One downstream HTTP connection: passes socket events to the codec and requests to streams, and handles the connection's timeouts.

import { ResponseFlag } from '../../access-log/stream/response-flags.js';
import type { Protocol, StreamInfo } from '../../access-log/stream/stream-info.js';
import type { RoomWaiter } from '../../io/arena/room-queue.js';
import type { BufferedBytes } from '../../io/buffered-bytes.js';
import type { ConnectionSecurity } from '../../io/tls/connection-security.js';
import type { Stall } from '../../io/transport/connection-handler.js';
import type { DownstreamConnection, DownstreamHandler } from '../../listener/downstream-connection.js';
import type { PreparedHandOver } from '../../listener/hand-over.js';
import type { ThreadOverload } from '../../runtime/overload/thread-overload.js';
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
import { OVERLOADED_DISPATCH, TOO_SLOW } from '../streams/stream-answers.js';
import { ActiveRequests } from './active-requests.js';
import { type ClockedConnection, ConnectionClocks, UNSET } from './connection-clocks.js';
import { countClosing, countEnded, countGone, countOpened } from './connection-counts.js';
import { EarlyResets } from './early-resets.js';
import { findProtocol, type ServerProtocols } from './find-protocol.js';
import { type HeadTimeout, refusal } from './head-timeouts.js';
import type { TakenOverRequests } from './taken-over-requests.js';
import type { DeviceStats } from './user-agent-stats.js';

/** Objects that a connection needs only while it is active. */
export interface ServerPools extends ServerProtocols {
  readonly streams: StepPool<ServerStream>;
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
  readonly #active = new ActiveRequests();
  /** All requests that have begun. */
  #requests = 0;
  /** Stats of the client's device type, which its first request determines. */
  #device: DeviceStats | undefined;
  #closesAfterResponse = false;
  /** A load shed point has decided so for the input that is being received. */
  #goesAway = false;
  #endedByPeer = false;
  /** The client has ended its direction of a tunnel first. */
  #wasTunnelEnded = false;
  /** Created by the first turn that the codec requests, usually for a pipelined request. */
  #takeTurn: (() => void) | undefined;
  /** Early resets of a multiplexed connection. */
  #earlyResets: EarlyResets | undefined;

  /** `former`: the state of a connection that another process has served. */
  constructor(
    manager: ManagerContext,
    pools: ServerPools,
    socket: DownstreamConnection,
    takenOver?: TakenOverRequests,
  ) {
    this.manager = manager;
    this.#pools = pools;
    this.socket = socket;
    this.clocks = new ConnectionClocks(this, manager, socket.startMonotonicMs);
    if (takenOver === undefined) {
      this.clocks.begin();
    } else {
      this.#requests = takenOver.requests;
      this.clocks.activeMs = takenOver.activeMs;
      this.clocks.requestStartMs = takenOver.requestStartMs;
      if (takenOver.requests > 0) this.#useProtocol(pools.http1!);
      if (takenOver.isBlocked) this.onBlocked();
      this.#resumeTimeouts();
    }
    countOpened(manager.stats.http, takenOver === undefined, socket.chain.isTls);
  }

  describe(info: StreamInfo): void {
    info.connectionId = this.socket.serial;
    info.scheme = this.scheme;
    info.downstream = this.socket;
    info.connectionStartMs = this.socket.startMonotonicMs;
  }

  get activeRequests(): number {
    return this.#active.count;
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
    if (this.overload !== undefined) this.#checkKeepAlive(this.overload);
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

  #checkKeepAlive(overload: ThreadOverload): void {
    if (this.#closesAfterResponse || this.#shouldHandOver || !overload.disablesKeepAlive()) return;
    this.manager.stats.http.increment(HttpStats.at.downstream_cx_overload_disable_keepalive);
    this.#beginEnd();
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
    this.#active.remove(stream);
    if (stream.isTunnel && !this.#isMultiplexed) this.#wasTunnelEnded = (stream.info.responseFlags & CLIENT_LEFT) !== 0;
    this.#pools.streams.release(stream);
    this.clocks.moved();
    if (this.#earlyResets?.isFloodAfter(stream.info) !== true || this.socket.isClosed) return;
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

  get overload(): ThreadOverload | undefined {
    return this.socket.chain.overload;
  }

  onTimeoutsChanged(): void {
    // The clocks of a connection that is being moved to another process stand still.
    if (this.clocks.isScheduled) this.clocks.hurry();
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
    this.#active.add(stream);
    stream.start(this, encoder, this.#protocol!.requestsTotal, startMs);
    return stream;
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
    if (this.overload !== undefined && this.#shedsInput(this.overload, length)) return;
    if (this.#protocol === undefined && !this.#findProtocol(offset, length)) return;
    if (this.overload !== undefined && this.#shedsDispatch(this.overload, length)) return;
    if (this.#isActive) this.clocks.activeMs = now;
    if (this.#active.first === undefined && (this.clocks.requestStartMs === UNSET || this.#codec?.holdsNoRequest))
      this.clocks.requestStartMs = now;
    this.#countReceived(length);
    const beginning = this.#beginning;
    if (beginning !== undefined) {
      this.#beginning = undefined;
      this.processInput(beginning);
      if (this.socket.isClosed) return;
    }
    this.#receive(offset, length);
    if (this.#goesAway && !this.socket.isClosed) this.#goAway();
  }

  /** After the first input of a connection, which has begun the protocol. */
  #goAway(): void {
    this.#goesAway = false;
    if (!this.#isMultiplexed) return;
    this.#codec?.announceClose();
    this.clocks.beginDrain();
  }

  /** Load shed points for input of any protocol. Returns whether the connection is closed. */
  #shedsInput(overload: ThreadOverload, length: number): boolean {
    if (this.#protocol === undefined && overload.createCodec?.sheds()) {
      this.#countReceived(length);
      this.manager.stats.http.increment(HttpStats.at.downstream_rq_overload_close);
      this.onClose(false);
      return true;
    }
    if (overload.goAwayAndClose?.sheds()) {
      this.#countReceived(length);
      this.#codec?.refuseStreams();
      this.#shedRequests();
      if (!this.socket.isClosed) this.onClose(false);
      return true;
    }
    return false;
  }

  /**
   * Load shed points for input whose protocol is known. Returns whether the input is dropped: requests get an error, and the connection ends.
   */
  #shedsDispatch(overload: ThreadOverload, length: number): boolean {
    if (!this.#closesAfterResponse && overload.goAway?.sheds()) this.#closesAfterResponse = this.#goesAway = true;
    if (this.#isMultiplexed || !overload.http1Dispatch?.sheds()) return false;
    this.#countReceived(length);
    this.manager.stats.http.increment(HttpStats.at.downstream_rq_overload_close);
    if (this.#active.first === undefined) this.#acquireCodec().refuseNext(SHED_INPUT);
    else this.#shedRequests();
    return true;
  }

  /** Ends all requests, with an error where that is still possible. */
  #shedRequests(): void {
    if (this.#active.first === undefined) return;
    this.#active.visit((stream) => {
      if (stream.awaitsRequest) stream.sendLocalReply(OVERLOADED_DISPATCH);
    });
    if (this.#active.first !== undefined) this.#cut(OVERLOADED_DISPATCH.details, ResponseFlag.None);
  }

  /** Bytes show that the connection is in use. On a multiplexed one only requests do: pings keep no connection open. */
  get #isActive(): boolean {
    return !this.#isMultiplexed || this.#active.first !== undefined;
  }

  /** Returns false if the bytes do not show the protocol yet; they are kept then. */
  #findProtocol(offset: number, length: number): boolean {
    const negotiated = this.socket.security?.applicationProtocol ?? '';
    const { bytes } = this.manager.thread.memory;
    const found = findProtocol(this.#pools, negotiated, this.#beginning, bytes, offset, length);
    if (!(found instanceof Uint8Array)) {
      this.#beginProtocol(found);
      return true;
    }
    this.#beginning = found;
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
    if (this.#isMultiplexed) {
      this.#earlyResets = new EarlyResets();
      this.clocks.wakeWithin(this.manager.options.http2.keepaliveIntervalMs);
    }
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
    this.#countClose(hadHead || this.#active.first !== undefined);
    this.#active.visit((stream) => stream.onReset(ResetReason.ConnectionTermination, undefined));
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

  /** Counts unsent responses and requests after them, an incomplete head, or the held part of an incomplete request. */
  stalled(): Stall | undefined {
    const unsent = this.socket.pendingBytes;
    const bytes = unsent + this.#heldForClient(unsent > 0);
    if (bytes === 0) return undefined;
    const movedMs = this.clocks.activeMs;
    const beganMs = this.#active.first?.info.startMonotonicMs ?? this.clocks.requestStartMs;
    const sinceMs = unsent > 0 || beganMs === UNSET ? movedMs : beganMs;
    return { id: this.socket.id, sinceMs, movedMs, bytes, unsent, end: () => this.#endStalled() };
  }

  #heldForClient(isBehindAnswers: boolean): number {
    const received = this.#codec?.retainedBytes ?? 0;
    if (isBehindAnswers || this.#active.first === undefined) return received;
    let awaitsClient = false;
    let held = received;
    this.#active.visit((stream) => {
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
      if (this.#active.first === undefined) return this.onClose(true);
      return this.#cut(TOO_SLOW.details, TOO_SLOW.flags);
    }
    if (this.#active.first !== undefined) {
      return this.#active.visit((stream) => {
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
    if (this.#active.first !== undefined) this.#cut('internal_error', ResponseFlag.None);
    else if (!this.socket.isClosed) this.onClose(true);
  }

  onFilterClose(): void {
    if (this.#active.first !== undefined) return this.onListenerGone();
    this.#countClose();
    this.#end();
  }

  onListenerGone(): void {
    if (this.#active.first === undefined) {
      this.#codec?.refuseStreams();
      return this.onClose(false, ExchangeEnd.Complete);
    }
    this.manager.stats.http.add(HttpStats.at.downstream_rq_rx_reset, this.#active.count);
    const isTunnel = this.#active.first.isTunnel;
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
    this.#active.visit((stream) => stream.abandon(details, flags, reason));
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
    const canMove = this.#shouldHandOver && this.#active.first === undefined && codec?.isBetweenRequests !== false;
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
    this.#codec?.destroy();
    countGone(this.manager.stats.http, this.#protocol);
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
    return this.#active.first !== undefined;
  }

  get isUnused(): boolean {
    return this.#protocol === undefined && this.#beginning === undefined;
  }

  get codec(): ServerCodec | undefined {
    return this.#codec;
  }

  checkRequests(now: number): number {
    let remaining = Number.POSITIVE_INFINITY;
    this.#active.visit((stream) => (remaining = Math.min(remaining, stream.checkClocks(now))));
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

  #countClose(isAmidRequest = this.#active.first !== undefined): void {
    countClosing(this.manager.stats.http, this.#endedByPeer, isAmidRequest);
    if (isAmidRequest && this.#endedByPeer) this.#device?.closedByPeer.increment();
  }

  /** Ends everything except the socket: counters, timers, the codec with its streams. */
  #end(): void {
    const { stats, thread } = this.manager;
    this.clocks.end();
    if (!thread.memory.pressure.waiting.isEmpty) thread.memory.pressure.waiting.remove(this);
    this.#codec?.destroy();
    this.#countReceived(this.socket.withheldBytes);
    const lengthMs = Math.floor(thread.clock.monotonicMs - this.socket.startMonotonicMs);
    countEnded(stats.http, this.#protocol, this.socket.chain.isTls, lengthMs);
    this.#device?.lengthMs.record(lengthMs);
  }
}

const SHED_INPUT: CodecError = { ...refusal(OVERLOADED_DISPATCH), isOverload: true };

const CLIENT_LEFT = ResponseFlag.DownstreamConnectionTermination;

const NOTHING = new Uint8Array(0);

/** Maximum bytes of one piece. */
const MAX_PIECE_BYTES = 64 * 1024;
