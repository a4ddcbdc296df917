// Clusters with HTTP/2. Those that Baton's own gRPC calls use have restrictions: calls have their own connections and load balancing.

import type { ExtensionCatalog } from '../../catalog/extension.js';
import { HTTP_OPTIONS, httpOptions } from '../../fields/http-options.js';
import { policyMessage, ROUND_ROBIN } from '../../fields/load-balancing.js';
import type { Cluster, GrpcService, TransportSocket } from '../../generated/api.js';
import { messageNameOf } from '../../schema/message-name.js';
import type { Path } from '../../text/path.js';
import type { Problems } from '../../text/problems.js';
import type { CheckContext } from '../check-context.js';
import { checkClusterName } from '../names/cluster-name.js';

/** Fields that gRPC channels do not support. */
const WITHOUT_EFFECT = [
  'per_connection_buffer_limit_bytes',
  'max_requests_per_connection',
  'upstream_bind_config',
  'common_lb_config',
  'round_robin_lb_config',
  'outlier_detection',
] as const;

/** Returns the names of clusters that Baton itself calls by gRPC. */
export function calledClusters(bootstrap: unknown): ReadonlySet<string> {
  const names = new Set<string>();
  addCalled(bootstrap, names);
  return names;
}

function addCalled(value: unknown, names: Set<string>): void {
  if (typeof value !== 'object' || value === null) return;
  for (const [key, part] of Object.entries(value)) {
    const name: unknown = key === 'envoy_grpc' ? (part as { cluster_name?: unknown } | null)?.cluster_name : undefined;
    if (typeof name === 'string') names.add(name);
    addCalled(part, names);
  }
}

/** Reports contradictions of an HTTP/2 cluster. */
export function checkHttp2Cluster(cluster: Cluster, path: Path, problems: Problems): void {
  const other = http1Reason(cluster);
  if (cluster.http2_protocol_options !== undefined && other !== undefined) {
    const why = `it means HTTP/2, and ${other}: leave out one of them`;
    problems.error([...path, 'http2_protocol_options'], why, 'key');
  } else if (cluster.protocol_selection === 'USE_DOWNSTREAM_PROTOCOL') {
    problems.error([...path, 'protocol_selection'], 'it is not implemented for a cluster that speaks HTTP/2', 'key');
  }
  checkKeepalive(cluster, path, problems);
}

/** Reports fields of an HTTP/2 cluster that have no effect on Baton's own gRPC calls. */
export function checkCalledCluster(cluster: Cluster, path: Path, catalog: ExtensionCatalog, problems: Problems): void {
  const refuse = (at: Path) => {
    const why =
      "it is not implemented for a cluster that serves Baton's own gRPC calls: give these a cluster of their own";
    problems.error(at, why, 'key');
  };
  if (cluster.transport_socket !== undefined && !isPlain(cluster.transport_socket)) {
    problems.error(
      [...path, 'transport_socket'],
      "TLS is not implemented for Baton's own gRPC calls: put a local TLS proxy between Baton and the hosts",
    );
  }
  for (const field of WITHOUT_EFFECT) if (cluster[field] !== undefined) refuse([...path, field]);
  refuseSettings(cluster, path, refuse);
  const isPolicy = (typeUrl: string) => catalog.byTypeUrl(typeUrl)?.category === 'envoy.load_balancing_policies';
  if (messageNameOf(policyMessage(cluster, isPolicy)['@type']) !== ROUND_ROBIN) {
    refuse([...path, cluster.load_balancing_policy ? 'load_balancing_policy' : 'lb_policy']);
  }
  if (httpOptions(cluster)?.common_http_protocol_options !== undefined) {
    refuse([...path, 'typed_extension_protocol_options', HTTP_OPTIONS, 'common_http_protocol_options']);
  }
  if (cluster.type === 'EDS') refuse([...path, 'type']);
  cluster.load_assignment?.endpoints?.forEach((group, number) => {
    if ((group?.priority ?? 0) !== 0) refuse([...path, 'load_assignment', 'endpoints', number, 'priority']);
    group?.lb_endpoints?.forEach((endpoint, index) => {
      if ((endpoint?.load_balancing_weight ?? 1) === 1) return;
      const at = [...path, 'load_assignment', 'endpoints', number, 'lb_endpoints', index, 'load_balancing_weight'];
      refuse(at);
    });
  });
}

/** Returns the other settings of the cluster that imply HTTP/1.1. */
function http1Reason(cluster: Cluster): string | undefined {
  const { explicit_http_config: explicit, use_downstream_protocol_config: same } = httpOptions(cluster) ?? {};
  if (explicit?.http_protocol_options !== undefined || same !== undefined) {
    return `the cluster's '${HTTP_OPTIONS}' mean HTTP/1.1`;
  }
  if (explicit !== undefined || cluster.protocol_selection !== 'USE_DOWNSTREAM_PROTOCOL') return undefined;
  return 'protocol_selection means the protocol of clients, HTTP/1.1';
}

/** Refuses the settings of HTTP/2 that gRPC channels do not have. */
function refuseSettings(cluster: Cluster, path: Path, refuse: (at: Path) => void): void {
  const explicit = httpOptions(cluster)?.explicit_http_config?.http2_protocol_options ?? {};
  const explicitAt = [...path, 'typed_extension_protocol_options', HTTP_OPTIONS, 'explicit_http_config'];
  for (const [settings, at] of [
    [explicit, explicitAt],
    [cluster.http2_protocol_options ?? {}, path],
  ] as const) {
    for (const field of Object.keys(settings)) {
      if (field !== 'connection_keepalive') refuse([...at, 'http2_protocol_options', field]);
    }
  }
}

/** Reports keepalive settings that have no effect. */
function checkKeepalive(cluster: Cluster, path: Path, problems: Problems): void {
  const explicit = httpOptions(cluster)?.explicit_http_config?.http2_protocol_options;
  const at = [...path, 'http2_protocol_options', 'connection_keepalive'];
  const explicitAt = [
    ...path,
    'typed_extension_protocol_options',
    HTTP_OPTIONS,
    'explicit_http_config',
    ...at.slice(-2),
  ];
  const keepalive = cluster.http2_protocol_options?.connection_keepalive;
  if (explicit !== undefined && keepalive !== undefined) {
    problems.error(
      at,
      `the cluster's '${HTTP_OPTIONS}' have http2_protocol_options, which take precedence: set it there`,
      'key',
    );
  }
  for (const [settings, place] of [
    [explicit?.connection_keepalive, explicitAt],
    [keepalive, at],
  ] as const) {
    if (settings === undefined || settings.interval !== undefined || problems.has([...place, 'interval'])) continue;
    problems.error(place, 'it has no effect without an interval', 'key');
  }
}

/** Reports a cluster of a gRPC service that does not exist or uses HTTP/1.1. */
export function checkGrpcCall(service: GrpcService | undefined, path: Path, context: CheckContext): void {
  const name = service?.envoy_grpc?.cluster_name;
  if (name === undefined) return;
  const at = [...path, 'envoy_grpc', 'cluster_name'];
  if (!context.clusters?.has(name)) return checkClusterName(name, at, context);
  if (context.http2Clusters.has(name)) return;
  context.problems.error(at, `gRPC needs HTTP/2: give cluster '${name}' http2_protocol_options`);
}

function isPlain({ typed_config: config }: TransportSocket): boolean {
  return config === undefined || messageNameOf(config['@type']) !== TLS_CONTEXT;
}

const TLS_CONTEXT = 'envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext';
