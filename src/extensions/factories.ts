// The kinds of extensions, how each is created, and the context that it gets from the primary or a worker. `C` is the message
// that configures an extension, after the loader's checks.

import type { AccessLogger } from '../access-log/access-logger.js';
import type { AccessLogFiles } from '../access-log/files/file-log.js';
import type { ChainNames } from '../access-log/stream/stream-info.js';
import type { Extension } from '../config/catalog/extension.js';
import type {
  Any,
  HttpConnectionManager,
  HttpFilter,
  Node,
  Rds,
  ScopedRoutes,
  SdsSecretConfig,
} from '../config/generated/api.js';
import type { CheckedMessage } from '../config/load/check-in-thread.js';
import type { HttpFilterFactory, TerminalFilterFactory } from '../http/filters/filter.js';
import type { LocalIdentity } from '../http/headers/edge/forwarding-headers.js';
import type { HeaderBlockPool } from '../http/headers/header-block.js';
import type { RouteSource, ScopedRouteSource } from '../http/manager-context.js';
import type { ClusterSpecifier, ClusterSpecifiers } from '../http/routing/actions/cluster-specifier.js';
import type { RequestMatchers } from '../http/routing/matching/request-matchers.js';
import type { RouteCounts } from '../http/routing/stats/route-counts.js';
import type { RouteFilter } from '../http/routing/tables/route-table.js';
import type { Tracer } from '../http/tracing/tracer.js';
import type { DatagramAccess } from '../io/datagrams/datagram-access.js';
import type { Timers } from '../io/time/timing-wheel.js';
import type { ListenerFilter } from '../listener/listener-filter.js';
import type { NetworkFilterFactory, TerminalNetworkFilter } from '../listener/network-filter.js';
import type { UdpListenerFilter } from '../listener/udp/udp-filter.js';
import type { Runtime } from '../runtime/runtime.js';
import type { ScriptKind } from '../scripts/image.js';
import type { WorkerScript } from '../scripts/worker-script.js';
import type { StatsSink } from '../stats/flush/sink.js';
import type { Layout } from '../stats/layout.js';
import type { ScopeRequest } from '../stats/store.js';
import type { Scope } from '../stats/thread-stats.js';
import type { CallingThread } from '../upstream/calling-thread.js';
import type { ClusterManager } from '../upstream/cluster-manager.js';
import type { LoadBalancingPolicy, WrappingPolicy } from '../upstream/load-balancer/policy.js';
import type { MissingClusters } from '../upstream/missing-clusters.js';
import type { TokenBucket, TokenRate } from '../upstream/token-bucket.js';
import type { UpstreamThread } from '../upstream/upstream-thread.js';

/** A listener filter: inspects the first bytes of a connection before a filter chain is selected. */
export interface ListenerFilterExtension<C = unknown> extends Extension<C> {
  readonly category: 'envoy.filters.listener';
  /** Returns the scopes whose stats must exist before traffic. */
  scopes?(config: C): ScopeRequest[];
  /** Called once for each worker and listener version. */
  createOnWorker(config: C, context: WorkerContext): ListenerFilter;
}

/** A filter of UDP listeners. */
export interface UdpListenerFilterExtension<C = unknown> extends Extension<C> {
  readonly category: 'envoy.filters.udp_listener';
  /** Returns the scopes whose stats must exist before traffic. */
  scopes?(config: C, listener: ListenerIdentity, extensions: ExtensionFinder): ScopeRequest[];
  /** Called once for each worker and listener version. */
  createOnWorker(config: C, listener: ListenerIdentity, context: WorkerContext): UdpListenerFilter;
}

/** A network filter before the terminal one: passes or closes connections. */
export interface NetworkFilterExtension<C = unknown> extends Extension<C> {
  readonly category: 'envoy.filters.network';
  readonly isTerminal?: false;
  /** createOnWorker() calls ChainIdentity.nextCount(), once. */
  readonly countsConnections?: true;
  /** Returns the scopes whose stats must exist before traffic. */
  scopes?(config: C, listener: ListenerIdentity, extensions: ExtensionFinder): ScopeRequest[];
  /** Called once for each worker and filter chain. The factory creates a filter for each connection. */
  createOnWorker(config: C, chain: ChainIdentity, context: WorkerContext): NetworkFilterFactory;
  /** Creates the filter's parts on the primary. */
  createOnPrimary?(config: C, context: PrimaryFilterContext): PrimaryPart[];
}

