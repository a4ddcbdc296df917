// Names a sink's service in the log, so that two sinks of one kind can be distinguished.

import type { GrpcService } from '../../config/generated/api.js';

/** Returns `over cluster 'metrics'`, or `at 127.0.0.1:4317` for a target URI. */
export function placeOf(service: GrpcService): string {
  const cluster = service.envoy_grpc?.cluster_name;
  return cluster === undefined ? `at ${service.google_grpc?.target_uri}` : overCluster(cluster);
}

export function overCluster(name: string | undefined): string {
  return `over cluster '${name}'`;
}
