// A request of a test: the stream of its filter, the client that sends it, and the host that answers.

import { StreamInfo } from '../access-log/stream/stream-info.js';
import type { HttpFilter as Definition } from '../api/index.js';
import type { FilterTest, FilterTestResult, ReceivedRequest, TestRequest, TestRoute } from '../api/testing.js';
import { byteText } from '../common/text/byte-text.js';
import { ScriptFilter } from '../extensions/filters/http/script/script-filter.js';
import { streamEnd } from '../extensions/filters/http/script/stream-end.js';
import { headerKey } from '../extensions/header-key.js';
import type { ClusterReferenceLike, HttpFilter, LocalReply } from '../http/filters/filter.js';
import { FilterControl, type FilterHost } from '../http/filters/filter-control.js';
import { DecodePass, EncodePass } from '../http/filters/message-passes.js';
import { type HeaderBlock, methodOf } from '../http/headers/header-block.js';
import type { Route } from '../http/routing/actions/route.js';
import type { Memory } from '../io/memory.js';
import { Feed } from './feed.js';
import { bytesOfPiece, fieldsOf, headOf, piecesOf, Received } from './messages.js';
import type { Recorded } from './recorded.js';

/** As per_connection_buffer_limit_bytes. */
const BUFFER_LIMIT = 1024 * 1024;

const HOST = headerKey('host');
const CONTENT_TYPE = headerKey('content-type');
const CONTENT_LENGTH = headerKey('content-length');

export class TestStream implements FilterHost {
  readonly info = new StreamInfo();
  readonly #startMs = performance.now();
  readonly #test: FilterTest;
  readonly #recorded: Recorded;
  readonly #memory: Memory;
  readonly #filter: HttpFilter;
  readonly #control: FilterControl;
  readonly #decode: DecodePass;
  #encode: EncodePass | undefined;
  readonly #requestFeed = new Feed();
  readonly #responseFeed = new Feed();
  readonly #toHost = new Received();
  readonly #toClient = new Received();
  #start: Pick<ReceivedRequest, 'method' | 'path' | 'host' | 'cluster'> | undefined;
  #route: TestRoute | null;
  #cluster: string;
  #hasResponseHead = false;
  #isReplying = false;
  #isEnded = false;
  #isCutOff = false;
  #done = () => {};
  #failed = (_error: unknown) => {};