/** The last network filter of a chain: serves the connections. */
export interface TerminalNetworkFilterExtension<C = unknown> extends Extension<C> {
  readonly category: 'envoy.filters.network';
  readonly isTerminal: true;
  /** Returns the scopes whose stats must exist before traffic, including those of the filters inside it. */
  scopes?(config: C, listener: ListenerIdentity, extensions: ExtensionFinder): ScopeRequest[];
  /** Called once for each worker and filter chain. The filter accepts all connections of the chain. */
  createOnWorker(config: C, chain: ChainIdentity, context: WorkerContext): TerminalNetworkFilter;
  /** Creates the filter's parts on the primary, including those of the filters inside it. */
  createOnPrimary?(config: C, context: PrimaryFilterContext): PrimaryPart[];
}

/** An HTTP filter. */
export interface HttpFilterExtension<C = unknown> extends Extension {
  readonly category: 'envoy.filters.http';
  readonly isTerminal?: false;
  /** Returns the scopes whose stats must exist before traffic. */
  scopes?(config: C, chain: HttpChain): ScopeRequest[];
  /** Called once for each worker and configuration. The factory creates a filter for each request. */
  createOnWorker(config: C, context: WorkerContext, chain: HttpChainContext): HttpFilterFactory;
  /** Creates the filter's part on the primary. */
  createOnPrimary?(config: C, context: PrimaryFilterContext, chain: HttpChain): PrimaryPart;
  /**
   * Compiles a route's typed_per_filter_config for this filter; create() of the filter's factory gets the result with each
   * stream. `configs` begins with the most general one (route configuration, virtual host, route). `where`: their config path.
   * `runtime` gives handles of runtime values. `place` identifies the most specific of `configs` in this process: it is the same
   * on all workers, and does not change when other routes do. Absent: the filter has no route configuration.
   */
  compileRouteConfig?(configs: readonly Any[], where: string, runtime: Runtime, place: string): unknown;
}

/** The last HTTP filter of a chain: the router. */
export interface TerminalHttpFilterExtension<C = unknown> extends Extension {
  readonly category: 'envoy.filters.http';
  readonly isTerminal: true;
  /** Called once for each worker and configuration. */
  createOnWorker(config: C, context: WorkerContext, chain: HttpChainContext): TerminalFilterFactory;
}

/** An access logger. */
export interface AccessLoggerExtension<C = unknown> extends Extension<C> {
  readonly category: 'envoy.access_loggers';
  /** Returns the scopes whose stats must exist before traffic. */
  scopes?(config: C): ScopeRequest[];
  /** Called once for each worker and access_log element. */
  createOnWorker(config: C, context: WorkerContext): AccessLogger;
  /** Creates a logger of the requests to the admin interface, which the primary serves. Absent: it cannot log those. */
  createOnPrimary?(config: C, context: PrimaryLogContext): AccessLogger;
}

/** A tracer: makes the spans of requests and reports them. */
export interface TracerExtension<C = unknown> extends Extension<C> {
  readonly category: 'envoy.tracers';
  /** Returns the scopes whose stats must exist before traffic. */
  scopes?(config: C): ScopeRequest[];
  /** Called once for each worker and configuration: connection managers with the same one share the tracer. */
  createOnWorker(config: C, context: WorkerContext): Tracer;
}

/** A cluster specifier plugin: chooses the clusters of requests. */
export interface ClusterSpecifierExtension<C = unknown> extends Extension<C> {
  readonly category: 'envoy.router.cluster_specifier_plugin';
  /** Called for each worker, route configuration and use. `where`: the path of `config`. Throws a BatonError. */
  createOnWorker(config: C, context: SpecifierContext, where: string): ClusterSpecifier;
}

