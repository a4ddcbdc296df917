// Converts a cluster's configuration to the form that the rest of the code uses: every default is filled in, every unit is in the
// name.
//
// ClusterSpec is part of snapshots and reaches the workers.

import { callExtension } from '../common/errors/defects.js';
import { durationMs } from '../common/time/duration.js';
import { bufferLimitBytes } from '../config/fields/buffer-limit.js';
import { aggregatedClusters, discoveryType, redisClusterConfig } from '../config/fields/discovery.js';
import {
  commonHttpOptions,
  type HostProtocol,
  HTTP_OPTIONS,
  hostProtocol,
  http1Options,
  http2Options,
  httpOptions,
} from '../config/fields/http-options.js';
import { CLUSTER_PROVIDED, firstPolicy, policyMessage } from '../config/fields/load-balancing.js';
import { beforeCodec } from '../config/fields/upstream-filters.js';
import type {
  Any,
  CircuitBreakers,
  CircuitBreakers_Thresholds_RetryBudget,
  Cluster,
  Http1ProtocolOptions,
  Http2ProtocolOptions,
  HttpFilter,
  HttpProtocolOptions,
  Metadata,
  ProxyProtocolConfig_Version,
  RouteAction_HashPolicy,
  TcpKeepalive,
  TlsKeyLog,
  UpstreamConnectionOptions_HappyEyeballsConfig,
} from '../config/generated/api.js';
import { messageNameOf } from '../config/schema/message-name.js';
import { nameCase } from '../http/codec/name-case.js';
import { DEFAULT_HTTP1_OPTIONS, type Http1Options, type Http2Options, TUNNEL_FLUSH_MS } from '../http/codec/options.js';
import { http2Options as http2CodecOptions } from '../http/h2/options.js';
import { HashPolicy } from '../http/routing/hashing/hash-policy.js';
import { AddressKind, encodeIp } from '../io/addresses/address.js';
import type { Keepalive } from '../io/shim.js';
import type { ScopeRef } from '../stats/thread-stats.js';
import type { AssignmentPolicy } from './assignment-policy.js';
import { type AddressPreference, NO_PREFERENCE } from './connections/address-order.js';
import { type PreconnectSpec, preconnectSpec } from './connections/preconnect.js';
import { statusBits } from './hosts/health-flags.js';
import { DEFAULT_RETRY_BUDGET, DEFAULT_THRESHOLDS, type RetryBudget, type Thresholds } from './limits.js';
import { DEFAULT_HEALTH_POLICY, type HealthPolicy } from './load-balancer/health-parts.js';
import { type LoadBalancerSpec, type LoadBalancingPolicies, loadBalancerSpec } from './load-balancer/policy.js';
import { type OutlierSpec, outlierSpec } from './outliers/outlier-spec.js';
import { redisSettings } from './redis-settings.js';
import { type DestinationSpec, destinationSpec, type NameDestination } from './requested-hosts/destination.js';

/** How the host that requests name determines their connections. */
export interface RequestNames {
  /** It is the SNI. */
  readonly areSent: boolean;
  /** The certificate must have it. */
  readonly areVerified: boolean;
  /** The header that has the name; ':authority' unless it is set. */
  readonly header: string;
}

/** The TLS of connections to the hosts of a cluster. */
export interface ClusterTls {
  /** Number of the context in the native engine. */
  readonly context: number;
  /** SNI; '' sends none. */
  readonly serverName: string;
  /** SNI is the host's own `hostname`, if it has one. */
  readonly usesHostname: boolean;
  /** The certificate must be that of the server that SNI names, whatever other names are accepted. */
  readonly verifiesServerName: boolean;
  /** The names of requests determine connections; undefined: they do not. */
  readonly requestNames: RequestNames | undefined;
  /** Undefined: keys are not written. */
  readonly keyLog: TlsKeyLog | undefined;
  /** cluster.<name>.ssl. */
  readonly scope: ScopeRef;
  /** cluster.<name>.client_ssl_socket_factory. */
  readonly factoryScope: ScopeRef;
}

