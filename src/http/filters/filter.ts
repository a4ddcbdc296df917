// The interfaces of HTTP filters. A filter sees the request on its way in and the response on its way out, and may change, hold or answer
// it.
//
// Filters run in configured order for requests and in the opposite order for responses. The last one, the terminal filter, has an interface
// of its own (TerminalFilter): it forwards the request.

import type { StreamInfo } from '../../access-log/stream/stream-info.js';
import type { HeldBytes } from '../../io/held-bytes.js';
import type { ThreadOverload } from '../../runtime/overload/thread-overload.js';
import type { Scope } from '../../stats/thread-stats.js';
import type { ResetReason } from '../codec/streams.js';
import type { HeaderBlock } from '../headers/header-block.js';
import type { InternalRedirects } from '../routing/actions/internal-redirects.js';
import type { Route } from '../routing/actions/route.js';
import type { MissingHost } from '../routing/tables/on-demand-hosts.js';
import type { RequestTrace } from '../tracing/request-trace.js';

export const enum HeadersStatus {
  /** The next filter sees the headers. */
  Continue = 0,
  /** No later filter sees headers or data until continueDecoding() or continueEncoding(). */
  StopIteration = 1,
}

export const enum DataStatus {
  Continue = 0,
  /** The bytes are buffered for this filter until it continues. Above the stream's buffer limit the client gets 413 or 500. */
  StopAndBuffer = 1,
  /** The bytes are dropped; the filter has copied what it needs. */
  StopNoBuffer = 2,
}

/**
 * A filter's access to its request, in its callbacks and at any other time. After the filter's onDestroy() every method is a no-op and
 * `info` belongs to no request, so a late timer or response has no effect. A head that the filter still held back may be changed safely
 * even then; a head that it has passed on is no longer its own. Errors in code that a method calls are not thrown to the filter: they are
 * logged and end the client's connection.
 */
export interface StreamControl {
  readonly info: StreamInfo;
  /**
   * Runs `act` like a callback of the filter: in a turn of the worker, and not at all after onDestroy(). Use it for code that a timer, a
   * response or a promise triggers. If `act` throws or its promise is rejected, the error is logged and the request answered with 500;
   * without run() a held request would wait for its timeout.
   */
  run(act: () => void | Promise<void>): void;
  /**
   * Passes the headers, the buffered body and the trailers that this filter holds back to the next filter. Within a callback of the filter
   * in the same direction it has the effect of returning Continue; bytes of StopNoBuffer stay dropped.
   */
  continueDecoding(): void;
  continueEncoding(): void;
  /** Return how many body bytes this filter holds back. */
  heldRequestBytes(): number;
  heldResponseBytes(): number;
  /**
   * Append bytes to those that this filter holds back, within the same limit; they pass when it continues. With StopNoBuffer they replace
   * the received bytes. Valid in a callback of the filter in that direction until it continues there, and while it holds something; a no-op
   * at other times. The filter itself adjusts `content-length`, while it holds the head.
   */
  addRequestBytes(bytes: Uint8Array): void;
  addResponseBytes(bytes: Uint8Array): void;
  /** Return a copy of the bytes that this filter holds back. */
  readRequestBytes(): Buffer;
  readResponseBytes(): Buffer;
  /** Drop the bytes that this filter holds back. */
  dropRequestBytes(): void;
  dropResponseBytes(): void;
  /**
   * Pass bytes to the filters after this one at once, ahead of what this filter holds back. For a filter that produces a body of its own with
   * StopNoBuffer: unlike held bytes they are not limited, so the filter must stop producing while onRequestBlocked() or onResponseBlocked()
   * applies. Valid in a callback of the filter in that direction, and while it holds something back; a no-op at other times and while it
   * holds the head.
   */
  passRequestBytes(bytes: Uint8Array): void;
  passResponseBytes(bytes: Uint8Array): void;
  /**
   * Pass the head on to the filters after this one, and go on holding the rest back. Valid outside the filter's callbacks, while it holds the
   * head; a no-op at other times.
   */
  passRequestHead(): void;
  passResponseHead(): void;
  /**
   * Return an empty trailer block for a message that ends without trailers. Valid in the callback that has `endStream`, or while the filter
   * holds the end back. The filters after this one see the block like received trailers. In HTTP/1.1 it reaches the peer if the body is
   * chunked. Return undefined at other times, and when memory is short: the request is then answered with 503. Received trailers can be
   * changed in the callback for trailers; if every field is removed, no trailers are sent.
   */
  addRequestTrailers(): HeaderBlock | undefined;
  addResponseTrailers(): HeaderBlock | undefined;
  /** Sets the largest body that StopAndBuffer may hold; above it the request is answered with 413. */
  setRequestBufferLimit(bytes: number): void;
  /** Answers the request as one whose body is above that limit. */
  refuseLargeRequest(): void;
  /** Sets the largest body of a response that StopAndBuffer may hold; above it the client gets 500. */
  setResponseBufferLimit(bytes: number): void;
  /** Pause and resume the request body. It flows while no filter pauses it. */
  pauseRequest(): void;
  resumeRequest(): void;
  /** Pause and resume the response body, in the same way. What has been received already may still arrive. */
  pauseResponse(): void;
  resumeResponse(): void;
  /** Returns the route of the request; undefined if none matches. On a worker its cluster is a ClusterReference. */
  route(): Route<unknown> | undefined;
  /**
   * Sends the request to another cluster; everything else of its route stays. Valid until the request has passed all filters. Returns
   * whether it has a route that forwards it.
   */
  setCluster(cluster: ClusterReferenceLike): boolean;
  /**
   * Returns the virtual host to request on demand (VHDS); undefined if the route table has one for the request, or has no on-demand source.
   */
  missingHost(): MissingHost | undefined;
  /**
   * Matches the route again and continues decoding; the filters after this one are those of the new route. Valid in decodeHeaders(), where
   * it has the effect of returning Continue, and while the filter holds the head. Throws in a later callback for the request, after the
   * filter has passed the head on; a no-op at other times.
   */
  continueWithNewRoute(): void;
  /**
   * Does the same without continuing: the filter goes on holding the request. Returns false when the request got a local reply, because the
   * new route does not allow its upgrade, and when nothing was done.
   */
  chooseRouteAgain(): boolean;
  /**
   * Returns the configuration of this filter by the current route, as create() got it for the route at that time; null: the route disables
   * the filter. Call it after chooseRouteAgain().
   */
  routeConfig(): unknown;
  /**
   * Creates filters that run right after this one, in this order, as if they stood there in the chain. Routes have no configurations for
   * them. Valid in decodeHeaders() only; a no-op at other times.
   */
  insertFilters(factories: readonly HttpFilterFactory[]): void;
  /**
   * Ends the request with a local reply. The reply passes the filters in the response direction; if they are already processing a response,
   * it replaces that response and bypasses them. If the head of a response has been sent to the client, that response is cut off.
   */
  sendLocalReply(reply: LocalReply): void;
  /** Resets the stream: the client gets no response, or an incomplete one. `details`: %RESPONSE_CODE_DETAILS%. */
  resetStream(details: string): void;
}

