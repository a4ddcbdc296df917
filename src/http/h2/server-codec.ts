// The server's end of an HTTP/2 connection.

import type { Memory } from '../../io/memory.js';
import { Http2Stats } from '../../stats/layouts/http.js';
import { ExchangeEnd, type ServerCodec, type ServerCodecEvents } from '../codec/connections.js';
import type { Http2Options } from '../codec/options.js';
import { type ByteSink, type CodecError, type RequestDecoder, ResetReason } from '../codec/streams.js';
import { BodyKind, type HeaderBlock, Method } from '../headers/header-block.js';
import { dropUnderscoredNames, hasUnderscoredNames } from '../normalization/header-underscores.js';
import type { StepPool } from '../step-pool.js';
import { isPlainPath } from './characters.js';
import { type CodecStats, H2Connection } from './connection.js';
import { INVALID_PATH, SECTION_ERRORS, UNDERSCORE, WRONG_LENGTH } from './errors.js';
import { ErrorCode, MAX_STREAM_ID } from './frames.js';
import { Section, SectionError } from './head-builder.js';
import type { H2ServerStream } from './server-stream.js';
import type { H2Stream } from './stream.js';

export class H2ServerCodec extends H2Connection implements ServerCodec {
  readonly #pool: StepPool<H2ServerStream>;
  #events!: ServerCodecEvents;
  /** The last stream that the client has opened. */
  #lastStream = 0;
  /** The streams that the client has skipped last. */
  #skippedFrom = 0;
  #skippedTo = 0;
  /** Streams above this one are not served: the client knows from GOAWAY. */
  #lastServed = MAX_STREAM_ID;

  constructor(memory: Memory, options: Http2Options, stats: CodecStats, pool: StepPool<H2ServerStream>) {
    super(memory, options, stats, true);
    this.#pool = pool;
  }

  serve(sink: ByteSink, events: ServerCodecEvents): void {
    this.#events = events;
    this.open(sink);
  }

  // ── ServerCodec ──────────────────────────────────────────────────────────────────────────────────────────────────

  /** The state of an HTTP/2 connection lasts as long as the connection. */
  get isAtRest(): boolean {
    return false;
  }

  /** The state cannot travel to another process. */
  get isBetweenRequests(): boolean {
    return false;
  }

  get awaitsClient(): boolean {
    return this.isBlocked;
  }

  get holdsNoRequest(): boolean {
    return this.openSection === 0;
  }

  get isMultiplexed(): boolean {
    return true;
  }

  copyBuffered(): Uint8Array {
    return new Uint8Array(0);
  }

  holdRequests(): void {
    // Only connections that may travel to another process are held.
  }

  startRequests(): void {}

  get isAwaitingRoom(): boolean {
    return false;
  }

  resumeHead(): boolean {
    return true;
  }

  refuseHead(): void {}

  announceClose(): void {
    if (!this.isClosed) this.#goAway(MAX_STREAM_ID);
  }

