// The API of extensions. An extension imports Node's modules, packages, this file, grpc-sdk.ts (kept apart because it loads the
// gRPC library), the types of configuration messages (config/generated/api.ts) and other files of src/extensions. The lint
// refuses imports from any other folder of src, so that the code behind these names can move.
//
// docs/extending.md shows complete extensions of each kind, with their tests. Every name below has its documentation where it is
// defined.

// ── Describing an extension ──────────────────────────────────────────────────────────────────────────────────────────
//
// An extension exports one object: a *Extension. Its `implemented` table lists the configuration fields that the extension obeys;
// the loader refuses the others. WorkerContext and PrimaryContext are what Baton passes to createOnWorker() and
// createOnPrimary(). PrimaryPart, PrimaryPort and WorkerPort are for filters that also have a part on the primary, which
// exchanges messages with the workers.

export type { Report } from '../config/catalog/extension.js';
export {
  accepted,
  byValue,
  dataOf,
  everyValue,
  type ImplementedTable,
  notImplemented,
  obeyed,
  onlyExtension,
  onlyFalse,
  refused,
} from '../config/implemented/table.js';
export type {
  AccessLoggerExtension,
  ChainIdentity,
  ClusterSpecifierExtension,
  EndpointAnswer,
  GenericSecret,
  HttpChain,
  HttpChainContext,
  HttpFilterExtension,
  ListenerFilterExtension,
  ListenerIdentity,
  LoadBalancingPolicyExtension,
  NamedExtension,
  NetworkFilterExtension,
  PostEndpoint,
  PrimaryContext,
  PrimaryFilterContext,
  PrimaryPart,
  PrimaryPort,
  SharedConnectionCount,
  SpecifierContext,
  StatsSinkExtension,
  TerminalNetworkFilterExtension,
  TracerExtension,
  UdpListenerFilterExtension,
  WorkerContext,
  WorkerPort,
  WrappingPolicyExtension,
} from './factories.js';

// ── Reading and validating configuration ─────────────────────────────────────────────────────────────────────────────
//
// Errors are reported through the Report that validate() gets, or thrown as BatonError; reportMistakes() turns the second into
// the first.

export { BatonError, buildEach, messageOf } from '../common/errors/errors.js';
export { FileWatch, fileIdentity } from '../common/files/file-watch.js';
export { readRegularFile } from '../common/files/regular-file.js';
export { onDemand } from '../common/package/on-demand.js';
export { releaseNumber } from '../common/package/version.js';
export { oneWord, onOneLine, shownName } from '../common/text/shown.js';
export { utf8Length } from '../common/text/utf8.js';
export { durationMs } from '../common/time/duration.js';
export { readDataSource } from '../config/fields/data-source.js';
export { errorStatus, finalStatus } from '../config/fields/http-status.js';
export { actionFilters } from '../config/fields/inner-filters.js';
export { unpack } from '../config/schema/any.js';
export { checkGrpcService } from '../grpc/initial-metadata.js';
export { closeFactories } from '../http/filters/close-factories.js';
export type { MetadataPlace } from '../upstream/hosts/host-overrides.js';
export { compileCallRetries } from '../upstream/http-calls/call-retry-policy.js';
export { checkHttpService } from '../upstream/http-calls/check-http-service.js';
export { createFactory } from './create-factory.js';
export { reportLogFilters } from './log-filters.js';
export { accessLogScopes, createAccessLoggers } from './registry.js';
export { reportMistakes } from './report-mistakes.js';

// ── HTTP filters ─────────────────────────────────────────────────────────────────────────────────────────────────────
//
// A factory creates one HttpFilter for each request. StreamControl is the request and its response as the filter controls them.

export { ResponseFlag, shortFlags } from '../access-log/stream/response-flags.js';
export {
  DataStatus,
  HeadersStatus,
  type HttpFilter,
  type HttpFilterFactory,
  type LocalReply,
  type StreamControl,
} from '../http/filters/filter.js';
export type { ClusterSpecifier } from '../http/routing/actions/cluster-specifier.js';
export {
  addDescriptors,
  type CompiledLimits as RateLimits,
  compileFilterLimits,
  type DescribedRequest,
  type Descriptor as RateLimitDescriptor,
  entryText,
  type Selection as RateLimitSelection,
} from '../http/routing/actions/rate-limits.js';
export { type Route, RouteKind } from '../http/routing/actions/route.js';
export type { RetryPolicy } from '../http/routing/retries/retry-policy.js';
export type { HostWaiter, MissingHost } from '../http/routing/tables/on-demand-hosts.js';
export { Runtime, type RuntimeDouble, type RuntimeFlag, type RuntimeFraction } from '../runtime/runtime.js';

