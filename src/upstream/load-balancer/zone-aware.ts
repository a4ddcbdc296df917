// Zone-aware routing of the hosts of priority 0: picks the locality of each request.

import type { Random } from '../../common/random.js';
import type { Word64 } from '../../common/xxh64.js';
import type { Runtime, RuntimeInteger } from '../../runtime/runtime.js';
import type { CounterSlot } from '../../stats/layout.js';
import { ClusterStats } from '../../stats/layouts/cluster.js';
import type { LoadBalancer } from './load-balancer.js';
import type { LocalCluster } from './local-cluster.js';
import type { LocalityGroup } from './localities.js';
import { SHARES, type ZoneRoutes, type ZoneSettings, zoneRoutes } from './zone-routes.js';

/** Counts in the cluster's stats. */
export interface BalancerStats {
  increment(at: CounterSlot): void;
}

export interface ZoneContext {
  readonly settings: ZoneSettings;
  readonly localCluster: LocalCluster;
  readonly runtime: Runtime;
  readonly stats: BalancerStats;
  /** Requests fail when too few hosts of the local cluster are healthy. Otherwise zones are ignored then. */
  readonly failTrafficOnPanic: boolean;
  readonly panicPercent: number;
}

export class ZoneAware implements LoadBalancer {
  readonly #context: ZoneContext;
  readonly #localities: readonly LocalityGroup[];
  readonly #balancers: readonly (LoadBalancer | undefined)[];
  readonly #all: LoadBalancer | undefined;
  readonly #routingPercent: RuntimeInteger;
  readonly #minClusterSize: RuntimeInteger;
  readonly #forcedSize: RuntimeInteger;
  #routes: ZoneRoutes = { kind: 'none', reason: 'no-zones' };
  #isLocalInPanic = false;
  /** The versions for which the routes were computed. */
  #localVersion = -1;
  #runtimeVersion = -1;

  /**
   * @param localities of the cluster's priority 0
   * @param balancers of the available hosts of each locality; undefined: it has none
   * @param all the load balancer that ignores zones; undefined: no host is available
   */
  constructor(
    context: ZoneContext,
    localities: readonly LocalityGroup[],
    balancers: readonly (LoadBalancer | undefined)[],
    all: LoadBalancer | undefined,
  ) {
    const { runtime, settings } = context;
    this.#context = context;
    this.#localities = localities;
    this.#balancers = balancers;
    this.#all = all;
    this.#routingPercent = runtime.integer('upstream.zone_routing.enabled', settings.routingPercent);
    this.#minClusterSize = runtime.integer('upstream.zone_routing.min_cluster_size', settings.minClusterSize);
    this.#forcedSize = runtime.integer('upstream.zone_routing.force_local_zone.min_size', 0);
  }

  pick(random: Random, hash?: Word64, attempt?: number): number {
    const { failTrafficOnPanic, localCluster, runtime, stats } = this.#context;
    if (this.#localVersion !== localCluster.version || this.#runtimeVersion !== runtime.version) this.#update();
    let balancer = this.#all;
    if (this.#routes.kind !== 'none' && random.below(100) < this.#routingPercent.value) {
      if (!this.#isLocalInPanic) balancer = this.#balancers[this.#chooseLocality(this.#routes, random)];
      else {
        stats.increment(ClusterStats.at.lb_local_cluster_not_ok);
        if (failTrafficOnPanic) return -1;
      }
    }
    return balancer === undefined ? -1 : balancer.pick(random, hash, attempt);
  }

  /** Returns the index of the locality for a request. */
  #chooseLocality(routes: Exclude<ZoneRoutes, { readonly kind: 'none' }>, random: Random): number {
    const { stats } = this.#context;
    const { at } = ClusterStats;
    if (routes.kind === 'direct') {
      stats.increment(at.lb_zone_routing_all_directly);
      return 0;
    }
    if (random.below(SHARES) < routes.local) {
      stats.increment(at.lb_zone_routing_sampled);
      return 0;
    }
    stats.increment(at.lb_zone_routing_cross_zone);
    const { capacities } = routes;
    const total = capacities.at(-1)!;
    // Shares are rounded, so it may be that none is left.
    if (total === 0) {
      stats.increment(at.lb_zone_no_capacity_left);
      return random.below(capacities.length);
    }
    const chosen = random.below(total);
    let index = 0;
    while (chosen >= capacities[index]!) index++;
    return index;
  }

  #update(): void {
    const { localCluster, panicPercent, runtime, settings, stats } = this.#context;
    const { at } = ClusterStats;
    const current: ZoneSettings = {
      ...settings,
      minClusterSize: this.#minClusterSize.value,
      forcedSize: this.#forcedSize.value || settings.forcedSize,
    };
    if (this.#localVersion !== localCluster.version) stats.increment(at.lb_recalculate_zone_structures);
    this.#localVersion = localCluster.version;
    this.#runtimeVersion = runtime.version;
    const { localities, usablePercent } = localCluster.hosts;
    this.#isLocalInPanic = usablePercent < panicPercent;
    this.#routes = zoneRoutes(this.#localities, localities, current);
    if (this.#routes.kind !== 'none') return;
    if (this.#routes.reason === 'local-cluster-not-ok') stats.increment(at.lb_local_cluster_not_ok);
    if (this.#routes.reason === 'cluster-too-small') stats.increment(at.lb_zone_cluster_too_small);
  }
}
