// The configured clusters (envoy.admin.v3.ClustersConfigDump): those of the bootstrap and those of CDS.

import type { DumpResource } from '../../../admin/config-dump/config-dump.js';
import type { Cluster } from '../../../config/generated/api.js';
import { type DynamicState, shown } from '../../../xds/dynamic-state.js';
import type { PrimaryCluster } from '../../clusters/version/primary-cluster.js';
import type { RunningConfiguration } from '../../running/running-configuration.js';
import { any, byName, type Dump, mapped } from './dump.js';
import { statusFields } from './state-fields.js';

const CLUSTER = 'envoy.config.cluster.v3.Cluster';

/** `configured`: the bootstrap's clusters without secrets; `loadedAt`: when the bootstrap was loaded. */
export function clustersDump(running: RunningConfiguration, configured: readonly Cluster[], loadedAt: Date): Dump {
  const { byName: clusters, warming: warmingClusters } = running.clusters;
  const { states, version } = running.clusterDiscovery;
  const static_clusters = mapped(
    () => byName(configured, ({ name = '' }) => name),
    (config) => {
      const name = config.name ?? '';
      // A cluster that has changed since the bootstrap was loaded, or that is older, has its own time.
      const { origin } = warmingClusters.get(name) ?? clusters.get(name) ?? {};
      const updatedAt = origin?.isAddedViaApi === false ? origin.updatedAt : loadedAt;
      return { name, message: { cluster: any(CLUSTER, config), last_updated: updatedAt.toISOString() } };
    },
  );
  const dynamic_active_clusters = mapped(
    () => byName(activeOrRefused(running), ([name]) => name),
    ([name, cluster]) => dynamicCluster(name, cluster, warmingClusters.has(name) ? undefined : states.get(name)),
  );
  const dynamic_warming_clusters = mapped(
    () => {
      const added = [...warmingClusters.values()].filter(({ origin }) => origin.isAddedViaApi);
      return byName(added, ({ spec }) => spec.name);
    },
    (cluster) => dynamicCluster(cluster.spec.name, cluster, states.get(cluster.spec.name)),
  );
  const hasDynamic = version !== '' || states.size > 0 || hasOnDemand(clusters);
  return {
    message: 'ClustersConfigDump',
    fields: version === '' ? {} : { version_info: version },
    lists: { static_clusters, ...(hasDynamic && { dynamic_active_clusters, dynamic_warming_clusters }) },
  };
}

/** Returns whether there is a dynamic cluster; without CDS, requests may have brought it. */
function hasOnDemand(clusters: ReadonlyMap<string, PrimaryCluster>): boolean {
  for (const { origin } of clusters.values()) if (origin.isAddedViaApi) return true;
  return false;
}

/** Yields dynamic clusters in use, and those of which every version has been refused. */
function* activeOrRefused({
  clusterDiscovery,
  clusters,
}: RunningConfiguration): Generator<[string, PrimaryCluster | undefined]> {
  const { byName: active, warming } = clusters;
  for (const [name, cluster] of active) if (cluster.origin.isAddedViaApi) yield [name, cluster];
  for (const name of clusterDiscovery.states.keys()) {
    if (!active.has(name) && !warming.has(name)) yield [name, undefined];
  }
}

function dynamicCluster(
  name: string,
  cluster: PrimaryCluster | undefined,
  state: DynamicState | undefined,
): DumpResource {
  const message = {
    ...(cluster && {
      version_info: cluster.origin.version || undefined,
      cluster: any(CLUSTER, shown(cluster.config, cluster.origin.sensitive)),
      last_updated: cluster.origin.updatedAt.toISOString(),
    }),
    ...(state && statusFields(CLUSTER, state)),
  };
  return { name, message };
}
