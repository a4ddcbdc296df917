// Clusters with HTTP/2, and those that Baton itself calls by gRPC.

import { HTTP_OPTIONS, httpOptions } from '../../fields/http-options.js';
import type { Cluster, GrpcService } from '../../generated/api.js';
import type { Path } from '../../text/path.js';
import type { Problems } from '../../text/problems.js';
import type { CheckContext } from '../check-context.js';
import { checkClusterName } from '../names/cluster-name.js';

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

/** Returns the other settings of the cluster that imply HTTP/1.1. */
function http1Reason(cluster: Cluster): string | undefined {
  const { explicit_http_config: explicit, use_downstream_protocol_config: same } = httpOptions(cluster) ?? {};
  if (explicit?.http_protocol_options !== undefined || same !== undefined) {
    return `the cluster's '${HTTP_OPTIONS}' mean HTTP/1.1`;
  }
  if (explicit !== undefined || cluster.protocol_selection !== 'USE_DOWNSTREAM_PROTOCOL') return undefined;
  return 'protocol_selection means the protocol of clients, HTTP/1.1';
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