  refuseStreams(): void {
    if (this.isClosed || this.#lastServed < MAX_STREAM_ID) return;
    this.#lastServed = this.#lastStream;
    this.#goAway(this.#lastStream);
  }

  refuseNext(error: CodecError): void {
    if (this.isClosed) return;
    const decoder = this.#beginUnread();
    decoder?.onInvalid(error, undefined);
    if (this.isClosed) return;
    this.#goAway(this.#lastStream);
    this.isClosed = true;
    this.#events.onClose(false, ExchangeEnd.None);
  }

  abandonNext(): boolean {
    const decoder = this.#beginUnread();
    decoder?.onReset(ResetReason.ConnectionTermination, undefined);
    return decoder !== undefined;
  }

  /** Begins the request whose header section is incomplete, if there is one. */
  #beginUnread(): RequestDecoder | undefined {
    const id = this.openSection;
    if (id <= this.#lastStream) return undefined;
    this.#lastStream = id;
    const stream = this.#pool.take();
    this.openStream(stream, id);
    stream.isHeadRequest = false;
    stream.isEndReceived = true;
    return (stream.decoder = this.#events.newStream(stream));
  }

  #goAway(lastStream: number): void {
    this.stats.increment(Http2Stats.at.goaway_sent);
    this.writer.goAway(lastStream, ErrorCode.NoError);
  }

  // ── H2Connection ─────────────────────────────────────────────────────────────────────────────────────────────────

  protected override get lastPeerStream(): number {
    return this.#lastStream;
  }

  protected override isIdle(streamId: number): boolean {
    return streamId > this.#lastStream || (streamId & 1) === 0;
  }

  protected override onSection(streamId: number, at: number, end: number, endStream: boolean): void {
    const stream = this.streams.get(streamId) as H2ServerStream | undefined;
    if (stream !== undefined) {
      this.countSection(stream);
      return this.#onTrailers(stream, at, end, endStream);
    }
    if ((streamId & 1) === 0) return this.fail(ErrorCode.ProtocolError, 'HEADERS: even stream');
    if (streamId <= this.#lastStream) return this.#onClosedStream(streamId, at, end);
    if (streamId > this.#lastStream + 2) {
      this.#skippedFrom = this.#lastStream;
      this.#skippedTo = streamId;
    }
    this.#lastStream = streamId;
    if (streamId > this.#lastServed) this.skipSection(at, end);
    else if (this.streams.size < this.options.maxStreams) this.#onRequest(streamId, at, end, endStream);
    else if (this.skipSection(at, end)) {
      this.stats.increment(Http2Stats.at.stream_refused_errors);
      this.sendReset(streamId, ErrorCode.RefusedStream);
    }
  }

  #onClosedStream(streamId: number, at: number, end: number): void {
    if (!this.skipSection(at, end) || this.resets.has(streamId)) return;
    const wasSkipped = streamId > this.#skippedFrom && streamId < this.#skippedTo;
    this.fail(wasSkipped ? ErrorCode.ProtocolError : ErrorCode.StreamClosed, 'HEADERS: stream closed');
  }

  #onRequest(streamId: number, at: number, end: number, endStream: boolean): void {
    const head = this.shared.blocks.take();
    let error = this.decodeSection(at, end, head, Section.Request);
    if (error === undefined) return head.drop();
    const stream = this.#pool.take();
    this.openStream(stream, streamId);
    stream.head = head;
    stream.hasReceivedHead = true;
    stream.isEndReceived = endStream;
    stream.isUpgrade = head.upgrade;
    stream.isConnect = head.method === Method.Connect;
    stream.isHeadRequest = head.method === Method.Head;
    if (head.bodyKind === BodyKind.Length) {
      stream.expectedBytes = head.contentLength;
      if (error === SectionError.None && endStream && head.contentLength > 0) error = SectionError.InvalidMessage;
    }
    const decoder = this.#events.newStream(stream);
    if (!stream.isOpen) return;
    stream.decoder = decoder;
    if (error !== SectionError.None) this.#refuse(stream, error);
    else if (this.options.underscores !== 'ALLOW' && this.#hasRejectedName(head))
      this.failStream(stream, ErrorCode.InternalError, UNDERSCORE);
    else if (isPlainPath(this.memory.bytes, head.pathStart, head.pathEnd)) this.#deliverHead(stream, head);
    else decoder.onInvalid(INVALID_PATH, head);
  }

  /** As in HTTP/1, the head is not the end of a request for a tunnel: like bytes, the end waits until the tunnel is accepted. */
  #deliverHead(stream: H2ServerStream, head: HeaderBlock): void {
    const { decoder, isEndReceived } = stream;
    const isForTunnel = stream.isUpgrade || stream.isConnect;
    if (isEndReceived && isForTunnel) stream.receive(0, 0);
    decoder!.onHeaders(head, isEndReceived && !isForTunnel);
  }

  /** Handles names with underscores. Returns whether the request is rejected. */
  #hasRejectedName(head: HeaderBlock): boolean {
    if (!hasUnderscoredNames(head)) return false;
    const { at } = Http2Stats;
    const isRejected = this.options.underscores === 'REJECT_REQUEST';
    if (isRejected) this.stats.increment(at.requests_rejected_with_underscores_in_headers);
    else {
      const dropped = dropUnderscoredNames(head);
      for (let i = 0; i < dropped; i++) this.stats.increment(at.dropped_headers_with_underscores);
    }
    return isRejected;
  }

