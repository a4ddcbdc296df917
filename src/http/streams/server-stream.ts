// One request and its response, from the decoded head to the access log line.
//
// codec → onHeaders → edge rules → route → filters (decode) → router … … router → encodeHeaders → filters (encode) → edge rules → codec →
// counters and log at the end
//
// A stream object serves many requests in sequence: start() begins one, #finish() ends it exactly once.

import { ResponseFlag } from '../../access-log/stream/response-flags.js';
import { type ClusterNames, Protocol, StreamInfo, UNSET } from '../../access-log/stream/stream-info.js';
import { ConnectionHeader, headerKey, knownHeader } from '../../common/text/header-names.js';
import { NoRoomError } from '../../io/memory.js';
import { getLogger } from '../../log/logger.js';
import type { ThreadOverload } from '../../runtime/overload/thread-overload.js';
import { HttpStats } from '../../stats/layouts/http.js';
import type { Scope } from '../../stats/thread-stats.js';
import { type CodecError, type RequestDecoder, ResetReason, type ResponseEncoder } from '../codec/streams.js';
import type { ClusterReferenceLike, LocalReply, RequestBody, TerminalFilter } from '../filters/filter.js';
import { NO_ROOM } from '../filters/no-room.js';
import type { EdgeConnection } from '../headers/edge/forwarding-headers.js';
import { removeHopByHop, removeNominated } from '../headers/edge/hop-by-hop.js';
import { isGrpcRequest } from '../headers/grpc-reply.js';
import { BodyKind, type HeaderBlock } from '../headers/header-block.js';
import type { ManagerContext } from '../manager-context.js';
import type { LocalEnd } from '../normalization/host-normalization.js';
import type { InternalRedirects } from '../routing/actions/internal-redirects.js';
import type { Route } from '../routing/actions/route.js';
import type { MissingHost } from '../routing/tables/on-demand-hosts.js';
import type { RouteTable } from '../routing/tables/route-table.js';
import type { RequestTrace } from '../tracing/request-trace.js';
import { TraceReason } from '../tracing/trace-reason.js';
import { FollowedRedirects } from './followed-redirects.js';
import { checkHead, UNDERSCORE } from './head-checks.js';
import { INTERNAL_ERROR } from './internal-error.js';
import { encodeReply } from './local-reply.js';
import { ReplyBody } from './reply-body.js';
import { RequestFlow } from './request-flow.js';
import { countStatus } from './status-counters.js';
import {
  idleTooLong,
  LATE_REQUEST,
  lastedTooLong,
  OVERLOADED,
  REFUSED_UPGRADE,
  withoutClient,
} from './stream-answers.js';
import { Elapsed, StreamClocks } from './stream-clocks.js';
import { type FilteredStream, StreamFilters } from './stream-filters.js';
import { StreamRouting } from './stream-routing.js';
import { TunnelEnds } from './tunnel-ends.js';
import { acceptsTunnel, asksForTunnel } from './upgrade.js';

const logger = getLogger('http');

const SWITCHING_PROTOCOLS = 101;
const NO_CONTENT = 204;
const EXPECT = knownHeader('expect');
const INTERNAL = knownHeader('x-envoy-internal');
const REQUEST_ID = headerKey('x-request-id');
const FORCE_TRACE = knownHeader('x-envoy-force-trace');
const CONTENT_TYPE = headerKey('content-type');

/** By TraceReason. */
const TRACE_COUNTERS = [
  HttpStats.at['tracing.not_traceable'],
  HttpStats.at['tracing.random_sampling'],
  HttpStats.at['tracing.service_forced'],
  HttpStats.at['tracing.client_enabled'],
] as const;

/** The connection of a request, as its stream uses it. */
export interface StreamConnection extends EdgeConnection, LocalEnd {
  /** Writes the properties of the connection to a stream's record. */
  describe(info: StreamInfo): void;
  /** Counts a request by the client's device type, from the headers as received, and records its protocol. */
  countClient(headers: HeaderBlock, protocol: Protocol): void;
  /** Records that the client has violated the protocol. */
  noteProtocolError(): void;
  /** Undefined: no overload manager applies to the connection. */
  readonly overload: ThreadOverload | undefined;
  /** Returns whether the response about to be sent is the last on this connection. */
  shouldCloseAfterResponse(): boolean;
  /** Called when a timeout of the stream begins that may fire before the connection's next check. */
  wakeWithin(timeoutMs: number): void;
  /** Calls `act` in a later turn, after other connections had theirs. */
  later(act: () => void): void;
  /** Called when the stream has ended. It may be reused from a later event on. */
  streamFinished(stream: ServerStream): void;
  /** Ends the connection and all its streams after an exception, which may have been thrown while another connection was served. */
  onFault(error: unknown): void;
}

/** A route's cluster on a worker, as logs use it. */
interface RouteCluster extends ClusterReferenceLike {
  readonly current: { readonly spec: ClusterNames } | undefined;
}

