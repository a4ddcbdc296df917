// Clusters that Baton itself calls by gRPC.

import type { GrpcService } from '../../generated/api.js';
import type { Path } from '../../text/path.js';
import type { CheckContext } from '../check-context.js';
import { checkClusterName } from '../names/cluster-name.js';

/** Reports a cluster of a gRPC service that does not exist or uses HTTP/1.1. */
export function checkGrpcCall(service: GrpcService | undefined, path: Path, context: CheckContext): void {
  const name = service?.envoy_grpc?.cluster_name;
  if (name === undefined) return;
  const at = [...path, 'envoy_grpc', 'cluster_name'];
  if (!context.clusters?.has(name)) return checkClusterName(name, at, context);
  if (context.http2Clusters.has(name)) return;
  context.problems.error(at, `gRPC needs HTTP/2: give cluster '${name}' http2_protocol_options`);
}
