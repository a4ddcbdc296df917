// The gauges of a cluster that say how many hosts it has, and of which kinds.

import { ClusterStats } from '../../stats/layouts/cluster.js';
import type { Scope } from '../../stats/thread-stats.js';
import { DEGRADED_FLAGS, EXCLUDED_FLAGS, UNHEALTHY_FLAGS } from '../../upstream/hosts/health-flags.js';
import type { KnownHost } from '../../upstream/hosts/host-directory.js';

export function setMembership(stats: Scope, hosts: Iterable<KnownHost>): void {
  let total = 0;
  let healthy = 0;
  let degraded = 0;
  let excluded = 0;
  let heaviest = 0;
  for (const { endpoint } of hosts) {
    const { healthFlags, weight } = endpoint;
    total++;
    if (weight > heaviest) heaviest = weight;
    if (healthFlags & EXCLUDED_FLAGS) excluded++;
    if (healthFlags & UNHEALTHY_FLAGS) continue;
    if (healthFlags & DEGRADED_FLAGS) degraded++;
    else healthy++;
  }
  const { at } = ClusterStats;
  stats.set(at.membership_total, total);
  stats.set(at.membership_healthy, healthy);
  stats.set(at.membership_degraded, degraded);
  stats.set(at.membership_excluded, excluded);
  stats.set(at.max_host_weight, heaviest);
}
