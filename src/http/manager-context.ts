// The context that all connections and streams of one HTTP connection manager share on one worker.

import type { AccessLogger } from '../access-log/access-logger.js';
import type { ChainNames } from '../access-log/stream/stream-info.js';
import type { Random } from '../common/random.js';
import type { RouteConfiguration } from '../config/generated/api.js';
import type { Memory } from '../io/memory.js';
import type { Clock } from '../io/time/clock.js';
import type { TimingWheel } from '../io/time/timing-wheel.js';
import type { Transport } from '../io/transport/transport.js';
import type { Scope } from '../stats/thread-stats.js';
import type { Http1Options, Http2Options } from './codec/options.js';
import type { HeadTimeout } from './connections/head-timeouts.js';
import type { UserAgentStats } from './connections/user-agent-stats.js';
import type { HttpFilterFactory, TerminalFilterFactory } from './filters/filter.js';
import type { ForwardingRules } from './headers/edge/forwarding-headers.js';
import type { ResponseHeaders } from './headers/edge/response-headers.js';
import type { HeaderBlock, HeaderBlockPool } from './headers/header-block.js';
import type { HeaderLine } from './headers/header-line.js';
import type { HeaderMutations } from './headers/header-mutations.js';
import type { LocalReplyRules } from './local-replies/local-reply-rules.js';
import type { HostNormalizer } from './normalization/host-normalization.js';
import type { PathNormalizer } from './normalization/path-normalization.js';
import type { RouteTable } from './routing/tables/route-table.js';
import type { RequestTracing } from './tracing/request-tracing.js';

/** Provides the route table for new requests. A request keeps the table that it began with. */
export interface RouteSource {
  readonly current: RouteTable<unknown>;
  /** Implements TerminalNetworkFilter.prepareRoutes. Absent unless the routes are inlined in the connection manager's configuration. */
  prepare?(routes: RouteConfiguration): Generator<void, () => void>;
}

/** Chooses a route table by the headers of a request (scoped_routes). */
export interface ScopedRouteSource {
  /** Returns the table of the request's scope, or an empty one without a matching scope. `headers` are those that the client sent. */
  tableFor(headers: HeaderBlock): RouteTable<unknown>;
}

/** One filter of the configured chain. */
export interface ChainedFilter {
  readonly factory: HttpFilterFactory;
  /** The filter runs only on routes that configure or enable it. */
  readonly isDisabled: boolean;
}

export interface ConnectionManagerOptions {
  /** Which protocols clients may use. */
  codecType: 'AUTO' | 'HTTP1' | 'HTTP2';
  http1: Http1Options;
  http2: Http2Options;
  routes: RouteSource;
  /** Replaces `routes` when scoped_routes is configured. */
  scopes: ScopedRouteSource | undefined;
  filters: readonly ChainedFilter[];
  terminal: TerminalFilterFactory;
  /** Changes requests before everything else; undefined: none. */
  earlyMutations: HeaderMutations | undefined;
  forwarding: ForwardingRules;
  /** The Host header for HTTP/1.0 requests that have none. */
  defaultHost: HeaderLine | undefined;
  paths: PathNormalizer | undefined;
  hosts: HostNormalizer | undefined;
  /** How requests with '_' in a header name are handled. */
  underscores: 'ALLOW' | 'REJECT_REQUEST' | 'DROP_HEADER';
  responseHeaders: ResponseHeaders;
  /** Rewrites local replies; undefined: they are sent unchanged. */
  localReplies: LocalReplyRules | undefined;
  /** Responses repeat the x-request-id of their request. */
  returnsRequestId: boolean;
  accessLogs: readonly AccessLogger[];
  /** Undefined: requests are not traced. */
  tracing: RequestTracing | undefined;
  /** Request or response headers are kept until the stream ends, because an access log reads them. */
  keepsRequestHeaders: boolean;
  keepsResponseHeaders: boolean;
  /** An access log reads the bytes on the wire, which are complete only after the last one was sent. */
  readsWireBytes: boolean;
  /** For logs. */
  chain: ChainNames;
  /** Upgrade types (lower case) that routes may forward. */
  upgrades: ReadonlySet<string>;
  /** The upstream host answers Expect: 100-continue, and its 1xx responses are forwarded to clients. */
  proxies100Continue: boolean;
  matchesUpstreamScheme: boolean;
  /** In milliseconds; 0: no timeout. */
  streamIdleMs: number;
  maxStreamMs: number;
  requestMs: number;
  requestHeadersMs: number;
  idleMs: number;
  maxConnectionMs: number;
  /** How long a connection that reaches maxConnectionMs between requests still accepts one more request. */
  drainMs: number;
  /** How long a client that is still sending may read the last response before the connection closes. */
  delayedCloseMs: number;
  /** How long a client may read none of the unsent bytes of a closing connection. */
  flushMs: number;
  /** 0: no limit. */
  maxRequestsPerConnection: number;
  /** Maximum bytes of one message that a filter may buffer. */
  bufferLimit: number;
}

/** What all connection managers of a thread share. */
export interface HttpThread {
  readonly transport: Transport;
  readonly memory: Memory;
  readonly clock: Clock;
  readonly wheel: TimingWheel;
  readonly random: Random;
  /** For the heads of local replies. */
  readonly headerBlocks: HeaderBlockPool;
}

export interface ConnectionManagerStats {
  /** http.<stat_prefix>. */
  readonly http: Scope;
  /** listener.<address>.http.<stat_prefix>. */
  readonly listener: Scope;
  /** http1. of downstream codecs. */
  readonly http1: Scope;
  /** http2. of downstream codecs. */
  readonly http2: Scope;
  readonly userAgents: UserAgentStats;
}

export interface ManagerContext {
  readonly thread: HttpThread;
  readonly options: ConnectionManagerOptions;
  readonly stats: ConnectionManagerStats;
  /** The shortest of the configured timeouts; Infinity without any. */
  readonly shortestTimeoutMs: number;
  /** The timeout that fires first while a request head is incomplete. */
  readonly headTimeout: HeadTimeout | undefined;
  /**
   * Listener IDs for Transport.requestLate(): for closes that wait until the client has read everything, and for those that also wait for its
   * FIN.
   */
  readonly lateFlush: number;
  readonly lateClose: number;
}
