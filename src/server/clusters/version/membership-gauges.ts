// The gauges that count hosts by kind. Clusters may share one name for their stats; the gauges then count the hosts of all of
// them.

import { ClusterStats } from '../../../stats/layouts/cluster.js';
import type { Scope } from '../../../stats/thread-stats.js';
import { DEGRADED_FLAGS, EXCLUDED_FLAGS, UNHEALTHY_FLAGS } from '../../../upstream/hosts/health-flags.js';
import type { KnownHost } from '../../../upstream/hosts/host-directory.js';

/** The counts of one cluster. */
interface HostCounts {
  readonly total: number;
  readonly healthy: number;
  readonly degraded: number;
  readonly excluded: number;
  readonly maxWeight: number;
}

/** The gauges of all clusters whose stats have one name. */
export class MembershipGauges {
  readonly #members = new Map<object, HostCounts>();

  /** Sets the hosts of `cluster`. `countsWeights`: they count for max_host_weight. */
  set(stats: Scope, cluster: object, hosts: Iterable<KnownHost>, countsWeights: boolean): void {
    const counts = countsOf(hosts);
    this.#members.set(cluster, countsWeights ? counts : { ...counts, maxWeight: 0 });
    this.#publish(stats);
  }

  /** Removes the counts of `cluster`. */
  remove(stats: Scope, cluster: object): void {
    if (this.#members.delete(cluster)) this.#publish(stats);
  }

  #publish(stats: Scope): void {
    const members = [...this.#members.values()];
    const sum = (kind: keyof HostCounts) => members.reduce((all, counts) => all + counts[kind], 0);
    const { at } = ClusterStats;
    stats.set(at.membership_total, sum('total'));
    stats.set(at.membership_healthy, sum('healthy'));
    stats.set(at.membership_degraded, sum('degraded'));
    stats.set(at.membership_excluded, sum('excluded'));
    stats.set(at.max_host_weight, Math.max(0, ...members.map(({ maxWeight }) => maxWeight)));
  }
}

function countsOf(hosts: Iterable<KnownHost>): HostCounts {
  const counts = { total: 0, healthy: 0, degraded: 0, excluded: 0, maxWeight: 0 };
  for (const { endpoint, healthFlags } of hosts) {
    counts.total++;
    counts.maxWeight = Math.max(counts.maxWeight, endpoint.weight);
    if (healthFlags & EXCLUDED_FLAGS) counts.excluded++;
    if (healthFlags & UNHEALTHY_FLAGS) continue;
    if (healthFlags & DEGRADED_FLAGS) counts.degraded++;
    else counts.healthy++;
  }
  return counts;
}
