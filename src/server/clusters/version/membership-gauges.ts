// The gauges that say how many hosts there are, and of which kinds. Clusters may have one name for their stats: the gauges
// are those of all their hosts then.

import { ClusterStats } from '../../../stats/layouts/cluster.js';
import type { Scope } from '../../../stats/thread-stats.js';
import { DEGRADED_FLAGS, EXCLUDED_FLAGS, UNHEALTHY_FLAGS } from '../../../upstream/hosts/health-flags.js';
import type { KnownHost } from '../../../upstream/hosts/host-directory.js';

/** What one cluster has. */
interface HostCounts {
  readonly total: number;
  readonly healthy: number;
  readonly degraded: number;
  readonly excluded: number;
  readonly heaviest: number;
}

/** Of the clusters whose stats have one name. */
export class MembershipGauges {
  readonly #members = new Map<object, HostCounts>();

  /** `cluster` has these hosts now. */
  set(stats: Scope, cluster: object, hosts: Iterable<KnownHost>): void {
    this.#members.set(cluster, countsOf(hosts));
    this.#publish(stats);
  }

  /** It is gone. */
  remove(stats: Scope, cluster: object): void {
    if (this.#members.delete(cluster)) this.#publish(stats);
  }

  #publish(stats: Scope): void {
    let total = 0;
    let healthy = 0;
    let degraded = 0;
    let excluded = 0;
    let heaviest = 0;
    for (const member of this.#members.values()) {
      total += member.total;
      healthy += member.healthy;
      degraded += member.degraded;
      excluded += member.excluded;
      heaviest = Math.max(heaviest, member.heaviest);
    }
    const { at } = ClusterStats;
    stats.set(at.membership_total, total);
    stats.set(at.membership_healthy, healthy);
    stats.set(at.membership_degraded, degraded);
    stats.set(at.membership_excluded, excluded);
    stats.set(at.max_host_weight, heaviest);
  }
}

function countsOf(hosts: Iterable<KnownHost>): HostCounts {
  let total = 0;
  let healthy = 0;
  let degraded = 0;
  let excluded = 0;
  let heaviest = 0;
  for (const { endpoint, healthFlags } of hosts) {
    const { weight } = endpoint;
    total++;
    if (weight > heaviest) heaviest = weight;
    if (healthFlags & EXCLUDED_FLAGS) excluded++;
    if (healthFlags & UNHEALTHY_FLAGS) continue;
    if (healthFlags & DEGRADED_FLAGS) degraded++;
    else healthy++;
  }
  return { total, healthy, degraded, excluded, heaviest };
}
