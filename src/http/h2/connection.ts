// The common part of both ends of an HTTP/2 connection: what received frames mean, settings, receive windows, and the table of streams.
// FrameInput reads the frames, and StreamSender sends what streams have.
//
// The connection itself is always read, because window updates and pings must be handled. A stream that is not read withholds its window
// updates instead.

import { HeldBytes } from '../../io/held-bytes.js';
import type { Memory } from '../../io/memory.js';
import type { CounterSlot } from '../../stats/layout.js';
import { Http2Stats } from '../../stats/layouts/http.js';
import type { Scope } from '../../stats/thread-stats.js';
import type { ConnectionCodec } from '../codec/connections.js';
import type { Http2Options } from '../codec/options.js';
import { type ByteSink, type CodecError, ResetReason } from '../codec/streams.js';
import type { HeaderBlock } from '../headers/header-block.js';
import {
  CONNECTION_ERROR,
  EMPTY_FRAMES_FLOOD,
  FLOW_CONTROL,
  KEEPALIVE_TIMEOUT,
  OUTBOUND_CONTROL_FLOOD,
  OUTBOUND_FLOOD,
  PRIORITY_FLOOD,
  REMOTE_RESET,
  WINDOW_UPDATE_FLOOD,
  WRONG_LENGTH,
} from './errors.js';
import { FloodGuard } from './floods.js';
import { FrameInput, type ReceivingConnection } from './frame-input.js';
import { frameFault } from './frame-rules.js';
import { FrameWriter } from './frame-writer.js';
import {
  ACK,
  DEFAULT_WINDOW,
  ErrorCode,
  Flag,
  FRAME_HEADER_BYTES,
  FrameType,
  readUint31,
  readUint32,
} from './frames.js';
import type { Section } from './head-builder.js';
import { HpackDecoder } from './hpack/decoder.js';
import { Keepalive } from './keepalive.js';
import { ResetStreams } from './reset-streams.js';
import { SectionFragments } from './section-fragments.js';
import { ownSettings, PeerSettings } from './settings.js';
import { type H2Shared, h2Shared } from './shared.js';
import type { H2Stream, StreamCarrier } from './stream.js';
import { type SendingConnection, StreamSender } from './stream-sender.js';

/** Steps of FrameInput that a header section costs besides its own. */
const HEAD_STEPS = 15;

/** The scope of Http2Stats. */
export type CodecStats = Pick<Scope, 'increment' | 'decrement'>;

export abstract class H2Connection implements ConnectionCodec, StreamCarrier, ReceivingConnection, SendingConnection {
  protected readonly memory: Memory;
  protected readonly options: Http2Options;
  protected readonly stats: CodecStats;
  protected readonly shared: H2Shared;
  protected readonly streams = new Map<number, H2Stream>();
  protected readonly resets = new ResetStreams();
  protected readonly floods: FloodGuard;
  protected readonly peer = new PeerSettings();
  protected writer!: FrameWriter;
  protected sink!: ByteSink;
  isClosed = false;
  /** The stream of an incomplete header section; 0 if there is none. */
  protected openSection = 0;
  readonly #isServer: boolean;
  readonly #input: FrameInput;
  readonly #decoder: HpackDecoder;
  readonly #sender: StreamSender;
  readonly #keepalive: Keepalive;
  #hasPeerSettings = false;
  #awaitsTurn = false;

  #receiveWindow: number;
  #consumed = 0;
  /** The stream of the DATA frame that is being received; undefined if its payload is ignored. */
  #dataStream: H2Stream | undefined;
  #dataEndsStream = false;
  readonly #fragments: SectionFragments;
  #sectionFlags = 0;
  /** Size of the frames of the last section. */
  #sectionBytes = 0;

