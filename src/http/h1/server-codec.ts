// The server's end of an HTTP/1 connection. It reads requests one at a time and writes their responses in order.

import { Protocol } from '../../access-log/stream/stream-info.js';
import { ConnectionHeader } from '../../common/text/header-names.js';
import type { Memory } from '../../io/memory.js';
import { ExchangeEnd, type ServerCodec, type ServerCodecEvents } from '../codec/connections.js';
import { DEFAULT_HTTP1_OPTIONS, type Http1Options } from '../codec/options.js';
import {
  type ByteSink,
  type CodecError,
  type RequestDecoder,
  ResetReason,
  type ResponseEncoder,
} from '../codec/streams.js';
import { BodyKind, type HeaderBlock, Method } from '../headers/header-block.js';
import { H1Connection, Reading, Writing } from './connection.js';
import { H1Error } from './errors.js';
import { contentLengthOf, isPlainChunked } from './head/framing.js';
import { HeadKind } from './head/head-parser.js';
import { Tail } from './lines.js';
import { SKIP_CODING, SKIP_CONNECTION, SKIP_LENGTH, sendResponseHead } from './serializer.js';

/**
 * Upgrade requests (headers.upgrade) and CONNECT arrive with endStream false. After a 101, or a 2xx for CONNECT, onData() and data() carry
 * raw bytes until either side ends; after any other response no data follows. An upgrade request's body of known length is delivered before
 * its response. Sending the last piece of a response may start the next, pipelined request before the call returns.
 */
export class H1ServerCodec extends H1Connection<RequestDecoder> implements ServerCodec, ResponseEncoder {
  // Not a #field: methods of the base class that are compiled into one function for both codecs would look it up by name.
  private events!: ServerCodecEvents;

  /** Properties of the current request. */
  #isHeadRequest = false;
  #isConnect = false;
  #isUpgrade = false;
  #minorVersion = 1;
  /** No request follows the current one. */
  #isLast = false;
  /** The client announced the current request as its last. */
  #isAnnouncedLast = false;
  #holdsRequests = false;
  /** The response is complete only after releaseEnd(). */
  #isEndHeld = false;

  /** The next call must be serve(). */
  constructor(memory: Memory, options: Http1Options = DEFAULT_HTTP1_OPTIONS) {
    super(memory, options, HeadKind.Request, Reading.Head);
  }

  /** Attaches this codec to a connection that begins with a request. The codec must be new, or at rest since an earlier event. */
  serve(sink: ByteSink, events: ServerCodecEvents): void {
    this.sink = sink;
    this.events = events;
    this.bytes.reset();
    this.#isEndHeld = false;
  }

  /**
   * Handles a half-close. Outside of tunnels it ends the current request, because it is indistinguishable from a client that has disconnected; bytes
   * after that request are ignored. In a tunnel each direction ends on its own.
   */
  override end(): void {
    if (this.held === undefined || this.reading === Reading.Raw || !this.hasStream) super.end();
    else this.#breakOff(ResetReason.ConnectionTermination, undefined);
  }

  /** A request has begun and its response is not complete. */
  get hasStream(): boolean {
    return this.decoder !== undefined;
  }

  /** The connection is between two requests and the client has not half-closed: everything buffered belongs to the next request. */
  get isBetweenRequests(): boolean {
    return this.reading === Reading.Head && this.decoder === undefined && !this.ended && !this.isRunning;
  }

  get isMultiplexed(): boolean {
    return false;
  }

  /** The next response announces the end of the connection. */
  announceClose(): void {}

  refuseStreams(): void {}

  check(): number {
    return Number.POSITIVE_INFINITY;
  }

  /** No request begins until the client reads more of the responses that it has been sent. */
  get awaitsClient(): boolean {
    return this.isBlocked;
  }

  /**
   * No state of the last connection is left. Another connection may use the codec from the next event on; until then callers may still be
   * on the stack.
   */
  get isAtRest(): boolean {
    return this.isPristine && !this.#holdsRequests;
  }

  /** Prevents new requests until startRequests(). */
  holdRequests(): void {
    this.#holdsRequests = true;
  }

