// The kinds of extensions, how each is built, and what a worker gives them for it. `C` is the message that configures an
// extension, as the loader has checked it.

import type { AccessLogger } from '../access-log/access-logger.js';
import type { AccessLogFiles } from '../access-log/files/file-log.js';
import type { Extension } from '../config/catalog/extension.js';
import type { Any, HttpConnectionManager, HttpFilter, Node, Rds, ScopedRoutes } from '../config/generated/api.js';
import type { CheckedMessage } from '../config/load/check-in-thread.js';
import type { ClusterHosts } from '../grpc/cluster-hosts.js';
import type { HttpFilterFactory, TerminalFilterFactory } from '../http/filters/filter.js';
import type { LocalIdentity } from '../http/headers/edge/forwarding-headers.js';
import type { HeaderBlockPool } from '../http/headers/header-block.js';
import type { RouteSource, ScopedRouteSource } from '../http/manager-context.js';
import type { RouteFilter } from '../http/routing/tables/route-table.js';
import type { Timers } from '../io/time/timing-wheel.js';
import type { ListenerFilter } from '../listener/listener-filter.js';
import type { NetworkFilterFactory, TerminalNetworkFilter } from '../listener/network-filter.js';
import type { Runtime } from '../runtime/runtime.js';
import type { StatsSink } from '../stats/flush/sink.js';
import type { Layout } from '../stats/layout.js';
import type { ScopeRequest } from '../stats/store.js';
import type { Scope } from '../stats/thread-stats.js';
import type { CallingThread } from '../upstream/calling-thread.js';
import type { ClusterManager } from '../upstream/cluster-manager.js';
import type { LoadBalancingPolicy } from '../upstream/load-balancer/policy.js';
import type { TokenBucket, TokenRate } from '../upstream/token-bucket.js';
import type { UpstreamThread } from '../upstream/upstream-thread.js';

/** What looks at the first bytes of connections before a filter chain takes them. */
export interface ListenerFilterExtension<C = unknown> extends Extension<C> {
  readonly category: 'envoy.filters.listener';
  /** Stats that exist before traffic. */
  scopes?(config: C): ScopeRequest[];
  createOnWorker(config: C, context: WorkerContext): ListenerFilter;
}

/** A network filter that lets connections through, or ends them. */
export interface NetworkFilterExtension<C = unknown> extends Extension<C> {
  readonly category: 'envoy.filters.network';
  readonly isTerminal?: false;
  /** Stats that exist before traffic. */
  scopes?(config: C, listener: ListenerIdentity, extensions: ExtensionFinder): ScopeRequest[];
  createOnWorker(config: C, chain: ChainIdentity, context: WorkerContext): NetworkFilterFactory;
  /** What it has on the primary beside its filters on the workers. */
  createOnPrimary?(config: C, context: PrimaryFilterContext): PrimaryPart[];
}

/** A network filter that ends the chain: it serves connections. */
export interface TerminalNetworkFilterExtension<C = unknown> extends Extension<C> {
  readonly category: 'envoy.filters.network';
  readonly isTerminal: true;
  /** Stats that exist before traffic, those of filters that it holds included. */
  scopes?(config: C, listener: ListenerIdentity, extensions: ExtensionFinder): ScopeRequest[];
  createOnWorker(config: C, chain: ChainIdentity, context: WorkerContext): TerminalNetworkFilter;
  /** What it has on the primary, with what filters that it holds have there. */
  createOnPrimary?(config: C, context: PrimaryFilterContext): PrimaryPart[];
}

export interface HttpFilterExtension<C = unknown> extends Extension {
  readonly category: 'envoy.filters.http';
  readonly isTerminal?: false;
  /** Stats of its own that exist before traffic. */
  scopes?(config: C, chain: HttpChain): ScopeRequest[];
  createOnWorker(config: C, context: WorkerContext, chain: HttpChainContext): HttpFilterFactory;
  /** What it has on the primary beside its filters on the workers. */
  createOnPrimary?(config: C, context: PrimaryFilterContext): PrimaryPart;
  /**
   * Compiles what a route says to the filter (typed_per_filter_config), the most general first; the filter's factory gets
   * it with each stream. `runtime` gives handles of values that may change. `place` is where in the process the last of them
   * stands: the same on all workers, whatever of the routes changes beside it. Absent: the filter takes nothing from routes.
   */
  compileRouteConfig?(configs: readonly Any[], where: string, runtime: Runtime, place: string): unknown;
}

/** An HTTP filter that ends the chain: the router. */
export interface TerminalHttpFilterExtension<C = unknown> extends Extension {
  readonly category: 'envoy.filters.http';
  readonly isTerminal: true;
  createOnWorker(config: C, context: WorkerContext, chain: HttpChainContext): TerminalFilterFactory;
}

export interface AccessLoggerExtension<C = unknown> extends Extension<C> {
  readonly category: 'envoy.access_loggers';
  createOnWorker(config: C, context: WorkerContext): AccessLogger;
  /** For the admin interface's own requests, which the primary answers. Absent: it cannot log those. */
  createOnPrimary?(config: C, context: PrimaryLogContext): AccessLogger;
}

