// The client's end of an HTTP/1 connection. It sends one request at a time and parses responses strictly.

import { Protocol } from '../../access-log/stream/stream-info.js';
import { ConnectionHeader, headerKey } from '../../common/text/header-names.js';
import type { Memory } from '../../io/memory.js';
import { type ClientCodec, type ClientCodecEvents, StreamEnd } from '../codec/connections.js';
import { DEFAULT_HTTP1_OPTIONS, type Http1Options } from '../codec/options.js';
import {
  type ByteSink,
  type CodecError,
  type RequestEncoder,
  ResetReason,
  type ResponseDecoder,
} from '../codec/streams.js';
import { BodyKind, type HeaderBlock, Method } from '../headers/header-block.js';
import { H1Connection, Reading, Writing } from './connection.js';
import { H1Error } from './errors.js';
import { contentLengthOf, isPlainChunked } from './head/framing.js';
import { HeadKind } from './head/head-parser.js';
import { Tail } from './lines.js';
import { SKIP_CODING, SKIP_CONNECTION, SKIP_LENGTH, sendRequestHead } from './serializer.js';

/** If the host ends the connection before a response is complete, the stream is reset and onEnded() follows. */
export class H1ClientCodec extends H1Connection<ResponseDecoder> implements ClientCodec, RequestEncoder {
  // Not a #field: methods of the base class that are compiled into one function for both codecs would look it up by name.
  private readonly events: ClientCodecEvents;

  /** Properties of the current request. */
  #isHeadRequest = false;
  #isConnect = false;
  #isUpgrade = false;
  /** The host has switched: raw bytes go both ways. */
  #isTunnel = false;
  /** The host has ended its direction of a tunnel first. */
  #isEndedByHost = false;
  /** The host has refused the tunnel of a request that is not complete: the exchange ends with the response. */
  #isRefused = false;
  /** The connection can be reused after this exchange. */
  #canReuse = true;
  /** The host has sent bytes after the response. */
  #hasSurplus = false;
  #protocol = Protocol.Http11;
  /** Memory.step when the request began. */
  #beginning = 0;

  constructor(
    memory: Memory,
    sink: ByteSink,
    events: ClientCodecEvents,
    options: Http1Options = DEFAULT_HTTP1_OPTIONS,
  ) {
    super(memory, options, HeadKind.Response, Reading.Complete);
    this.sink = sink;
    this.events = events;
    this.writing = Writing.Complete;
  }

  /** A request has begun and its exchange has not finished. */
  get hasStream(): boolean {
    return this.decoder !== undefined;
  }

  /** The version of the host's last response, as far as there was one. */
  get protocol(): Protocol {
    return this.#protocol;
  }

  get freeStreams(): number {
    return this.hasStream || this.isClosed ? 0 : 1;
  }

  /** Begins a request. Throws unless the previous exchange has finished. */
  newStream(decoder: ResponseDecoder): RequestEncoder {
    if (this.decoder !== undefined || this.isClosed) throw new Error('the HTTP/1 connection is not free for a request');
    this.decoder = decoder;
    this.reading = Reading.Head;
    this.writing = Writing.Head;
    this.#isUpgrade = false;
    this.#isConnect = false;
    this.#isTunnel = this.#isRefused = false;
    this.#canReuse = true;
    this.#hasSurplus = false;
    this.#beginning = this.memory.step;
    this.bytes.reset();
    return this;
  }

