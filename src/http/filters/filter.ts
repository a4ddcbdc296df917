// What an HTTP filter is: it sees a request on its way in and the response on its way out, and may change, hold or answer it.
//
// Filters run in configured order for requests and in the opposite order for responses. The last one, the terminal
// filter, has no decode callbacks of its own here: it forwards the request (TerminalFilter).

import type { StreamInfo } from '../../access-log/stream/stream-info.js';
import type { Scope } from '../../stats/thread-stats.js';
import type { HeaderBlock } from '../headers/header-block.js';
import type { Route } from '../routing/actions/route.js';
import type { MissingHost } from '../routing/tables/on-demand-hosts.js';

export const enum HeadersStatus {
  /** The next filter sees the headers. */
  Continue = 0,
  /** No later filter sees headers or data until continueDecoding() or continueEncoding(). */
  StopIteration = 1,
}

export const enum DataStatus {
  Continue = 0,
  /** The bytes are kept for this filter (within the stream's buffer limit; above it 413 or 500) until it continues. */
  StopAndBuffer = 1,
  /** The bytes are gone: the filter has copied what it wants. */
  StopNoBuffer = 2,
}

/**
 * What a filter may do with the request that it belongs to, in its callbacks and at any other time. Once its onDestroy() has returned
 * all of this does nothing, and `info` is that of no request: a timer or an answer that comes late harms nobody. Nor does what it does
 * to a head that it held back until then; one that has passed is not its own any more. What goes wrong
 * behind a call ends the client's connection, with an error in the log, and is not thrown here.
 */
export interface StreamControl {
  readonly info: StreamInfo;
  /**
   * Runs what a timer, an answer or a promise has woken as if it were a callback of the filter: in a turn of the worker, and not at all
   * once the filter is gone. What it throws, or the promise that it returns is rejected with, ends the client's connection with an error
   * in the log; without this a request that is held would wait for its timeout.
   */
  run(act: () => void | Promise<void>): void;
  /**
   * Goes on behind this filter with the headers, the buffered body and the trailers that it held back. Within a callback of the filter
   * in the same direction it stands for Continue, and takes place when the callback returns; bytes of StopNoBuffer stay dropped.
   */
  continueDecoding(): void;
  continueEncoding(): void;
  /** Bytes that this filter holds back of the body. */
  heldRequestBytes(): number;
  heldResponseBytes(): number;
  /**
   * Puts bytes behind those that this filter holds back, within the same limit; they pass when it continues, and with StopNoBuffer they
   * stand for what has come. In a callback of the filter in that direction, as long as it has not continued there, and while it holds
   * something; at other times nothing happens. `content-length` is the filter's to change, while it has the head.
   */
  addRequestBytes(bytes: Uint8Array): void;
  addResponseBytes(bytes: Uint8Array): void;
  /**
   * Trailers, empty yet, for a message that ends without any: in the callback that brings its end (`endStream`), or while the filter holds
   * that. The filters behind this one see them as they see a peer's. In HTTP/1.1 they reach the peer if the body is chunked. Undefined at
   * other times, and when memory is short: then the request is answered with 503. Trailers that came can be changed in the callback for
   * trailers; of those from which every field is removed, nothing is sent.
   */
  addRequestTrailers(): HeaderBlock | undefined;
  addResponseTrailers(): HeaderBlock | undefined;
  /** Largest body that StopAndBuffer may hold; above it the request is answered with 413. */
  setRequestBufferLimit(bytes: number): void;
  /** Stops and restarts the request body. It flows when no filter stops it. */
  pauseRequest(): void;
  resumeRequest(): void;
  /** The route of the request; undefined: none matches. On a worker its cluster is a ClusterReference. */
  route(): Route<unknown> | undefined;
  /** The virtual host that the request's routes lack; undefined: they have one, or none can be asked for. */
  missingHost(): MissingHost | undefined;
  /** continueDecoding() with the route that is found now: the filters behind this one, which holds the head, are those of it. */
  continueWithNewRoute(): void;
  /**
   * Answers at once; the request goes no further. The answer passes the filters on their way out, but not when they have begun with a
   * response: it takes the place of that. When the head of one has gone out to the client, that response is broken off. `details` as
   * in %RESPONSE_CODE_DETAILS%.
   */
  sendLocalReply(reply: LocalReply): void;
}