/** A header of the PROXY protocol, which precedes everything else. */
export interface ProxyHeaderSpec {
  readonly version: ProxyProtocolConfig_Version;
  /** Encoded TLVs of a version 2 header, in Base64. */
  readonly tlvs: string;
}

/** What connections to internal listeners bring with them (InternalUpstreamTransport). */
export interface PassthroughSpec {
  readonly fromHost: readonly string[];
  readonly fromCluster: readonly string[];
  /** cluster.<name>.internal_upstream. */
  readonly scope: ScopeRef;
}

/** What connections to the hosts of a cluster begin with. */
export interface ClusterTransport {
  /** Undefined: connections to internal listeners bring nothing. */
  readonly passthrough: PassthroughSpec | undefined;
  readonly tls: ClusterTls | undefined;
  readonly proxyHeader: ProxyHeaderSpec | undefined;
  /** They go through HTTP proxies, by default through the one with this address ('': through none). Undefined: they do not. */
  readonly proxies: { readonly defaultAddress: string } | undefined;
}

/** The workers' part of a cluster's configuration; plain data. */
export interface ClusterSpec {
  readonly name: string;
  /** alt_stat_name, or else the name: identifies the cluster in stats, logs and /clusters. */
  readonly observabilityName: string;
  /** For logs and headers. */
  readonly metadata: Metadata | undefined;
  /** LOGICAL_DNS: the only host is identified by its name, whatever address that resolves to. */
  readonly hasLogicalHost: boolean;
  /** The options of extensions, by their names; undefined: none. */
  readonly extensionOptions: Readonly<Record<string, Any>> | undefined;
  /** The upstream HTTP filters before the codec; undefined: those of the router apply. */
  readonly httpFilters: readonly HttpFilter[] | undefined;
  /** How requests name their hosts; undefined: a load balancer picks. */
  readonly destination: DestinationSpec | undefined;
  /** The host of a key is that of its slot, in a Redis cluster. */
  readonly hasSlots: boolean;
  /** What threads report, because many of them make a Redis cluster ask for its slots; undefined: nothing. */
  readonly reportedEvents: { readonly redirections: boolean; readonly failures: boolean } | undefined;
  /** Names of the clusters of an aggregate, in the order of preference; undefined for other clusters. */
  readonly aggregated: readonly string[] | undefined;
  readonly connectTimeoutMs: number;
  /** High watermark of a connection's pending bytes. */
  readonly perConnectionBufferLimit: number;
  /** 0: no limit. */
  readonly maxRequestsPerConnection: number;
  /** Idle timeout of a connection; 0: none. */
  readonly idleTimeoutMs: number;
  /** Maximum age of a connection; 0: no limit. */
  readonly maxConnectionDurationMs: number;
  /** Maximum duration of one try of a request; 0: no limit. */
  readonly maxStreamMs: number;
  /** Raw sockaddr that connections are bound to. */
  readonly sourceAddress: Uint8Array | undefined;
  /** TCP keepalive of the connections; undefined: none. */
  readonly keepalive: Keepalive | undefined;
  /** Undefined: no connections in advance. */
  readonly preconnect: PreconnectSpec | undefined;
  /** In which order the addresses of a host are tried. */
  readonly addressPreference: AddressPreference;
  readonly http1: Http1Options;
  readonly hostProtocol: HostProtocol;
  /** Undefined: hosts never use HTTP/2. */
  readonly http2: Http2Options | undefined;
  /** Circuit breaker thresholds of the default and of the high priority. */
  readonly thresholds: readonly [Thresholds, Thresholds];
  /** Limit of connections to each host, for both priorities; undefined: none. */
  readonly maxHostConnections: readonly [number, number] | undefined;
  /** Whether the gauges remaining_… of the default and of the high priority are maintained. */
  readonly trackRemaining: readonly [boolean, boolean];
  /** track_cluster_stats. */
  readonly tracksBudgets: boolean;
  readonly tracksSizes: boolean;
  /** The stats of hosts are shown like those of the cluster. */
  readonly tracksEndpoints: boolean;
  readonly loadBalancer: LoadBalancerSpec;
  /** By what requests are hashed, in place of the hash_policy of routes; undefined: by that. */
  readonly hashPolicy: readonly RouteAction_HashPolicy[] | undefined;
  /** The health statuses with which a host may get requests that name it; see statusBits(). */
  readonly overrideStatuses: number;
  readonly health: Omit<HealthPolicy, keyof AssignmentPolicy>;
  /** All connections are drained when the set of hosts changes, not only those to removed hosts. */
  readonly closesOnHostChange: boolean;
  /** The hosts have active health checks, so responses may carry x-envoy-immediate-health-check-fail. */
  readonly isHealthChecked: boolean;
  /** TCP connections to a host are closed when the host becomes unhealthy. */
  readonly closesOnHostFailure: boolean;
  /** Undefined: no outlier detection. */
  readonly outliers: OutlierSpec | undefined;
  /** By the number of a host's transport socket (see TransportMatches); null: connections are plain. */
  readonly transports: readonly (ClusterTransport | null)[];
}