/** What a cluster specifier plugin gets. */
export type SpecifierContext = Pick<WorkerContext, 'clusters' | 'clock' | 'stats'>;

/** What an access logger on the primary gets. */
export interface PrimaryLogContext {
  readonly accessLogFiles: AccessLogFiles;
}

/** An extension without code: a configuration may name it. named.ts gives the reason for each. */
export interface NamedExtension extends Extension {
  readonly category:
    | 'envoy.access_loggers.extension_filters'
    | 'envoy.bootstrap'
    | 'envoy.clusters'
    | 'envoy.filters.http.upstream'
    | 'envoy.compression.compressor'
    | 'envoy.compression.decompressor'
    | 'envoy.formatter'
    | 'envoy.health_check.event_sinks'
    | 'envoy.health_checkers'
    | 'envoy.http.cache'
    | 'envoy.http.custom_response'
    | 'envoy.http.early_header_mutation'
    | 'envoy.http.injected_credentials'
    | 'envoy.http.original_ip_detection'
    | 'envoy.http.stateful_header_formatters'
    | 'envoy.geoip_providers'
    | 'envoy.http.stateful_session'
    | 'envoy.internal_redirect_predicates'
    | 'envoy.matching.action'
    | 'envoy.matching.http.custom_matchers'
    | 'envoy.matching.http.input'
    | 'envoy.matching.input_matchers'
    | 'envoy.path.match'
    | 'envoy.path.rewrite'
    | 'envoy.network.dns_resolver'
    | 'envoy.rate_limit_descriptors'
    | 'envoy.regex_engines'
    | 'envoy.request_id'
    | 'envoy.overload_actions'
    | 'envoy.resource_monitors'
    | 'envoy.retry_host_predicates'
    | 'envoy.tracers.opentelemetry.resource_detectors'
    | 'envoy.tracers.opentelemetry.samplers'
    | 'envoy.tls.cert_validator'
    | 'envoy.transport_sockets.downstream'
    | 'envoy.transport_sockets.upstream'
    | 'envoy.upstream_options';
}

/** A load-balancing policy. `lb_policy` selects the policies whose messages are in config/fields/load-balancing.ts. */
export interface LoadBalancingPolicyExtension<C = unknown, S = unknown>
  extends Extension<C>,
    LoadBalancingPolicy<C, S> {
  readonly category: 'envoy.load_balancing_policies';
  readonly name: string;
}

/** A load-balancing policy that determines among which hosts another one picks. */
export interface WrappingPolicyExtension<C = unknown> extends Extension<C>, WrappingPolicy<C> {
  readonly category: 'envoy.load_balancing_policies';
  readonly name: string;
}

/** A stats sink. It runs on the primary. Its code is loaded when it is created. */
export interface StatsSinkExtension<C = unknown> extends Extension<C> {
  readonly category: 'envoy.stats_sinks';
  /** Called once. Load the sink's code here with onDemand(). */
  createOnPrimary(config: C, context: PrimaryContext): Promise<StatsSink>;
}

export type AnyExtension =
  | NamedExtension
  | StatsSinkExtension
  | LoadBalancingPolicyExtension
  | WrappingPolicyExtension
  | ListenerFilterExtension
  | UdpListenerFilterExtension
  | NetworkFilterExtension
  | TerminalNetworkFilterExtension
  | HttpFilterExtension
  | TerminalHttpFilterExtension
  | AccessLoggerExtension
  | ClusterSpecifierExtension
  | TracerExtension;

/** Finds the extension that a typed_config configures. Throws if it is not of the requested kind. */
export interface ExtensionFinder {
  listenerFilter(config: Any): ListenerFilterExtension;
  udpListenerFilter(config: Any): UdpListenerFilterExtension;
  networkFilter(config: Any): NetworkFilterExtension | TerminalNetworkFilterExtension;
  httpFilter(config: Any): HttpFilterExtension | TerminalHttpFilterExtension;
  /** Returns whether this build has the HTTP filter that the message configures. */
  hasHttpFilter(config: Any): boolean;
  accessLogger(config: Any): AccessLoggerExtension;
  /** Returns undefined if this build does not have the plugin. */
  clusterSpecifier(config: Any): ClusterSpecifierExtension | undefined;
  tracer(config: Any): TracerExtension;
  statsSink(config: Any): StatsSinkExtension;
}

