// cluster_manager.local_cluster_name: a cluster of the bootstrap whose hosts all have priority 0.

import type { Bootstrap } from '../../generated/api.js';
import type { Problems } from '../../text/problems.js';

export function checkLocalCluster({ cluster_manager: manager, static_resources }: Bootstrap, problems: Problems): void {
  const name = manager?.local_cluster_name ?? '';
  if (name === '') return;
  const clusters = static_resources?.clusters ?? [];
  const index = clusters.findIndex((cluster) => cluster?.name === name);
  if (index < 0) {
    const what = `local cluster '${name}' must be defined in static_resources.clusters`;
    problems.error(['cluster_manager', 'local_cluster_name'], what);
    return;
  }
  for (const [group, locality] of (clusters[index]!.load_assignment?.endpoints ?? []).entries()) {
    if ((locality?.priority ?? 0) === 0) continue;
    const at = ['static_resources', 'clusters', index, 'load_assignment', 'endpoints', group, 'priority'];
    problems.error(at, `unexpected non-zero priority for local cluster '${name}': all of its hosts need priority 0`);
    return;
  }
}