export class ServerStream implements RequestDecoder, FilteredStream {
  readonly manager: ManagerContext;
  /** Links of the connection's list of streams. */
  next: ServerStream | undefined;
  previous: ServerStream | undefined;
  readonly info = new StreamInfo();
  connection!: StreamConnection;
  /** Valid until the stream ends. */
  requestHeaders!: HeaderBlock;
  isInternal = false;
  /** Determined on arrival, because the head need not outlive the turn. */
  isGrpc = false;
  trace: RequestTrace | undefined = undefined;

  readonly #terminal: TerminalFilter;
  /** Undefined if the chain has only the terminal filter. */
  readonly #filters: StreamFilters | undefined;
  readonly #flow: RequestFlow;
  readonly #clocks: StreamClocks;
  readonly #tunnel = new TunnelEnds();
  readonly #routing: StreamRouting;
  #encoder!: ResponseEncoder;
  #isOpen = false;
  #isRequestComplete = false;
  #hasResponseHead = false;
  #isReplyingLocally = false;
  /** The client's send queue is above its high watermark. */
  #isClientBlocked = false;
  /** The framing of the request may be invalid, or not read to its end: no other is read after it. */
  #endsConnection = false;
  /** The response repeats the x-request-id: as in Envoy also for internal requests with x-envoy-force-trace. */
  #returnsRequestId = false;
  /** Created by the first request that a host redirects internally. */
  #redirects: FollowedRedirects | undefined;
  /** The HttpStats.at index of the counter of its protocol's requests. */
  #requestsTotal = 0;
  /** The body of the local reply, while it is being sent. */
  #replyBody: ReplyBody | undefined;
  /** In place of headers that are not readable. */
  #noHeaders: HeaderBlock | undefined;
  /** The head of the response, until it is logged. */
  #keptHeaders: HeaderBlock | undefined;

  constructor(manager: ManagerContext) {
    this.manager = manager;
    this.#flow = new RequestFlow(manager.stats.http);
    this.#clocks = new StreamClocks(manager);
    this.#routing = new StreamRouting(manager);
    this.#terminal = manager.options.terminal.create(this);
    if (manager.options.filters.length > 0) this.#filters = new StreamFilters(this, this.#terminal, this.#flow);
  }

  /**
   * Begins a request on `connection` that is answered through `encoder`. `requestsTotal` is the HttpStats.at index of its protocol's
   * counter. Its first byte arrived at `startMs` (monotonic).
   */
  start(connection: StreamConnection, encoder: ResponseEncoder, requestsTotal: number, startMs: number): void {
    const { stats } = this.manager;
    this.connection = connection;
    this.#encoder = encoder;
    this.#isOpen = true;
    this.#isRequestComplete = false;
    this.#hasResponseHead = false;
    this.#isReplyingLocally = false;
    this.#tunnel.begin();
    this.#isClientBlocked = false;
    this.#endsConnection = false;
    this.#returnsRequestId = this.manager.options.returnsRequestId;
    this.#flow.begin(encoder);
    this.#routing.begin();
    this.isInternal = false;
    this.trace = undefined;
    this.#clocks.begin(startMs);
    stats.http.increment(HttpStats.at.downstream_rq_total);
    stats.http.increment(requestsTotal);
    this.#requestsTotal = requestsTotal;
    this.#redirects?.begin();
    stats.http.increment(HttpStats.at.downstream_rq_active);
    const { monotonicMs, realtimeMs } = this.manager.thread.clock;
    this.info.reset(realtimeMs - (monotonicMs - startMs), startMs);
  }

  get scheme(): 'http' | 'https' {
    return this.info.scheme === 'https' ? 'https' : 'http';
  }

  get httpStats(): Scope {
    return this.manager.stats.http;
  }

  /** The stream waits for the rest of the request. Once the response has begun, the host may read the request at any pace. */
  get awaitsRequest(): boolean {
    return !this.#isRequestComplete && !this.#hasResponseHead;
  }

  /** The stream waits only for the client, and the request body is not paused. */
  get awaitsClient(): boolean {
    return this.awaitsRequest && !this.#flow.isPaused;
  }

  /** Raw bytes pass in both directions, which end one by one. */
  get isTunnel(): boolean {
    return this.#tunnel.isTunnel;
  }