/** A cluster as the tables of routes refer to it. */
export interface ClusterReferenceLike {
  readonly name: string;
}

export interface LocalReply {
  /** 200 to 999. */
  status: number;
  /** Plain text; a string is sent as UTF-8. */
  body: string | Uint8Array;
  details: string;
  /** ResponseFlag bits. */
  flags: number;
  /** The grpc-status for a gRPC request. Absent: derived from `status`. */
  grpcStatus?: number | undefined;
  /** Called with the head of the reply before it is sent. */
  editHeaders?: (headers: HeaderBlock) => void;
  /**
   * The head is exactly what editHeaders makes: the route's response headers, the gRPC form and local_reply_config are not applied. Absent:
   * they are, as for a host's response.
   */
  isVerbatim?: boolean;
  /** The reply is a host's response, whose content-type stays as editHeaders makes it. */
  isCopy?: boolean;
}

/**
 * One filter of one stream. An absent callback costs nothing and means Continue, except that everything after a part that the filter holds
 * back is held too. An error in a callback is logged and answered with 500, or cuts the response off; in onDestroy() it is only logged.
 */
export interface HttpFilter {
  decodeHeaders?(headers: HeaderBlock, endStream: boolean): HeadersStatus;
  /** The bytes are [offset, offset + length) of WorkerContext.memory.bytes, valid until this returns. They may be changed in place. */
  decodeData?(offset: number, length: number, endStream: boolean): DataStatus;
  decodeTrailers?(trailers: HeaderBlock): HeadersStatus;
  encodeHeaders?(headers: HeaderBlock, endStream: boolean): HeadersStatus;
  encodeData?(offset: number, length: number, endStream: boolean): DataStatus;
  encodeTrailers?(trailers: HeaderBlock): HeadersStatus;
  /**
   * Called when the host (request) or the client (response) cannot take more, and when it can again. Only a filter that passes bytes on its
   * own needs these: received bytes stop by themselves.
   */
  onRequestBlocked?(): void;
  onRequestDrained?(): void;
  onResponseBlocked?(): void;
  onResponseDrained?(): void;
  /** Called when the stream ends, in any way: releases the filter's resources. */
  onDestroy?(): void;
}

