// The filters of one try of a request. They stand between the router and the connection: for the router they are the pool of the
// try and the connection's codec, for the pool and the codec they are the try.
//
//   the router's try → headers, data → decode → the codec        the codec → onHeaders, onData → encode → the router's try
//
// As in Envoy, the filters see the head before there is a connection, so that a request that they answer needs none.

import type { StreamBytes } from '../../../../../access-log/stream/stream-bytes.js';
import type { Protocol } from '../../../../../access-log/stream/stream-info.js';
import { type CodecError, type RequestEncoder, ResetReason } from '../../../../../http/codec/streams.js';
import type { HttpFilter, ResponseStream } from '../../../../../http/filters/filter.js';
import { DecodePass, EncodePass, type PassEnd } from '../../../../../http/filters/message-passes.js';
import { NO_ROOM } from '../../../../../http/filters/no-room.js';
import { RunningFilters } from '../../../../../http/filters/running-filters.js';
import { REQUEST_TOO_LARGE, RESPONSE_TOO_LARGE } from '../../../../../http/filters/too-large.js';
import type { HeaderBlock } from '../../../../../http/headers/header-block.js';
import type { HostConnection } from '../../../../../upstream/connections/host-connection.js';
import type { PoolRequest, RequestPool } from '../../../../../upstream/connections/http-pool.js';
import type { PoolFailure } from '../../../../../upstream/pool-failure.js';
import type { FilteredTry } from '../../../../../upstream/request-filters.js';
import type { UpstreamThread } from '../../../../../upstream/upstream-thread.js';
import { KeptRequest, type Sender } from '../kept-request.js';
import { Pause } from '../upstream-try.js';
import type { PlacedFilter } from './placed-filter.js';

export class TryFilters extends RunningFilters implements RequestPool, PoolRequest, RequestEncoder {
  pendingPrev: PoolRequest | undefined = undefined;
  pendingNext: PoolRequest | undefined = undefined;
  readonly countsItself: boolean;
  readonly #stream: ResponseStream;
  readonly #thread: UpstreamThread;
  readonly #pool: RequestPool;
  readonly #current: FilteredTry;
  readonly #bufferLimit: number;
  /** The try; undefined: it is over. */
  #request: PoolRequest | undefined;
  #isQueued = false;
  /** The codec of the connection. Once the exchange is over, it may serve another request. */
  #encoder: RequestEncoder | undefined;
  /** Why the codec has ended the exchange, if it has. */
  #lost: ResetReason | undefined;
  /** What the filters have passed on before there was a connection; undefined: nothing, or it was sent. */
  #early: KeptRequest | undefined;
  /** The end of the request has reached the filters, and the codec. */
  #hasRequestEnd: boolean;
  #isRequestSent = false;
  /** The end of the response has reached the filters. */
  #hasResponseEnd = false;
  /** The end of the response has passed the filters. */
  #hasPassed = false;
  #isClientBlocked = false;

  constructor(pool: RequestPool, current: FilteredTry, thread: UpstreamThread, bufferLimit: number) {
    super(current.stream);
    this.#pool = pool;
    this.#current = current;
    this.#stream = current.stream;
    this.#thread = thread;
    this.countsItself = pool.countsItself;
    this.#hasRequestEnd = current.isHeadOnly;
    this.#bufferLimit = bufferLimit;
  }

  /** Creates the filters. Returns whether any handles the request. */
  create(filters: readonly PlacedFilter[], configOf: (filter: PlacedFilter) => unknown): boolean {
    for (const [place, filter] of filters.entries()) {
      this.append(filter.factory, place, filter.isDisabled, configOf(filter));
    }
    return this.filters.length > 0;
  }

  // ── RequestPool ──────────────────────────────────────────────────────────────────────────────────────────────────