// ── Header blocks ────────────────────────────────────────────────────────────────────────────────────────────────────
//
// HeaderBlock is the head or the trailers of a message. Keys, rules and mutations are compiled once, in createOnWorker().

export { grpcStatusIn, grpcStatusOf } from '../common/grpc-status.js';
export { byteText } from '../common/text/byte-text.js';
export { decimalOf } from '../common/text/decimal.js';
export { type HeaderKey, knownHeader } from '../common/text/header-names.js';
export type { Replacement } from '../common/text/regex.js';
export { compileFullMatch } from '../common/text/regex.js';
export { requestScheme } from '../http/headers/edge/request-scheme.js';
export { grpcMessage, isGrpcRequest, isGrpcResponse } from '../http/headers/grpc-reply.js';
export { BodyKind, type HeaderBlock, Method, methodOf } from '../http/headers/header-block.js';
export { compileHeaderMutations, type HeaderMutations, MUTATION_FIELDS } from '../http/headers/header-mutations.js';
export { isServerError } from '../http/headers/status-class.js';
export { ReplyFormat } from '../http/local-replies/reply-format.js';
export { cookieAttributes } from '../http/routing/hashing/cookie-hash.js';
export { findCookie } from '../http/routing/matching/cookies.js';
export { decodedParameter, withoutParameter } from '../http/routing/matching/decoded-query.js';
export { compileHeaderRules, HeaderRule, matchesAll, matchesAny } from '../http/routing/matching/header-rule.js';
export { compileStringMatcher, replacementOf, type StringRule } from '../http/routing/matching/string-rule.js';
export { UriTemplate } from '../http/routing/matching/uri-template.js';
export {
  compileValueMatcher,
  configuredMetadata,
  MetadataRule,
  type MetadataSource,
  type ValueRule,
  valueAt,
} from '../http/routing/matching/value-rule.js';
export { RequestMatch } from '../http/routing/tables/request-match.js';
export {
  type ClusterOutcome,
  type ClusterWaiter,
  type MissingClusters,
  type OnDemandSource,
  onDemandSource,
} from '../upstream/missing-clusters.js';
export { type ForwardProxy, forwardProxyOf } from '../upstream/requested-hosts/forward-proxy.js';
export type { HostWaiter as NamedHostWaiter } from '../upstream/requested-hosts/requested-hosts.js';
export { headerKey, settableKey } from './header-key.js';

// ── Access loggers ───────────────────────────────────────────────────────────────────────────────────────────────────
//
// An AccessLogger gets the StreamInfo of each finished stream. A Format renders it as text or JSON.

export {
  type AccessLogger,
  compileFileFormat,
  createFileAccessLogger,
  createStderrAccessLogger,
  createStdoutAccessLogger,
} from '../access-log/access-logger.js';
export { attributeReader } from '../access-log/attributes/attributes.js';
export type { Attribute } from '../access-log/attributes/request-attributes.js';
export {
  expressionOfExpr,
  expressionOfMatcher,
  expressionOfText,
  type StreamExpression,
} from '../access-log/attributes/stream-expression.js';
export { compileFormat, type Format, noHeaderNeeds } from '../access-log/formats/format.js';
export { compileSubstitutionFormat } from '../access-log/formats/substitution-format.js';
export { downstreamBytes, headBytes, upstreamBytes } from '../access-log/operators/bytes-operators.js';
export { withinPlace } from '../access-log/operators/format-error.js';
export type { HeaderNeeds } from '../access-log/operators/operator.js';
export type { FilterState, FilterStateObject, UpstreamSharing } from '../access-log/stream/filter-state.js';
export type { HeaderView } from '../access-log/stream/header-view.js';
export {
  type DownstreamProperties,
  PROTOCOL_NAMES,
  Protocol,
  StreamInfo,
  UNSET,
} from '../access-log/stream/stream-info.js';
export { celJson, celText } from '../cel/output.js';
export { CelDuration, CelMap, CelMessage, CelTimestamp, CelType, CelUint, type CelValue } from '../cel/values.js';

