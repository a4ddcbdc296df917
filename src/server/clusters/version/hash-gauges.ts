// The gauges of a cluster that chooses hosts by hash: what workers have made of its hosts, worked out from their weights.

import type { Runtime, RuntimeInteger } from '../../../runtime/runtime.js';
import { MaglevStats, RingHashStats } from '../../../stats/layouts/cluster.js';
import type { StatsStore } from '../../../stats/store.js';
import type { Scope, ScopeRef } from '../../../stats/thread-stats.js';
import type { ClusterSpec } from '../../../upstream/cluster-config.js';
import type { HostSetData } from '../../../upstream/hosts/host-set.js';
import { ringCounts } from '../../../upstream/load-balancer/hash-ring.js';
import { healthParts } from '../../../upstream/load-balancer/health-parts.js';
import { hostKey } from '../../../upstream/load-balancer/host-key.js';
import { type HashSpec, isHashSpec } from '../../../upstream/load-balancer/load-balancer.js';
import { maglevCounts } from '../../../upstream/load-balancer/maglev-table.js';

/** Undefined where hosts are chosen otherwise. Throws a RangeError when there is no room for them. */
export function hashGauges(store: StatsStore, spec: ClusterSpec, runtime: Runtime): HashGauges | undefined {
  return isHashSpec(spec.loadBalancer) ? new HashGauges(store, spec, spec.loadBalancer, runtime) : undefined;
}

/** With several priorities, or degraded hosts, they are of those that come first. */
export class HashGauges {
  readonly #store: StatsStore;
  readonly #health: ClusterSpec['health'];
  readonly #balancer: HashSpec;
  readonly #panicThreshold: RuntimeInteger;
  readonly #ref: ScopeRef;
  readonly #scope: Scope;
  /** What they were worked out from. */
  #hosts: HostSetData | undefined;
  #overprovisioning = 0;
  #panicPercent = 0;

  constructor(store: StatsStore, spec: ClusterSpec, balancer: HashSpec, runtime: Runtime) {
    this.#store = store;
    this.#health = spec.health;
    this.#balancer = balancer;
    this.#panicThreshold = runtime.integer('upstream.healthy_panic_threshold', spec.health.panicThreshold);
    const prefix = `cluster.${spec.observabilityName}.`;
    this.#ref =
      balancer.policy === 'ring_hash'
        ? store.addScope(`${prefix}ring_hash_lb.`, RingHashStats)
        : store.addScope(`${prefix}maglev_lb.`, MaglevStats);
    this.#scope = store.scope(this.#ref);
  }

  update(hosts: HostSetData, overprovisioning: number): void {
    const panicPercent = Math.min(100, this.#panicThreshold.value);
    if (hosts === this.#hosts && overprovisioning === this.#overprovisioning && panicPercent === this.#panicPercent) {
      return;
    }
    this.#hosts = hosts;
    this.#overprovisioning = overprovisioning;
    this.#panicPercent = panicPercent;
    const [first] = healthParts(hosts, { ...this.#health, overprovisioning }, panicPercent);
    this.#set(hosts, first!.hosts);
  }

  /** The primary alone writes them: nobody is waited for. */
  remove(): void {
    this.#store.removeScope(this.#ref);
  }

  #set(hosts: HostSetData, indexes: readonly number[]): void {
    const weights = Uint32Array.from(indexes, (host) => hosts.weights[host]!);
    const { least, most, sum } = spread(weights.length === 0 ? weights : this.#counts(hosts, indexes, weights));
    if (this.#balancer.policy === 'ring_hash') {
      this.#scope.set(RingHashStats.at.size, sum);
      this.#scope.set(RingHashStats.at.min_hashes_per_host, least);
      this.#scope.set(RingHashStats.at.max_hashes_per_host, most);
    } else {
      this.#scope.set(MaglevStats.at.min_entries_per_host, least);
      this.#scope.set(MaglevStats.at.max_entries_per_host, most);
    }
  }

  #counts(hosts: HostSetData, indexes: readonly number[], weights: Uint32Array): Uint32Array {
    const spec = this.#balancer;
    if (spec.policy === 'ring_hash') return ringCounts(weights, spec);
    const keys = indexes.map((host) => hostKey(hosts, host, spec.usesHostname));
    return maglevCounts({ weights, keys }, spec.tableSize);
  }
}

function spread(counts: Uint32Array) {
  let least = counts[0] ?? 0;
  let most = 0;
  let sum = 0;
  for (const count of counts) {
    least = Math.min(least, count);
    most = Math.max(most, count);
    sum += count;
  }
  return { least, most, sum };
}
