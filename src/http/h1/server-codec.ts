// The server's end of an HTTP/1 connection: reads requests one after the other, writes their answers in order.

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
import { contentLengthOf, saysChunked } from './head/framing.js';
import { HeadKind } from './head/head-parser.js';
import { Tail } from './lines.js';
import { SKIP_CODING, SKIP_CONNECTION, SKIP_LENGTH, sendResponseHead } from './serializer.js';

/**
 * Requests that upgrade (headers.upgrade) and CONNECT arrive with endStream false: when they are answered with 101, or 2xx
 * for CONNECT, onData() and data() carry raw bytes until either side ends; with any other answer nothing more comes. A body of
 * known length that an upgrade has comes before its answer.
 * Answering the last piece of a response may start the next, pipelined request before the call returns.
 */
export class H1ServerCodec extends H1Connection<RequestDecoder> implements ServerCodec, ResponseEncoder {
  // Not a #field: methods of the base class that are compiled into one function for both codecs would look it up by name.
  private events!: ServerCodecEvents;

  /** Of the request that is being answered. */
  #isHeadRequest = false;
  #isConnect = false;
  #isUpgrade = false;
  #minorVersion = 1;
  /** No request follows the one that is being answered. */
  #isLast = false;
  /** The client has said so. */
  #isAnnouncedLast = false;
  #holdsRequests = false;

  /** The next thing it is told is whom it serves. */
  constructor(memory: Memory, options: Http1Options = DEFAULT_HTTP1_OPTIONS) {
    super(memory, options, HeadKind.Request, Reading.Head);
  }

  /** From now on it is the codec of this connection, which begins with a request. It is new, or at rest since an earlier event. */
  serve(sink: ByteSink, events: ServerCodecEvents): void {
    this.sink = sink;
    this.events = events;
  }

  /**
   * A client that ends its direction waits for no answer: it cannot be told from one that has gone. What it has sent behind
   * the unanswered request is not looked at. In a tunnel the directions end one by one.
   */
  override end(): void {
    if (this.held === undefined || this.reading === Reading.Raw || !this.hasStream) super.end();
    else this.#breakOff(ResetReason.ConnectionTermination, undefined);
  }

  /** A request has begun and its answer is not complete. */
  get hasStream(): boolean {
    return this.decoder !== undefined;
  }

  /** Between two requests, neither of which the client has given up: whatever is buffered belongs to the next. */
  get isBetweenRequests(): boolean {
    return this.reading === Reading.Head && this.decoder === undefined && !this.ended && !this.isRunning;
  }

  /** No request begins before the client takes more of the answers that it has. */
  get awaitsClient(): boolean {
    return this.isBlocked;
  }

  /** Nothing of what it has served is left: it can serve another connection, from the next event on because callers may still be inside. */
  get isAtRest(): boolean {
    return this.isPristine && !this.#holdsRequests;
  }

  /** No request begins until startRequests(). */
  holdRequests(): void {
    this.#holdsRequests = true;
  }

