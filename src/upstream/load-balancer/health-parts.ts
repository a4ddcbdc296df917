// Divides the traffic of a cluster among its hosts by priority and health.

import type { Availability, HostGroup } from './host-group.js';
import { priorityLoads } from './priority-load.js';

/** The settings of common_lb_config, of the load assignment's policy and of the load-balancing policy; plain data. */
export interface HealthPolicy {
  /** healthy_panic_threshold in percent: with fewer healthy hosts health is ignored. 0: never. */
  readonly panicThreshold: number;
  /** In panic, requests fail instead of going to unhealthy hosts. */
  readonly failTrafficOnPanic: boolean;
  /** overprovisioning_factor in percent. */
  readonly overprovisioning: number;
  /** weighted_priority_health: the weights of hosts measure the health of a priority, not their number. */
  readonly weighsHealth: boolean;
}

export const DEFAULT_HEALTH_POLICY: HealthPolicy = {
  panicThreshold: 50,
  failTrafficOnPanic: false,
  overprovisioning: 140,
  weighsHealth: false,
};

/** A group of hosts and their part of the traffic. */
export interface HealthPart {
  /** Upper bound, exclusive, of their percents; the previous part has the lower bound. 100 for the last part. */
  readonly below: number;
  /** Their health is ignored. */
  readonly isPanic: boolean;
  readonly priority: number;
  readonly availability: Availability;
  /** Indexes in the host set; empty: these requests fail. */
  readonly hosts: readonly number[];
}

/**
 * Returns the parts of all hosts.
 * @param priorities the hosts of each priority
 * @param panicPercent panic threshold after runtime overrides
 */
export function healthParts(
  priorities: readonly HostGroup[],
  policy: HealthPolicy,
  panicPercent: number,
): HealthPart[] {
  const loads = priorityLoads(priorities, policy.overprovisioning, panicPercent);
  const parts: HealthPart[] = [];
  let below = 0;
  const add = (priority: number, availability: Availability, load: number) => {
    if (load === 0) return;
    const isPanic = availability === 'all';
    const hosts = isPanic && policy.failTrafficOnPanic ? [] : priorities[priority]!.hosts[availability];
    parts.push({ below: (below += load), isPanic, priority, availability, hosts });
  };
  for (const priority of priorities.keys()) {
    const healthy = loads.healthy[priority]!;
    const degraded = loads.degraded[priority]!;
    if (loads.panic[priority]) add(priority, 'all', healthy + degraded);
    else {
      add(priority, 'healthy', healthy);
      add(priority, 'degraded', degraded);
    }
  }
  // A cluster without hosts is below any threshold.
  if (parts.length > 0) return parts;
  const isPanic = priorities.length === 0 && panicPercent > 0;
  return [{ below: 100, isPanic, priority: 0, availability: 'healthy', hosts: [] }];
}
