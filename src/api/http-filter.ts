// The API of HTTP filters in TypeScript. docs/filters-in-typescript.md is its introduction.

import type { Metadata, Reply, StandardSchema, StreamContext } from './context.js';
import { marked } from './kind.js';

/** An HTTP filter: a module exports one as its default, made with defineHttpFilter(). `C`: its `config`. */
export interface HttpFilter<C = unknown> {
  /** Validates `config` when the configuration is loaded: any Standard Schema (zod, valibot, arktype …), or a function that throws. */
  readonly config?: StandardSchema<C> | ((config: unknown) => C);
  /** Called with each request. A returned reply answers it. While a promise is pending, the request is held. */
  onRequest?(request: HttpRequest, ctx: HttpContext<C>): HookResult;
  /** Called with each response, except replies of this filter. A returned reply replaces it. */
  onResponse?(response: HttpResponse, ctx: HttpContext<C>): HookResult;
  /** Called when the request has ended in any way, before it is logged. It cannot wait. */
  onStreamEnd?(end: StreamEnd, ctx: HttpContext<C>): void;
}

// biome-ignore lint/suspicious/noConfusingVoidType: hooks without a return statement
export type HookResult = void | Reply | Promise<void | Reply>;

/** Usable until the hook has returned, or its promise is settled. */
export interface HttpMessage {
  readonly headers: Headers;
  /** Trailers, after the body has been read. A field that is set is sent after a body of unknown length. */
  readonly trailers: Headers;
  /** Whether the message has a body or trailers. */
  readonly hasBody: boolean;
  /** Read the whole body, up to the buffer limit: a larger request is answered with 413, a larger response with 500. */
  bytes(): Promise<Uint8Array>;
  text(): Promise<string>;
  // biome-ignore lint/suspicious/noExplicitAny: as in the Fetch API
  json(): Promise<any>;
  /**
   * The body in pieces, as it arrives. The first step sends the head on, which cannot be changed afterwards. Each piece is sent on
   * when the next one is requested, and pieces after `break` are sent on unseen.
   */
  readonly body: AsyncIterable<BodyPiece>;
  /** Replaces the body. content-length follows. */
  setBody(body: string | Uint8Array): void;
}

export interface HttpRequest extends HttpMessage {
  method: string;
  /** With query. */
  path: string;
  /** The path without query. */
  readonly pathname: string;
  /** The parameters of the query. Changes have no effect: set `path`. */
  readonly query: URLSearchParams;
  /** host, or :authority. */
  host: string;
  readonly scheme: 'http' | 'https';
  /** The value of a cookie. */
  cookie(name: string): string | undefined;
}

export interface HttpResponse extends HttpMessage {
  status: number;
}

/** Header fields; names are case-insensitive. Text is sent as UTF-8. */
export interface Headers {
  /** Returns the value; several fields are joined with a comma, cookies with a semicolon, and of set-cookie the first is returned. */
  get(name: string): string | undefined;
  getAll(name: string): string[];
  has(name: string): boolean;
  /** Replaces all fields of the name. */
  set(name: string, value: string): void;
  append(name: string, value: string): void;
  delete(name: string): boolean;
  [Symbol.iterator](): IterableIterator<[name: string, value: string]>;
}

/** A piece of a body. */
export interface BodyPiece {
  readonly bytes: Uint8Array;
  /** Returns the piece as text. A character that is split is in the text of the next piece. */
  text(): string;
  /** Sends something else instead; an empty piece is left out. Throws if content-length announces another length. */
  replace(piece: string | Uint8Array): void;
}

/** The context of one request, from its first hook to its end. */
export interface HttpContext<C = unknown> extends StreamContext {
  /** `config` of the route if it has one, otherwise of the filter. */
  readonly config: C;
  /** Dynamic metadata, for %DYNAMIC_METADATA% of logs and for later filters. */
  readonly metadata: Metadata;
  /** Undefined when no route matches. */
  readonly route: RouteFacts | undefined;
  /** Returns a reply, which the hook must return. `content-type` is text/plain unless it is set. */
  reply(status: number, body?: string | Uint8Array, headers?: Readonly<Record<string, string>>): Reply;
  /** Sends the request to another cluster than that of its route. Only in onRequest; the route's other settings apply. */
  setCluster(name: string): void;
  /**
   * Returns the request as a Request of the Fetch API, for libraries that need one; with its body, which is read. Only in onRequest.
   * This copies all fields: use `request` for everything else.
   */
  toRequest(): Promise<Request>;
  /**
   * Returns a text with %OPERATORS% of access logs, such as '%PROTOCOL% %DOWNSTREAM_TLS_CIPHER%', as they are now; `-` for what is not
   * known. Those for headers are not available.
   */
  format(text: string): string;
  /** Selects the route again from the changed request when the hook ends. Only in onRequest. */
  rematchRoute(): void;
}

export interface RouteFacts {
  readonly name: string;
  readonly virtualHost: string;
  readonly cluster: string;
  /** filter_metadata, by namespace. */
  readonly metadata: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
}

export interface StreamEnd {
  /** 0 if no response has begun. */
  readonly status: number;
  /** %RESPONSE_FLAGS% and %RESPONSE_CODE_DETAILS% of access logs. */
  readonly flags: string;
  readonly details: string;
  readonly durationMs: number;
  readonly bytesReceived: number;
  readonly bytesSent: number;
}

/** Defines an HTTP filter. */
export function defineHttpFilter<C = unknown>(filter: HttpFilter<C>): HttpFilter<C> {
  return marked(filter, 'http filter');
}
