// Whether clusters have the share of usable hosts that cluster_min_healthy_percentages asks for.

import type { ClusterReference } from '../../../sdk.js';

/** One entry of cluster_min_healthy_percentages. */
export interface ClusterMinimum {
  readonly cluster: ClusterReference;
  /** Whole percents. */
  readonly minPercent: number;
}

export const enum ClusterVerdict {
  Healthy = 0,
  /** No cluster has the name. */
  NotFound = 1,
  /** It has no hosts, and more than 0 % of them are to be healthy. */
  Empty = 2,
  Unhealthy = 3,
}

/** The verdict on the first cluster that is not healthy enough; degraded hosts count as healthy ones. */
export function judgeClusters(minimums: readonly ClusterMinimum[]): ClusterVerdict {
  for (const minimum of minimums) {
    const verdict = judge(minimum);
    if (verdict !== ClusterVerdict.Healthy) return verdict;
  }
  return ClusterVerdict.Healthy;
}

function judge({ cluster: { current }, minPercent }: ClusterMinimum): ClusterVerdict {
  if (current === undefined) return ClusterVerdict.NotFound;
  const { hostCount } = current;
  if (hostCount === 0) return minPercent === 0 ? ClusterVerdict.Healthy : ClusterVerdict.Empty;
  return 100 * current.usableHostCount() < hostCount * minPercent ? ClusterVerdict.Unhealthy : ClusterVerdict.Healthy;
}
