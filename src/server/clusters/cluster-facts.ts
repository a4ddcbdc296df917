// Facts about clusters for stats sinks.

import { Priority } from '../../common/priority.js';
import type { ClusterFacts } from '../../extensions/factories.js';
import type { PrimaryCluster } from './version/primary-cluster.js';

export function* clusterFacts(clusters: Iterable<PrimaryCluster>): Generator<ClusterFacts> {
  for (const { breakers, hosts, spec, statPrefix } of clusters) {
    yield {
      name: spec.name,
      statsPrefix: statPrefix,
      maxPendingRequests: breakers.thresholds[Priority.Default].maxPendingRequests,
      hosts: hosts.length,
    };
  }
}