  /** Bytes of the request that are held in memory. */
  get heldRequestBytes(): number {
    const body = (this.#filters?.decode?.allHeldBytes ?? 0) + (this.#terminal.heldBytes ?? 0);
    return this.requestHeaders.retainedBytes + body;
  }

  get overload(): ThreadOverload | undefined {
    return this.connection.overload;
  }

  get passesInformational(): boolean {
    return this.manager.options.proxies100Continue;
  }

  get matchesUpstreamScheme(): boolean {
    return this.manager.options.matchesUpstreamScheme;
  }

  // ── The request, from the codec ──────────────────────────────────────────────────────────────────────────────────

  onHeaders(headers: HeaderBlock, endStream: boolean): void {
    try {
      this.#begin(headers, endStream);
    } catch (error) {
      this.fault(error);
    }
  }

  #begin(headers: HeaderBlock, endStream: boolean): void {
    const { options, thread } = this.manager;
    const { info } = this;
    this.requestHeaders = headers;
    this.#isRequestComplete = endStream;
    this.isGrpc = headers.mayHave(CONTENT_TYPE.id) && isGrpcRequest(headers);
    info.requestHeaders = headers;
    this.#describe();
    this.connection.countClient(headers, info.protocol);
    if (logger.isDebug) this.#logRequest(headers, endStream);
    if (endStream) {
      this.#flow.end();
      info.lastDownstreamRxMs = thread.clock.monotonicMs;
    }
    if (this.overload?.stopsRequest()) {
      this.manager.stats.http.increment(HttpStats.at.downstream_rq_overload_close);
      return this.sendLocalReply(OVERLOADED);
    }
    // RFC 9110 section 10.1.1: an HTTP/1.0 client does not wait for 100 Continue.
    if (info.protocol === Protocol.Http10) headers.removeId(EXPECT);
    if (headers.expectContinue && !options.proxies100Continue) {
      headers.removeId(EXPECT);
      this.#encoder.sendContinue();
      this.#countStatus(100);
    }
    const answer = checkHead(headers, info.protocol, this.manager);
    if (answer !== undefined) {
      // For Envoy's codec such a request is incomplete.
      if (answer === UNDERSCORE) {
        this.#isRequestComplete = false;
        info.lastDownstreamRxMs = UNSET;
      }
      return this.sendLocalReply(answer);
    }
    options.hosts?.apply(headers, this.connection);
    if (headers.nominates) removeNominated(headers);
    const routes = this.#routing.tableFor(headers);
    options.earlyMutations?.apply(headers, info);
    const client = options.forwarding.apply(headers, this.connection, thread.random, routes.internalOnlyHeaders);
    if (headers.scheme !== '') info.scheme = headers.scheme;
    if (client !== this.connection.remoteIp) {
      info.inferredRemoteAddress = client.includes(':') ? `[${client}]:0` : `${client}:0`;
    }
    if (options.forwarding.refusal !== 0) return this.sendLocalReply(withoutClient(options.forwarding.refusal));
    this.isInternal = headers.findId(INTERNAL) >= 0;
    // As in Envoy, routes and filters do not see hop-by-hop headers, except those of an upgrade, which they may match.
    if (!headers.upgrade) {
      removeHopByHop(headers, false);
      // The codec of the upstream connection does its own framing.
      if (headers.bodyKind === BodyKind.Chunked) headers.removeId(ConnectionHeader.TransferEncoding);
    }
    // As in Envoy, by the headers as they are now: early mutations and the edge rules may change those that select the scope.
    this.#findRoute(options.scopes === undefined ? routes : this.#routing.tableFor(headers), headers);
    if (this.#beginPass(headers)) this.#decodeHeaders(headers, endStream);
  }

  /** Begins a pass of the request through its filters, with its route. Returns false if it got a local reply. */
  #beginPass(headers: HeaderBlock): boolean {
    const { options } = this.manager;
    if (options.tracing !== undefined) this.trace = options.tracing.begin(headers, this.info, this.route?.tracing);
    // External requests have lost the field.
    const isTraceForced = headers.mayHave(FORCE_TRACE) && headers.findId(FORCE_TRACE) >= 0;
    this.#returnsRequestId = options.returnsRequestId || isTraceForced;
    const isKept = options.keepsRequestHeaders || isTraceForced || this.#isSampled;
    if (isKept && !headers.retain()) {
      this.sendLocalReply(NO_ROOM);
      return false;
    }
    if (asksForTunnel(headers) && !this.#acceptUpgrade(headers)) return false;
    // Also without a route, because it may still get one.
    if (headers.upgrade) removeHopByHop(headers, true);
    this.#filters?.begin();
    return true;
  }

  #decodeHeaders(headers: HeaderBlock, endStream: boolean): void {
    const decode = this.#filters?.decode;
    if (decode === undefined) this.#terminal.decodeHeaders(headers, endStream);
    else decode.headers(headers, endStream);
  }