  constructor(test: FilterTest, definition: Definition, recorded: Recorded, config: unknown) {
    this.#test = test;
    this.#recorded = recorded;
    this.#memory = recorded.memory;
    this.#route = this.#findRoute(test.request ?? {});
    this.#cluster = this.#route?.cluster ?? 'host';
    this.#describe();
    this.#control = new FilterControl(this, 0);
    this.#filter = new ScriptFilter(recorded, definition, this.#control, config);
    this.#control.attach(this.#filter);
    const filters = [this.#filter];
    this.#decode = new DecodePass(filters, this.#memory, BUFFER_LIMIT, {
      passHeaders: (head, endStream) => this.#forwardHead(head, endStream),
      passData: (offset, length, endStream) => this.#forwardData(offset, length, endStream),
      passTrailers: (trailers) => {
        this.#toHost.trailers(trailers);
        this.#forwarded();
      },
      tooLarge: () => this.sendLocalReply(tooLarge(413, 'request')),
      noRoom,
    });
    this.#encode = new EncodePass(filters, this.#memory, BUFFER_LIMIT, {
      passHeaders: (head, endStream) => this.#answerHead(head, endStream),
      passData: (offset, length, endStream) => this.#answerData(offset, length, endStream),
      passTrailers: (trailers) => {
        this.#toClient.trailers(trailers);
        this.#end();
      },
      tooLarge: () => this.sendLocalReply(tooLarge(500, 'response')),
      noRoom,
    });
  }

  /** Resolves when the request has ended. */
  async run(): Promise<FilterTestResult> {
    const ended = new Promise<void>((resolve, reject) => {
      this.#done = resolve;
      this.#failed = reject;
    });
    this.#sendRequest(this.#test.request ?? {});
    try {
      await ended;
    } finally {
      // Also after a failure: a timer of the filter would keep the process.
      this.#destroy();
    }
    return this.#result();
  }

  #describe(): void {
    const {
      id = 1,
      localAddress = '127.0.0.1:80',
      remoteAddress = '127.0.0.1:50000',
      tls,
    } = this.#test.connection ?? {};
    this.info.connectionId = id;
    this.info.scheme = tls === undefined ? 'http' : 'https';
    const peer = { subject: tls?.peerSubject, uriSans: tls?.peerUris };
    this.info.downstream = {
      remoteText: remoteAddress,
      directRemoteText: remoteAddress,
      localText: localAddress,
      directLocalText: localAddress,
      security: tls && ({ serverName: tls.serverName, version: tls.version, peer } as never),
      transportFailure: '',
      detected: undefined,
    };
  }

  #result(): FilterTestResult {
    const { failures, lines, values } = this.#recorded;
    return {
      forwarded: this.#start && { ...this.#toHost.message, ...this.#start, cluster: this.#cluster },
      response: this.#hasResponseHead ? { ...this.#toClient.message, status: this.info.responseCode } : undefined,
      isCutOff: this.#isCutOff,
      failures,
      metadata: Object.fromEntries(this.info.dynamicMetadata?.entries() ?? []),
      stats: values,
      log: lines,
      end: streamEnd(this.info),
    };
  }

  // ── The request ──────────────────────────────────────────────────────────────────────────────────────────────────

  #sendRequest(request: TestRequest): void {
    const { host = 'test', method = request.body === undefined ? 'GET' : 'POST', path = '/', trailers } = request;
    const head = headOf(request, this.#memory);
    head.setMethod(methodOf(method), method);
    head.setPath(byteText(path));
    head.scheme = this.info.scheme === 'https' ? 'https' : 'http';
    if (head.find(HOST) < 0) head.add(HOST, byteText(host));
    const pieces = piecesOf(request);
    this.#guard(() => this.#decode.headers(head, pieces.length === 0 && trailers === undefined));
    this.#requestFeed.run(pieces, {
      isOver: () => this.#isEnded || this.#isReplying,
      send: (piece, isLast) => {
        this.info.bytesReceived += piece.length;
        this.#feed((offset) => this.#decode.data(offset, piece.length, isLast && trailers === undefined), piece);
      },
      end: () => {
        if (trailers !== undefined) this.#guard(() => this.#decode.trailers(fieldsOf(trailers, this.#memory)));
      },
    });
  }

  #forwardHead(head: HeaderBlock, endStream: boolean): void {
    this.#start = {
      method: head.methodText(),
      path: head.pathText(),
      host: head.get(HOST) ?? '',
      cluster: this.#cluster,
    };
    this.#toHost.head(head);
    if (endStream) this.#forwarded();
  }

  #forwardData(offset: number, length: number, endStream: boolean): void {
    this.#toHost.data(this.#memory.bytes.subarray(offset, offset + length));
    if (endStream) this.#forwarded();
  }

  /** The host has received the request, and answers in another turn. */
  #forwarded(): void {
    setImmediate(() => void this.#answer().catch((error: unknown) => this.#failed(error)));
  }

  // ── The response ─────────────────────────────────────────────────────────────────────────────────────────────────

  async #answer(): Promise<void> {
    const { response = {} } = this.#test;
    const given = typeof response === 'function' ? await response(this.#result().forwarded!) : response;
    if (this.#isEnded || this.#isReplying) return;
    this.info.responseCodeDetails = 'via_upstream';
    const head = headOf(given, this.#memory);
    head.setStatus(given.status ?? 200);
    const pieces = piecesOf(given);
    const { trailers } = given;
    this.#guard(() => this.#encode!.headers(head, pieces.length === 0 && trailers === undefined));
    const encode = this.#encode;
    this.#responseFeed.run(pieces, {
      isOver: () => this.#isEnded || this.#isReplying,
      send: (piece, isLast) =>
        this.#feed((offset) => encode!.data(offset, piece.length, isLast && trailers === undefined), piece),
      end: () => {
        if (trailers !== undefined) this.#guard(() => encode!.trailers(fieldsOf(trailers, this.#memory)));
      },
    });
  }

  #answerHead(head: HeaderBlock, endStream: boolean): void {
    this.#hasResponseHead = true;
    this.info.responseCode = head.status;
    this.#toClient.head(head);
    if (endStream) this.#end();
  }

  #answerData(offset: number, length: number, endStream: boolean): void {
    this.info.bytesSent += length;
    this.#toClient.data(this.#memory.bytes.subarray(offset, offset + length));
    if (endStream) this.#end();
  }

  /** The stream ends in another turn: filters may be on the stack. */
  #end(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.info.durationMs = performance.now() - this.#startMs;
    setImmediate(() => this.#done());
  }

  #destroy(): void {
    this.#isEnded = true;
    this.#decode.end();
    this.#encode?.end();
    this.#filter.onDestroy?.();
    this.#control.release();
  }

  // ── FilterHost ───────────────────────────────────────────────────────────────────────────────────────────────────

  beginTurn(): void {}

  fault(error: unknown): void {
    this.#failed(error);
  }

  continueDecoding(filter: HttpFilter): void {
    this.#guard(() => this.#decode.continue(filter));
  }

  continueEncoding(filter: HttpFilter): void {
    this.#guard(() => this.#encode?.continue(filter));
  }

  heldRequestBytes(filter: HttpFilter): number {
    return this.#decode.heldBytes(filter);
  }

  heldResponseBytes(filter: HttpFilter): number {
    return this.#encode?.heldBytes(filter) ?? 0;
  }

  addRequestBytes(filter: HttpFilter, bytes: Uint8Array): void {
    this.#guard(() => this.#decode.add(filter, bytes));
  }

  addResponseBytes(filter: HttpFilter, bytes: Uint8Array): void {
    this.#guard(() => this.#encode?.add(filter, bytes));
  }

  readRequestBytes(filter: HttpFilter): Buffer {
    return this.#decode.copyHeld(filter);
  }

  readResponseBytes(filter: HttpFilter): Buffer {
    return this.#encode?.copyHeld(filter) ?? Buffer.alloc(0);
  }

  dropRequestBytes(filter: HttpFilter): void {
    this.#decode.dropHeld(filter);
  }

  dropResponseBytes(filter: HttpFilter): void {
    this.#encode?.dropHeld(filter);
  }

  passRequestBytes(filter: HttpFilter, bytes: Uint8Array): void {
    this.#guard(() => this.#decode.inject(filter, bytes));
  }

  passResponseBytes(filter: HttpFilter, bytes: Uint8Array): void {
    this.#guard(() => this.#encode?.inject(filter, bytes));
  }

  passRequestHead(filter: HttpFilter): void {
    this.#guard(() => this.#decode.passHead(filter));
  }

  passResponseHead(filter: HttpFilter): void {
    this.#guard(() => this.#encode?.passHead(filter));
  }

  addRequestTrailers(filter: HttpFilter): HeaderBlock | undefined {
    return this.#decode.addTrailers(filter);
  }

  addResponseTrailers(filter: HttpFilter): HeaderBlock | undefined {
    return this.#encode?.addTrailers(filter);
  }

  resetStream(): void {
    this.#end();
  }

  setRequestBufferLimit(bytes: number): void {
    this.#decode.limit = bytes;
  }

  refuseLargeRequest(): void {
    this.sendLocalReply(tooLarge(413, 'request'));
  }

  setResponseBufferLimit(bytes: number): void {
    if (this.#encode !== undefined) this.#encode.limit = bytes;
  }

  pauseRequestForFilter(): void {
    this.#requestFeed.pause();
  }

  resumeRequestForFilter(): void {
    this.#requestFeed.resume();
  }

  pauseResponseForFilter(): void {
    this.#responseFeed.pause();
  }

  resumeResponseForFilter(): void {
    this.#responseFeed.resume();
  }

  route(): Route<unknown> | undefined {
    if (this.#route === null) return undefined;
    const { metadata, name = '', virtualHost = 'test' } = this.#route;
    const route = {
      name,
      virtualHostName: virtualHost,
      clusterName: this.#cluster,
      metadata: { filter_metadata: metadata },
    };
    return route as unknown as Route<unknown>;
  }

  setCluster({ name }: ClusterReferenceLike): boolean {
    if (this.#route === null) return false;
    this.#cluster = name;
    return true;
  }

  missingHost(): undefined {
    return undefined;
  }

  continueWithNewRoute(filter: HttpFilter): void {
    if (this.chooseRouteAgain()) this.continueDecoding(filter);
  }

  chooseRouteAgain(): boolean {
    const { request = {} } = this.#test;
    this.#route = this.#findRoute(request);
    this.#cluster = this.#route?.cluster ?? 'host';
    return true;
  }

  /** Tests of one filter have no chain. */
  insertFilters(): void {}

  sendLocalReply({ body, details, editHeaders, status }: LocalReply): void {
    if (this.#isEnded) return;
    this.info.responseCodeDetails = details;
    if (this.#hasResponseHead) {
      this.#isCutOff = true;
      return this.#end();
    }
    this.#isReplying = true;
    this.#decode.end();
    const isResponseReplaced = this.#encode?.hasBegun === true;
    const bytes = bytesOfPiece(body);
    const head = fieldsOf({}, this.#memory);
    head.setStatus(status);
    if (bytes.length > 0) head.add(CONTENT_TYPE, 'text/plain');
    head.add(CONTENT_LENGTH, String(bytes.length));
    editHeaders?.(head);
    const isEmpty = bytes.length === 0;
    if (isResponseReplaced) {
      this.#encode!.end();
      this.#encode = undefined;
    }
    const encode = this.#encode;
    this.#guard(() => (encode === undefined ? this.#answerHead(head, isEmpty) : encode.headers(head, isEmpty)));
    if (isEmpty) return;
    this.#feed((offset) => {
      if (encode === undefined) this.#answerData(offset, bytes.length, true);
      else encode.data(offset, bytes.length, true);
    }, bytes);
  }

  // ── Inside ───────────────────────────────────────────────────────────────────────────────────────────────────────

  #findRoute(request: TestRequest): TestRoute | null {
    const { route = {} } = this.#test;
    return typeof route === 'function' ? route(request) : route;
  }

  /** Calls `act` with the offset of bytes in memory. */
  #feed(act: (offset: number) => void, bytes: Uint8Array): void {
    this.#guard(() => {
      const offset = this.#memory.scratch(bytes.length);
      this.#memory.bytes.set(bytes, offset);
      act(offset);
    });
  }

  #guard(act: () => void): void {
    try {
      act();
    } catch (error) {
      this.#failed(error);
    }
  }
}

function tooLarge(status: number, what: string): LocalReply {
  return { status, body: '', details: `${what}_payload_too_large`, flags: 0 };
}

function noRoom(): never {
  throw new Error('the messages of a test are too large');
}
