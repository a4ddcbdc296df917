// The client's end of an HTTP/2 connection.

import { ConnectionHeader, headerKey } from '../../common/text/header-names.js';
import type { Memory } from '../../io/memory.js';
import { Http2Stats } from '../../stats/layouts/http.js';
import { type ClientCodec, type ClientCodecEvents, StreamEnd } from '../codec/connections.js';
import type { Http2Options } from '../codec/options.js';
import {
  type ByteSink,
  type CodecError,
  type RequestEncoder,
  ResetReason,
  type ResponseDecoder,
} from '../codec/streams.js';
import { BodyKind, type HeaderBlock } from '../headers/header-block.js';
import type { StepPool } from '../step-pool.js';
import type { H2ClientStream } from './client-stream.js';
import { type CodecStats, H2Connection } from './connection.js';
import { CONNECTION_ERROR, SECTION_ERRORS, WRONG_LENGTH } from './errors.js';
import { ErrorCode, MAX_STREAM_ID, PREFACE } from './frames.js';
import { Section, SectionError } from './head-builder.js';
import type { H2Stream } from './stream.js';

/** The most streams that may be open before the host has sent its limit. */
const FIRST_STREAMS = 100;

const NOT_MODIFIED = 304;
const NO_CONTENT = 204;
const SWITCHING_PROTOCOLS = 101;
const OK = 200;

export class H2ClientCodec extends H2Connection implements ClientCodec {
  readonly #pool: StepPool<H2ClientStream>;
  readonly #events: ClientCodecEvents;
  /** The stream of the next request. */
  #nextStream = 1;
  /** Requests whose head has not been sent have negative numbers: streams are numbered in the order of their heads. */
  #nextUnsent = -1;
  #streamLimit: number;
  /** The host accepts no more streams. */
  #isEnding = false;

  constructor(
    memory: Memory,
    sink: ByteSink,
    events: ClientCodecEvents,
    options: Http2Options,
    stats: CodecStats,
    pool: StepPool<H2ClientStream>,
    expectedStreams: number,
  ) {
    super(memory, options, stats, false);
    this.#events = events;
    this.#pool = pool;
    this.#streamLimit = Math.min(expectedStreams, FIRST_STREAMS);
    const start = memory.scratch(PREFACE.length);
    memory.bytes.set(PREFACE, start);
    sink.send(start, PREFACE.length);
    this.open(sink);
  }

  get freeStreams(): number {
    if (this.isClosed || this.#isEnding) return 0;
    return Math.max(0, this.#streamLimit - this.streams.size);
  }

  newStream(decoder: ResponseDecoder): RequestEncoder {
    const stream = this.#pool.take();
    this.openStream(stream, this.#nextUnsent--);
    stream.decoder = decoder;
    if (this.#nextStream + 2 * this.streams.size >= MAX_STREAM_ID) this.#isEnding = true;
    return stream;
  }

  override sendHead(stream: H2Stream, headers: HeaderBlock, section: Section, endStream: boolean): void {
    if (section === Section.Request) {
      this.streams.delete(stream.id);
      stream.id = this.#nextStream;
      stream.sendWindow = this.peer.initialWindow;
      this.#nextStream += 2;
      this.streams.set(stream.id, stream);
    }
    super.sendHead(stream, headers, section, endStream);
  }

  refuseTunnel(stream: H2Stream): void {
    const { decoder } = stream;
    stream.decoder = undefined;
    decoder?.onReset(ResetReason.ProtocolError, undefined);
    this.closeStream(stream);
  }

  interrupted(): void {
    this.onPeerEnded();
  }

  // ── H2Connection ─────────────────────────────────────────────────────────────────────────────────────────────────

  /** The host opens no streams. */
  protected override get lastPeerStream(): number {
    return 0;
  }

  protected override isIdle(streamId: number): boolean {
    return streamId >= this.#nextStream || (streamId & 1) === 0;
  }

  protected override sendReset(streamId: number, code: ErrorCode): void {
    // The host does not know a stream whose head was not sent.
    if (streamId > 0) super.sendReset(streamId, code);
  }

  protected override onSection(streamId: number, at: number, end: number, endStream: boolean): void {
    if (this.isIdle(streamId)) return this.fail(ErrorCode.ProtocolError, 'HEADERS: stream in idle');
    const stream = this.streams.get(streamId) as H2ClientStream | undefined;
    if (stream === undefined) {
      this.skipSection(at, end);
      return;
    }
    this.countSection(stream);
    if (stream.isEndReceived) {
      if (this.skipSection(at, end)) this.failStream(stream, ErrorCode.StreamClosed, CONNECTION_ERROR);
    } else if (stream.hasReceivedHead) this.#onTrailers(stream, at, end, endStream);
    else this.#onResponse(stream, at, end, endStream);
  }

  #onResponse(stream: H2ClientStream, at: number, end: number, endStream: boolean): void {
    const head = this.shared.blocks.take();
    let error = this.decodeSection(at, end, head, Section.Response);
    if (error === undefined) return head.drop();
    const { status } = head;
    if (error === SectionError.None && status < 200 && (endStream || status === SWITCHING_PROTOCOLS))
      error = SectionError.InvalidMessage;
    if (error !== SectionError.None) {
      head.drop();
      return this.#refuse(stream, error);
    }
    if (status < 200) {
      stream.decoder?.onInformational(head);
      return head.drop();
    }
    stream.head = head;
    stream.hasReceivedHead = true;
    stream.isTunnel = stream.isUpgrade ? status === OK : stream.isConnect && status < 300;
    if (stream.isTunnel) becomeTunnel(head, stream);
    const hasBody = !stream.isHeadRequest && status !== NO_CONTENT && status !== NOT_MODIFIED;
    if (hasBody && head.bodyKind === BodyKind.Length) {
      stream.expectedBytes = head.contentLength;
      if (endStream && head.contentLength > 0) return this.failStream(stream, ErrorCode.ProtocolError, WRONG_LENGTH);
    }
    stream.isEndReceived = endStream;
    stream.decoder?.onHeaders(head, endStream);
    if (endStream) this.settle(stream);
  }

  #onTrailers(stream: H2ClientStream, at: number, end: number, endStream: boolean): void {
    const trailers = this.shared.blocks.take();
    let error = this.decodeSection(at, end, trailers, Section.Trailers);
    if (error === undefined) return trailers.drop();
    if (error === SectionError.None && !endStream) error = SectionError.InvalidMessage;
    if (error !== SectionError.None) {
      trailers.drop();
      return this.#refuse(stream, error);
    }
    if (stream.expectedBytes > 0) {
      trailers.drop();
      return this.failStream(stream, ErrorCode.ProtocolError, WRONG_LENGTH);
    }
    this.stats.increment(Http2Stats.at.trailers);
    this.deliverTrailers(stream, trailers);
  }

  /** Ends a request whose response is invalid, and the connection unless it is configured to continue. */
  #refuse(stream: H2ClientStream, error: SectionError): void {
    const isLimit = error === SectionError.TooLarge || error === SectionError.TooManyFields;
    const { at } = Http2Stats;
    if (!isLimit) this.stats.increment(at.rx_messaging_error);
    else this.stats.increment(error === SectionError.TooLarge ? at.header_list_size_too_large : at.header_overflow);
    if (isLimit || this.options.keepsConnectionOnInvalidMessage)
      return this.failStream(stream, ErrorCode.ProtocolError, SECTION_ERRORS[error]);
    this.fail(ErrorCode.ProtocolError, 'invalid message', SECTION_ERRORS[error]);
  }

  /** The exchange ends with the response: the rest of a request is not needed then, except in a tunnel. */
  override settle(stream: H2Stream): void {
    if (!stream.isEndReceived || stream.held !== undefined || !stream.isOpen) return;
    if (stream.isEndSent) this.closeStream(stream);
    else if (!stream.isTunnel) this.#endEarly(stream);
    // The queued rest of a tunnel is sent, but its decoder may serve another request by then.
    else if (stream.isEndQueued) {
      stream.decoder = undefined;
      this.#events.onCheckDue?.();
    }
  }

  /** As in Envoy, the timeouts of its caller end any other stream. */
  protected override isFlushing(stream: H2Stream): boolean {
    return stream.isEndQueued && stream.decoder === undefined;
  }

  /** A caller that has not ended the request must not send more of it, because the object may serve another one. */
  #endEarly(stream: H2Stream): void {
    const { decoder } = stream;
    stream.decoder = undefined;
    this.sendReset(stream.id, ErrorCode.Cancel);
    if (!stream.isEndQueued) decoder?.onReset(ResetReason.LocalReset, undefined);
    this.closeStream(stream);
  }