  onData(offset: number, length: number, endStream: boolean): void {
    if (!this.#isOpen) return;
    this.#clocks.moved();
    this.info.bytesReceived += length;
    if (endStream) {
      this.#requestCompleted();
      this.#tunnel.clientEnded(this.info, this.manager.stats.http);
    }
    if (this.#isReplyingLocally) return;
    const decode = this.#filters?.decode;
    try {
      if (decode === undefined) this.#terminal.decodeData(offset, length, endStream);
      else decode.data(offset, length, endStream);
    } catch (error) {
      this.fault(error);
    }
  }

  onTrailers(trailers: HeaderBlock): void {
    if (!this.#isOpen) return;
    this.#requestCompleted();
    if (this.#isReplyingLocally) return;
    const decode = this.#filters?.decode;
    try {
      if (decode === undefined) this.#terminal.decodeTrailers(trailers);
      else decode.trailers(trailers);
    } catch (error) {
      this.fault(error);
    }
  }

  onInvalid(error: CodecError, head: HeaderBlock | undefined): void {
    if (!this.#isOpen) return;
    try {
      this.#refuse(error, head);
    } catch (thrown) {
      this.fault(thrown);
    }
  }

  /** Answers a request that is invalid, or whose head has not arrived in time. `head`: as in RequestDecoder.onInvalid(). */
  #refuse(error: CodecError, head: HeaderBlock | undefined): void {
    const { status, detail, body = '', flags = 0, counter } = error;
    const { info, manager } = this;
    const { http } = manager.stats;
    if ((flags & ResponseFlag.DownstreamProtocolError) !== 0 && error.isOverload !== true) {
      http.increment(HttpStats.at.downstream_cx_protocol_error);
      this.connection.noteProtocolError();
    }
    if (counter !== undefined) http.increment(counter);
    if (error.isHeadRead === true && head?.bodyKind === BodyKind.None && !head.upgrade) this.#requestCompleted();
    if (this.#isWithoutHead) {
      this.#describe();
      info.requestHeaders = head;
      this.isGrpc = false;
      this.requestHeaders = head ?? this.#placeholder();
      // Only for the response: as in Envoy, filters do not see the request.
      this.#filters?.begin();
    }
    this.sendLocalReply({ status, body, details: detail, flags });
    // A filter holds the response, or its body is long.
    if (!this.#isOpen || head === undefined || head.retain()) return;
    info.requestHeaders = undefined;
    this.requestHeaders = this.#placeholder();
  }

  /** onHeaders() was not called. */
  get #isWithoutHead(): boolean {
    return this.info.protocol === Protocol.None;
  }

  #describe(): void {
    const { info } = this;
    info.protocol = this.#encoder.protocol;
    info.chain = this.manager.options.chain;
    info.downstreamBytes = this.#encoder.bytes;
    this.connection.describe(info);
  }

  /** Returns empty headers in place of those of a request that are not readable. */
  #placeholder(): HeaderBlock {
    this.#noHeaders ??= this.manager.thread.headerBlocks.take();
    return this.#noHeaders;
  }

  onReset(reason: ResetReason, error: CodecError | undefined): void {
    if (!this.#isOpen) return;
    const { info, manager } = this;
    if (this.#isWithoutHead) this.#describe();
    if (reason === ResetReason.ProtocolError || error !== undefined) {
      const { detail = 'codec_error', flags = ResponseFlag.DownstreamProtocolError } = error ?? {};
      const isProtocol = (flags & ResponseFlag.DownstreamProtocolError) !== 0;
      if (isProtocol) {
        manager.stats.http.increment(HttpStats.at.downstream_cx_protocol_error);
        this.connection.noteProtocolError();
      }
      info.responseFlags |= flags;
      info.responseCodeDetails = detail;
    } else {
      info.responseFlags |= ResponseFlag.DownstreamConnectionTermination;
      info.responseCodeDetails = 'downstream_remote_disconnect';
      info.connectionEndMs = manager.thread.clock.monotonicMs;
    }
    manager.stats.http.increment(HttpStats.at.downstream_rq_rx_reset);
    this.#finish(false);
  }

  onWriteBlocked(): void {
    if (!this.#isOpen) return;
    this.#isClientBlocked = true;
    this.#replyBody?.blocked();
    this.#blockResponse();
  }

  #blockResponse(): void {
    if (this.#filters === undefined) this.#terminal.onResponseBlocked();
    else this.#filters.clientBlocked();
  }

  onWriteDrained(): void {
    if (!this.#isOpen) return;
    this.#isClientBlocked = false;
    this.#clocks.moved();
    this.#replyBody?.drained();
    if (this.#filters === undefined) this.#terminal.onResponseDrained();
    else this.#filters.clientDrained();
  }

  #requestCompleted(): void {
    this.#isRequestComplete = true;
    this.#flow.end();
    this.info.lastDownstreamRxMs = this.#clocks.moved();
  }

  #logRequest(headers: HeaderBlock, endStream: boolean): void {
    const body = endStream ? '' : ', with a body';
    logger.debug(`[C${this.info.connectionId}] request ${headers.methodText()} ${headers.pathText()}${body}`);
  }

  // ── Its route ────────────────────────────────────────────────────────────────────────────────────────────────────

  /**
   * From the route table that was current when the request arrived, or when its virtual host was delivered on demand. Undefined if no route
   * matches.
   */
  get route(): Route<unknown> | undefined {
    return this.#routing.route;
  }

  /** The request is an upgrade that its route allows: raw bytes are forwarded after a 101. */
  get isUpgrade(): boolean {
    return this.#routing.isUpgrade;
  }

  #findRoute(routes: RouteTable<unknown>, headers: HeaderBlock): void {
    this.#routing.find(routes, headers, this.connection.security, this.info);
    const { route } = this.#routing;
    if (route === undefined) return;
    this.info.routeName = route.name;
    this.info.route = route;
    this.info.virtualHostName = route.virtualHostName;
    // Known before the router runs: as in Envoy, logs and headers name the cluster of a request that a filter answers.
    this.info.upstreamCluster = (route.cluster as RouteCluster | undefined)?.current?.spec;
    if (route.idleTimeoutMs !== undefined) this.connection.wakeWithin(this.#idleTimeoutMs!);
    if (route.streamDuration !== undefined) {
      this.#clocks.maxMs = route.streamDuration.apply(headers, this.isGrpc, this.manager.options.maxStreamMs);
      this.connection.wakeWithin(this.#clocks.maxMs);
    }
  }

  setCluster(cluster: ClusterReferenceLike): boolean {
    const isForwarded = this.#routing.setCluster(cluster);
    if (isForwarded) this.info.upstreamCluster = (cluster as RouteCluster).current?.spec;
    return isForwarded;
  }

  missingHost(): MissingHost | undefined {
    return this.#routing.missingHost(this.requestHeaders);
  }

  findNewRoute(): boolean {
    const headers = this.requestHeaders;
    this.#findRoute(this.#routing.tableFor(headers), headers);
    return !asksForTunnel(headers) || this.#acceptUpgrade(headers);
  }

  // ── Redirects of hosts ───────────────────────────────────────────────────────────────────────────────────────────

  redirect(policy: InternalRedirects, response: HeaderBlock): boolean {
    this.#redirects ??= new FollowedRedirects();
    return this.#redirects.follow(this, policy, response);
  }

  get isSecure(): boolean {
    return this.connection.security !== undefined;
  }

  matchRoute(): Route<unknown> | undefined {
    return this.#routing.match(this.requestHeaders, this.connection.security);
  }

  restart(response: HeaderBlock, body: RequestBody): void {
    try {
      this.#endFirstPass(response);
      this.#passAgain(this.requestHeaders, body);
    } finally {
      body.bytes.clear();
      body.trailers?.drop();
    }
  }

  /** Ends a pass as answered by a redirect. */
  #endFirstPass(response: HeaderBlock): void {
    const { info, manager } = this;
    const headers = this.requestHeaders;
    this.#findRoute(this.#routing.tableFor(headers), headers);
    if (headers.scheme !== '') info.scheme = headers.scheme;
    const { scheme } = info;
    info.responseHeaders = response;
    info.responseCode = response.status;
    info.responseCodeDetails = 'internal_redirect';
    info.durationMs = manager.thread.clock.monotonicMs - info.startMonotonicMs;
    this.#endPass();
    manager.stats.http.increment(HttpStats.at.downstream_rq_total);
    manager.stats.http.increment(this.#requestsTotal);
    info.restart();
    info.requestHeaders = headers;
    this.#describe();
    info.scheme = scheme;
    this.#routing.begin();
    // As in Envoy, the time limit of the stream is for all passes together.
    this.#clocks.begin(info.startMonotonicMs);
  }

  /** Handles the changed head like that of a new request, except for what the edge has done to it. */
  #passAgain(headers: HeaderBlock, { bytes, trailers }: RequestBody): void {
    const answer = checkHead(headers, this.info.protocol, this.manager);
    if (answer !== undefined) this.sendLocalReply(answer);
    else {
      this.manager.options.hosts?.apply(headers, this.connection);
      this.#findRoute(this.#routing.tableFor(headers), headers);
      if (this.#beginPass(headers)) {
        // 1xx responses of the first pass have filled the send queue.
        if (this.#isClientBlocked) this.#blockResponse();
        this.#decodeHeaders(headers, bytes.isEmpty && trailers === undefined);
      }
    }
    let left = bytes.bytes;
    bytes.forEach((offset, length) => {
      left -= length;
      this.onData(offset, length, left === 0 && trailers === undefined);
    });
    if (trailers !== undefined) this.onTrailers(trailers);
  }

  /** Answers an upgrade that is not allowed. Returns whether the request continues. */
  #acceptUpgrade(headers: HeaderBlock): boolean {
    if (this.#routing.acceptUpgrade(headers)) return true;
    this.sendLocalReply(REFUSED_UPGRADE);
    return false;
  }

  // ── The response, from the terminal filter ───────────────────────────────────────────────────────────────────────

  encodeInformational(headers: HeaderBlock): void {
    if (!this.#isOpen || this.#hasResponseHead) return;
    this.#countStatus(headers.status);
    this.#clocks.moved();
    removeHopByHop(headers, false);
    this.#encoder.informational(headers);
  }

  encodeHeaders(headers: HeaderBlock, endStream: boolean): void {
    if (!this.#isOpen) return;
    const encode = this.#filters?.encode;
    if (encode === undefined) return this.passHeaders(headers, endStream);
    try {
      encode.headers(headers, endStream);
    } catch (error) {
      this.fault(error);
    }
  }

  encodeData(offset: number, length: number, endStream: boolean): void {
    if (!this.#isOpen) return;
    const encode = this.#filters?.encode;
    if (encode === undefined) return this.passData(offset, length, endStream);
    try {
      encode.data(offset, length, endStream);
    } catch (error) {
      this.fault(error);
    }
  }

  encodeTrailers(trailers: HeaderBlock): void {
    if (!this.#isOpen) return;
    const encode = this.#filters?.encode;
    if (encode === undefined) return this.passTrailers(trailers);
    try {
      encode.trailers(trailers);
    } catch (error) {
      this.fault(error);
    }
  }

  requestForwarded(): void {
    this.#tunnel.isRequestForwarded = true;
    if (this.#tunnel.isHalfClosed) this.#endWithData(0, 0);
  }

  /** See ResponseStream. As in Envoy, a reset that no host has caused counts for both directions, and every reset of a tunnel. */
  resetResponse(details: string, isByHost = false): void {
    if (!this.#isOpen) return;
    this.info.responseCodeDetails = details;
    const { http } = this.manager.stats;
    http.increment(HttpStats.at.downstream_rq_tx_reset);
    if (!isByHost || this.isTunnel) http.increment(HttpStats.at.downstream_rq_rx_reset);
    const encoder = this.#encoder;
    this.#finish(false);
    encoder.reset(ResetReason.LocalReset);
  }

  /**
   * Ends the stream after an exception in any event, so that the exception does not affect the host's connection or other timers:
   * with a reply, or with a reset if the response has begun or the reply fails too.
   */
  fault(error: unknown): void {
    if (error instanceof NoRoomError) return this.#endForRoom();
    this.report(error);
    if (!this.#isOpen) return;
    if (!this.#hasResponseHead && this.info.responseCodeDetails !== INTERNAL_ERROR.details) {
      try {
        return this.sendLocalReply(INTERNAL_ERROR);
      } catch {
        // What was thrown is reported already; this reply fails for the same reason.
        if (!this.#isOpen) return;
      }
    }
    this.info.responseCodeDetails = INTERNAL_ERROR.details;
    const encoder = this.#encoder;
    this.#finish(false);
    encoder.reset(ResetReason.InternalError);
  }

  /** Ends the request because memory is short: with a reply, or with a reset if there is no room for one. */
  #endForRoom(): void {
    if (!this.#isOpen) return;
    const { info } = this;
    // There was no room for the reply itself.
    const isAnswered = this.#hasResponseHead || info.responseCodeDetails === NO_ROOM.details;
    if (!isAnswered) {
      try {
        return this.sendLocalReply(NO_ROOM);
      } catch (error) {
        if (!(error instanceof NoRoomError)) throw error;
        if (!this.#isOpen) return;
      }
    }
    info.responseFlags |= NO_ROOM.flags;
    this.resetResponse(NO_ROOM.details);
  }

  report(error: unknown, what?: string): void {
    this.manager.thread.transport.report(error, what);
  }

  pauseRequest(who: number, isCounted?: boolean): void {
    this.#flow.pause(who, isCounted);
    this.#filters?.hostBlocked(true);
  }

  resumeRequest(who: number): void {
    this.#flow.resume(who);
    if (!this.#flow.isPausedByHost) this.#filters?.hostBlocked(false);
  }

  // ── Local replies ────────────────────────────────────────────────────────────────────────────────────────────────

  sendLocalReply(reply: LocalReply): void {
    if (!this.#isOpen) return;
    const { info } = this;
    info.responseFlags |= reply.flags;
    if (this.#hasResponseHead) return this.resetResponse(reply.details);
    info.responseCodeDetails = reply.details;
    // Ends the request here; no response of a host may follow the reply, which filters may hold.
    this.#isReplyingLocally = true;
    this.#replyBody = undefined;
    const isFramingLost = reply === INTERNAL_ERROR && info.protocol < Protocol.Http2;
    this.#endsConnection = reply.status === 400 || isFramingLost;
    this.#terminal.onDestroy();
    this.#filters?.replaceResponse();
    if (!this.#isRequestComplete && this.#flow.isPaused) {
      // As in Envoy, what has arrived of the body is read before the reply. If that is the rest of the request, the connection is kept.
      this.#flow.release();
      // The body may be invalid, which has another reply.
      if (!this.#isOpen || info.responseCodeDetails !== reply.details) return;
    }
    encodeReply(this, reply, this.isGrpc);
  }

  encodeReplyBody(bytes: string | Uint8Array): void {
    const body = new ReplyBody(this, this.manager.thread.memory, bytes);
    this.#replyBody = body;
    body.send();
  }

  sendReplyLater(body: ReplyBody): void {
    this.connection.later(() => {
      // The stream may have ended, and may serve another request.
      if (this.#replyBody !== body) return;
      try {
        body.send();
      } catch (error) {
        this.fault(error);
      }
    });
  }

  // ── Its clocks ───────────────────────────────────────────────────────────────────────────────────────────────────

  /** Ends the request if it has reached a time limit. Returns the milliseconds after which to check again, at the latest. */
  checkClocks(now: number): number {
    try {
      return this.#checkClocks(now);
    } catch (error) {
      this.fault(error);
      return Number.POSITIVE_INFINITY;
    }
  }

  /** Undefined: that of the connection manager. */
  get #idleTimeoutMs(): number | undefined {
    const idleMs = this.route?.idleTimeoutMs;
    if (this.overload === undefined) return idleMs;
    return this.overload.timeout('HTTP_DOWNSTREAM_STREAM_IDLE', idleMs ?? this.manager.options.streamIdleMs);
  }

  #checkClocks(now: number): number {
    switch (this.#clocks.check(now, this.awaitsRequest, this.#idleTimeoutMs)) {
      case Elapsed.None:
        return this.#clocks.leftMs;
      case Elapsed.Request:
        this.#requestTimeout();
        break;
      case Elapsed.Duration:
        this.#durationTimeout();
        break;
      case Elapsed.Idle:
        this.#idleTimeout();
    }
    return Number.POSITIVE_INFINITY;
  }

  #idleTimeout(): void {
    this.manager.stats.http.increment(HttpStats.at.downstream_rq_idle_timeout);
    if (this.#hasResponseHead) {
      this.info.responseFlags |= ResponseFlag.StreamIdleTimeout;
      return this.resetResponse('stream_idle_timeout');
    }
    this.sendLocalReply(idleTooLong(this.#isRequestComplete));
  }

  #durationTimeout(): void {
    this.manager.stats.http.increment(HttpStats.at.downstream_rq_max_duration_reached);
    this.sendLocalReply(lastedTooLong(this.#isRequestComplete, this.isGrpc));
  }

  #requestTimeout(): void {
    this.manager.stats.http.increment(HttpStats.at.downstream_rq_timeout);
    this.sendLocalReply(LATE_REQUEST);
  }

  // ── After the filters ────────────────────────────────────────────────────────────────────────────────────────────

  passHeaders(headers: HeaderBlock, endStream: boolean): void {
    const { options, stats } = this.manager;
    const { info } = this;
    const { status } = headers;
    this.#hasResponseHead = true;
    this.#tunnel.isTunnel = this.isUpgrade && !this.#isReplyingLocally && acceptsTunnel(this.requestHeaders, status);
    info.responseHeaders = headers;
    info.firstDownstreamTxMs = this.#clocks.moved();
    removeHopByHop(headers, status === SWITCHING_PROTOCOLS && this.isUpgrade);
    if (status === NO_CONTENT) headers.removeId(ConnectionHeader.ContentLength);
    options.responseHeaders.apply(headers);
    if (options.tracing !== undefined) this.#countTrace();
    this.trace?.respond(headers);
    if (this.#returnsRequestId) this.#returnRequestId(headers);
    if (this.connection.shouldCloseAfterResponse() || this.#endsConnection || info.drainsConnection)
      this.#encoder.endConnection();
    if (!this.#isRequestComplete) stats.http.increment(HttpStats.at.downstream_rq_response_before_rq_complete);
    this.#countAnswer(status);
    if (logger.isDebug) logger.debug(`[C${info.connectionId}] response ${status} (${info.responseCodeDetails})`);
    if (endStream) return this.#endWithHeaders(headers);
    if (options.keepsResponseHeaders || this.#isSampled) {
      // Filters may hold the body beyond the end of the host's exchange, when its codec releases the head.
      if (headers.hold()) this.#keptHeaders = headers;
      else info.responseHeaders = undefined;
    }
    this.#encoder.headers(headers, false);
  }

  passData(offset: number, length: number, endStream: boolean): void {
    this.info.bytesSent += length;
    const isHalf = endStream && this.#tunnel.clientGoesOn;
    if (endStream && !isHalf) return this.#endWithData(offset, length);
    this.#clocks.moved();
    this.#encoder.data(offset, length, false);
    if (isHalf) this.#halfClose();
  }

  passTrailers(trailers: HeaderBlock): void {
    if (this.#tunnel.clientGoesOn) return this.#halfClose();
    this.info.responseTrailers = trailers;
    this.#endWithTrailers(trailers);
  }

  #halfClose(): void {
    this.#tunnel.hostEnded(this.info, this.manager.stats.http);
    this.#encoder.halfClose();
  }

  #returnRequestId(headers: HeaderBlock): void {
    const id = this.requestHeaders.get(REQUEST_ID);
    if (id !== undefined) headers.set(REQUEST_ID, id);
  }

  #countAnswer(status: number): void {
    this.info.responseCode = status;
    this.#countStatus(status);
  }

  /** As in Envoy, requests without response are not counted, and health checks as not traced. */
  #countTrace(): void {
    const reason = this.info.isHealthCheck ? TraceReason.NotTraceable : (this.info.traceReason as TraceReason);
    this.manager.stats.http.increment(TRACE_COUNTERS[reason]);
  }

  /** The request's span is reported. */
  get #isSampled(): boolean {
    return this.trace?.span.isSampled === true;
  }

  /** As in Envoy, 1xx responses are counted like final ones. */
  #countStatus(status: number): void {
    if (!this.info.isHealthCheck) countStatus(this.manager.stats, status);
  }

  // ── The end ──────────────────────────────────────────────────────────────────────────────────────────────────────

  // These call #finish() first: sending the last byte may move or close the connection within the same call. After an exception the stream is
  // already finished, so the upstream connection, from which these calls come, could not end it: the client's connection is ended.

  #endWithHeaders(headers: HeaderBlock): void {
    const { connection } = this;
    const encoder = this.#encoder;
    try {
      if (this.#holdEnd()) {
        encoder.headers(headers, true);
        return this.#releaseEnd();
      }
      this.#finish(true);
      encoder.headers(headers, true);
    } catch (error) {
      connection.onFault(error);
      throw error;
    }
  }

  #endWithData(offset: number, length: number): void {
    const { connection } = this;
    const encoder = this.#encoder;
    try {
      if (this.#holdEnd()) {
        encoder.data(offset, length, true);
        return this.#releaseEnd();
      }
      this.#finish(true);
      encoder.data(offset, length, true);
    } catch (error) {
      connection.onFault(error);
      throw error;
    }
  }

  #endWithTrailers(trailers: HeaderBlock): void {
    const { connection } = this;
    const encoder = this.#encoder;
    try {
      if (this.#holdEnd()) {
        encoder.trailers(trailers);
        return this.#releaseEnd();
      }
      this.#finish(true);
      encoder.trailers(trailers);
    } catch (error) {
      connection.onFault(error);
      throw error;
    }
  }

  /** Delays the end of the exchange beyond the last byte if an access log reads the number of bytes. Returns whether it did. */
  #holdEnd(): boolean {
    if (!this.manager.options.readsWireBytes || this.#encoder.holdEnd === undefined) return false;
    this.#encoder.holdEnd();
    return true;
  }

  #releaseEnd(): void {
    const encoder = this.#encoder;
    // A body of the wrong length has already ended it.
    if (this.#isOpen) this.#finish(true);
    encoder.releaseEnd!();
  }

  /** Ends the stream because its connection ends: the request gets no answer. `reason`: for the host. */
  abandon(details: string, flags: number, reason: ResetReason): void {
    if (!this.#isOpen) return;
    this.info.responseFlags |= flags;
    this.info.responseCodeDetails = details;
    this.info.connectionEndMs = this.manager.thread.clock.monotonicMs;
    this.#finish(false, reason);
  }

  /**
   * Ends the stream: updates counters, writes the access log and releases resources. `isAnswered`: the client gets a complete response; as
   * in Envoy, only then is its time recorded. `reason`: see TerminalFilter.onDestroy().
   */
  #finish(isAnswered: boolean, reason?: ResetReason): void {
    const { stats, thread } = this.manager;
    const { info } = this;
    const now = thread.clock.monotonicMs;
    this.#isOpen = false;
    this.#replyBody = undefined;
    this.#flow.end();
    if (this.isTunnel) info.forgetEnds();
    else if (isAnswered) {
      info.lastDownstreamTxMs = now;
      // As in Envoy, the rest of the request is not received: the connection ends.
      if (!this.#isRequestComplete) stats.http.increment(HttpStats.at.downstream_rq_rx_reset);
    }
    info.durationMs = now - info.startMonotonicMs;
    if (isAnswered && !this.isTunnel) stats.http.record(HttpStats.at.downstream_rq_time, Math.floor(info.durationMs));
    stats.http.decrement(HttpStats.at.downstream_rq_active);
    this.#endPass(reason);
    this.#keptHeaders?.drop();
    this.#keptHeaders = undefined;
    this.#noHeaders?.drop();
    this.#noHeaders = undefined;
    this.connection.streamFinished(this);
  }

  /** Ends a pass of the request through its filters, and writes its line of the access log. */
  #endPass(reason?: ResetReason): void {
    const { options, stats } = this.manager;
    const { info } = this;
    this.#terminal.onDestroy(reason);
    this.#filters?.end();
    this.trace?.finish(info, this.isGrpc, info.startRealtimeMs + info.durationMs);
    if (info.isHealthCheck) stats.http.increment(HttpStats.at['tracing.health_check']);
    this.#routing.end();
    info.accessLogType = 'DownstreamEnd';
    for (let i = 0; i < options.accessLogs.length; i++) options.accessLogs[i]!.log(info);
    // The stream is reused, and a span can be large.
    this.trace = undefined;
    info.span = undefined;
  }
}