/** Returns the workers' part of a checked cluster configuration. Throws AddressError for an invalid source address. */
export function clusterSpec(
  cluster: Cluster,
  policies: LoadBalancingPolicies,
  transports: readonly (ClusterTransport | null)[] = [null],
  cache?: Pick<NameDestination, 'maxWaiting' | 'scope'>,
): ClusterSpec {
  const common = commonHttpOptions(cluster);
  const source = cluster.upstream_bind_config?.source_address;
  const name = cluster.name ?? '';
  const loadBalancer = loadBalancerOf(cluster, policies);
  return {
    name,
    observabilityName: cluster.alt_stat_name || name,
    metadata: cluster.metadata,
    hasLogicalHost: discoveryType(cluster) === 'LOGICAL_DNS',
    hasSlots: hasSlots(cluster, policies),
    reportedEvents: reportedEvents(cluster),
    aggregated: aggregatedClusters(cluster),
    destination: destinationOf(cluster, transports, cache),
    connectTimeoutMs: durationMs(cluster.connect_timeout, 5000),
    perConnectionBufferLimit: bufferLimitBytes(cluster.per_connection_buffer_limit_bytes),
    maxRequestsPerConnection: common.max_requests_per_connection ?? cluster.max_requests_per_connection ?? 0,
    idleTimeoutMs: durationMs(common.idle_timeout, 3_600_000),
    maxConnectionDurationMs: durationMs(common.max_connection_duration, 0),
    maxStreamMs: durationMs(common.max_stream_duration, 0),
    sourceAddress: source === undefined ? undefined : encodeIp(source.address ?? '', source.port_value ?? 0),
    keepalive: keepalive(cluster.upstream_connection_options?.tcp_keepalive),
    preconnect: preconnectSpec(cluster.preconnect_policy),
    addressPreference: addressPreference(cluster.upstream_connection_options?.happy_eyeballs_config),
    hostProtocol: hostProtocol(cluster),
    http1: clientOptions(common, http1Options(cluster)),
    http2: http2ClientOptions(common, http2Options(cluster)),
    thresholds: [thresholds(cluster.circuit_breakers, 'DEFAULT'), thresholds(cluster.circuit_breakers, 'HIGH')],
    maxHostConnections: maxHostConnections(cluster.circuit_breakers),
    trackRemaining: [
      tracksRemaining(cluster.circuit_breakers, 'DEFAULT'),
      tracksRemaining(cluster.circuit_breakers, 'HIGH'),
    ],
    tracksBudgets: (cluster.track_cluster_stats?.timeout_budgets || cluster.track_timeout_budgets) ?? false,
    extensionOptions: extensionOptions(cluster),
    httpFilters: beforeCodec(httpOptions(cluster)?.http_filters),
    tracksEndpoints: cluster.track_cluster_stats?.per_endpoint_stats ?? false,
    tracksSizes: cluster.track_cluster_stats?.request_response_sizes ?? false,
    loadBalancer,
    hashPolicy: hashPolicyOf(cluster),
    overrideStatuses: overrideStatuses(cluster),
    health: healthPolicy(cluster, loadBalancer),
    closesOnHostChange: cluster.common_lb_config?.close_connections_on_host_set_change ?? false,
    isHealthChecked: (cluster.health_checks?.length ?? 0) > 0,
    closesOnHostFailure: cluster.close_connections_on_host_health_failure ?? false,
    outliers: cluster.outlier_detection && outlierSpec(cluster.outlier_detection),
    transports,
  };
}

