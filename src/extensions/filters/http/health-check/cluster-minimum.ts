// Checks clusters against cluster_min_healthy_percentages.

import type { ClusterReference } from '../../../sdk.js';

/** One entry of cluster_min_healthy_percentages. */
export interface ClusterMinimum {
  readonly cluster: ClusterReference;
  /** Whole percents. */
  readonly minPercent: number;
}

export const enum ClusterVerdict {
  Healthy = 0,
  /** There is no such cluster. */
  NotFound = 1,
  /** The cluster has no hosts, and the minimum is above 0 %. */
  Empty = 2,
  Unhealthy = 3,
}

/** Returns the verdict on the first cluster that is not healthy enough. Degraded hosts count as healthy. */
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