/** What the primary gives to an access logger. */
export interface PrimaryLogContext {
  readonly accessLogFiles: AccessLogFiles;
}

/** What a configuration can name and nothing is built from: its entry in named.ts says why it is there. */
export interface NamedExtension extends Extension {
  readonly category:
    | 'envoy.regex_engines'
    | 'envoy.request_id'
    | 'envoy.resource_monitors'
    | 'envoy.retry_host_predicates'
    | 'envoy.transport_sockets.downstream'
    | 'envoy.transport_sockets.upstream'
    | 'envoy.upstream_options';
}

/** How clusters choose hosts. lb_policy means the policies that have the messages of config/fields/load-balancing.ts. */
export interface LoadBalancingPolicyExtension<C = unknown, S = unknown>
  extends Extension<C>,
    LoadBalancingPolicy<C, S> {
  readonly category: 'envoy.load_balancing_policies';
  readonly name: string;
}

/** A sink of stats: it lives on the primary, and nothing of it is loaded before it is created. */
export interface StatsSinkExtension<C = unknown> extends Extension<C> {
  readonly category: 'envoy.stats_sinks';
  createOnPrimary(config: C, context: PrimaryContext): Promise<StatsSink>;
}

export type AnyExtension =
  | NamedExtension
  | StatsSinkExtension
  | LoadBalancingPolicyExtension
  | ListenerFilterExtension
  | NetworkFilterExtension
  | TerminalNetworkFilterExtension
  | HttpFilterExtension
  | TerminalHttpFilterExtension
  | AccessLoggerExtension;

/** Finds the extension that a typed_config names. */
export interface ExtensionFinder {
  listenerFilter(config: Any): ListenerFilterExtension;
  networkFilter(config: Any): NetworkFilterExtension | TerminalNetworkFilterExtension;
  httpFilter(config: Any): HttpFilterExtension | TerminalHttpFilterExtension;
  accessLogger(config: Any): AccessLoggerExtension;
  statsSink(config: Any): StatsSinkExtension;
}

/** What the primary gives to the extensions that it creates. */
export interface PrimaryContext {
  readonly calls: CallingThread;
  /** For channels to gRPC services. */
  readonly hosts: ClusterHosts;
  readonly node: Node;
  readonly flushIntervalMs: number;
  /** The active clusters. */
  clusters(): Iterable<ClusterFacts>;
  /** Adds an endpoint to the admin interface, if there is one, that streams events to all who ask. */
  serveEvents(stream: EventStream): void;
}

export interface ClusterFacts {
  readonly name: string;
  /** `cluster.api.` */
  readonly statsPrefix: string;
  /** Of the default priority. */
  readonly maxPendingRequests: number;
  readonly hosts: number;
}

/** An endpoint of the admin interface whose answer is text/event-stream. */
export interface EventStream {
  readonly path: string;
  readonly aliases: readonly string[];
  readonly help: string;
  readonly headers: { readonly [name: string]: string };
  /** A client has come; its iterator's return() is called when it leaves. */
  open(): AsyncIterable<Uint8Array>;
}

/** What the primary gives to parts that filters of one chain have there. */
export interface PrimaryFilterContext {
  readonly extensions: ExtensionFinder;
  /** The way to the filters of an extension on the workers. */
  port(name: string): PrimaryPort;
  /** Adds an endpoint to the admin interface, if there is one; what it returns removes it. */
  serve(endpoint: PostEndpoint): () => void;
  /** Reads YAML or JSON as the message of that full name: its canonical form, or everything that is wrong with it. */
  checkMessage(name: string, text: string): Promise<CheckedMessage>;
  readonly routes: PrimaryRoutes;
  readonly filterConfigs: PrimaryFilterConfigs;
  /** The listener is not used before ready() is called of what this gives; `name` is for /init_dump. */
  waitFor(name: string): { ready(): void };
}

/** The routes of all connection managers, on the primary. */
export interface PrimaryRoutes {
  /**
   * Has what `user` names subscribed to, and published to the workers, until the part is closed. Throws BatonError
   * CONFIG_INVALID when it cannot be used as it is.
   */
  attach(user: RouteUser): PrimaryPart;
}

/** A connection manager, as far as its routes go. */
export interface RouteUser {
  readonly manager: HttpConnectionManager;
  /** `http.ingress.` */
  readonly statPrefix: string;
  readonly filters: RouteFilters;
  waitFor: PrimaryFilterContext['waitFor'];
}

/** The discovered configurations of HTTP filters, on the primary. */
export interface PrimaryFilterConfigs {
  /**
   * Has what the filter names subscribed to, and published to the workers, until the part is closed. Throws BatonError
   * CONFIG_INVALID when its default cannot be used.
   */
  attach(user: DiscoveredFilterUser): PrimaryPart;
}

/** A filter with config_discovery, in its chain. */
export interface DiscoveredFilterUser {
  readonly filter: HttpFilter;
  readonly chain: HttpChain;
  readonly context: PrimaryFilterContext;
}