/** Returns undefined if there are none. */
function extensionOptions(cluster: Cluster): Readonly<Record<string, Any>> | undefined {
  const entries = Object.entries(cluster.typed_extension_protocol_options ?? {}).filter(
    ([key]) => key !== HTTP_OPTIONS,
  );
  return entries.length === 0 ? undefined : Object.fromEntries(entries);
}

function destinationOf(
  cluster: Cluster,
  [transport]: readonly (ClusterTransport | null)[],
  cache: Pick<NameDestination, 'maxWaiting' | 'scope'> | undefined,
): DestinationSpec | undefined {
  if (discoveryType(cluster) === 'ORIGINAL_DST') return destinationSpec(cluster);
  if (cache === undefined) return undefined;
  const { maxWaiting, scope } = cache;
  return { kind: 'name', defaultPort: transport?.tls === undefined ? 80 : 443, maxWaiting, scope };
}

/** With another policy than CLUSTER_PROVIDED, the nodes are hosts like those of other clusters. */
function hasSlots(cluster: Cluster, policies: LoadBalancingPolicies): boolean {
  if (redisClusterConfig(cluster) === undefined) return false;
  const config = policyMessage(cluster, (typeUrl) => policies.policyOf(typeUrl) !== undefined);
  return messageNameOf(config['@type']) === CLUSTER_PROVIDED;
}

function reportedEvents(cluster: Cluster): ClusterSpec['reportedEvents'] {
  const config = redisClusterConfig(cluster);
  if (config === undefined) return undefined;
  const { failures, redirections } = redisSettings(config);
  if (failures + redirections === 0) return undefined;
  return { redirections: redirections > 0, failures: failures > 0 };
}

function keepalive(config: TcpKeepalive | undefined): Keepalive | undefined {
  if (config === undefined) return undefined;
  return { idle: config.keepalive_time, interval: config.keepalive_interval, probes: config.keepalive_probes };
}

function addressPreference(config: UpstreamConnectionOptions_HappyEyeballsConfig | undefined): AddressPreference {
  const { first_address_family_count: count = 1, first_address_family_version: version } = config ?? {};
  if (version === 'V4') return { family: AddressKind.Ip4, count };
  return version === 'V6' ? { family: AddressKind.Ip6, count } : { ...NO_PREFERENCE, count };
}

const DEFAULT_RESPONSE_HEADERS_KB = 80;

function clientOptions(common: HttpProtocolOptions, http1: Http1ProtocolOptions): Http1Options {
  const { maxHeaders } = DEFAULT_HTTP1_OPTIONS;
  return {
    maxHeadBytes: (common.max_response_headers_kb ?? DEFAULT_RESPONSE_HEADERS_KB) * 1024,
    maxHeaders: common.max_headers_count ?? maxHeaders,
    dropsTrailers: http1.enable_trailers !== true,
    nameCase: nameCase(http1),
  };
}

function http2ClientOptions(
  common: HttpProtocolOptions,
  http2: Http2ProtocolOptions | undefined,
): Http2Options | undefined {
  if (http2 === undefined) return undefined;
  const { dropsTrailers: _, ...limits } = clientOptions(common, {});
  return http2CodecOptions(http2, { ...limits, flushTimeoutMs: TUNNEL_FLUSH_MS, underscores: 'ALLOW' });
}

function thresholdsOf(breakers: CircuitBreakers | undefined, priority: 'DEFAULT' | 'HIGH') {
  return breakers?.thresholds?.find((entry) => (entry.priority ?? 'DEFAULT') === priority);
}