export interface LocalReply {
  /** 200 to 599. */
  status: number;
  /** Plain text, in UTF-8. */
  body: string | Uint8Array;
  details: string;
  /** ResponseFlag bits. */
  flags: number;
  /** The grpc-status for a request of gRPC. Absent: what `status` means in gRPC. */
  grpcStatus?: number | undefined;
  /** Changes the head of the answer before it is sent. */
  editHeaders?: (headers: HeaderBlock) => void;
  /**
   * The head is what editHeaders makes it: without what the route adds to responses, not in the form of gRPC, and untouched by
   * local_reply_config. Absent: it stands in for that of a host.
   */
  isVerbatim?: boolean;
}

/**
 * One filter of one stream. Callbacks that a filter leaves out cost nothing, and stand for Continue; what follows something that the
 * filter holds back is held with it. What a callback throws is logged and ends the client's connection; in onDestroy() it is only
 * logged.
 */
export interface HttpFilter {
  decodeHeaders?(headers: HeaderBlock, endStream: boolean): HeadersStatus;
  /** The bytes are [offset, offset + length) of WorkerContext.memory.bytes, until it returns; they may be changed there. */
  decodeData?(offset: number, length: number, endStream: boolean): DataStatus;
  decodeTrailers?(trailers: HeaderBlock): HeadersStatus;
  encodeHeaders?(headers: HeaderBlock, endStream: boolean): HeadersStatus;
  encodeData?(offset: number, length: number, endStream: boolean): DataStatus;
  encodeTrailers?(trailers: HeaderBlock): HeadersStatus;
  /** The stream is over, in whatever way: release what is held. */
  onDestroy?(): void;
}

/** Makes a filter for each stream. One of these a filter of the chain, made when the chain is built. */
export interface HttpFilterFactory {
  /**
   * The filter for one stream; undefined when it has nothing to do with it, and then `stream` does nothing any more. A filter may
   * answer from its callbacks on, not as it is made.
   * @param routeConfig what the stream's route says to this filter, as its extension has compiled it
   */
  create(stream: StreamControl, routeConfig: unknown): HttpFilter | undefined;
  /**
   * Makes no filter any more: the chain is gone, or another configuration has taken this one's place. It gives up what it holds itself,
   * such as timers; filters that are still at work have their own onDestroy(). Absent: nothing.
   */
  close?(): void;
}

/** The end of the chain: takes the request and gives the response to the stream. */
export interface TerminalFilter {
  /** Bytes of the request's body that it keeps. */
  readonly heldBytes?: number;
  decodeHeaders(headers: HeaderBlock, endStream: boolean): void;
  decodeData(offset: number, length: number, endStream: boolean): void;
  decodeTrailers(trailers: HeaderBlock): void;
  /** The client takes less of the response than comes: more than the limit waits, and again less. */
  onResponseBlocked(): void;
  onResponseDrained(): void;
  /** The stream ended, normally after the whole response, or early; or it is answered without this filter, and ends later. */
  onDestroy(): void;
}

/** A stream as its terminal filter sees it: where the request comes from and the response goes to. */
export interface ResponseStream {
  readonly info: StreamInfo;
  /** The route of the request; undefined: none matches. */
  readonly route: Route<unknown> | undefined;
  readonly scheme: 'http' | 'https';
  /** The request asks for another protocol and may have it: bytes pass raw in both directions after a 101. */
  readonly isUpgrade: boolean;
  /** The request comes from an internal client (x-envoy-internal). */
  readonly isInternal: boolean;
  /** 100-continue is left to the host, and the client gets all that the host answers in advance (1xx). */
  readonly passesInformational: boolean;
  /** http.<stat_prefix>. */
  readonly httpStats: Scope;
  encodeInformational(headers: HeaderBlock): void;
  encodeHeaders(headers: HeaderBlock, endStream: boolean): void;
  encodeData(offset: number, length: number, endStream: boolean): void;
  encodeTrailers(trailers: HeaderBlock): void;
  /** Stops and restarts the request body; `who` is a bit of the caller's own, below that of the filters. */
  pauseRequest(who: number): void;
  resumeRequest(who: number): void;
  /** Answers at once in the response's stead; see StreamControl. */
  sendLocalReply(reply: LocalReply): void;
  /** Gives the stream up in a way that the client must notice. */
  resetResponse(details: string): void;
  /** Something threw on behalf of the request, in whatever event: it is logged, and the stream is reset. */
  fault(error: unknown): void;
}

/** Makes the terminal filter of a stream object; it serves all requests of that object, one after another. */
export interface TerminalFilterFactory {
  create(stream: ResponseStream): TerminalFilter;
}