/** What a stats sink on the primary gets. */
export interface PrimaryContext {
  /** For calls to hosts of clusters. */
  readonly calls: CallingThread;
  readonly node: Node;
  readonly flushIntervalMs: number;
  /** Returns the active clusters. */
  clusters(): Iterable<ClusterFacts>;
  /** Adds an endpoint to the admin interface, if there is one, that streams events to each client. */
  serveEvents(stream: EventStream): void;
}

/** A summary of a cluster. */
export interface ClusterFacts {
  readonly name: string;
  /** For example `cluster.api.` */
  readonly statsPrefix: string;
  /** max_pending_requests of the default priority. */
  readonly maxPendingRequests: number;
  /** Number of hosts. */
  readonly hosts: number;
}

/** An endpoint of the admin interface whose answer is text/event-stream. */
export interface EventStream {
  readonly path: string;
  readonly aliases: readonly string[];
  readonly help: string;
  readonly headers: { readonly [name: string]: string };
  /** Called for each client. return() of the iterator is called when the client disconnects. */
  open(): AsyncIterable<Uint8Array>;
}

/** What the parts of a filter chain on the primary get. */
export interface PrimaryFilterContext {
  readonly extensions: ExtensionFinder;
  /** Opens the port `name`, which leads to the workers' ports of the same name. */
  port(name: string): PrimaryPort;
  /** Adds an endpoint to the admin interface, if there is one. Returns a function that removes it. */
  serve(endpoint: PostEndpoint): () => void;
  /** Parses YAML or JSON as the message with the full name `name`. Returns its canonical form, or all its mistakes. */
  checkMessage(name: string, text: string): Promise<CheckedMessage>;
  readonly routes: PrimaryRoutes;
  readonly filterConfigs: PrimaryFilterConfigs;
  readonly scripts: PrimaryScripts;
  readonly secrets: PrimarySecrets;
  /**
   * Called when code of users will run on the workers: from now on a worker that it blocks is replaced, unless the bootstrap's
   * kill_timeout is 0.
   */
  guardWorkers(): void;
  /**
   * Keeps the listener warming until ready() of the result is called. `name` is shown by /init_dump. `isLocal`: only files of
   * this machine are needed, so that this takes a moment.
   */
  waitFor(name: string, isLocal?: boolean): { ready(): void };
}

/** The routes of all connection managers, on the primary. */
export interface PrimaryRoutes {
  /**
   * Subscribes to the routes that `user` refers to and publishes them to the workers until the part is closed. Throws a
   * BatonError CONFIG_INVALID if the configuration of `user` is not usable.
   */
  attach(user: RouteUser): PrimaryPart;
}

/** A connection manager as a user of routes. */
export interface RouteUser {
  readonly manager: HttpConnectionManager;
  /** For example `http.ingress.` */
  readonly statPrefix: string;
  readonly filters: RouteFilters;
  waitFor: PrimaryFilterContext['waitFor'];
}

/** The discovered configurations of HTTP filters, on the primary. */
export interface PrimaryFilterConfigs {
  /**
   * Subscribes to the filter's configuration and publishes it to the workers until the part is closed. Throws a BatonError
   * CONFIG_INVALID if the default configuration is not usable.
   */
  attach(user: DiscoveredFilterUser): PrimaryPart;
}

/** An HTTP filter with config_discovery, and its chain. */
export interface DiscoveredFilterUser {
  readonly filter: HttpFilter;
  readonly chain: HttpChain;
  readonly context: PrimaryFilterContext;
}

/** The modules of scripts, on the primary. */
export interface PrimaryScripts {
  /**
   * Returns a part that lasts as long as the use of a module: later versions of the module must accept its configuration. Throws
   * a BatonError CONFIG_INVALID if the bootstrap does not register the module, or the module has refused the configuration.
   */
  use(module: string, kind: ScriptKind, config: unknown): PrimaryPart;
}