  protected override onStreamClosed(stream: H2Stream): void {
    const end = stream.isEndReceived ? StreamEnd.Complete : StreamEnd.Abandoned;
    this.#pool.release(stream as H2ClientStream);
    if (!this.isClosed) this.#events.onStreamComplete(true, end);
  }

  /** As in Envoy, a host that finds a request wrong violates the protocol itself. */
  protected override resetReason(code: ErrorCode): ResetReason {
    if (code === ErrorCode.ConnectError) return ResetReason.ConnectError;
    return code === ErrorCode.ProtocolError ? ResetReason.ProtocolError : super.resetReason(code);
  }

  protected override onGoAway(lastStreamId: number): void {
    const isFirst = !this.#isEnding;
    this.#isEnding = true;
    if (isFirst) this.#events.onCloseNotice?.();
    // RFC 9113, section 6.8: these were not processed.
    for (const stream of [...this.streams.values()]) {
      if (stream.id <= lastStreamId && stream.id > 0) continue;
      const { decoder } = stream;
      stream.decoder = undefined;
      decoder?.onReset(ResetReason.RefusedStream, undefined);
      this.closeStream(stream);
    }
  }

  protected override onPeerSettings(): void {
    const limit = Math.min(this.options.maxStreams, this.peer.maxStreams);
    if (limit === this.#streamLimit) return;
    this.#streamLimit = limit;
    this.#events.onStreamLimit?.(limit);
  }

  override onPeerEnded(): void {
    if (this.isClosed) return;
    this.isClosed = true;
    this.resetStreams(ResetReason.ConnectionTermination, undefined);
    this.#events.onEnded(false);
  }

  protected override onFailed(error: CodecError): void {
    this.#events.onProtocolError(error);
  }
}

const UPGRADE = headerKey('upgrade');
const CONNECTION = headerKey('connection');

/** Completes the head of a response that accepts a tunnel: its body is raw, and an upgrade has the answer of HTTP/1.1, as in Envoy. */
function becomeTunnel(head: HeaderBlock, { isUpgrade, upgradeType }: H2ClientStream): void {
  head.removeId(ConnectionHeader.ContentLength);
  head.bodyKind = BodyKind.None;
  if (!isUpgrade) return;
  head.status = SWITCHING_PROTOCOLS;
  head.upgrade = true;
  head.add(UPGRADE, upgradeType);
  head.add(CONNECTION, 'upgrade');
}