  override receive(offset: number, length: number): void {
    // Bytes that arrived before the request was sent are not its response.
    if (this.decoder !== undefined && this.#beginning >= this.memory.turnStart) this.fail(H1Error.Unrequested);
    else super.receive(offset, length);
  }

  headers(headers: HeaderBlock, endStream: boolean): void {
    if (this.writing !== Writing.Head) return;
    this.#isHeadRequest = headers.method === Method.Head;
    this.#isConnect = headers.method === Method.Connect;
    const maySwitch = headers.upgrade && !endStream;
    // A filter may have removed the Upgrade field: the request then asks for no upgrade, and the host must not accept one.
    this.#isUpgrade = maySwitch && headers.findId(ConnectionHeader.Upgrade) >= 0;
    let skip = SKIP_CONNECTION;
    let tail: number = Tail.None;
    if (maySwitch || this.#isConnect) {
      const length = maySwitch ? bodyBeforeSwitch(headers) : 0;
      skip |= SKIP_CODING;
      if (length > 0) this.writeLength(length);
      else {
        this.writing = Writing.Raw;
        skip |= SKIP_LENGTH;
      }
      if (this.#isUpgrade) tail = Tail.Upgrade;
    } else {
      const length = contentLengthOf(headers);
      if (length >= 0) {
        skip |= SKIP_CODING;
        this.writeLength(length);
      } else if (endStream) {
        skip |= SKIP_CODING | SKIP_LENGTH;
        if (mayHaveContent(headers.method)) tail = Tail.NoContent;
        this.writeLength(0);
      } else {
        skip |= SKIP_LENGTH;
        if (!isPlainChunked(headers)) {
          skip |= SKIP_CODING;
          tail = Tail.Chunked;
        }
        this.writing = Writing.Chunked;
      }
    }
    sendRequestHead(this.sink, this.shared, headers, skip, tail, this.bytes, this.limits.nameCase);
    if (endStream) this.completeWriting();
  }

  /** Abandons the stream. Its decoder gets no further callback. */
  reset(reason: ResetReason): void {
    if (this.decoder === undefined) return;
    const isUntouched = this.writing === Writing.Head && this.reading === Reading.Head && this.bufferedBytes === 0;
    const isComplete = this.reading === Reading.Complete && this.writing === Writing.Complete;
    let end = isComplete ? StreamEnd.Complete : StreamEnd.Abandoned;
    // The caller of a POST may use both bodies as a tunnel too.
    const isOpen = this.#isTunnel || (this.writing === Writing.Complete && this.reading !== Reading.Head);
    if (isOpen && reason === ResetReason.LocalClose) end = StreamEnd.Closed;
    else if (this.#isTunnel && this.writing === Writing.Raw) end = StreamEnd.CutOff;
    this.#finish(isUntouched && !this.ended, end);
  }

  protected override onHead(): void {
    const head = this.head!;
    const decoder = this.decoder!;
    const { status } = head;
    this.countHead(head);
    this.#protocol = head.minorVersion === 0 ? Protocol.Http10 : Protocol.Http11;
    if (this.writing === Writing.Head) {
      this.fail(H1Error.Unrequested);
    } else if (status === 101) {
      if (this.#isUpgrade) this.#openTunnel();
      else this.fail(H1Error.UpgradeNotRequested);
    } else if (status < 200) {
      decoder.onInformational(head);
      if (!this.isClosed) this.dropHead();
    } else if (this.#isConnect && status < 300) {
      this.#openTunnel();
    } else {
      // A refused tunnel ends the request: nothing follows its head and body.
      if (this.writing === Writing.Raw || (this.#isUpgrade && this.hasSentLength)) {
        this.writing = Writing.Complete;
        this.#isRefused = true;
      }
      if (head.close) {
        this.#canReuse = false;
        this.events.onCloseNotice?.();
      }
      const hasBody = this.#readBody(head);
      decoder.onHeaders(head, !hasBody);
      if (!hasBody && !this.isClosed) this.onReadComplete();
    }
  }

  protected override onSurplus(): boolean {
    // Unrequested bytes. A complete response remains valid, but nothing more is read from this host.
    this.#canReuse = false;
    if (this.decoder === undefined) this.fail(H1Error.Unrequested);
    else if (!this.#hasSurplus) {
      this.#hasSurplus = true;
      this.events.onSurplus?.();
    }
    return false;
  }

  protected override onReadComplete(): void {
    this.#settle();
  }

  protected override onWriteComplete(): void {
    if (this.#isTunnel && this.reading === Reading.Raw) this.events.onHalfClose?.();
    this.#settle();
  }

  protected override onWriteBroken(): void {
    const { decoder } = this;
    this.forgetStream();
    decoder?.onReset(ResetReason.LocalReset, undefined);
    this.#finish(false);
  }

  protected override onHandled(): void {
    this.#settle();
  }

  protected override onInvalid(error: CodecError): void {
    const { decoder } = this;
    this.writing = Writing.Complete;
    this.forgetStream();
    decoder?.onReset(ResetReason.ProtocolError, error);
    this.dropHead();
    if (!this.isDestroyed) this.events.onProtocolError(error);
  }

  protected override onEnd(): void {
    this.#canReuse = false;
    if (this.reading === Reading.Raw) {
      this.reading = Reading.Complete;
      this.#isEndedByHost = this.writing !== Writing.Complete;
      this.decoder!.onData(0, 0, true);
    }
    if (this.reading === Reading.Complete && this.decoder !== undefined) {
      this.#settle();
      return;
    }
    this.interrupted();
  }

  check(): number {
    return Number.POSITIVE_INFINITY;
  }

  /** HTTP/1 has no pings. */
  readonly idlePingMs = 0;

  requestPing(): boolean {
    return false;
  }

  interrupted(): void {
    if (this.isClosed) return;
    const { decoder } = this;
    const isCutOff = this.#isAmidResponse;
    this.reading = Reading.Closed;
    this.writing = Writing.Complete;
    this.forgetStream();
    decoder?.onReset(isCutOff ? ResetReason.ProtocolError : ResetReason.ConnectionTermination, undefined);
    this.dropInput();
    this.dropHead();
    if (!this.isDestroyed) this.events.onEnded(isCutOff);
  }

  /** A response has begun that is incomplete by its own framing. */
  get #isAmidResponse(): boolean {
    switch (this.reading) {
      case Reading.Head:
        return this.bufferedBytes > 0;
      case Reading.Length:
      case Reading.Chunked:
      case Reading.Trailers:
        return true;
      default:
        return false;
    }
  }

  /** Sets the reading state for the body of the response. Returns whether there is one. */
  #readBody(head: HeaderBlock): boolean {
    this.reading = Reading.Complete;
    if (this.#isHeadRequest || head.status === 204 || head.status === 304) return false;
    switch (head.bodyKind) {
      case BodyKind.Chunked:
        this.readChunked();
        return true;
      case BodyKind.Length:
        if (head.contentLength === 0) return false;
        this.readLength(head.contentLength);
        return true;
      default:
        this.#canReuse = false;
        this.reading = Reading.Raw;
        return true;
    }
  }

  #openTunnel(): void {
    this.#isTunnel = true;
    this.#isEndedByHost = false;
    this.#canReuse = false;
    this.reading = Reading.Raw;
    // The rest of a body is sent as raw bytes from here on.
    if (this.writing === Writing.Length) this.writing = Writing.Raw;
    this.decoder!.onHeaders(this.head!, false);
  }

  /**
   * Ends the exchange when both directions are complete. A connection that will not be reused does not wait for the request, unless it is a
   * tunnel, whose directions end one by one.
   */
  #settle(): void {
    if (this.isRunning || this.reading !== Reading.Complete || this.decoder === undefined) return;
    if (this.writing === Writing.Complete) {
      if (this.#isRefused) this.#endRefused();
      this.#finish(this.#canReuse, this.#completeEnd);
    } else if (!this.#canReuse && !this.#isTunnel) this.#finish(false, StreamEnd.Abandoned);
  }

  /** The caller has not ended the request. It must not send more of it, because the connection may serve another one. */
  #endRefused(): void {
    const { decoder } = this;
    this.forgetStream();
    decoder?.onReset(ResetReason.LocalReset, undefined);
  }

  get #completeEnd(): StreamEnd {
    if (!this.#isTunnel) return StreamEnd.Complete;
    return this.#isEndedByHost ? StreamEnd.EndedByHost : StreamEnd.EndedByClient;
  }

  #finish(reusable: boolean, end = StreamEnd.Complete): void {
    this.reading = reusable ? Reading.Complete : Reading.Closed;
    this.writing = Writing.Complete;
    this.forgetStream();
    if (!reusable) this.dropInput();
    this.dropHead();
    if (!this.isDestroyed) this.events.onStreamComplete(reusable, end);
  }
}

const CONTENT_LENGTH = headerKey('content-length');

/**
 * Returns the length of the body that precedes a protocol switch. Restores the Content-Length field if it was removed: a host that does not
 * switch would parse the body as requests.
 */
function bodyBeforeSwitch(headers: HeaderBlock): number {
  const { bodyKind, contentLength } = headers;
  const length = contentLengthOf(headers);
  if (length >= 0 || bodyKind !== BodyKind.Length || contentLength === 0) return length;
  headers.add(CONTENT_LENGTH, String(contentLength));
  return contentLength;
}

/** Returns whether requests with this method have a Content-Length even without content (RFC 9110 section 8.6). */
function mayHaveContent(method: Method): boolean {
  switch (method) {
    case Method.Post:
    case Method.Put:
    case Method.Patch:
    case Method.Options:
    case Method.Other:
      return true;
    default:
      return false;
  }
}