/** Generic secrets, on the primary. */
export interface PrimarySecrets {
  /** Returns why the secret cannot be used; undefined when it can, perhaps after it has arrived. */
  problem(config: SdsSecretConfig): string | undefined;
  /**
   * Makes the secrets available to workers until the part is closed. `waitFor` adds init targets for those that have not arrived.
   * Throws a BatonError for a secret that cannot be used.
   */
  use(configs: Iterable<SdsSecretConfig>, waitFor?: PrimaryFilterContext['waitFor']): PrimaryPart;
}

/** The filters of a chain that routes can configure, in order. */
export interface RouteFilters {
  readonly list: readonly RouteFilter[];
  /** Equal for chains that can share route tables. */
  readonly signature: string;
  /**
   * The modules of filters that are scripts, by the filters' names; undefined: the filter's configuration is discovered. Absent: there
   * are none of either kind.
   */
  readonly scripts?: ReadonlyMap<string, string | undefined>;
}

/** The part of a filter on the primary. */
export interface PrimaryPart {
  /** Called when the filter is removed. */
  close(): void;
  /**
   * Prepares a change of the inline routes: `config` is the filter's configuration with new routes and is otherwise unchanged.
   * Returns a function that applies them. Throws a BatonError CONFIG_INVALID if they are not usable.
   */
  prepareRoutes?(config: Any): () => void;
}

/** The primary's end of a message channel to all workers. Messages are plain data. */
export interface PrimaryPort {
  /** Number of workers. */
  readonly workers: number;
  /** Sends `state` to all workers, also to those that start later. It replaces the state that was published before. */
  publish(state: unknown): void;
  /** Called for each message of a worker. */
  onMessage: ((worker: number, message: unknown) => void) | undefined;
  /** Called when a worker has died. Messages that it sent may be lost. */
  onWorkerDeath: ((worker: number) => void) | undefined;
}

/** A worker's end of a message channel to the primary. */
export interface WorkerPort {
  /** Index of this worker. */
  readonly worker: number;
  /** The state that the primary published last, or undefined. */
  readonly state: unknown;
  /** Called when the primary publishes a state. */
  onState: ((state: unknown) => void) | undefined;
  /** Sends a message to the primary. The buffers in `transfer` are transferred and cannot be used afterwards. */
  send(message: unknown, transfer?: readonly ArrayBuffer[]): void;
}

/** An endpoint of the admin interface that takes a body. */
export interface PostEndpoint {
  readonly path: string;
  readonly help: string;
  answer(body: Buffer): Promise<EndpointAnswer>;
}

/** The response of a PostEndpoint. */
export interface EndpointAnswer {
  /** Default: 200. */
  readonly status?: number;
  /** Default: plain text. */
  readonly contentType?: string | undefined;
  /** An iterator's return() is called when the client disconnects. */
  readonly body: string | AsyncIterable<Uint8Array>;
}

/** What extensions on a worker get. */
export interface WorkerContext extends UpstreamThread {
  readonly clusters: ClusterManager;
  /** Clusters that do not exist, and that sources may deliver. */
  readonly missingClusters: MissingClusters;
  /** For calls to hosts of clusters. */
  readonly calls: CallingThread;
  /**
   * Timers whose delay counts from the call, also in callbacks of Node (after an await), when the time of the timing wheel is
   * stale.
   */
  readonly timers: Timers;
  /** The UDP sockets of the thread. */
  readonly datagrams: DatagramAccess;
  readonly accessLogFiles: AccessLogFiles;
  readonly extensions: ExtensionFinder;
  readonly headerBlocks: HeaderBlockPool;
  readonly identity: LocalIdentity;
  /** The tracer of connection managers that configure none (Bootstrap.tracing). */
  readonly defaultTracer: Any | undefined;
  /** The node that this server reports of itself. */
  readonly node: Node;
  /** Opens the port `name`, which leads to the primary's port of the same name. */
  port(name: string): WorkerPort;
  readonly routes: WorkerRoutes;
  /** The stats of virtual clusters and routes, by their prefix. */
  readonly routeCounts: { of(prefix: string): RouteCounts | undefined };
  readonly specifiers: ClusterSpecifiers;
  /** Of virtual hosts. */
  readonly matchers: RequestMatchers;
  readonly filterConfigs: WorkerFilterConfigs;
  readonly scripts: WorkerScripts;
  readonly secrets: WorkerSecrets;
  /** Whether health checks must fail now (POST /healthcheck/fail). Changes at any time: read it for each use. */
  readonly serverHealth: { readonly isFailing: boolean; readonly isFailRequested: boolean };
  /** Returns the scope `prefix`. Throws if scopes() of the extension did not list it. */
  scope(prefix: string, layout: Layout): Scope;
  /**
   * Returns a token bucket that all workers share; its times are `clock.monotonicMs`. The name identifies it: use
   * HttpChainContext.place, or `place` of compileRouteConfig(), and the rate. A bucket keeps its tokens while any user on any
   * worker has the same name, across configuration updates and restarts of workers.
   */
  tokenBucket(name: string, rate: TokenRate): TokenBucket;
}