function thresholds(breakers: CircuitBreakers | undefined, priority: 'DEFAULT' | 'HIGH'): Thresholds {
  const limits = thresholdsOf(breakers, priority);
  return {
    maxConnections: limits?.max_connections ?? DEFAULT_THRESHOLDS.maxConnections,
    maxPendingRequests: limits?.max_pending_requests ?? DEFAULT_THRESHOLDS.maxPendingRequests,
    maxRequests: limits?.max_requests ?? DEFAULT_THRESHOLDS.maxRequests,
    maxRetries: limits?.max_retries ?? DEFAULT_THRESHOLDS.maxRetries,
    maxConnectionPools: limits?.max_connection_pools ?? DEFAULT_THRESHOLDS.maxConnectionPools,
    retryBudget: limits?.retry_budget && retryBudget(limits.retry_budget),
  };
}

function maxHostConnections({ per_host_thresholds: list = [] }: CircuitBreakers = {}): [number, number] | undefined {
  if (list.length === 0) return undefined;
  const limitOf = (priority: 'DEFAULT' | 'HIGH') =>
    list.find((each) => (each.priority ?? 'DEFAULT') === priority)?.max_connections ?? MAX_INT32;
  return [Math.min(limitOf('DEFAULT'), MAX_INT32), Math.min(limitOf('HIGH'), MAX_INT32)];
}

/** Largest value of a counter. */
const MAX_INT32 = 2 ** 31 - 1;

function retryBudget(config: CircuitBreakers_Thresholds_RetryBudget): RetryBudget {
  const { budget_percent: percent, min_retry_concurrency: minConcurrency } = config;
  return {
    percent: percent === undefined ? DEFAULT_RETRY_BUDGET.percent : Number(percent.value ?? 0),
    minConcurrency: minConcurrency ?? DEFAULT_RETRY_BUDGET.minConcurrency,
  };
}

function tracksRemaining(breakers: CircuitBreakers | undefined, priority: 'DEFAULT' | 'HIGH'): boolean {
  return thresholdsOf(breakers, priority)?.track_remaining ?? false;
}

function loadBalancerOf(cluster: Cluster, policies: LoadBalancingPolicies): LoadBalancerSpec {
  const isPolicy = (typeUrl: string) => policies.policyOf(typeUrl) !== undefined;
  const config = policyMessage(cluster, isPolicy);
  const policy = policyOf(cluster, config, policies);
  return pickingSpec(policy, config);

  function pickingSpec(outer: ReturnType<typeof policyOf>, message: Any): LoadBalancerSpec {
    if (!('wrap' in outer)) return callExtension('settings', outer.name, () => loadBalancerSpec(outer, message));
    const { policies: list, ...wrapping } = callExtension('wrap', outer.name, () => outer.wrap(message));
    const inner = firstPolicy(list, isPolicy);
    return { ...pickingSpec(policyOf(cluster, inner, policies), inner), ...wrapping };
  }
}

/** An empty list permits no status. */
function overrideStatuses({ common_lb_config: common }: Cluster): number {
  const set = common?.override_host_status;
  return statusBits(set === undefined ? ['UNKNOWN', 'HEALTHY', 'DEGRADED'] : (set.statuses ?? []));
}

/** Throws a BatonError for a policy that cannot be used. */
function hashPolicyOf(cluster: Cluster): readonly RouteAction_HashPolicy[] | undefined {
  const policies = httpOptions(cluster)?.hash_policy ?? [];
  const where = `typed_extension_protocol_options['${HTTP_OPTIONS}'].hash_policy`;
  return HashPolicy.of(policies, where) === undefined ? undefined : policies;
}

function policyOf({ name }: Cluster, config: Any, policies: LoadBalancingPolicies) {
  const policy = policies.policyOf(config['@type']);
  if (policy === undefined) throw new Error(`cluster ${name}: ${config['@type']} is not a load-balancing policy`);
  return policy;
}

function healthPolicy(cluster: Cluster, { localities }: LoadBalancerSpec): ClusterSpec['health'] {
  const panic = cluster.common_lb_config?.healthy_panic_threshold;
  return {
    // The API truncates it to whole percents.
    panicThreshold: panic === undefined ? DEFAULT_HEALTH_POLICY.panicThreshold : Math.trunc(Number(panic.value ?? 0)),
    failTrafficOnPanic: localities?.failTrafficOnPanic ?? false,
  };
}
