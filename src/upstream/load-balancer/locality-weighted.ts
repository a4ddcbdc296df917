// Locality-weighted balancing: requests go to the localities of a priority in proportion to their weights and to the share of
// their hosts that is available.

import type { Random } from '../../common/random.js';
import type { Word64 } from '../../common/xxh64.js';
import type { HostSetData } from '../hosts/host-set.js';
import type { Availability } from './host-group.js';
import { HostsOfSet } from './hosts-of-set.js';
import type { LoadBalancer } from './load-balancer.js';
import type { LocalityGroup } from './localities.js';
import { EdfSchedule } from './schedule.js';

/** Localities take turns; the load balancer of the one whose turn it is picks the host. */
export class LocalityWeighted implements LoadBalancer {
  readonly #balancers: readonly LoadBalancer[];
  readonly #weights: readonly number[];
  readonly #schedule: EdfSchedule;

  /** @param weights of the localities, above 0 */
  constructor(balancers: readonly LoadBalancer[], weights: readonly number[], random: Random) {
    this.#balancers = balancers;
    this.#weights = weights;
    this.#schedule = new EdfSchedule(balancers.length, (item) => weights[item]!, random);
  }

  pick(random: Random, hash?: Word64, attempt?: number): number {
    const item = this.#schedule.first();
    this.#schedule.advance(this.#weights[item]!);
    return this.#balancers[item]!.pick(random, hash, attempt);
  }
}

/**
 * Returns the hosts for a load balancer that picks by hash: those of all localities with a weight, with the share of the requests
 * that each gets. A locality's share does not depend on its health, as in Envoy: the sum of all shares is below 1 if one has no
 * available host.
 */
export function hostsByLocality(
  set: HostSetData,
  localities: readonly LocalityGroup[],
  availability: Availability,
): HostsOfSet {
  const { weights } = set;
  const sum = localities.reduce((total, { weight }) => total + weight, 0);
  const hosts: number[] = [];
  const shares: number[] = [];
  for (const { group, weight } of localities) {
    if (weight === 0) continue;
    const members = group.hosts[availability];
    const ofLocality = members.reduce((total, host) => total + weights[host]!, 0);
    for (const host of members) {
      hosts.push(host);
      shares.push((weights[host]! * (weight / sum)) / ofLocality);
    }
  }
  return new HostsOfSet(set, hosts, Float64Array.from(shares));
}
