// Sources of configuration that resources of management servers and files name, and a reload would take away: the bootstrap's
// own were checked with it.

import { reachOf } from '../../config/checks/services/config-sources.js';
import { speaksHttp2 } from '../../config/fields/http-options.js';
import type { ApiConfigSource, Bootstrap } from '../../config/generated/api.js';
import { formatPath, type PathPart } from '../../config/text/path.js';

/** A resource in use. */
export interface NamedSources {
  /** `listener 'front'` */
  readonly what: string;
  /** All of it, or the part that names sources. */
  readonly config: unknown;
}

/** Why their sources cannot be reached any more with the clusters of `next`, the bootstrap that is to run; undefined: they can. */
export function sourcesStillInUse(resources: Iterable<NamedSources>, next: Bootstrap): string | undefined {
  const clusters = (next.static_resources?.clusters ?? []).filter(speaksHttp2);
  const { primaryClusters, http2Clusters } = reachOf(next, new Set(clusters.map(({ name = '' }) => name)));
  for (const { config, what } of resources) {
    for (const { cluster, path } of clustersOf(config, [])) {
      if (primaryClusters.has(cluster) && http2Clusters.has(cluster)) continue;
      return `cluster '${cluster}' has to stay as it is: ${what} names it as a source of configuration at ${formatPath(path)}`;
    }
  }
  return undefined;
}

/** Clusters of the management servers that it names. */
function* clustersOf(value: unknown, path: readonly PathPart[]): Generator<{ cluster: string; path: PathPart[] }> {
  if (typeof value !== 'object' || value === null) return;
  for (const [key, held] of Object.entries(value)) {
    const at = [...path, Array.isArray(value) ? Number(key) : key];
    if (key === 'api_config_source') {
      for (const { envoy_grpc } of (held as ApiConfigSource).grpc_services ?? []) {
        if (envoy_grpc?.cluster_name !== undefined) yield { cluster: envoy_grpc.cluster_name, path: at };
      }
    } else yield* clustersOf(held, at);
  }
}
