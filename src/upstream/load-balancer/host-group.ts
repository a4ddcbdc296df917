// Hosts by health: those of one priority, or those of one of its localities.

import { DEGRADED_FLAGS, EXCLUDED_FLAGS, UNHEALTHY_FLAGS } from '../hosts/health-flags.js';
import type { HostSetData } from '../hosts/host-set.js';
import type { MeasuredHealth, PriorityHealth } from './priority-load.js';

/** Which hosts of a group a request may go to. */
export type Availability = 'all' | 'healthy' | 'degraded';

export class HostGroup implements PriorityHealth {
  /** Indexes in the host set. */
  readonly hosts: { readonly [availability in Availability]: number[] } = { all: [], healthy: [], degraded: [] };
  excluded = 0;
  /** Undefined: the number of hosts measures their health. */
  weights: MeasuredHealth | undefined;

  get total(): number {
    return this.hosts.all.length;
  }
  get healthy(): number {
    return this.hosts.healthy.length;
  }
  get degraded(): number {
    return this.hosts.degraded.length;
  }

  /** Number of hosts that count in the health of the group. */
  get counted(): number {
    return this.total - this.excluded;
  }

  add(host: number, flags: number): void {
    this.hosts.all.push(host);
    if (flags & EXCLUDED_FLAGS) this.excluded++;
    if (flags & UNHEALTHY_FLAGS) return;
    if (flags & DEGRADED_FLAGS) this.hosts.degraded.push(host);
    else this.hosts.healthy.push(host);
  }
}

/**
 * Returns the hosts of each priority: 10,000 hosts take a few hundred microseconds.
 * @param weighsHealth their weights measure their health
 * @param members indexes of the hosts; undefined: all of the set
 */
export function hostsByPriority(set: HostSetData, weighsHealth = false, members?: readonly number[]): HostGroup[] {
  const { healthFlags, priorities } = set;
  const groups: HostGroup[] = [];
  const count = members === undefined ? priorities.length : members.length;
  for (let place = 0; place < count; place++) {
    const index = members === undefined ? place : members[place]!;
    const priority = priorities[index]!;
    while (groups.length <= priority) groups.push(new HostGroup());
    groups[priority]!.add(index, healthFlags[index]!);
  }
  if (weighsHealth) for (const group of groups) group.weights = weightsOf(set, group);
  return groups;
}

function weightsOf({ healthFlags, weights }: HostSetData, { hosts }: HostGroup): MeasuredHealth {
  const sum = (some: readonly number[]) => some.reduce((total, host) => total + weights[host]!, 0);
  const counted = hosts.all.filter((host) => (healthFlags[host]! & EXCLUDED_FLAGS) === 0);
  return { counted: sum(counted), healthy: sum(hosts.healthy), degraded: sum(hosts.degraded) };
}
