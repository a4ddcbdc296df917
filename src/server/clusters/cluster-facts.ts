// Clusters as sinks of stats see them.

import { Priority } from '../../common/priority.js';
import type { ClusterFacts } from '../../extensions/factories.js';
import type { PrimaryCluster } from './version/primary-cluster.js';

export function* clusterFacts(clusters: Iterable<PrimaryCluster>): Generator<ClusterFacts> {
  for (const { spec, statPrefix, hostCount, thresholds } of clusters) {
    yield {
      name: spec.name,
      statsPrefix: statPrefix,
      maxPendingRequests: thresholds[Priority.Default].maxPendingRequests,
      hosts: hostCount,
    };
  }
}