  #onTrailers(stream: H2ServerStream, at: number, end: number, endStream: boolean): void {
    if (stream.isEndReceived) {
      if (this.skipSection(at, end))
        this.failStream(stream, ErrorCode.StreamClosed, SECTION_ERRORS[SectionError.InvalidMessage]);
      return;
    }
    const trailers = this.shared.blocks.take();
    let error = this.decodeSection(at, end, trailers, Section.Trailers);
    if (error === SectionError.None && !endStream) error = SectionError.InvalidMessage;
    if (error !== SectionError.None) {
      trailers.drop();
      if (error !== undefined) this.#refuse(stream, error);
      return;
    }
    if (stream.expectedBytes > 0) {
      trailers.drop();
      return this.failStream(stream, ErrorCode.ProtocolError, WRONG_LENGTH);
    }
    this.stats.increment(Http2Stats.at.trailers);
    this.deliverTrailers(stream, trailers);
  }

  /** Ends a request whose header section is not valid, and the connection unless it is configured to continue. */
  #refuse(stream: H2ServerStream, error: SectionError): void {
    const isLimit = error === SectionError.TooLarge || error === SectionError.TooManyFields;
    const { at } = Http2Stats;
    if (!isLimit) this.stats.increment(at.rx_messaging_error);
    else this.stats.increment(error === SectionError.TooLarge ? at.header_list_size_too_large : at.header_overflow);
    if (isLimit) return this.failStream(stream, ErrorCode.InternalError, SECTION_ERRORS[error]);
    if (this.options.keepsConnectionOnInvalidMessage)
      return this.failStream(stream, ErrorCode.ProtocolError, SECTION_ERRORS[error]);
    const { decoder } = stream;
    stream.decoder = undefined;
    decoder?.onReset(ResetReason.ProtocolError, SECTION_ERRORS[error]);
    this.fail(ErrorCode.ProtocolError, 'invalid message');
  }

  protected override isFlushing(stream: H2Stream): boolean {
    return stream.isEndQueued;
  }

  override settle(stream: H2Stream): void {
    if (!stream.isEndSent || !stream.isOpen || stream.isHalfClosed || stream.isEndHeld) return;
    if (stream.isEndReceived) this.closeStream(stream);
    // RFC 9113, section 8.1: the rest of the request is not needed.
    else this.resetStream(stream, ErrorCode.NoError);
  }

  protected override onStreamClosed(stream: H2Stream): void {
    this.#pool.release(stream as H2ServerStream);
    if (this.streams.size === 0 && !this.isClosed) this.#events.onIdle();
  }

  refuseTunnel(): void {
    // Clients of this side send no requests.
  }

  protected override onGoAway(): void {
    // The client accepts no pushed streams, which this side never sends.
  }

  protected override onPeerSettings(): void {}

  override onPeerEnded(): void {
    const end = this.streams.size > 0 || this.abandonNext() ? ExchangeEnd.Broken : ExchangeEnd.None;
    this.isClosed = true;
    this.resetStreams(ResetReason.ConnectionTermination, undefined);
    this.#events.onClose(false, end);
  }

  protected override onFailed(error: CodecError, abort: boolean, hadStreams: boolean): void {
    if (!hadStreams) this.#events.onProtocolError?.(error);
    this.#events.onClose(abort, ExchangeEnd.None);
  }
}
