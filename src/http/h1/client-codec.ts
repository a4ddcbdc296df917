// The client's end of an HTTP/1 connection: one request at a time, its response read strictly.

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
import { contentLengthOf, saysChunked } from './head/framing.js';
import { HeadKind } from './head/head-parser.js';
import { Tail } from './lines.js';
import { SKIP_CODING, SKIP_CONNECTION, SKIP_LENGTH, sendRequestHead } from './serializer.js';

/** When the server ends the connection before a response is complete, the stream is reset; onEnded() follows. */
export class H1ClientCodec extends H1Connection<ResponseDecoder> implements ClientCodec, RequestEncoder {
  // Not a #field: methods of the base class that are compiled into one function for both codecs would look it up by name.
  private readonly events: ClientCodecEvents;

  /** Of the request that waits for its response. */
  #isHeadRequest = false;
  #isConnect = false;
  #isUpgrade = false;
  /** The connection goes on after this exchange. */
  #canReuse = true;
  /** When it began (Memory.step). */
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

  /** A request has begun and its exchange is not over. */
  get hasStream(): boolean {
    return this.decoder !== undefined;
  }

  get protocol(): Protocol {
    return Protocol.Http11;
  }

  get freeStreams(): number {
    return this.hasStream || this.isClosed ? 0 : 1;
  }

  /** Begins a request; the one before must be over. */
  newStream(decoder: ResponseDecoder): RequestEncoder {
    if (this.decoder !== undefined || this.isClosed) throw new Error('the HTTP/1 connection is not free for a request');
    this.decoder = decoder;
    this.reading = Reading.Head;
    this.writing = Writing.Head;
    this.#isUpgrade = false;
    this.#isConnect = false;
    this.#canReuse = true;
    this.#beginning = this.memory.step;
    return this;
  }

  override receive(offset: number, length: number): void {
    // What was on its way before the request went out is no answer to it, however much it looks like one.
    if (this.decoder !== undefined && this.#beginning >= this.memory.turnStart) this.fail(H1Error.Unrequested);
    else super.receive(offset, length);
  }

  headers(headers: HeaderBlock, endStream: boolean): void {
    if (this.writing !== Writing.Head) return;
    this.#isHeadRequest = headers.method === Method.Head;
    this.#isConnect = headers.method === Method.Connect;
    const maySwitch = headers.upgrade && !endStream;
    // What the request asked for may have been taken out of it: then the host is not asked, and has nothing to agree to.
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
        if (!saysChunked(headers)) {
          skip |= SKIP_CODING;
          tail = Tail.Chunked;
        }
        this.writing = Writing.Chunked;
      }
    }
    sendRequestHead(this.sink, this.shared, headers, skip, tail);
    if (endStream) this.completeWriting();
  }

  /** Gives the stream up; its decoder hears nothing more. */
  reset(_reason: ResetReason): void {
    if (this.decoder === undefined) return;
    const isUntouched = this.writing === Writing.Head && this.reading === Reading.Head && this.bufferedBytes === 0;
    let end = this.reading === Reading.Complete ? StreamEnd.Complete : StreamEnd.GivenUp;
    if (this.writing === Writing.Raw && this.reading === Reading.Raw) end = StreamEnd.CutOff;
    this.#finish(isUntouched && !this.ended, end);
  }

  protected override onHead(): void {
    const head = this.head!;
    const decoder = this.decoder!;
    const { status } = head;
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
      // Refused tunnels end the request: nothing was sent behind its head and body.
      if (this.writing === Writing.Raw || (this.#isUpgrade && this.hasSentLength)) this.writing = Writing.Complete;
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
    // Nobody asked for these bytes. A response that was complete stays so, but nothing more is read from this server.
    this.#canReuse = false;
    if (this.decoder === undefined) this.fail(H1Error.Unrequested);
    return false;
  }

  protected override onReadComplete(): void {
    this.#settle();
  }

  protected override onWriteComplete(): void {
    if ((this.#isUpgrade || this.#isConnect) && this.reading === Reading.Raw) this.events.onHalfClose?.();
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
      this.decoder!.onData(0, 0, true);
    }
    if (this.reading === Reading.Complete && this.decoder !== undefined) {
      this.#settle();
      return;
    }
    const { decoder } = this;
    this.reading = Reading.Closed;
    this.writing = Writing.Complete;
    this.forgetStream();
    decoder?.onReset(ResetReason.ConnectionTermination, undefined);
    this.dropInput();
    this.dropHead();
    if (!this.isDestroyed) this.events.onEnded();
  }

  /** Prepares for the body of the response; tells whether there is one. */
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
    this.#canReuse = false;
    this.reading = Reading.Raw;
    // What is left of a body are bytes like others now.
    if (this.writing === Writing.Length) this.writing = Writing.Raw;
    this.decoder!.onHeaders(this.head!, false);
  }

  /** Ends the exchange when both directions are done; a connection that ends anyway need not wait for the request. */
  #settle(): void {
    if (this.isRunning || this.reading !== Reading.Complete || this.decoder === undefined) return;
    if (this.writing === Writing.Complete) this.#finish(this.#canReuse);
    else if (!this.#canReuse) this.#finish(false);
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
 * Length of the body that comes before a switch of protocols. Its field is in the head again when it was taken out: a host that does
 * not switch would take the body for requests.
 */
function bodyBeforeSwitch(headers: HeaderBlock): number {
  const { bodyKind, contentLength } = headers;
  const length = contentLengthOf(headers);
  if (length >= 0 || bodyKind !== BodyKind.Length || contentLength === 0) return length;
  headers.add(CONTENT_LENGTH, String(contentLength));
  return contentLength;
}

/** Methods whose requests say how long their content is even when there is none (RFC 9110 section 8.6). */
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
