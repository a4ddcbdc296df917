// The API of access loggers in TypeScript. docs/filters-in-typescript.md is its introduction.

import type { FetchInit, FetchResponse, ModuleContext, StandardSchema } from './context.js';
import { marked } from './kind.js';

/** An access logger: a module exports one as its default, made with defineAccessLogger(). `C`: its `config`. */
export interface AccessLogger<C = unknown> {
  /** Validates `config`, as that of HttpFilter does. */
  readonly config?: StandardSchema<C> | ((config: unknown) => C);
  /** Called when a request or a TCP connection has ended. Nothing waits for it. */
  onLog(entry: LogEntry, ctx: LoggerContext<C>): void | Promise<void>;
}

/** A finished request or connection. Usable until onLog() has returned, or has first awaited something. */
export interface LogEntry {
  /** 'http', or 'tcp' for a connection. */
  readonly type: 'http' | 'tcp';
  readonly startTime: Date;
  readonly durationMs: number;
  /** 0 if no response has begun. */
  readonly status: number;
  /** %RESPONSE_FLAGS% and %RESPONSE_CODE_DETAILS%. */
  readonly flags: string;
  readonly details: string;
  readonly bytesReceived: number;
  readonly bytesSent: number;
  /** '' for a connection. */
  readonly method: string;
  /** With query. */
  readonly path: string;
  readonly host: string;
  readonly routeName: string;
  readonly cluster: string;
  /** The host of the last try, as `127.0.0.1:80`. */
  readonly upstreamHost: string;
  readonly remoteAddress: string;
  readonly localAddress: string;
  requestHeader(name: string): string | undefined;
  responseHeader(name: string): string | undefined;
  responseTrailer(name: string): string | undefined;
  /** Dynamic metadata. */
  metadata(namespace: string): Readonly<Record<string, unknown>> | undefined;
  /** Returns a text with %OPERATORS% of access logs, such as '%REQ(:PATH)% %DURATION%'. */
  format(text: string): string;
}

/** The context of a logger. It lasts as long as the logger. */
export interface LoggerContext<C = unknown> extends ModuleContext {
  readonly config: C;
  /** Anything that this logger keeps on its worker, such as lines to send together. A changed module gets the same object. */
  readonly state: Record<string, unknown>;
  /** Calls a cluster. Rejects when there is no response. */
  fetch(cluster: string, path: string, init?: FetchInit): Promise<FetchResponse>;
}

/** Defines an access logger. */
export function defineAccessLogger<C = unknown>(logger: AccessLogger<C>): AccessLogger<C> {
  return marked(logger, 'access logger');
}
