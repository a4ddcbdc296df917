// The parts of the API that all kinds of extensions in TypeScript share.

/** What every hook can use. */
export interface ModuleContext {
  /** Writes to Baton's log, with the module's name. */
  readonly log: Log;
  /**
   * The module's own stats, below `http.<stat_prefix>.script.<module>.` (network filters: `network_filter.script.<module>.`,
   * access loggers: `access_log.script.<module>.`).
   */
  readonly stats: Stats;
  /** Values that runtime layers set. */
  readonly runtime: RuntimeValues;
}

/** What hooks of a request or a connection can use. */
export interface StreamContext extends ModuleContext {
  readonly connection: ConnectionFacts;
  /** Aborted when the request or the connection ends. */
  readonly signal: AbortSignal;
  /** Calls a cluster. Rejects when there is no response; calls end with the request or the connection. */
  fetch(cluster: string, path: string, init?: FetchInit): Promise<FetchResponse>;
  /** Calls `act` later, unless the request or the connection ends before. Returns a function that cancels it. */
  setTimeout(act: () => void, ms: number): () => void;
  /** Anything that this filter keeps between the hooks of this request or connection. */
  state: Record<string, unknown>;
}

export interface Log {
  debug(text: string): void;
  info(text: string): void;
  warn(text: string): void;
  error(text: string): void;
}

/** Names consist of letters, digits, `_`, `.` and `-`. A module has at most 1000. */
export interface Stats {
  /** Adds to a counter. */
  count(name: string, n?: number): void;
  /** Sets a gauge. Its value is the sum over all workers. */
  gauge(name: string, value: number): void;
  /** Adds a sample to a histogram of milliseconds. */
  record(name: string, ms: number): void;
}

export interface RuntimeValues {
  number(key: string, fallback: number): number;
  string(key: string, fallback: string): string;
  boolean(key: string, fallback: boolean): boolean;
}

export interface Metadata {
  get(namespace: string): Readonly<Record<string, unknown>> | undefined;
  /** Merges plain data into the namespace. */
  set(namespace: string, values: Readonly<Record<string, unknown>>): void;
}

export interface ConnectionFacts {
  readonly id: number;
  /** The client's address with port: that of x-forwarded-for where it is trusted. */
  readonly remoteAddress: string;
  readonly localAddress: string;
  /** Undefined without TLS. */
  readonly tls: TlsFacts | undefined;
}

export interface TlsFacts {
  readonly serverName: string;
  readonly version: string;
  /** Subject of the client's certificate; '' without one. */
  readonly peerSubject: string;
  readonly peerUris: readonly string[];
}

export interface FetchInit {
  /** Default: GET, or POST with a body. */
  readonly method?: string;
  /** `host` is the cluster's name unless it is set. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
  /** Timeout of the whole call; default: 5000. */
  readonly timeoutMs?: number;
  /** The call continues after the request or the connection has ended. */
  readonly keepalive?: boolean;
}

/** A response of at most 64 KiB. */
export interface FetchResponse {
  readonly status: number;
  /** The status is 200 to 299. */
  readonly ok: boolean;
  readonly headers: ReadonlyMap<string, string>;
  bytes(): Uint8Array;
  text(): string;
  // biome-ignore lint/suspicious/noExplicitAny: as in the Fetch API
  json(): any;
}

/** The result of ctx.reply(). */
export interface Reply {
  readonly status: number;
  readonly body: string | Uint8Array;
  readonly headers: Readonly<Record<string, string>> | undefined;
}

/** See https://standardschema.dev. */
export interface StandardSchema<Output = unknown> {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>;
    readonly types?: { readonly input: unknown; readonly output: Output } | undefined;
  };
}

export type StandardResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly StandardIssue[] };

export interface StandardIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}