  startRequests(): void {
    if (!this.#holdsRequests) return;
    this.#holdsRequests = false;
    this.goOn();
  }

  /** The head of a request waits until the arena has room. */
  get isAwaitingRoom(): boolean {
    return this.aside !== undefined;
  }

  /** Goes on with a head that waits, which may then wait again. Returns false when there is no room for what has come of it. */
  takeRoom(): boolean {
    return this.takeFromAside();
  }

  /** Refuses the request whose head waits. */
  giveUpRoom(): void {
    if (this.isAwaitingRoom) this.fail(H1Error.NoMemory);
  }

  /** Tells a client that waits with its body (Expect) to send it. */
  sendContinue(): void {
    if (this.writing !== Writing.Head || this.decoder === undefined || this.#minorVersion === 0) return;
    const { start, length } = this.shared.lines.continue;
    this.sink.send(start, length);
  }

  informational(headers: HeaderBlock): void {
    if (this.writing !== Writing.Head || this.decoder === undefined || this.#minorVersion === 0) return;
    const skip = SKIP_CONNECTION | SKIP_LENGTH | SKIP_CODING;
    sendResponseHead(this.sink, this.shared, headers, 1, skip, Tail.None);
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
        // The line that came from upstream is as good as another.
        if (!saysChunked(headers)) {
          skip |= SKIP_CODING;
          tail = Tail.Chunked;
        }
        this.writing = Writing.Chunked;
      }
    }
    // An answer to a request that still arrives, or to one whose protocol it refuses: nobody waits for the rest of it.
    if (this.reading !== Reading.Complete || this.#isUpgrade) this.#isLast = true;
    if (this.#isLast) tail |= Tail.Close;
    else if (this.#minorVersion === 0) tail |= Tail.KeepAlive;
    sendResponseHead(this.sink, this.shared, headers, this.#minorVersion, skip, tail);
    if (endStream) this.completeWriting();
  }

  /** Gives the stream up: the client learns nothing but that the connection ends. */
  reset(reason: ResetReason): void {
    if (this.decoder === undefined) return;
    const isFault = reason === ResetReason.InternalError;
    this.#close(isFault || this.#wouldLookWhole, isFault ? ExchangeEnd.Broken : ExchangeEnd.None);
  }

  /**
   * Only the end of the connection ends what is being sent. Any other answer shows that something is missing, and is closed behind
   * the bytes that have been sent: a reset would destroy those that a slow client has not taken yet, of answers before it too.
   */
  get #wouldLookWhole(): boolean {
    return this.writing === Writing.Raw;
  }

  /**
   * Answers what could not be read: a head with `connection: close`, and the error's fields and text if it has them; of the text HEAD gets
   * only the length. Does nothing when an answer has begun. The owner closes afterwards.
   */
  answerInvalid(error: CodecError, isHeadRequest: boolean): void {
    if (this.writing !== Writing.Head) return;
    this.writing = Writing.Complete;
    const { lines } = this.shared;
    const status = lines.statusLine(error.status, 1);
    this.sink.send(status.start, status.length);
    const { body, fields } = error;
    if (body !== undefined || fields !== undefined) this.#sendRefusal(error, isHeadRequest);
    else {
      const tail = lines.tails[Tail.Close | Tail.NoContent]!;
      this.sink.send(tail.start, tail.length);
    }
  }

  #sendRefusal({ status, body = '', fields = PLAIN }: CodecError, isHeadRequest: boolean): void {
    // RFC 9110 section 8.6: where no body may be, no length is either.
    const length = status === 204 || status === 304 ? '' : `content-length: ${body.length}\r\n`;
    const head = `${length}${fields}connection: close\r\n\r\n`;
    const { memory } = this.shared;
    const text = isHeadRequest ? head : head + body;
    const start = memory.scratch(text.length);
    memory.write(start, text);
    this.sink.send(start, text.length);
  }

  protected override canStart(): boolean {
    // Answers that the client does not read must not pile up.
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
    this.#isHeadRequest = head.method === Method.Head;
    this.#isConnect = head.method === Method.Connect;
    this.#isUpgrade = head.upgrade;
    this.#minorVersion = head.minorVersion;
    // Behind a CONNECT that is refused may stand bytes for the tunnel: they are no requests.
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

  protected override onReadComplete(): void {
    // The response ends the exchange; had it been complete before, nothing would have been read.
  }

  protected override onHandled(): void {
    // Nothing waits for that here.
  }

  protected override onWriteComplete(): void {
    const isWhole = this.reading === Reading.Complete;
    if (!isWhole || this.#isLast) {
      this.#close(false, isWhole ? this.#wholeEnd : ExchangeEnd.None);
      return;
    }
    this.reading = Reading.Head;
    this.writing = Writing.Head;
    this.#minorVersion = 1;
    this.forgetStream();
    this.events.onIdle();
    if (this.isClosed) return;
    this.dropHead();
    if (this.held !== undefined) this.goOn();
  }

  protected override onWriteBroken(): void {
    const { decoder } = this;
    this.forgetStream();
    decoder?.onReset(ResetReason.LocalReset, undefined);
    this.#close(true);
  }

  protected override onInvalid(error: CodecError): void {
    if (error.status === VERSION_TOO_LOW) this.#minorVersion = 0;
    if (this.decoder === undefined) this.events.onInvalid(error, this.head);
    else this.#breakOff(ResetReason.ProtocolError, error);
  }

  protected override onEnd(): void {
    switch (this.reading) {
      case Reading.Head:
        this.#close(false);
        break;
      case Reading.Raw:
        this.reading = Reading.Complete;
        this.decoder!.onData(0, 0, true);
        break;
      default:
        this.#breakOff(ResetReason.ConnectionTermination, undefined);
    }
  }

  /** The request will never be complete. A protocol error is answered if nothing was sent yet. */
  #breakOff(reason: ResetReason, error: CodecError | undefined): void {
    const abort = this.#wouldLookWhole;
    const isAnswered = error !== undefined && this.writing === Writing.Head;
    const decoder = this.decoder!;
    this.reading = Reading.Closed;
    this.forgetStream();
    const answer = decoder.onReset(reason, error);
    if (answer !== undefined) this.answerInvalid(answer, this.#isHeadRequest);
    this.#close(abort, isAnswered ? ExchangeEnd.None : ExchangeEnd.Broken);
  }

  /** From here on both directions are raw. */
  #acceptTunnel(headers: HeaderBlock, status: number): void {
    if (status === 101 && !this.#isUpgrade) {
      this.onWriteBroken();
      return;
    }
    const skip = SKIP_CONNECTION | SKIP_LENGTH | SKIP_CODING;
    const namesProtocol = status === 101 && headers.findId(ConnectionHeader.Upgrade) >= 0;
    const tail = namesProtocol ? Tail.Upgrade : Tail.None;
    sendResponseHead(this.sink, this.shared, headers, this.#minorVersion, skip, tail);
    this.#isLast = true;
    this.writing = Writing.Raw;
    this.reading = Reading.Raw;
    if (this.held !== undefined) this.goOn();
  }

  get #wholeEnd(): ExchangeEnd {
    return this.#isAnnouncedLast && this.held === undefined ? ExchangeEnd.Last : ExchangeEnd.Whole;
  }

  /** Nothing more is read or sent; the owner closes the connection. */
  #close(abort: boolean, exchange = ExchangeEnd.None): void {
    this.reading = Reading.Closed;
    this.writing = Writing.Complete;
    this.forgetStream();
    this.dropInput();
    if (!this.isDestroyed) this.events.onClose(abort, exchange);
  }
}

/** 426: a client is too old. */
const VERSION_TOO_LOW = 426;

/** What a text is when nobody says. */
const PLAIN = 'content-type: text/plain\r\n';
