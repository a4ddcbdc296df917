// Subset load balancing on one worker: selects the subset of the hosts that a request's metadata names, in which the cluster's policy picks.
// Follows Envoy's SubsetLoadBalancer.

import type { Random } from '../../../common/random.js';
import { runSync } from '../../../common/time/next-turn.js';
import type { Word64 } from '../../../common/xxh64.js';
import type { Struct } from '../../../config/generated/api.js';
import type { MetadataMatch } from '../../../http/routing/actions/metadata-match.js';
import { ClusterStats } from '../../../stats/layouts/cluster.js';
import type { HostSetData } from '../../hosts/host-set.js';
import { ClusterLoadBalancer } from '../cluster-load-balancer.js';
import type { ClusterBalancer } from '../load-balancer.js';
import { LocalitySizes } from '../locality-sizes.js';
import type { BalancedCluster, BalancingThread } from '../part-balancers.js';
import type { BalancerStats } from '../zone-aware.js';
import { selectorFallbacks } from './selector-fallbacks.js';
import { type HostSubset, hostsWith, indexSubsets, SubsetIndex, subsetLimits } from './subset-index.js';
import type { SelectorSpec, SubsetFallback, SubsetSpec } from './subset-spec.js';

/** The field of a request that lists further ones. */
const FALLBACK_LIST = 'fallback_list';

/** Further fields of a list are not tried: a client may have written it. */
const MAX_TRIED = 64;

/** Larger subsets are built before they are used: that takes longer than a request should. */
const MAX_BUILT_ON_USE = 1024;

const NO_HOST = -1;

export class SubsetBalancer implements ClusterBalancer {
  pickedInPanic = false;
  readonly #hosts: HostSetData;
  readonly #spec: SubsetSpec;
  readonly #cluster: BalancedCluster;
  readonly #thread: BalancingThread;
  readonly #stats: BalancerStats;
  readonly #fallbacks: ReadonlyMap<string, SelectorSpec>;
  #sizes: LocalitySizes | undefined;
  #index = new SubsetIndex();
  readonly #built = new Map<string, ClusterLoadBalancer>();
  /** All hosts, and those of the default subset. */
  #any: ClusterLoadBalancer | undefined;
  #default: ClusterLoadBalancer | undefined;
  #isPrepared = false;

