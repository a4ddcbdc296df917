// The hosts of one priority by locality.

import { HealthFlag } from '../hosts/health-flags.js';
import type { HostSetData } from '../hosts/host-set.js';
import { compareLocalities, isSameLocality, type Locality } from '../hosts/locality.js';
import { type Availability, HostGroup } from './host-group.js';
import type { LocalitySizes } from './locality-sizes.js';

export interface LocalityGroup {
  readonly locality: Locality;
  /** load_balancing_weight; 0: its hosts get no requests by weight. */
  readonly weight: number;
  /** Sum of the weights of its healthy hosts. */
  readonly healthyWeight: number;
  /** This server is there, too. */
  readonly isOwn: boolean;
  readonly group: HostGroup;
}

/**
 * Returns the localities of `hosts`, the indexes of one priority's hosts: first this server's `own`, then the others by name. The
 * order decides the places of hosts on a ring, which are the same as in Envoy. `sizes`: scales the weights of the localities.
 */
export function localityGroups(
  { healthFlags, localities, localityIndexes, priorities, weights }: HostSetData,
  hosts: readonly number[],
  own: Locality | undefined,
  sizes?: LocalitySizes,
): LocalityGroup[] {
  const groups = new Map<string, GrowingGroup>();
  const groupOf = (locality: Locality) => {
    const key = JSON.stringify([locality.region, locality.zone, locality.subZone]);
    const group = groups.get(key) ?? new GrowingGroup(locality, own);
    groups.set(key, group);
    return group;
  };
  /** By index of the locality: several differ only in their weight. */
  const known: (GrowingGroup | undefined)[] = [];
  for (const host of hosts) {
    const index = localityIndexes[host]!;
    const locality = localities[index]!;
    const found = known[index] ?? groupOf(locality);
    known[index] = found;
    const flags = healthFlags[host]!;
    // A host that health checks keep has the weight of an earlier assignment.
    if ((flags & HealthFlag.PendingDynamicRemoval) === 0) found.weight = locality.weight;
    found.add(host, flags, weights[host]!);
  }
  const all = [...groups.values()];
  if (sizes !== undefined) for (const group of all) group.scale(sizes, priorities[hosts[0]!]!);
  return all.sort((a, b) => Number(b.isOwn) - Number(a.isOwn) || compareLocalities(a.locality, b.locality));
}

/**
 * Returns the weight of a locality's available hosts: reduced if they are too few, with the overprovisioning factor in percent.
 */
export function effectiveWeight(
  { group, weight }: LocalityGroup,
  availability: Availability,
  overprovisioning: number,
): number {
  if (group.counted <= 0) return 0;
  return weight * Math.min(1, (overprovisioning / 100) * (group.hosts[availability].length / group.counted));
}

class GrowingGroup implements LocalityGroup {
  readonly locality: Locality;
  readonly isOwn: boolean;
  readonly group = new HostGroup();
  weight = 0;
  healthyWeight = 0;

  constructor(locality: Locality, own: Locality | undefined) {
    this.locality = locality;
    this.isOwn = own !== undefined && isSameLocality(own, locality);
  }

  scale(sizes: LocalitySizes, priority: number): void {
    this.weight = sizes.scale(this.weight, this.locality, priority, this.group.total);
  }

  add(host: number, flags: number, weight: number): void {
    const { healthy } = this.group;
    this.group.add(host, flags);
    if (this.group.healthy > healthy) this.healthyWeight += weight;
  }
}
