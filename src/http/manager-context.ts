// What all connections and streams of one HTTP connection manager have in common on one worker.

import type { AccessLogger } from '../access-log/access-logger.js';
import type { Random } from '../common/random.js';
import type { RouteConfiguration } from '../config/generated/api.js';
import type { Memory } from '../io/memory.js';
import type { Clock } from '../io/time/clock.js';
import type { TimingWheel } from '../io/time/timing-wheel.js';
import type { Transport } from '../io/transport/transport.js';
import type { Scope } from '../stats/thread-stats.js';
import type { Http1Options } from './codec/options.js';
import type { HeadTimeout } from './connections/head-timeouts.js';
import type { UserAgentStats } from './connections/user-agent-stats.js';
import type { HttpFilterFactory, TerminalFilterFactory } from './filters/filter.js';
import type { ForwardingRules } from './headers/edge/forwarding-headers.js';
import type { ResponseHeaders } from './headers/edge/response-headers.js';
import type { HeaderBlock, HeaderBlockPool } from './headers/header-block.js';
import type { HeaderLine } from './headers/header-line.js';
import type { LocalReplyRules } from './local-replies/local-reply-rules.js';
import type { HostNormalizer } from './normalization/host-normalization.js';
import type { PathNormalizer } from './normalization/path-normalization.js';
import type { RouteTable } from './routing/tables/route-table.js';

/** The routes that new requests see; a request keeps those that it began with. */
export interface RouteSource {
  readonly current: RouteTable<unknown>;
  /** As TerminalNetworkFilter.prepareRoutes, of a connection manager whose routes stand in its configuration. */
  prepare?(routes: RouteConfiguration): Generator<void, () => void>;
}

/** Routes that a request's own headers choose a table of. */
export interface ScopedRouteSource {
  /** The table for new requests; without one for this request an empty one. `headers` as the client has sent them. */
  tableFor(headers: HeaderBlock): RouteTable<unknown>;
}

/** A filter in its place in the chain. */
export interface ChainedFilter {
  readonly factory: HttpFilterFactory;
  /** It only runs for routes that speak to it, or switch it on. */
  readonly isDisabled: boolean;
}

export interface ConnectionManagerOptions {
  http1: Http1Options;
  routes: RouteSource;
  /** In place of `routes`, with scoped_routes. */
  scopes: ScopedRouteSource | undefined;
  filters: readonly ChainedFilter[];
  terminal: TerminalFilterFactory;
  forwarding: ForwardingRules;
  /** Host of HTTP/1.0 requests that name none. */
  defaultHost: HeaderLine | undefined;
  paths: PathNormalizer | undefined;
  hosts: HostNormalizer | undefined;
  /** What happens to requests with '_' in the name of a field. */
  underscores: 'ALLOW' | 'REJECT_REQUEST' | 'DROP_HEADER';
  responseHeaders: ResponseHeaders;
  /** What becomes of answers that Baton gives itself; undefined: nothing. */
  localReplies: LocalReplyRules | undefined;
  /** Responses carry the x-request-id of their request. */
  returnsRequestId: boolean;
  accessLogs: readonly AccessLogger[];
  /** Something reads request headers, or response headers, when the stream is over: they are kept until then. */
  keepsRequestHeaders: boolean;
  keepsResponseHeaders: boolean;
  /** Upgrade types (lower case) that routes may forward. */
  upgrades: ReadonlySet<string>;
  /** 100-continue is answered by the upstream, not here, and clients get its answers in advance (1xx). */
  proxies100Continue: boolean;
  /** Milliseconds; 0 is none. */
  streamIdleMs: number;
  maxStreamMs: number;
  requestMs: number;
  requestHeadersMs: number;
  idleMs: number;
  maxConnectionMs: number;
  /** How long a connection that has reached that without a request is kept for one more. */
  drainMs: number;
  /** How long a peer that is still sending gets to read the last answer. */
  delayedCloseMs: number;
  /** How long a client may take nothing of what is left to send it when its connection is closed. */
  flushMs: number;
  /** 0: no limit. */
  maxRequestsPerConnection: number;
  /** Most bytes that a filter may hold back of a message. */
  bufferLimit: number;
}

/** What the thread gives to every connection manager. */
export interface HttpThread {
  readonly transport: Transport;
  readonly memory: Memory;
  readonly clock: Clock;
  readonly wheel: TimingWheel;
  readonly random: Random;
  /** For heads of answers that are made here. */
  readonly headerBlocks: HeaderBlockPool;
}

export interface ConnectionManagerStats {
  /** http.<stat_prefix>. */
  readonly http: Scope;
  /** listener.<address>.http.<stat_prefix>. */
  readonly listener: Scope;
  /** http1. of downstream codecs. */
  readonly http1: Scope;
  readonly userAgents: UserAgentStats;
}

export interface ManagerContext {
  readonly thread: HttpThread;
  readonly options: ConnectionManagerOptions;
  readonly stats: ConnectionManagerStats;
  /** The shortest of the configured timeouts; Infinity without any. */
  readonly shortestTimeoutMs: number;
  /** The first that ends a request whose head does not come. */
  readonly headTimeout: HeadTimeout | undefined;
  /** Of Transport.tellLate(), for closes that wait until the client takes what was sent, and for those that also wait for its end. */
  readonly lateFlush: number;
  readonly lateClose: number;
}