// ── Load-balancing policies ──────────────────────────────────────────────────────────────────────────────────────────
//
// A LoadBalancer picks a host from a HostList for each request.

export { murmurHash2 } from '../common/murmur-hash2.js';
export { Word64, xxh64, xxh64Text } from '../common/xxh64.js';
export { UNBOUNDED_HASHES } from '../config/implemented/cluster.js';
export { NO_LOCATORS } from '../config/implemented/config-source.js';
export type { HostList, LoadBalancer } from '../upstream/load-balancer/load-balancer.js';
export type { BalancerContext, LocalityBalancing } from '../upstream/load-balancer/policy.js';
export { EdfSchedule } from '../upstream/load-balancer/schedule.js';
export type { SelectorSpec, SubsetSpec } from '../upstream/load-balancer/subsets/subset-spec.js';
export { DEFAULT_ZONES } from '../upstream/load-balancer/zone-routes.js';

// ── Tracers ──────────────────────────────────────────────────────────────────────────────────────────────────────────
//
// A Tracer makes a Span for each request and try, writes its context to headers, and reports it. Custom tags are also for access
// loggers.

export { addNeeds, type CompiledTag, compileCustomTags } from '../http/tracing/custom-tags.js';
export { Side, type Span, type TagValue, type TracedRequest, type Tracer } from '../http/tracing/tracer.js';

// ── Listener filters ─────────────────────────────────────────────────────────────────────────────────────────────────
//
// A ListenerFilter inspects the first bytes of a connection before a filter chain is selected.

export type { CertificateFacts, ConnectionSecurity } from '../io/tls/connection-security.js';
export type { DetectedProtocols } from '../io/tls/detected-protocols.js';
export { type InspectedConnection, type ListenerFilter, Verdict } from '../listener/listener-filter.js';
export { RESTORES_DESTINATION } from '../listener/restore-destination.js';

// ── Filters of UDP listeners ─────────────────────────────────────────────────────────────────────────────────────────
//
// A UdpListenerFilter gets the datagrams of clients. DatagramSockets opens sockets that are connected to hosts.

export { rxDatagramBytes } from '../config/fields/udp.js';
export type { DatagramPath, PathKey } from '../io/datagrams/datagram-path.js';
export type { Datagram, DatagramReceiver, DatagramSender, DatagramSockets } from '../io/datagrams/datagram-sockets.js';
export type { SocketOption } from '../io/shim.js';
export type { UdpListenerFilter, UdpSocket } from '../listener/udp/udp-filter.js';
export { DnsFilterStats, UdpClusterStats, UdpProxyStats } from '../stats/layouts/udp.js';
export type { ClusterHost } from '../upstream/cluster.js';
export type { Host } from '../upstream/hosts/host.js';

// ── Network filters ──────────────────────────────────────────────────────────────────────────────────────────────────
//
// A NetworkFilter passes or closes a connection (FilteredClient). A TerminalNetworkFilter ends the chain and serves the
// connection.

export type { DownstreamConnection, DownstreamHandler } from '../listener/downstream-connection.js';
export {
  FilterClose,
  type FilteredClient,
  FilterStatus,
  type NetworkFilter,
  type NetworkFilterFactory,
  type TerminalNetworkFilter,
} from '../listener/network-filter.js';

// ── Stats and stats sinks ────────────────────────────────────────────────────────────────────────────────────────────
//
// defineLayout() declares the stats of a Scope. A StatsSink gets FlushedStats at each flush, in steps that bound the time of a
// turn.

export type { FlushedStat, FlushedStats, FlushTimes } from '../stats/flush/flushed-stats.js';
export { type FlushStep, STATS_PER_STEP, type StatsSink } from '../stats/flush/sink.js';
export { lowerEdge, upperEdge, widthOf } from '../stats/histograms/bins.js';
export { type Distribution, QUANTILES } from '../stats/histograms/distribution.js';
export { type CounterSlot, defineLayout, Kind, PERCENT_SCALE } from '../stats/layout.js';
export { ClusterStats, HostStats } from '../stats/layouts/cluster.js';
export { scopePrefix } from '../stats/scope-prefix.js';
export type { DynamicCounter, DynamicGauge, DynamicHistogram, Scope, ThreadStats } from '../stats/thread-stats.js';