  start(request: PoolRequest): void {
    this.#request = request;
    const { memory } = this.#thread;
    this.decode = new DecodePass(this.filters, memory, this.#bufferLimit, this.#requestEnd);
    this.renewEncode();
    const { headers, isHeadOnly } = this.#current;
    this.#guard(() => this.decode?.headers(headers, isHeadOnly));
    // A filter may have answered.
    if (this.#request === undefined) return;
    this.#isQueued = true;
    this.#pool.start(this);
  }

  protected renewEncode(): void {
    const { memory } = this.#thread;
    this.encode = new EncodePass([...this.filters].reverse(), memory, this.#bufferLimit, this.#responseEnd);
  }

  cancel(): void {
    if (this.#isQueued) this.#pool.cancel(this);
    this.#finish();
  }

  // ── From the pool ────────────────────────────────────────────────────────────────────────────────────────────────

  onPoolReady(encoder: RequestEncoder, connection: HostConnection): void {
    this.#isQueued = false;
    this.#encoder = encoder;
    if (this.pausesResponse) this.#pauseCodec();
    this.#request!.onPoolReady(this, connection);
  }

  onPoolFailure(reason: PoolFailure, detail: string): void {
    this.#isQueued = false;
    const request = this.#request;
    this.#finish();
    request?.onPoolFailure(reason, detail);
  }

  // ── RequestEncoder: the request of the try ───────────────────────────────────────────────────────────────────────

  get protocol(): Protocol {
    return this.#encoder!.protocol;
  }

  get bytes(): StreamBytes | undefined {
    return this.#encoder?.bytes;
  }

  /** The filters have seen the head. Its end may be new. */
  headers(_headers: HeaderBlock, endStream: boolean): void {
    this.#sendEarly();
    if (endStream && !this.#hasRequestEnd) this.data(0, 0, true);
  }

  data(offset: number, length: number, endStream: boolean): void {
    if (endStream) this.#hasRequestEnd = true;
    this.#guard(() => this.decode?.data(offset, length, endStream));
    if (endStream) this.#finishIfComplete();
  }

  trailers(trailers: HeaderBlock): void {
    this.#hasRequestEnd = true;
    this.#guard(() => this.decode?.trailers(trailers));
    this.#finishIfComplete();
  }

  reset(reason: ResetReason): void {
    const encoder = this.#encoder;
    const isOver = this.#isExchanged;
    this.#finish();
    if (!isOver) encoder?.reset(reason);
  }

  pauseReading(): void {
    this.#isClientBlocked = true;
    this.notify((filter) => filter.onResponseBlocked?.());
    if (!this.pausesResponse) this.#pauseCodec();
  }

  resumeReading(): void {
    this.#isClientBlocked = false;
    this.notify((filter) => filter.onResponseDrained?.());
    // What a filter has passed on may have blocked the client again.
    if (!this.pausesResponse && !this.#isClientBlocked) this.#resumeCodec();
  }

  // ── ResponseDecoder: from the codec ──────────────────────────────────────────────────────────────────────────────

  onInformational(headers: HeaderBlock): void {
    this.#request?.onInformational(headers);
  }

  onHeaders(headers: HeaderBlock, endStream: boolean): void {
    this.#hasResponseEnd ||= endStream;
    this.#guard(() => this.encode?.headers(headers, endStream));
  }

  onData(offset: number, length: number, endStream: boolean): void {
    this.#hasResponseEnd ||= endStream;
    this.#guard(() => this.encode?.data(offset, length, endStream));
  }

  onTrailers(trailers: HeaderBlock): void {
    this.#hasResponseEnd = true;
    this.#guard(() => this.encode?.trailers(trailers));
  }

  onReset(reason: ResetReason, error: CodecError | undefined): void {
    this.#lost = reason;
    // The host needs no more of a request that it has answered. Filters that hold the answer pass it on first.
    if (!this.#hasResponseEnd || this.#hasPassed) this.#endTry(reason, error);
  }

  #endTry(reason: ResetReason, error?: CodecError): void {
    const request = this.#request;
    this.#finish();
    request?.onReset(reason, error);
  }

  onWriteBlocked(): void {
    this.notify((filter) => filter.onRequestBlocked?.());
    this.#request?.onWriteBlocked();
  }

  onWriteDrained(): void {
    this.notify((filter) => filter.onRequestDrained?.());
    this.#request?.onWriteDrained();
  }

  // ── The ends of the passes ───────────────────────────────────────────────────────────────────────────────────────

  readonly #requestEnd: PassEnd = {
    passHeaders: (headers, endStream) => {
      const encoder = this.#encoder;
      if (encoder === undefined) {
        this.#early = new KeptRequest(this.#thread.memory);
        this.#early.begin(headers, endStream);
        return;
      }
      if (this.#isExchanged) return;
      this.#isRequestSent ||= endStream;
      encoder.headers(headers, endStream);
    },
    passData: (offset, length, endStream) => {
      if (this.#encoder === undefined || this.#early !== undefined) return this.#keepEarly(offset, length, endStream);
      if (this.#isExchanged) return;
      this.#isRequestSent ||= endStream;
      this.#encoder.data(offset, length, endStream);
      if (endStream) this.#finishIfComplete();
    },
    passTrailers: (trailers) => {
      if (this.#encoder === undefined || this.#early !== undefined) return this.#keepEarlyTrailers(trailers);
      if (this.#isExchanged) return;
      this.#isRequestSent = true;
      this.#encoder.trailers(trailers);
      this.#finishIfComplete();
    },
    tooLarge: () => this.#stream.sendLocalReply(REQUEST_TOO_LARGE),
    noRoom: () => this.#stream.sendLocalReply(NO_ROOM),
  };

  readonly #responseEnd: PassEnd = {
    passHeaders: (headers, endStream) => {
      const request = this.#request;
      if (endStream) this.#responsePassed();
      request?.onHeaders(headers, endStream);
      if (endStream) this.#endIfLost();
    },
    passData: (offset, length, endStream) => {
      const request = this.#request;
      if (endStream) this.#responsePassed();
      request?.onData(offset, length, endStream);
      if (endStream) this.#endIfLost();
    },
    passTrailers: (trailers) => {
      const request = this.#request;
      this.#responsePassed();
      request?.onTrailers(trailers);
      this.#endIfLost();
    },
    tooLarge: () => this.#stream.sendLocalReply(RESPONSE_TOO_LARGE),
    noRoom: () => this.#stream.sendLocalReply(NO_ROOM),
  };

  /** The end of the response passes to the router now. Filters of a request that is not complete continue. */
  #responsePassed(): void {
    this.#hasPassed = true;
    this.#finishIfComplete();
  }

  /** Called when the whole response has passed: a reset that came before it ends the rest of the request. */
  #endIfLost(): void {
    if (this.#lost !== undefined) this.#endTry(this.#lost);
  }

  /** For the router the exchange is over with the ends of both messages, even if a filter still holds the end of the request. */
  #finishIfComplete(): void {
    if (this.#request === undefined || !this.#hasPassed || !this.#hasRequestEnd) return;
    this.reset(ResetReason.LocalReset);
  }

  /** The codec has both messages, or has ended the exchange before: it may serve another request. */
  get #isExchanged(): boolean {
    return this.#lost !== undefined || (this.#hasResponseEnd && this.#isRequestSent);
  }

  #keepEarly(offset: number, length: number, endStream: boolean): void {
    const early = this.#early!;
    early.isComplete ||= endStream;
    if (early.bytes + length > this.#bufferLimit) this.#stream.sendLocalReply(REQUEST_TOO_LARGE);
    else if (length > 0 && !early.keepBody(offset, length)) this.#stream.sendLocalReply(NO_ROOM);
  }

  #keepEarlyTrailers(trailers: HeaderBlock): void {
    this.#early!.isComplete = true;
    if (!this.#early!.keepTrailers(trailers)) this.#stream.sendLocalReply(NO_ROOM);
  }

  /** Sends what the filters have passed on before there was a connection. */
  #sendEarly(): void {
    const early = this.#early;
    const encoder = this.#encoder;
    if (early === undefined || encoder === undefined) return;
    this.#early = undefined;
    this.#isRequestSent ||= early.isComplete;
    const isLost = () => this.#request === undefined;
    const sender: Sender = {
      get encoder() {
        return isLost() ? undefined : encoder;
      },
      bodySent() {},
    };
    try {
      early.sendTo(encoder, sender, false);
    } finally {
      early.drop();
    }
  }

  #finish(): void {
    this.#request = undefined;
    this.#early?.drop();
    this.#early = undefined;
    this.end();
  }

  /** Runs `act`; an exception of a filter ends the request, not the connection of its host. */
  #guard(act: () => void): void {
    try {
      act();
    } catch (error) {
      this.#stream.fault(error);
    }
  }

  // ── RunningFilters ───────────────────────────────────────────────────────────────────────────────────────────────

  beginTurn(): void {
    this.#thread.transport.beginTurn();
  }

  continueDecoding(filter: HttpFilter): void {
    this.beginTurn();
    // New data must stay behind what is passed on.
    this.#stream.pauseRequest(Pause.Release, false);
    this.#guard(() => this.decode?.continue(filter));
    this.#stream.resumeRequest(Pause.Release);
  }

  passRequestHead(filter: HttpFilter): void {
    this.beginTurn();
    this.#stream.pauseRequest(Pause.Release, false);
    this.#guard(() => this.decode?.passHead(filter));
    this.#stream.resumeRequest(Pause.Release);
  }

  /** The cluster is chosen. */
  setCluster(): boolean {
    return false;
  }

  missingHost(): undefined {
    return undefined;
  }

  /** The route stays. */
  continueWithNewRoute(filter: HttpFilter): void {
    this.continueDecoding(filter);
  }

  chooseRouteAgain(): boolean {
    return false;
  }

  /** The client's request goes on: its try ends with an answer. */
  resetStream(details: string): void {
    this.sendLocalReply({ status: 503, body: '', details, flags: 0 });
  }

  protected report(error: unknown, what: string): void {
    this.#thread.transport.report(error, what);
  }

  protected pauseRequestBody(): void {
    this.#stream.pauseRequest(Pause.Filters, false);
  }

  protected resumeRequestBody(): void {
    this.#stream.resumeRequest(Pause.Filters);
  }

  protected pauseResponseBody(): void {
    if (!this.#isClientBlocked) this.#pauseCodec();
  }

  protected resumeResponseBody(): void {
    if (!this.#isClientBlocked) this.#resumeCodec();
  }

  #pauseCodec(): void {
    if (!this.#hasResponseEnd) this.#encoder?.pauseReading();
  }

  #resumeCodec(): void {
    if (!this.#hasResponseEnd) this.#encoder?.resumeReading();
  }
}
