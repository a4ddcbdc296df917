// Finds configuration sources, named by resources of management servers and files, that a reload would remove. The bootstrap's
// own sources were checked with it.

import { reachOf } from '../../config/checks/services/config-sources.js';
import { speaksHttp2 } from '../../config/fields/http-options.js';
import type { ApiConfigSource, Bootstrap } from '../../config/generated/api.js';
import { formatPath, type PathPart } from '../../config/text/path.js';

/** A resource in use. */
export interface NamedSources {
  /** `listener 'front'` */
  readonly what: string;
  /** The whole resource, or the part that names sources. */
  readonly config: unknown;
}

/** Returns why a source cannot be reached any more with the clusters of `next`, the new bootstrap; undefined when all can. */
export function sourcesStillInUse(resources: Iterable<NamedSources>, next: Bootstrap): string | undefined {
  const clusters = (next.static_resources?.clusters ?? []).filter(speaksHttp2);
  const { primaryClusters, http2Clusters } = reachOf(next, new Set(clusters.map(({ name = '' }) => name)));
  for (const { config, what } of resources) {
    for (const { cluster, path } of clustersOf(config, [])) {
      if (primaryClusters.has(cluster) && http2Clusters.has(cluster)) continue;
      return `cluster '${cluster}' cannot change: ${what} names it as a source of configuration at ${formatPath(path)}`;
    }
  }
  return undefined;
}

/** Yields the clusters of the management servers that a value names. */
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