  constructor(memory: Memory, options: Http2Options, stats: CodecStats, isServer: boolean) {
    this.memory = memory;
    this.options = options;
    this.stats = stats;
    this.shared = h2Shared(memory);
    this.floods = new FloodGuard(options);
    this.#isServer = isServer;
    this.#input = new FrameInput(this, memory, isServer);
    this.#decoder = new HpackDecoder(memory, Math.max(4096, options.tableBytes));
    this.#sender = new StreamSender(this, memory, this.peer, this.floods, options.usesHuffman);
    this.#fragments = new SectionFragments(memory, options.maxHeadBytes);
    this.#keepalive = new Keepalive(options, this.shared.random);
    this.#receiveWindow = options.connectionWindow;
  }

  /** Sends what a connection begins with, after the client's preface. */
  protected open(sink: ByteSink): void {
    this.sink = sink;
    this.writer = new FrameWriter(this.memory, sink, (isControl) => this.countOutbound(isControl));
    this.#input.open(sink);
    this.#sender.open(sink, this.writer);
    this.writer.settings(ownSettings(this.options, this.#isServer));
    const increment = this.options.connectionWindow - DEFAULT_WINDOW;
    if (increment > 0) this.writer.windowUpdate(0, increment);
  }

  // ── For the two ends ─────────────────────────────────────────────────────────────────────────────────────────────

  /**
   * Called for the complete header section of a stream, encoded in memory[at, end). decodeSection() must be called. An exception ends the
   * connection.
   */
  protected abstract onSection(streamId: number, at: number, end: number, endStream: boolean): void;
  /** Returns whether the peer may not send frames of the stream yet. */
  protected abstract isIdle(streamId: number): boolean;
  protected abstract onGoAway(lastStreamId: number, code: ErrorCode): void;
  /** Called when the peer's settings have changed. */
  protected abstract onPeerSettings(): void;
  /** Called when a direction of a stream may be complete. Closes or resets the stream if nothing more is needed of it. */
  abstract settle(stream: H2Stream): void;
  /** Returns whether nothing but the peer's windows keeps the stream: the flush timeout applies. */
  protected abstract isFlushing(stream: H2Stream): boolean;
  /** Called when a stream was removed from the table. */
  protected abstract onStreamClosed(stream: H2Stream): void;
  /** Called when the peer has half-closed and everything before that was handled. */
  abstract onPeerEnded(): void;
  /**
   * Called when the connection must be closed; streams have been reset. `abort`: nothing more can be sent. `hadStreams`: their resets have
   * reported `error`.
   */
  protected abstract onFailed(error: CodecError, abort: boolean, hadStreams: boolean): void;

  // ── ConnectionCodec ──────────────────────────────────────────────────────────────────────────────────────────────

  receive(offset: number, length: number): void {
    if (!this.isClosed) this.#input.receive(offset, length);
  }

  end(): void {
    if (!this.isClosed) this.#input.end();
  }

  blocked(): void {
    this.#sender.isBlocked = true;
    for (const stream of this.streams.values()) this.#sender.blockWriting(stream);
  }

  drained(): void {
    this.#sender.isBlocked = false;
    this.#sender.flush();
    for (const stream of this.streams.values()) this.#sender.unblockWriting(stream);
  }

  protected get isBlocked(): boolean {
    return this.#sender.isBlocked;
  }

  takeTurn(): void {
    this.#awaitsTurn = false;
    if (this.isClosed) return;
    this.#input.takeTurn();
    if (!this.isClosed) this.#sender.flush();
  }

  get bufferedBytes(): number {
    return this.#input.bufferedBytes + this.#fragments.bytes;
  }

  get retainedBytes(): number {
    let sum = this.#input.retainedBytes + this.#fragments.retainedBytes;
    for (const stream of this.streams.values()) sum += stream.retainedBytes;
    return sum;
  }

  /** Sends a ping that is due, and ends the connection and streams whose peer does not react. See ServerCodec.check(). */
  check(now: number): number {
    if (this.isClosed) return Number.POSITIVE_INFINITY;
    const left = this.#keepalive.check(now);
    if (this.#keepalive.isPingDue) this.writer.ping();
    else if (this.#keepalive.isPeerLost) {
      this.stats.increment(Http2Stats.at.keepalive_timeout);
      this.isClosed = true;
      this.#endFailed(KEEPALIVE_TIMEOUT, true);
      return left;
    }
    return Math.min(left, this.#checkQueues(now));
  }

  /** See ClientCodec. */
  get idlePingMs(): number {
    return this.options.keepaliveIdleMs;
  }

  requestPing(): boolean {
    return this.#keepalive.request();
  }

  /** Resets streams whose message is complete, but whose peer accepts nothing of it for too long. */
  #checkQueues(now: number): number {
    const { flushTimeoutMs } = this.options;
    let left = Number.POSITIVE_INFINITY;
    if (flushTimeoutMs === 0) return left;
    for (const stream of this.streams.values()) {
      if (stream.queue === undefined) continue;
      left = Math.min(left, flushTimeoutMs);
      if (!this.isFlushing(stream)) continue;
      const { bytes } = stream.queue;
      if (stream.stuckBytes !== bytes) {
        stream.stuckBytes = bytes;
        stream.stuckSinceMs = now;
      }
      const streamLeft = stream.stuckSinceMs + flushTimeoutMs - now;
      if (streamLeft > 0) left = Math.min(left, streamLeft);
      else {
        this.stats.increment(Http2Stats.at.tx_flush_timeout);
        this.resetStream(stream, ErrorCode.Cancel);
      }
    }
    return left;
  }

  destroy(): void {
    this.isClosed = true;
    this.resetStreams(ResetReason.ConnectionTermination, undefined);
    this.#releaseInput();
  }

  // ── Ending ───────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Ends the connection because of the peer's fault (RFC 9113, section 5.4.1). */
  protected fail(code: ErrorCode, text: string, error = CONNECTION_ERROR): void {
    if (this.isClosed) return;
    this.isClosed = true;
    this.writer.goAway(this.lastPeerStream, code, text);
    this.stats.increment(Http2Stats.at.goaway_sent);
    this.#endFailed(error, false);
  }

  /** Ends the connection because of a flood, whose frames are not answered. */
  protected failByFlood(counter: CounterSlot, error: CodecError): void {
    if (this.isClosed) return;
    this.stats.increment(counter);
    this.fail(ErrorCode.EnhanceYourCalm, 'flood', error);
  }

  /** What a reset by the peer means. */
  protected resetReason(code: ErrorCode): ResetReason {
    return code === ErrorCode.RefusedStream ? ResetReason.RefusedStream : ResetReason.RemoteReset;
  }

  /** The last stream of the peer that was handled, for GOAWAY. */
  protected abstract readonly lastPeerStream: number;

  #endFailed(error: CodecError, abort: boolean): void {
    const hadStreams = this.streams.size > 0;
    this.resetStreams(ResetReason.ProtocolError, error);
    this.#releaseInput();
    this.onFailed(error, abort, hadStreams);
  }

  protected resetStreams(reason: ResetReason, error: CodecError | undefined): void {
    for (const stream of this.streams.values()) {
      const { decoder } = stream;
      stream.decoder = undefined;
      decoder?.onReset(reason, error);
      this.closeStream(stream);
    }
  }

  #releaseInput(): void {
    this.#input.close();
    this.#dataStream = undefined;
    this.#releaseSection();
  }

  // ── Received frames ──────────────────────────────────────────────────────────────────────────────────────────────

  onFramingError(code: ErrorCode, text: string): void {
    this.fail(code, text);
  }

  onFrameHeader(type: number, flags: number, streamId: number, length: number): boolean {
    if (!this.#hasPeerSettings) {
      if (type !== FrameType.Settings || (flags & ACK) !== 0)
        return this.#refuse(ErrorCode.ProtocolError, 'SETTINGS expected');
      this.#hasPeerSettings = true;
    }
    if (this.openSection !== 0 && (type !== FrameType.Continuation || streamId !== this.openSection))
      return this.#refuse(ErrorCode.ProtocolError, 'CONTINUATION expected');
    if (type === FrameType.Data) return this.#beginData(flags, streamId, length);
    const fault = frameFault(type, flags, streamId, length);
    if (fault !== undefined) return this.#refuse(fault.code, fault.text);
    switch (type) {
      case FrameType.RstStream:
        return !this.isIdle(streamId) || this.#refuse(ErrorCode.ProtocolError, 'RST_STREAM: stream in idle');
      case FrameType.WindowUpdate:
        if (streamId === 0 || !this.isIdle(streamId)) return true;
        return this.#refuse(ErrorCode.ProtocolError, 'WINDOW_UPDATE: stream in idle');
      case FrameType.Continuation:
        return this.openSection !== 0 || this.#refuse(ErrorCode.ProtocolError, 'CONTINUATION: unexpected');
      default:
        return true;
    }
  }

  onFrame(type: number, flags: number, streamId: number, at: number, end: number): void {
    const { bytes } = this.memory;
    switch (type) {
      case FrameType.Headers:
        return this.#onHeaders(flags, streamId, at, end);
      case FrameType.Continuation:
        return this.#onContinuation(flags, at, end);
      case FrameType.Priority:
        if (this.floods.countPriority())
          return this.failByFlood(Http2Stats.at.inbound_priority_frames_flood, PRIORITY_FLOOD);
        if (readUint31(bytes, at) === streamId) this.fail(ErrorCode.ProtocolError, 'stream depends on itself');
        return;
      case FrameType.RstStream:
        return this.#onReset(streamId, readUint32(bytes, at));
      case FrameType.Settings:
        return this.#onSettings(flags, at, end);
      case FrameType.Ping:
        if ((flags & ACK) === 0) this.writer.pingAck(at);
        else this.#keepalive.answered();
        return;
      case FrameType.GoAway:
        return this.onGoAway(readUint31(bytes, at), readUint32(bytes, at + 4));
      case FrameType.WindowUpdate:
        return this.#onWindowUpdate(streamId, readUint31(bytes, at));
    }
  }

  #refuse(code: ErrorCode, text: string): false {
    this.fail(code, text);
    return false;
  }