/** Creates one filter for each stream. The chain has one factory for each of its filters, created with the chain. */
export interface HttpFilterFactory {
  /**
   * Returns the filter for one stream, or undefined to skip the stream; `stream` is then a no-op. The filter may send a local reply in its
   * callbacks, not during create().
   * @param routeConfig the route's configuration of this filter, as compiled by the extension
   */
  create(stream: StreamControl, routeConfig: unknown): HttpFilter | undefined;
  /**
   * Called when the chain is removed or its configuration replaced: create() is not called again. Releases the factory's own resources,
   * such as timers; filters in use get their own onDestroy().
   */
  close?(): void;
}

/** The last filter of the chain: consumes the request and passes the response to the stream. */
export interface TerminalFilter {
  /** Bytes of the request body that it buffers. */
  readonly heldBytes?: number;
  decodeHeaders(headers: HeaderBlock, endStream: boolean): void;
  decodeData(offset: number, length: number, endStream: boolean): void;
  decodeTrailers(trailers: HeaderBlock): void;
  /** Called when the unsent part of the response rises above the limit, and when it has drained. */
  onResponseBlocked(): void;
  onResponseDrained(): void;
  /**
   * Called when the stream ends, after the whole response or early, or when it gets a local reply and ends later. `reason`: for what is
   * still under way; absent: LocalReset.
   */
  onDestroy(reason?: ResetReason): void;
}

/** A request after its head, complete. */
export interface RequestBody {
  readonly bytes: HeldBytes;
  readonly trailers: HeaderBlock | undefined;
}

/** A stream as its terminal filter uses it: the source of the request and the destination of the response. */
export interface ResponseStream {
  readonly info: StreamInfo;
  /** The route of the request; undefined: none matches. */
  readonly route: Route<unknown> | undefined;
  readonly scheme: 'http' | 'https';
  /** The request is an upgrade that the route allows: after a 101, raw bytes pass in both directions. */
  readonly isUpgrade: boolean;
  /** The request comes from an internal client (x-envoy-internal). */
  readonly isInternal: boolean;
  /** The host answers Expect: 100-continue, and its 1xx responses are forwarded to the client. */
  readonly passesInformational: boolean;
  /** The request's scheme becomes that of the connection to its host (scheme_header_transformation.match_upstream). */
  readonly matchesUpstreamScheme: boolean;
  /** Undefined: no overload manager applies to its connection. */
  readonly overload?: ThreadOverload | undefined;
  /** http.<stat_prefix>. */
  readonly httpStats: Scope;
  /** The request's trace; undefined: it has none. */
  readonly trace: RequestTrace | undefined;
  encodeInformational(headers: HeaderBlock): void;
  encodeHeaders(headers: HeaderBlock, endStream: boolean): void;
  encodeData(offset: number, length: number, endStream: boolean): void;
  encodeTrailers(trailers: HeaderBlock): void;
  /** Called when a tunnel's request direction has ended and all of it has been passed on. The response direction may have ended before. */
  requestForwarded(): void;
  /**
   * Pause and resume the request body. `who` is a bit that identifies the caller, below the filters' bit; `isCounted`: in the stats of flow
   * control, which is the default.
   */
  pauseRequest(who: number, isCounted?: boolean): void;
  resumeRequest(who: number): void;
  /** Sends a local reply instead of the response; see StreamControl. */
  sendLocalReply(reply: LocalReply): void;
  /**
   * Makes a request that is complete one for the target of a host's redirect. Returns false, with the request unchanged, if the policy does
   * not allow it, which is counted. Otherwise restart() must follow.
   */
  redirect(policy: InternalRedirects, response: HeaderBlock): boolean;
  /**
   * Ends the request, as answered by `response`, and handles it again from its first filter on; `body` is the rest of the request. The
   * terminal filter gets onDestroy(), and another request.
   */
  restart(response: HeaderBlock, body: RequestBody): void;
  /** Resets the stream so that the client detects an incomplete response. `isByHost`: the host has ended the response. */
  resetResponse(details: string, isByHost?: boolean): void;
  /** Logs an error that was thrown while handling the request, and resets the stream. */
  fault(error: unknown): void;
}

/** Creates the terminal filter of a stream object, which serves all requests of that object in sequence. */
export interface TerminalFilterFactory {
  create(stream: ResponseStream): TerminalFilter;
  /** Called when the chain is removed: create() is not called again. */
  close?(): void;
}
