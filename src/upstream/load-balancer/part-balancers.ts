// Builds the load balancer for a part of a cluster's traffic: one for all of its hosts, or one for each locality with a choice
// between them.

import type { Random } from '../../common/random.js';
import type { Clock } from '../../io/time/clock.js';
import type { Runtime } from '../../runtime/runtime.js';
import type { HostSetData } from '../hosts/host-set.js';
import type { Locality } from '../hosts/locality.js';
import type { HealthPart, HealthPolicy } from './health-parts.js';
import type { HostGroup } from './host-group.js';
import { HostsOfSet } from './hosts-of-set.js';
import type { LoadBalancer } from './load-balancer.js';
import type { LocalCluster } from './local-cluster.js';
import { effectiveWeight, type LocalityGroup, localityGroups } from './localities.js';
import type { LocalitySizes } from './locality-sizes.js';
import { hostsByLocality, LocalityWeighted } from './locality-weighted.js';
import type { LoadBalancingPolicy, LocalityBalancing } from './policy.js';
import { type BalancerStats, ZoneAware } from './zone-aware.js';
import { DEFAULT_ZONES } from './zone-routes.js';

/** What the configuration of a cluster says about load balancing. */
export interface BalancedCluster {
  readonly policy: LoadBalancingPolicy;
  /** Settings of `policy`. */
  readonly settings: unknown;
  readonly localities: LocalityBalancing | undefined;
  readonly health: HealthPolicy;
}

export interface BalancingThread {
  /** The shared words. */
  readonly words: Int32Array;
  readonly random: Random;
  readonly clock: Pick<Clock, 'monotonicMs'>;
  readonly runtime: Runtime;
  /** The locality of this server; undefined: none is configured. */
  readonly locality: Locality | undefined;
  /** Undefined: requests are not routed by zone. */
  readonly zones: { readonly localCluster: LocalCluster; readonly stats: BalancerStats } | undefined;
}

/** Runtime values with which load balancers are built. */
export interface BalancerNumbers {
  /** Value of LoadBalancingPolicy.runtimeNumber(). */
  readonly number: number;
  /** The panic threshold. */
  readonly panicPercent: number;
}

/** Building the load balancers of these takes less than a millisecond. */
const HOSTS_PER_STEP = 4096;

type Building = Generator<void, LoadBalancer | undefined>;

export class PartBalancers {
  readonly #set: HostSetData;
  readonly #cluster: BalancedCluster;
  readonly #thread: BalancingThread;
  readonly #sizes: LocalitySizes | undefined;
  /** Number of hosts for which load balancers were built since the last yield. */
  #hostsInStep = 0;

  /** @param sizes scales the weights of localities; undefined: they are as configured */
  constructor(set: HostSetData, cluster: BalancedCluster, thread: BalancingThread, sizes?: LocalitySizes) {
    this.#set = set;
    this.#cluster = cluster;
    this.#thread = thread;
    this.#sizes = sizes;
  }

  /**
   * Returns undefined if no host may be used. Yields about every millisecond.
   * @param group the hosts of the part's priority; undefined: there are none
   */
  *build(part: HealthPart, group: HostGroup | undefined, numbers: BalancerNumbers): Building {
    const { locality } = this.#thread;
    const { policy } = this.#cluster;
    if (group === undefined || part.hosts.length === 0) return undefined;
    if (policy.picksByHash) {
      return yield* this.#policyBalancer(
        hashedHosts(this.#set, part, group, this.#cluster, locality, this.#sizes),
        numbers,
      );
    }
    const isWeighted = this.#cluster.localities?.isWeighted === true;
    const isByZone = policy.isZoneAware === true && this.#thread.zones !== undefined && part.priority === 0;
    if (part.isPanic || !(isWeighted || isByZone)) return yield* this.#ofHosts(part.hosts, numbers);
    const localities = localityGroups(this.#set, group.hosts.all, locality, this.#sizes);
    yield;
    const weighted = isWeighted ? yield* this.#weighted(localities, part, numbers) : undefined;
    if (weighted !== undefined) return weighted;
    return isByZone && localities.length > 1
      ? yield* this.#zoneAware(localities, part, numbers)
      : yield* this.#ofHosts(part.hosts, numbers);
  }

  /** Returns undefined if no locality with a weight has an available host: then weights do not matter. */
  *#weighted(localities: readonly LocalityGroup[], { availability }: HealthPart, numbers: BalancerNumbers): Building {
    const { overprovisioning } = this.#cluster.health;
    const balancers: LoadBalancer[] = [];
    const weights: number[] = [];
    for (const locality of localities) {
      const weight = effectiveWeight(locality, availability, overprovisioning);
      const balancer = weight === 0 ? undefined : yield* this.#ofHosts(locality.group.hosts[availability], numbers);
      if (balancer === undefined) continue;
      weights.push(weight);
      balancers.push(balancer);
    }
    return balancers.length < 2 ? balancers[0] : new LocalityWeighted(balancers, weights, this.#thread.random);
  }

  *#zoneAware(localities: readonly LocalityGroup[], part: HealthPart, numbers: BalancerNumbers): Building {
    const { health, localities: balancing } = this.#cluster;
    const { runtime, zones } = this.#thread;
    const all = yield* this.#ofHosts(part.hosts, numbers);
    const balancers: (LoadBalancer | undefined)[] = [];
    for (const { group } of localities) balancers.push(yield* this.#ofHosts(group.hosts[part.availability], numbers));
    const { failTrafficOnPanic } = health;
    const { panicPercent } = numbers;
    const settings = balancing?.zones ?? DEFAULT_ZONES;
    return new ZoneAware(
      { ...zones!, runtime, settings, failTrafficOnPanic, panicPercent },
      localities,
      balancers,
      all,
    );
  }

  *#ofHosts(hosts: readonly number[], numbers: BalancerNumbers): Building {
    const balancer = yield* this.#policyBalancer(new HostsOfSet(this.#set, hosts), numbers);
    this.#hostsInStep += hosts.length;
    if (this.#hostsInStep > HOSTS_PER_STEP) {
      this.#hostsInStep = 0;
      yield;
    }
    return balancer;
  }

  *#policyBalancer(list: HostsOfSet, { number: runtimeNumber }: BalancerNumbers): Building {
    if (list.hosts.length === 0) return undefined;
    const { policy, settings } = this.#cluster;
    const { clock, random, runtime, words } = this.#thread;
    const made = policy.createLoadBalancer(settings, list, { words, random, clock, runtime, runtimeNumber });
    return 'next' in made ? yield* made : made;
  }
}

/**
 * Returns the hosts of a part for a policy that picks by hash.
 * @param group the hosts of the part's priority; undefined: there are none
 * @param own the locality of this server
 * @param sizes scales the weights of localities
 */
export function hashedHosts(
  set: HostSetData,
  { availability, hosts }: HealthPart,
  group: HostGroup | undefined,
  { localities }: Pick<BalancedCluster, 'localities'>,
  own: Locality | undefined,
  sizes?: LocalitySizes,
): HostsOfSet {
  if (localities?.isWeighted !== true || group === undefined || hosts.length === 0) return new HostsOfSet(set, hosts);
  return hostsByLocality(set, localityGroups(set, group.hosts.all, own, sizes), availability);
}