/** What routes can speak to: the filters of a chain, in its order. */
export interface RouteFilters {
  readonly list: readonly RouteFilter[];
  /** Equal for chains that can share tables. */
  readonly signature: string;
}

/** Something of a filter that lives on the primary. */
export interface PrimaryPart {
  /** The filter is gone. */
  close(): void;
  /**
   * Checks the routes that stand in this configuration of the filter, which is otherwise as it was; what it returns makes them
   * its own. Throws BatonError CONFIG_INVALID when they cannot be used.
   */
  prepareRoutes?(config: Any): () => void;
}

/** The primary's end of a way to all workers. What passes is plain data. */
export interface PrimaryPort {
  readonly workers: number;
  /** Tells all workers, also those that begin later, in place of what was published before. */
  publish(state: unknown): void;
  /** A worker has sent something. */
  onMessage: ((worker: number, message: unknown) => void) | undefined;
  /** A worker is gone, and maybe something that it had sent. */
  onWorkerDeath: ((worker: number) => void) | undefined;
}

/** A worker's end of such a way. */
export interface WorkerPort {
  /** Index of this worker. */
  readonly worker: number;
  /** What the primary has published last; undefined: nothing. */
  readonly state: unknown;
  onState: ((state: unknown) => void) | undefined;
  /** Sends to the primary; buffers in `transfer` are gone afterwards. */
  send(message: unknown, transfer?: readonly ArrayBuffer[]): void;
}

/** An endpoint of the admin interface that takes a body. */
export interface PostEndpoint {
  readonly path: string;
  readonly help: string;
  answer(body: Buffer): Promise<EndpointAnswer>;
}

export interface EndpointAnswer {
  /** 200 when left out. */
  readonly status?: number;
  /** Plain text when left out. */
  readonly contentType?: string | undefined;
  /** return() of an iterator is called when the client leaves. */
  readonly body: string | AsyncIterable<Uint8Array>;
}

/** What a worker gives to the extensions that it builds its runtime objects from. */
export interface WorkerContext extends UpstreamThread {
  readonly clusters: ClusterManager;
  /** For calls of the worker's own to hosts of clusters. */
  readonly calls: CallingThread;
  /** For timers of extensions: a delay counts from now, also behind a wait for Node, where the wheel's time stands still. */
  readonly timers: Timers;
  readonly accessLogFiles: AccessLogFiles;
  readonly extensions: ExtensionFinder;
  readonly headerBlocks: HeaderBlockPool;
  readonly identity: LocalIdentity;
  /** The way to what an extension has on the primary. */
  port(name: string): WorkerPort;
  readonly routes: WorkerRoutes;
  readonly filterConfigs: WorkerFilterConfigs;
  /** Whether health checks are to fail (POST /healthcheck/fail): read it when it matters, it changes at any time. */
  readonly serverHealth: { readonly isFailing: boolean; readonly isFailedOnPurpose: boolean };
  /** The scope that the primary has made for `prefix` (see ScopeRequest). Throws when the configuration asked for none. */
  scope(prefix: string, layout: Layout): Scope;
  /**
   * A bucket that all workers take from, by the time of `clock`. Its name says whose it is (HttpChainContext.place, or `place` of
   * compileRouteConfig()) and what its rate is: the bucket goes on as long as somebody says the same name, in this worker or one that
   * takes its place.
   */
  tokenBucket(name: string, rate: TokenRate): TokenBucket;
}

/** Routes that change while traffic flows, on a worker: each source follows what the primary publishes. */
export interface WorkerRoutes {
  rds(rds: Rds, filters: RouteFilters): RouteSource;
  scoped(scoped: ScopedRoutes, filters: RouteFilters): ScopedRouteSource;
}

/** Discovered configurations of HTTP filters, on a worker. */
export interface WorkerFilterConfigs {
  /** Tells `follower` what there is now, and what comes, as long as somebody else keeps it. */
  follow(filter: HttpFilter, follower: DiscoveredFilterConfig): void;
}

/** A filter that takes a discovered configuration. */
export interface DiscoveredFilterConfig {
  /** For new streams from now on; undefined: there is none. */
  update(config: Any | undefined): void;
}

/** The listener that a filter chain belongs to, as its filters see it. */
export interface ListenerIdentity {
  readonly name: string;
  /** Stat prefix: stat_prefix, or the address with '_' for ':'. */
  readonly statToken: string;
  /** per_connection_buffer_limit_bytes. */
  readonly bufferLimit: number;
}

/** The same on a worker. */
export interface ChainIdentity extends ListenerIdentity {
  /** Number of the chain. Another configuration of it has another one. */
  readonly chain: number;
}

/** Which HTTP chain a filter belongs to. */
export interface HttpChain {
  /** `http.ingress.` */
  readonly statPrefix: string;
}

/** The chain that a filter belongs to, on a worker. */
export interface HttpChainContext extends HttpChain {
  /** The filter's place in the process: the same on all workers as long as its chain is in use, and that of no other filter. */
  readonly place: string;
  /** Most bytes that a filter may hold back of a message. */
  readonly bufferLimit: number;
}