  /** Hosts and their health are fixed: a new set gets a new load balancer. */
  constructor(
    hosts: HostSetData,
    spec: SubsetSpec,
    cluster: BalancedCluster,
    thread: BalancingThread,
    stats: BalancerStats,
  ) {
    const { localities } = cluster;
    this.#hosts = hosts;
    this.#spec = spec;
    this.#cluster = {
      ...cluster,
      localities: localities && { ...localities, isWeighted: localities.isWeighted && spec.weighsLocalities },
    };
    this.#thread = thread;
    this.#stats = stats;
    this.#fallbacks = selectorFallbacks(spec.selectors);
  }

  /** Finds the subsets and builds what requests should not wait for, in steps. If not called, the first pick() does all at once. */
  *prepare(): Generator<void, void> {
    const { defaultSubset, scalesLocalities, splitsLists, weighsLocalities } = this.#spec;
    const picksByHash = this.#cluster.policy.picksByHash === true;
    this.#index = yield* indexSubsets(this.#hosts, this.#spec, subsetLimits(picksByHash));
    if (weighsLocalities && scalesLocalities) this.#sizes = new LocalitySizes(this.#hosts);
    if (this.#uses('ANY_ENDPOINT') || this.#spec.panicsToAny) {
      this.#any = this.#balancerOf(undefined);
      yield* this.#any.prepare();
    }
    if (this.#uses('DEFAULT_SUBSET')) {
      this.#default = this.#balancerOf(yield* hostsWith(this.#hosts, defaultSubset, splitsLists));
      yield* this.#default.prepare();
    }
    for (const [key, subset] of this.#index.subsets) {
      if (subset.isSingleHost || (!picksByHash && subset.hosts.length <= MAX_BUILT_ON_USE)) continue;
      yield* this.#balancerFor(key, subset).prepare();
      yield;
    }
    this.#isPrepared = true;
  }

  /** @param match fields of the request; undefined: it has none */
  pick(random: Random, hash?: Word64, attempt?: number, match?: MetadataMatch): number {
    if (!this.#isPrepared) runSync(this.prepare());
    this.pickedInPanic = false;
    const list = this.#spec.triesLists ? match?.valueOf(FALLBACK_LIST) : undefined;
    if (list === undefined) return this.#pick(random, hash, attempt, match);
    const own = match!.without(FALLBACK_LIST);
    if (!Array.isArray(list) || list.length === 0) return this.#pick(random, hash, attempt, own);
    for (let index = 0; index < list.length && index < MAX_TRIED; index++) {
      const fields: unknown = list[index];
      const host = this.#pick(random, hash, attempt, isStruct(fields) ? own.merge(fields) : own);
      if (host >= 0) return host;
    }
    return NO_HOST;
  }

  #pick(random: Random, hash?: Word64, attempt?: number, match?: MetadataMatch): number {
    const { at } = ClusterStats;
    if (match !== undefined) {
      const used = this.#spec.ignoresOthers ? this.#withoutOthers(match) : match;
      const subset = this.#index.subsets.get(used.key);
      if (subset !== undefined) {
        this.#stats.increment(at.lb_subsets_selected);
        if (subset.isSingleHost) return subset.hosts[0]!;
        return this.#pickFrom(this.#balancerFor(used.key, subset), random, hash, attempt);
      }
      const selector = this.#fallbacks.get(used.namesKey);
      if (selector?.fallback === 'KEYS_SUBSET')
        return this.#pick(random, hash, attempt, used.only(selector.fallbackKeys));
      if (selector !== undefined) return this.#pickFrom(this.#ofFallback(selector.fallback), random, hash, attempt);
    }
    const fallback = this.#ofFallback(this.#spec.fallback);
    if (fallback === undefined) return NO_HOST;
    const host = this.#pickFrom(fallback, random, hash, attempt);
    if (host >= 0) {
      this.#stats.increment(at.lb_subsets_fallback);
      return host;
    }
    if (!this.#spec.panicsToAny) return NO_HOST;
    const any = this.#pickFrom(this.#any, random, hash, attempt);
    if (any >= 0) this.#stats.increment(at.lb_subsets_fallback_panic);
    return any;
  }

  #pickFrom(balancer: ClusterLoadBalancer | undefined, random: Random, hash?: Word64, attempt?: number): number {
    if (balancer === undefined) return NO_HOST;
    const host = balancer.pick(random, hash, attempt);
    this.pickedInPanic ||= balancer.pickedInPanic;
    return host;
  }

  /** Returns only the fields of the first selector of which the request has all. */
  #withoutOthers(match: MetadataMatch): MetadataMatch {
    for (const { keys } of this.#spec.selectors) {
      if (keys.length > match.criteria.length) continue;
      const only = match.only(keys);
      if (only.criteria.length === keys.length) return only;
    }
    return match;
  }

  #uses(fallback: SubsetFallback): boolean {
    const { selectors } = this.#spec;
    return this.#spec.fallback === fallback || selectors.some((selector) => selector.fallback === fallback);
  }

  #ofFallback(fallback: SelectorSpec['fallback']): ClusterLoadBalancer | undefined {
    if (fallback === 'ANY_ENDPOINT') return this.#any;
    return fallback === 'DEFAULT_SUBSET' ? this.#default : undefined;
  }

  #balancerFor(key: string, { hosts }: HostSubset): ClusterLoadBalancer {
    const known = this.#built.get(key);
    if (known !== undefined) return known;
    const built = this.#balancerOf(hosts);
    this.#built.set(key, built);
    return built;
  }

  /** @param hosts undefined: all of them */
  #balancerOf(hosts: readonly number[] | undefined): ClusterLoadBalancer {
    return new ClusterLoadBalancer(this.#hosts, this.#cluster, this.#thread, hosts, this.#sizes);
  }
}

function isStruct(value: unknown): value is Struct {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
