// The module 'baton/testing': tests of filters, with or without a running Baton. docs/filters-in-typescript.md is its introduction.

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ConnectionFacts } from './context.js';
import type { HttpFilter, StreamEnd } from './http-filter.js';

/** A request or a response for a test. A body of several pieces arrives piece by piece, and has no content-length. */
export interface TestMessage {
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
  readonly body?: string | Uint8Array | readonly (string | Uint8Array)[];
  readonly trailers?: Readonly<Record<string, string>>;
}

export interface TestRequest extends TestMessage {
  /** Default: GET, or POST with a body. */
  readonly method?: string;
  /** With query; default: `/`. */
  readonly path?: string;
  /** Default: `test`. */
  readonly host?: string;
}

export interface TestResponse extends TestMessage {
  /** Default: 200. */
  readonly status?: number;
}

export interface TestRoute {
  readonly name?: string;
  readonly virtualHost?: string;
  /** Default: `host`. */
  readonly cluster?: string;
  readonly metadata?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
}

/** A message as its receiver gets it. */
export interface ReceivedMessage {
  /** Values by name in lower case; several fields of a name are joined with a comma. */
  readonly headers: Readonly<Record<string, string>>;
  /** All fields, in order. */
  readonly fields: readonly (readonly [name: string, value: string])[];
  readonly body: Uint8Array;
  /** The pieces in which the body arrived, as text. */
  readonly pieces: readonly string[];
  readonly text: string;
  readonly trailers: Readonly<Record<string, string>>;
  // biome-ignore lint/suspicious/noExplicitAny: as in the Fetch API
  json(): any;
}

export interface ReceivedRequest extends ReceivedMessage {
  readonly method: string;
  readonly path: string;
  readonly host: string;
  /** The cluster that gets it. */
  readonly cluster: string;
}

export interface ReceivedResponse extends ReceivedMessage {
  readonly status: number;
}

export interface FilterTest<C = unknown> {
  /** Is validated by the filter, as in a configuration. */
  readonly config?: C | Readonly<Record<string, unknown>>;
  readonly request?: TestRequest;
  /** What the host answers. */
  readonly response?: TestResponse | ((request: ReceivedRequest) => TestResponse | Promise<TestResponse>);
  /** `null`: no route matches. A function is called again after ctx.rematchRoute(). */
  readonly route?: TestRoute | null | ((request: TestRequest) => TestRoute | null);
  /** Clusters that ctx.fetch() calls. Absent: ctx.setCluster() accepts every name, and ctx.fetch() none. */
  readonly clusters?: Readonly<Record<string, (request: ReceivedRequest) => TestResponse | Promise<TestResponse>>>;
  readonly runtime?: Readonly<Record<string, number | string | boolean>>;
  readonly connection?: Partial<ConnectionFacts>;
  /** How long a hook may hold a message; default: 5000. */
  readonly timeoutMs?: number;
  /** What Baton does when a hook fails. Absent: testFilter() rejects with what the hook has thrown. */
  readonly failurePolicy?: 'CLOSED' | 'OPEN';
}

export interface FilterTestResult {
  /** What the host has received; undefined: nothing. */
  readonly forwarded: ReceivedRequest | undefined;
  /** What the client has received; undefined: nothing. */
  readonly response: ReceivedResponse | undefined;
  /** The response was cut off, because of a failure after its head. */
  readonly isCutOff: boolean;
  /** What hooks have thrown, with `failurePolicy`. */
  readonly failures: readonly { readonly hook: string; readonly thrown: unknown }[];
  readonly metadata: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  readonly stats: {
    readonly counters: Readonly<Record<string, number>>;
    readonly gauges: Readonly<Record<string, number>>;
    readonly histograms: Readonly<Record<string, readonly number[]>>;
  };
  readonly log: readonly { readonly level: 'debug' | 'info' | 'warn' | 'error'; readonly text: string }[];
  readonly end: StreamEnd;
}

/** Sends one request through a filter, without sockets: the code around the hooks is Baton's own. */
export declare function testFilter<C>(filter: HttpFilter<C>, test?: FilterTest<C>): Promise<FilterTestResult>;

/** A module of a Baton that a test starts. */
export interface TestedModule {
  /** Relative to the working directory. */
  readonly filename: string;
  readonly config?: Readonly<Record<string, unknown>>;
  readonly timeout?: string;
  readonly failurePolicy?: 'CLOSED' | 'OPEN';
}

/** A server on 127.0.0.1: its port, or what answers requests. */
export type TestServer = number | ((request: IncomingMessage, response: ServerResponse) => void);

export interface BatonTest {
  /** HTTP filters, in order. A string is a filename. */
  readonly filters?: readonly (string | TestedModule)[];
  readonly networkFilters?: readonly (string | TestedModule)[];
  readonly accessLoggers?: readonly (string | TestedModule)[];
  /** The host of all requests. Default: it answers with the request as JSON: method, url, headers, body. */
  readonly host?: TestServer;
  /** Further clusters by name. The one of `host` is called `host`. */
  readonly clusters?: Readonly<Record<string, TestServer>>;
  /** Runtime values. */
  readonly runtime?: Readonly<Record<string, unknown>>;
  /** Merged into the bootstrap, or a complete bootstrap if it has static_resources: all else of this object is ignored then. */
  readonly bootstrap?: Readonly<Record<string, unknown>>;
  /** Further arguments of the command line. `-c`, `--admin-address-path`, `--disable-hot-restart` and `--concurrency 1` are set. */
  readonly args?: readonly string[];
}

/** What startBaton() needs of the context of a test, of node:test and others. */
export interface TestContext {
  after(end: () => Promise<void>): unknown;
}

export interface RunningBaton {
  /** The URL of the first listener, such as `http://127.0.0.1:34567`. */
  readonly url: string;
  /** Port of the first listener. */
  readonly port: number;
  /** Base URL of the admin interface. */
  readonly adminUrl: string;
  /** The process. */
  readonly pid: number;
  /** What Baton has logged. */
  readonly log: string;
  /** The global fetch(), with a path. */
  fetch(path: string, init?: RequestInit): Promise<Response>;
  /** Returns the values of all counters and gauges, by name. */
  stats(): Promise<Readonly<Record<string, number>>>;
  /** Waits until `condition` returns something else than false and undefined, at most `ms` (5000). Returns that. */
  waitFor<T>(condition: () => T | Promise<T>, ms?: number): Promise<T>;
  stop(): Promise<void>;
}

/** Starts Baton with filters, as a process of its own, and waits until it serves. `t` stops it at the end of a test. */
export declare function startBaton(test: BatonTest, t?: TestContext): Promise<RunningBaton>;
