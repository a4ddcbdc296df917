// Divides the traffic of a cluster among its hosts by priority and health.

import { DEGRADED_FLAGS, EXCLUDED_FLAGS, UNHEALTHY_FLAGS } from '../hosts/health-flags.js';
import type { HostSetData } from '../hosts/host-set.js';
import { type PriorityHealth, priorityLoads } from './priority-load.js';

/** The settings of common_lb_config and of the load assignment's policy; plain data. */
export interface HealthPolicy {
  /** healthy_panic_threshold in percent: with fewer healthy hosts health is ignored. 0: never. */
  readonly panicThreshold: number;
  /** In panic, requests fail instead of going to unhealthy hosts. */
  readonly failTrafficOnPanic: boolean;
  /** overprovisioning_factor in percent. */
  readonly overprovisioning: number;
}

export const DEFAULT_HEALTH_POLICY: HealthPolicy = {
  panicThreshold: 50,
  failTrafficOnPanic: false,
  overprovisioning: 140,
};

/** A group of hosts and their part of the traffic. */
export interface HealthPart {
  /** Upper bound, exclusive, of their percents; the previous part has the lower bound. 100 for the last part. */
  readonly below: number;
  /** Their health is ignored. */
  readonly isPanic: boolean;
  /** Indexes in the host set; empty: these requests fail. */
  readonly hosts: readonly number[];
}

/**
 * Returns the parts of all hosts, sorted by priority and health: 10,000 hosts take a few hundred microseconds.
 * @param panicPercent panic threshold after runtime overrides
 */
export function healthParts(hosts: HostSetData, policy: HealthPolicy, panicPercent: number): HealthPart[] {
  const levels = sortHosts(hosts);
  const loads = priorityLoads(levels, policy.overprovisioning, panicPercent);
  const parts: HealthPart[] = [];
  let below = 0;
  const add = (hosts: readonly number[], load: number, isPanic: boolean) => {
    if (load === 0) return;
    const isRefused = isPanic && policy.failTrafficOnPanic;
    parts.push({ below: (below += load), isPanic, hosts: isRefused ? [] : hosts });
  };
  for (const [priority, level] of levels.entries()) {
    if (loads.panic[priority]) add(level.all, loads.healthy[priority]! + loads.degraded[priority]!, true);
    else {
      add(level.healthyHosts, loads.healthy[priority]!, false);
      add(level.degradedHosts, loads.degraded[priority]!, false);
    }
  }
  // A cluster without hosts is below any threshold.
  if (parts.length === 0) parts.push({ below: 100, isPanic: levels.length === 0 && panicPercent > 0, hosts: [] });
  return parts;
}

function sortHosts({ priorities, healthFlags }: HostSetData): Level[] {
  const levels: Level[] = [];
  for (let index = 0; index < priorities.length; index++) {
    const priority = priorities[index]!;
    while (levels.length <= priority) levels.push(new Level());
    levels[priority]!.add(index, healthFlags[index]!);
  }
  return levels;
}

/** The hosts of one priority by health. */
class Level implements PriorityHealth {
  readonly all: number[] = [];
  readonly healthyHosts: number[] = [];
  readonly degradedHosts: number[] = [];
  excluded = 0;

  get total(): number {
    return this.all.length;
  }
  get healthy(): number {
    return this.healthyHosts.length;
  }
  get degraded(): number {
    return this.degradedHosts.length;
  }

  add(host: number, flags: number): void {
    this.all.push(host);
    if (flags & EXCLUDED_FLAGS) this.excluded++;
    if (flags & UNHEALTHY_FLAGS) return;
    if (flags & DEGRADED_FLAGS) this.degradedHosts.push(host);
    else this.healthyHosts.push(host);
  }
}