/** Dynamic routes on a worker. Each source follows what the primary publishes. */
export interface WorkerRoutes {
  rds(rds: Rds, filters: RouteFilters): RouteSource;
  scoped(scoped: ScopedRoutes, filters: RouteFilters): ScopedRouteSource;
}

/** Generic secrets, on a worker. */
export interface WorkerSecrets {
  /** Returns a handle of a secret that secrets() of the extension lists. It always has the current value. */
  generic(config: SdsSecretConfig): GenericSecret;
}

export interface GenericSecret {
  /** One character for each byte; '' when the secret has not arrived. Equal values are the same string. */
  readonly value: string;
}

/** The modules of scripts, on a worker. */
export interface WorkerScripts {
  /** Returns the module of that name, which the primary has checked. */
  module(name: string): WorkerScript;
}

/** Discovered configurations of HTTP filters, on a worker. */
export interface WorkerFilterConfigs {
  /**
   * Calls `follower` with the current configuration and with each later one. `follower` is held weakly: it must be kept alive by
   * its owner.
   */
  follow(filter: HttpFilter, follower: DiscoveredFilterConfig): void;
}

/** The receiver of a discovered configuration. */
export interface DiscoveredFilterConfig {
  /** Sets the configuration of new streams; undefined: there is none. */
  update(config: Any | undefined): void;
}

/** The listener of a filter chain, as its filters see it. */
export interface ListenerIdentity {
  readonly name: string;
  /** stat_prefix, or the address with '_' for ':'. */
  readonly statToken: string;
  /** per_connection_buffer_limit_bytes. */
  readonly bufferLimit: number;
}

/** A filter chain and its listener, on a worker. */
export interface ChainIdentity extends ListenerIdentity {
  /** For logs. */
  readonly names: ChainNames;
  /** The listener's traffic_direction is OUTBOUND. */
  readonly isOutbound: boolean;
  /** Number of the chain. A changed chain gets a new number. */
  readonly chain: number;
  /**
   * Returns a count of connections that the same filter has on all workers. Throws a RangeError unless the extension
   * `countsConnections`.
   */
  nextCount(): SharedConnectionCount;
}

/** The connections of one filter of one chain on all workers. What a dead worker has added is subtracted. */
export interface SharedConnectionCount {
  /** Adds 1 if the count is below `limit`, at most 2^31 - 1. */
  tryAcquire(limit: number): boolean;
  /** Subtracts 1 that this worker has added. */
  release(): void;
}

/** The HTTP filter chain of a filter. */
export interface HttpChain {
  /** For example `http.ingress.` */
  readonly statPrefix: string;
}

/** An HTTP filter chain, on a worker. */
export interface HttpChainPlace extends HttpChain {
  /** Identifies the chain, or a filter, in the process: the same on all workers while the chain is in use, and unique. */
  readonly place: string;
  /** Maximum bytes of a message that a filter may buffer. */
  readonly bufferLimit: number;
}

/** The HTTP filter chain of a filter, on a worker. */
export interface HttpChainContext extends HttpChainPlace {
  /** The name of the filter in the chain. */
  readonly filterName: string;
}