  startRequests(): void {
    if (!this.#holdsRequests) return;
    this.#holdsRequests = false;
    this.resume();
  }

  /** A request head is waiting until the arena has room. */
  get isAwaitingRoom(): boolean {
    return this.aside !== undefined;
  }

  /** Resumes the waiting head, which may have to wait again. Returns false when there is still no room for the bytes received so far. */
  resumeHead(): boolean {
    return this.takeFromAside();
  }

  /** Refuses the request whose head is waiting. */
  refuseHead(): void {
    if (this.isAwaitingRoom) this.fail(H1Error.NoMemory);
  }

  /** Sends 100 Continue to a client that waits before it sends its body. */
  sendContinue(): void {
    if (this.writing !== Writing.Head || this.decoder === undefined || this.#minorVersion === 0) return;
    const { start, length } = this.shared.lines.continue;
    this.sink.send(start, length);
    this.bytes.sent += length;
  }

  informational(headers: HeaderBlock): void {
    if (this.writing !== Writing.Head || this.decoder === undefined || this.#minorVersion === 0) return;
    const skip = SKIP_CONNECTION | SKIP_LENGTH | SKIP_CODING;
    sendResponseHead(this.sink, this.shared, headers, 1, skip, Tail.None, this.bytes, this.limits.nameCase);
  }

  get protocol(): Protocol {
    return this.#minorVersion === 0 ? Protocol.Http10 : Protocol.Http11;
  }

  endConnection(): void {
    this.#isLast = true;
  }

  headers(headers: HeaderBlock, endStream: boolean): void {
    if (this.writing !== Writing.Head || this.decoder === undefined) return;
    const { status } = headers;
    if (status === 101 || (this.#isConnect && status >= 200 && status < 300)) {
      this.#acceptTunnel(headers, status);
      if (endStream) this.completeWriting();
      return;
    }
    let skip = SKIP_CONNECTION;
    let tail: number = Tail.None;
    if (this.#isHeadRequest || status === 204 || status === 304) {
      this.writing = Writing.Nothing;
      if (status === 204) skip |= SKIP_LENGTH;
      if (!this.#isHeadRequest || this.#minorVersion === 0) skip |= SKIP_CODING;
    } else {
      const length = contentLengthOf(headers);
      if (length >= 0) {
        skip |= SKIP_CODING;
        this.writeLength(length);
      } else if (endStream) {
        skip |= SKIP_CODING | SKIP_LENGTH;
        tail = Tail.NoContent;
        this.writeLength(0);
      } else if (this.#minorVersion === 0) {
        skip |= SKIP_CODING | SKIP_LENGTH;
        this.writing = Writing.Raw;
        this.#isLast = true;
      } else {
        skip |= SKIP_LENGTH;
        // The host's own field line is forwarded if it is well-formed.
        if (!isPlainChunked(headers)) {
          skip |= SKIP_CODING;
          tail = Tail.Chunked;
        }
        this.writing = Writing.Chunked;
      }
    }
    // The response precedes the end of the request, or refuses an upgrade: the rest of the request is not read.
    if (this.reading !== Reading.Complete || this.#isUpgrade) this.#isLast = true;
    if (this.#isLast) tail |= Tail.Close;
    else if (this.#minorVersion === 0) tail |= Tail.KeepAlive;
    sendResponseHead(this.sink, this.shared, headers, this.#minorVersion, skip, tail, this.bytes, this.limits.nameCase);
    if (endStream) this.completeWriting();
  }

  /** Ends a tunnel's sending direction. `writing` stays Raw: if the rest fails, the client gets a reset. */
  halfClose(): void {
    if (this.writing === Writing.Raw && this.decoder !== undefined) this.events.onHalfClose?.();
  }

  /** Abandons the stream by closing the connection. */
  reset(reason: ResetReason): void {
    if (this.decoder === undefined) return;
    const isFault = reason === ResetReason.InternalError;
    this.#close(isFault || this.#wouldLookComplete, isFault ? ExchangeEnd.Broken : ExchangeEnd.None);
  }

  /**
   * The end of the connection delimits the sent message, so only a reset shows that it is incomplete. Other framing shows the client that
   * bytes are missing; such a connection closes after its queued bytes, because a reset would discard those that a slow client has not read
   * yet, of earlier responses too.
   */
  get #wouldLookComplete(): boolean {
    return this.writing === Writing.Raw;
  }

  refuseNext(error: CodecError): void {
    this.refuse(error);
  }

  abandonNext(): boolean {
    if (this.hasStream || this.bufferedBytes === 0 || this.holdsNoRequest) return false;
    this.events.newStream(this).onReset(ResetReason.ConnectionTermination, undefined);
    return true;
  }

  protected override canStart(): boolean {
    // Responses that the client does not read must not accumulate.
    return !this.isBlocked && !this.#holdsRequests && this.aside === undefined;
  }

  protected override awaitsRoom(at: number, end: number): boolean {
    if (this.hasStream || this.events.onNoRoom?.(this.bufferedBytes + end - at) !== true) return false;
    this.putAside(at, end);
    return true;
  }

  protected override onSurplus(): boolean {
    return true;
  }

  protected override onHead(): void {
    const head = this.head!;
    this.countHead(head);
    this.#isHeadRequest = head.method === Method.Head;
    this.#isConnect = head.method === Method.Connect;
    this.#isUpgrade = head.upgrade;
    this.#minorVersion = head.minorVersion;
    // After a refused CONNECT, bytes for the tunnel may follow: they are not requests.
    this.#isAnnouncedLast = head.close && !this.#isConnect;
    this.#isLast = head.close || this.#isConnect;
    this.writing = Writing.Head;
    if (head.bodyKind === BodyKind.Chunked) this.readChunked();
    else if (head.bodyKind === BodyKind.Length && head.contentLength > 0) this.readLength(head.contentLength);
    else this.reading = Reading.Complete;
    const isComplete = this.reading === Reading.Complete && !this.#isUpgrade && !this.#isConnect;
    const decoder = this.events.newStream(this);
    if (this.isClosed) return;
    this.decoder = decoder;
    decoder.onHeaders(head, isComplete);
    if (this.ended && this.hasStream) this.#breakOff(ResetReason.ConnectionTermination, undefined);
  }

  holdEnd(): void {
    this.#isEndHeld = true;
  }

  releaseEnd(): void {
    const isEnded = this.#isEndHeld && this.writing === Writing.Complete && this.hasStream;
    this.#isEndHeld = false;
    if (isEnded) this.onWriteComplete();
  }

  protected override onReadComplete(): void {
    // The response ends the exchange. It is not complete yet, otherwise nothing would have been read.
  }

  protected override onHandled(): void {
    // Not needed at the server's end.
  }

  protected override onWriteComplete(): void {
    if (this.#isEndHeld) return;
    const isWhole = this.reading === Reading.Complete;
    if (!isWhole || this.#isLast) {
      this.#close(false, isWhole ? this.#completeEnd : ExchangeEnd.None);
      return;
    }
    this.reading = Reading.Head;
    this.writing = Writing.Head;
    this.#minorVersion = 1;
    this.bytes.reset();
    this.forgetStream();
    this.events.onIdle();
    if (this.isClosed) return;
    this.dropHead();
    // Not at once: the upstream connection of this exchange, whose event is being handled, is not free for the next request yet.
    if (this.held !== undefined && !this.isRunning) this.awaitTurn();
  }

  protected override onWriteBroken(): void {
    const { decoder } = this;
    this.forgetStream();
    decoder?.onReset(ResetReason.LocalReset, undefined);
    this.#close(true);
  }

  protected override onInvalid(error: CodecError): void {
    if (this.writing !== Writing.Head) return this.#breakOff(ResetReason.ProtocolError, error);
    this.#isLast = true;
    if (this.decoder !== undefined) return this.decoder.onInvalid(error, undefined);
    const head = this.#readableHead();
    this.#isHeadRequest = head?.method === Method.Head;
    this.#isConnect = this.#isUpgrade = this.#isAnnouncedLast = false;
    // Also for a request that is refused for its version, as in Envoy.
    this.#minorVersion = 1;
    this.decoder = this.events.newStream(this);
    this.decoder.onInvalid(error, head);
  }

  /** Returns the part of an invalid head that has been read; undefined if it has no method. */
  #readableHead(): HeaderBlock | undefined {
    const { head } = this;
    if (head === undefined || head.methodEnd <= head.methodStart) return undefined;
    if (head.pathEnd < head.pathStart) head.pathStart = head.pathEnd = 0;
    return head;
  }

  protected override onEnd(): void {
    switch (this.reading) {
      case Reading.Head:
        this.#close(false, this.abandonNext() ? ExchangeEnd.Broken : ExchangeEnd.None);
        break;
      case Reading.Raw:
        this.reading = Reading.Complete;
        this.decoder!.onData(0, 0, true);
        break;
      default:
        this.#breakOff(ResetReason.ConnectionTermination, undefined);
    }
  }

  /** Ends a request that cannot be completed. */
  #breakOff(reason: ResetReason, error: CodecError | undefined): void {
    const abort = this.#wouldLookComplete;
    const decoder = this.decoder!;
    this.reading = Reading.Closed;
    this.forgetStream();
    decoder.onReset(reason, error);
    this.#close(abort, ExchangeEnd.Broken);
  }

  /** Accepts the tunnel: both directions carry raw bytes from here on. */
  #acceptTunnel(headers: HeaderBlock, status: number): void {
    if (status === 101 && !this.#isUpgrade) {
      this.onWriteBroken();
      return;
    }
    const skip = SKIP_CONNECTION | SKIP_LENGTH | SKIP_CODING;
    const namesProtocol = status === 101 && headers.findId(ConnectionHeader.Upgrade) >= 0;
    const tail = namesProtocol ? Tail.Upgrade : Tail.None;
    sendResponseHead(this.sink, this.shared, headers, this.#minorVersion, skip, tail, this.bytes, this.limits.nameCase);
    this.#isLast = true;
    this.writing = Writing.Raw;
    this.reading = Reading.Raw;
    if (this.held !== undefined) this.resume();
  }

  get #completeEnd(): ExchangeEnd {
    return this.#isAnnouncedLast && this.held === undefined ? ExchangeEnd.Last : ExchangeEnd.Complete;
  }

  /** Stops reading and sending; the owner closes the connection. */
  #close(abort: boolean, exchange = ExchangeEnd.None): void {
    this.reading = Reading.Closed;
    this.writing = Writing.Complete;
    this.forgetStream();
    this.dropInput();
    if (!this.isDestroyed) this.events.onClose(abort, exchange);
  }
}
