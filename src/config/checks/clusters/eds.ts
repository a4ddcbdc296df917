// EDS clusters: required fields, and fields that have an effect only in them or only in other clusters.

import { discoveryType } from '../../fields/discovery.js';
import { isXdstp } from '../../fields/xdstp-name.js';
import type { Cluster } from '../../generated/api.js';
import type { Path } from '../../text/path.js';
import type { Problems } from '../../text/problems.js';

export function checkEds(cluster: Cluster, path: Path, problems: Problems): void {
  const { eds_cluster_config: eds, load_assignment: assignment } = cluster;
  const type = discoveryType(cluster);
  if (problems.has([...path, 'type']) || problems.has([...path, 'cluster_type'])) return;
  if (type !== 'EDS') {
    if (eds) problems.error([...path, 'eds_cluster_config'], 'eds_cluster_config set in a non-EDS cluster', 'key');
    if (assignment?.policy?.endpoint_stale_after !== undefined) {
      const at = [...path, 'load_assignment', 'policy', 'endpoint_stale_after'];
      problems.error(
        at,
        'configured endpoints do not become stale: it has an effect on endpoints from EDS only',
        'key',
      );
    }
    return;
  }
  if (assignment) {
    const what = 'a cluster of type EDS gets its endpoints from eds_cluster_config; it has no load_assignment';
    problems.error([...path, 'load_assignment'], what, 'key');
  }
  if (isXdstp(cluster.name ?? '') && !eds?.service_name) {
    const what = 'a cluster with an xdstp name needs service_name, the name of its endpoints';
    problems.error([...path, 'eds_cluster_config'], what);
  }
  if (cluster.wait_for_warm_on_init !== undefined) {
    const what = 'it has an effect on clusters of type STRICT_DNS and LOGICAL_DNS only';
    problems.error([...path, 'wait_for_warm_on_init'], what, 'key');
  }
  if (eds?.eds_config || problems.has([...path, 'eds_cluster_config', 'eds_config'])) return;
  problems.error(path, 'cannot create an EDS cluster without an EDS config: it needs eds_cluster_config.eds_config');
}