// ── Scripts ──────────────────────────────────────────────────────────────────────────────────────────────────────────
//
// A WorkerScript is a module that a user has written; src/api is what it sees.

export type { Json, Struct } from '../config/generated/api.js';
export { configValue } from '../scripts/config-value.js';
export type { Definitions } from '../scripts/definition.js';
export type { ScriptKind } from '../scripts/image.js';
export type { WorkerScript } from '../scripts/worker-script.js';

// ── Lua ──────────────────────────────────────────────────────────────────────────────────────────────────────────────
//
// A LuaVm runs the scripts of a configuration, with limits of memory and time.

export {
  createLuaVm,
  LuaError,
  type LuaMethod,
  LuaOutcome,
  LuaTable,
  type LuaVm,
  NO_FUNCTION,
  OUTCOME_BITS,
  YIELD,
} from '../io/lua-vm.js';

// ── Rate limits ──────────────────────────────────────────────────────────────────────────────────────────────────────
//
// WorkerContext.tokenBucket() returns a bucket that all workers share. OwnTokenBucket belongs to its creator.

export { OwnTokenBucket, type TokenBucket, TokenRate } from '../upstream/token-bucket.js';

// ── Calls to upstream hosts ──────────────────────────────────────────────────────────────────────────────────────────
//
// HttpCall sends one request and collects its response. ClusterStream, UpstreamSocket and PipelinedSocket carry bytes over a
// connection of a cluster.

export type { CallingThread } from '../upstream/calling-thread.js';
export type { Cluster } from '../upstream/cluster.js';
export type { ClusterManager, ClusterReference } from '../upstream/cluster-manager.js';
export { ClusterStream, type ClusterStreamEvents } from '../upstream/connections/cluster-stream.js';
export { PipelinedSocket, type PipelinedSocketEvents } from '../upstream/connections/pipelined-socket.js';
export { UpstreamSocket, type UpstreamSocketEvents } from '../upstream/connections/upstream-socket.js';
export { DnsResolver } from '../upstream/dns/resolver.js';
export { type ResolverSettings, resolverSettings } from '../upstream/dns/resolver-settings.js';
export { SLOTS } from '../upstream/hosts/shards.js';
export {
  HttpCall,
  type HttpCallAnswer,
  type HttpCallEvents,
  type HttpCallRequest,
  startHttpCall,
} from '../upstream/http-calls/http-call.js';
export { HttpService } from '../upstream/http-calls/http-service.js';
export { type HttpTarget, httpTarget } from '../upstream/http-calls/http-uri.js';
export { CallFailure } from '../upstream/http-calls/outgoing-call.js';
export type { RunningCall } from '../upstream/http-calls/retried-call.js';
export { LimitKind } from '../upstream/limits.js';
export { ReadFrom } from '../upstream/load-balancer/shard-balancer.js';

// ── The thread: log, memory, clock, timers, addresses ────────────────────────────────────────────────────────────────

export { errorName } from '../common/errors/errno.js';
export { loadNative } from '../common/package/native-code.js';
export { Priority } from '../common/priority.js';
export { ProtobufWriter } from '../common/protobuf-writer.js';
export type { Random } from '../common/random.js';
export { MAX_TIMER_MS } from '../common/time/max-timer.js';
export { atMostMs } from '../common/time/within-ms.js';
export {
  type Address,
  AddressKind,
  addressOfBytes,
  addressOfSockaddr,
  addressText,
  encodeIp,
  encodePath,
  endpointIdOf,
  internalNameOf,
  ipAddress,
  ipBytesOf,
  ipOfAddress,
  isInternalText,
  parseAddress,
  parseIp,
  portOfAddress,
} from '../io/addresses/address.js';
export { type IpRange, ipRange, isInRange, RangeTable } from '../io/addresses/ip-range.js';
export { HeldBytes } from '../io/held-bytes.js';
export { type Memory, NoRoomError } from '../io/memory.js';
export type { Clock } from '../io/time/clock.js';
export { Timer, type Timers } from '../io/time/timing-wheel.js';
export { forEachGuarded } from '../log/internal-errors.js';
export { getLogger } from '../log/logger.js';
export { OccasionalLog } from '../log/occasional-log.js';