  #onHeaders(flags: number, streamId: number, at: number, end: number): void {
    const { bytes } = this.memory;
    const endStream = (flags & Flag.EndStream) !== 0;
    this.#sectionBytes = FRAME_HEADER_BYTES + end - at;
    if (this.floods.countContent(at === end && !endStream)) return this.#emptyFlood();
    if ((flags & Flag.Padded) !== 0) {
      if (at === end) return this.fail(ErrorCode.FrameSizeError, 'HEADERS: no padding length');
      end -= bytes[at++]!;
    }
    if ((flags & Flag.Priority) !== 0) {
      if (end - at < 5) return this.fail(ErrorCode.FrameSizeError, 'HEADERS: no priority');
      if (readUint31(bytes, at) === streamId) return this.fail(ErrorCode.ProtocolError, 'stream depends on itself');
      at += 5;
    }
    if (end < at) return this.fail(ErrorCode.ProtocolError, 'HEADERS: invalid padding');
    if ((flags & Flag.EndHeaders) !== 0) return this.#section(streamId, at, end, endStream);
    this.openSection = streamId;
    this.#sectionFlags = flags;
    this.#isKept(this.#fragments.begin(at, end));
  }

  #onContinuation(flags: number, at: number, end: number): void {
    const isLast = (flags & Flag.EndHeaders) !== 0;
    this.#sectionBytes += FRAME_HEADER_BYTES + end - at;
    const isFlood = this.#fragments.isFloodAfter(end - at);
    if (this.floods.countContent(at === end && !isLast) || isFlood) return this.#emptyFlood();
    if (!this.#isKept(this.#fragments.add(at, end)) || !isLast) return;
    const { openSection: streamId } = this;
    const { bytes, start } = this.#fragments;
    // The bytes stay until the turn ends.
    this.#releaseSection();
    this.#section(streamId, start, start + bytes, (this.#sectionFlags & Flag.EndStream) !== 0);
  }

  #section(streamId: number, at: number, end: number, endStream: boolean): void {
    this.#input.charge(HEAD_STEPS);
    this.onSection(streamId, at, end, endStream);
  }

  /** Counts the bytes of the section that is being received. */
  protected countSection({ bytes }: H2Stream): void {
    bytes.received += this.#sectionBytes;
    bytes.headersReceived += this.#sectionBytes;
  }

  /**
   * Decodes a section into `head`. Returns the builder's error, or undefined if the connection has ended. `head` is undefined for a section
   * that is ignored.
   */
  protected decodeSection(at: number, end: number, head: HeaderBlock, section: Section): number | undefined {
    const { builder } = this.shared;
    builder.begin(head, section, this.options);
    if (!this.#decoder.decode(at, end, builder)) {
      this.fail(ErrorCode.CompressionError, '');
      return undefined;
    }
    builder.finish();
    return builder.error;
  }

  /** Decodes and discards a section. Returns false if the connection has ended. */
  protected skipSection(at: number, end: number): boolean {
    if (this.#decoder.decode(at, end, NOWHERE)) return true;
    this.fail(ErrorCode.CompressionError, '');
    return false;
  }

  /** Ends the connection if something is wrong with a fragment. Returns whether it was kept. */
  #isKept(mistake: string): boolean {
    if (mistake !== '') this.fail(ErrorCode.EnhanceYourCalm, mistake);
    return mistake === '';
  }

  #releaseSection(): void {
    this.#fragments.release();
    this.openSection = 0;
  }

  #emptyFlood(): void {
    this.failByFlood(Http2Stats.at.inbound_empty_frames_flood, EMPTY_FRAMES_FLOOD);
  }

  #onReset(streamId: number, code: ErrorCode): void {
    const stream = this.streams.get(streamId);
    if (stream === undefined) return;
    this.stats.increment(Http2Stats.at.rx_reset);
    const { decoder } = stream;
    stream.decoder = undefined;
    decoder?.onReset(this.resetReason(code), REMOTE_RESET);
    this.closeStream(stream);
  }

  #onSettings(flags: number, at: number, end: number): void {
    if ((flags & ACK) !== 0) {
      this.#decoder.setLimit(this.options.tableBytes);
      return;
    }
    const before = this.peer.initialWindow;
    const error = this.peer.apply(this.memory.bytes, at, end, !this.#isServer);
    if (error !== ErrorCode.NoError) return this.fail(error, 'SETTINGS');
    const change = this.peer.initialWindow - before;
    if (change !== 0 && !this.#shiftWindows(change)) return;
    this.#sender.setTableLimit(this.peer.headerTableBytes);
    this.writer.settingsAck();
    if (change > 0) this.#sender.flush();
    if (!this.isClosed) this.onPeerSettings();
  }

  #shiftWindows(change: number): boolean {
    for (const stream of this.streams.values()) {
      if (this.#sender.shift(stream, change)) continue;
      this.fail(ErrorCode.FlowControlError, 'SETTINGS: window overflow');
      return false;
    }
    return true;
  }

  // ── Windows ──────────────────────────────────────────────────────────────────────────────────────────────────────

  #onWindowUpdate(streamId: number, increment: number): void {
    if (this.floods.countWindowUpdate())
      return this.failByFlood(Http2Stats.at.inbound_window_update_frames_flood, WINDOW_UPDATE_FLOOD);
    if (streamId === 0) {
      if (increment === 0) return this.fail(ErrorCode.ProtocolError, 'WINDOW_UPDATE: 0');
      if (!this.#sender.widen(increment)) this.fail(ErrorCode.FlowControlError, 'WINDOW_UPDATE: overflow');
      return;
    }
    const stream = this.streams.get(streamId);
    if (stream === undefined) return;
    if (increment === 0) return this.failStream(stream, ErrorCode.ProtocolError, CONNECTION_ERROR);
    if (!this.#sender.shift(stream, increment))
      return this.failStream(stream, ErrorCode.FlowControlError, CONNECTION_ERROR);
    if (stream.isWaiting) this.#sender.flush();
  }

  #beginData(flags: number, streamId: number, length: number): boolean {
    this.#dataStream = undefined;
    if (streamId === 0) return this.#refuse(ErrorCode.ProtocolError, 'DATA: stream 0');
    if (this.isIdle(streamId)) return this.#refuse(ErrorCode.ProtocolError, 'DATA: stream in idle');
    this.#dataEndsStream = (flags & Flag.EndStream) !== 0;
    const isEmpty = length === 0 && !this.#dataEndsStream;
    if (this.floods.countContent(isEmpty)) {
      this.#emptyFlood();
      return false;
    }
    this.#receiveWindow -= length;
    if (this.#receiveWindow < 0) return this.#refuse(ErrorCode.FlowControlError, 'DATA: window exceeded');
    const stream = this.streams.get(streamId);
    if (stream === undefined) {
      if (!this.resets.has(streamId)) this.sendReset(streamId, ErrorCode.StreamClosed);
      return !this.isClosed;
    }
    if (stream.isEndReceived) return this.#refuse(ErrorCode.StreamClosed, 'DATA: stream in half-closed(remote)');
    stream.receiveWindow -= length;
    stream.bytes.received += FRAME_HEADER_BYTES + length;
    if (stream.receiveWindow < 0) this.failStream(stream, ErrorCode.FlowControlError, FLOW_CONTROL);
    else if (!stream.hasReceivedHead) this.failStream(stream, ErrorCode.ProtocolError, CONNECTION_ERROR);
    else this.#dataStream = stream;
    return !this.isClosed;
  }

  onPadding(_streamId: number, length: number): void {
    if (this.#dataStream === undefined) this.#consumedOnConnection(length);
    else this.consumed(this.#dataStream, length);
  }

  onDataPart(_streamId: number, at: number, end: number, isLast: boolean): void {
    const stream = this.#dataStream;
    const length = end - at;
    if (stream === undefined || !stream.isOpen) return this.#consumedOnConnection(length);
    const isEnd = isLast && this.#dataEndsStream;
    if (isLast) this.#dataStream = undefined;
    if (stream.expectedBytes >= 0) {
      stream.expectedBytes -= length;
      if (stream.expectedBytes < 0 || (isEnd && stream.expectedBytes > 0)) {
        this.#consumedOnConnection(length);
        return this.failStream(stream, ErrorCode.ProtocolError, WRONG_LENGTH);
      }
    }
    if (length === 0 && !isEnd) return;
    if (isEnd) stream.isEndReceived = true;
    if (!stream.receive(at, length)) {
      this.#consumedOnConnection(length);
      this.failStream(stream, ErrorCode.EnhanceYourCalm, CONNECTION_ERROR);
    } else if (isEnd && stream.held === undefined) this.settle(stream);
  }

  consumed(stream: H2Stream, length: number): void {
    this.#consumedOnConnection(length);
    if (!stream.isOpen || stream.isEndReceived || this.isClosed) return;
    stream.consumedBytes += length;
    if (stream.consumedBytes * 2 < this.options.streamWindow) return;
    this.writer.windowUpdate(stream.id, stream.consumedBytes);
    stream.receiveWindow += stream.consumedBytes;
    stream.consumedBytes = 0;
  }

  #consumedOnConnection(length: number): void {
    this.#consumed += length;
    if (this.#consumed * 2 < this.options.connectionWindow || this.isClosed) return;
    this.writer.windowUpdate(0, this.#consumed);
    this.#receiveWindow += this.#consumed;
    this.#consumed = 0;
  }

  // ── Streams ──────────────────────────────────────────────────────────────────────────────────────────────────────

  protected openStream(stream: H2Stream, id: number): void {
    stream.begin(this, id, this.peer.initialWindow, this.options.streamWindow);
    // A server opens it for the head that has arrived.
    if (this.#isServer) this.countSection(stream);
    this.streams.set(id, stream);
    this.floods.streamOpened();
    this.stats.increment(Http2Stats.at.streams_active);
  }

  /** Removes a stream and releases it. */
  protected closeStream(stream: H2Stream): void {
    if (!stream.isOpen) return;
    this.streams.delete(stream.id);
    this.#sender.forget(stream);
    const unread = stream.held?.bytes ?? 0;
    stream.release();
    if (unread > 0) this.#consumedOnConnection(unread);
    this.stats.decrement(Http2Stats.at.streams_active);
    this.onStreamClosed(stream);
  }

  resetStream(stream: H2Stream, code: ErrorCode): void {
    stream.decoder = undefined;
    this.sendReset(stream.id, code);
    this.closeStream(stream);
  }

  /** Resets a stream because of the peer's fault. */
  failStream(stream: H2Stream, code: ErrorCode, error: CodecError): void {
    const { decoder } = stream;
    stream.decoder = undefined;
    this.sendReset(stream.id, code);
    decoder?.onReset(ResetReason.ProtocolError, error);
    this.closeStream(stream);
  }

  /** Passes on trailers, with which the received message ends. Takes over `trailers`. */
  protected deliverTrailers(stream: H2Stream, trailers: HeaderBlock): void {
    stream.isEndReceived = true;
    let hasRoom = true;
    if (trailers.size > 0) hasRoom = stream.receiveTrailers(trailers);
    else {
      trailers.drop();
      stream.receive(0, 0);
    }
    if (!hasRoom) this.failStream(stream, ErrorCode.EnhanceYourCalm, CONNECTION_ERROR);
    else if (stream.held === undefined) this.settle(stream);
  }

  protected sendReset(streamId: number, code: ErrorCode): void {
    if (this.isClosed) return;
    this.resets.add(streamId);
    this.stats.increment(Http2Stats.at.tx_reset);
    this.writer.reset(streamId, code);
  }

  // ── Sending ──────────────────────────────────────────────────────────────────────────────────────────────────────

  sendHead(stream: H2Stream, headers: HeaderBlock, section: Section, endStream: boolean): void {
    this.#sender.sendHead(stream, headers, section, endStream);
  }

  sendBody(stream: H2Stream, offset: number, length: number, endStream: boolean): void {
    this.#sender.sendBody(stream, offset, length, endStream);
  }

  sendTrailers(stream: H2Stream, trailers: HeaderBlock): void {
    this.#sender.sendTrailers(stream, trailers);
  }

  abstract refuseTunnel(stream: H2Stream): void;

  newHead(): HeaderBlock {
    return this.shared.blocks.take();
  }

  newQueue(): HeldBytes {
    return new HeldBytes(this.memory);
  }

  countOutbound(isControl: boolean): void {
    if (!this.floods.countOutbound(isControl) || this.isClosed) return;
    if (this.sink.pendingBytes === 0) return this.floods.settleOutbound();
    const { at } = Http2Stats;
    const { isControlExceeded } = this.floods;
    this.isClosed = true;
    this.stats.increment(isControlExceeded ? at.outbound_control_flood : at.outbound_flood);
    this.#endFailed(isControlExceeded ? OUTBOUND_CONTROL_FLOOD : OUTBOUND_FLOOD, true);
  }

  onNoRoom(): void {
    this.fail(ErrorCode.EnhanceYourCalm, 'memory is short');
  }

  requestTurn(): void {
    if (this.#awaitsTurn) return;
    this.#awaitsTurn = true;
    this.sink.requestTurn();
  }
}

/** Ignores all fields. */
const NOWHERE = { isFull: true, field: () => {} };
