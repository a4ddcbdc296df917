// The gauges of a cluster that chooses hosts by hash: what workers have made of its hosts, worked out from their weights.

import type { Runtime, RuntimeInteger } from '../../../runtime/runtime.js';
import { MaglevStats, RingHashStats } from '../../../stats/layouts/cluster.js';
import type { Scope } from '../../../stats/thread-stats.js';
import type { ClusterSpec } from '../../../upstream/cluster-config.js';
import type { HostSetData } from '../../../upstream/hosts/host-set.js';
import { ringCounts } from '../../../upstream/load-balancer/hash-ring.js';
import { healthParts } from '../../../upstream/load-balancer/health-parts.js';
import { hostKey } from '../../../upstream/load-balancer/host-key.js';
import type { HashSpec } from '../../../upstream/load-balancer/load-balancer.js';
import { maglevCounts } from '../../../upstream/load-balancer/maglev-table.js';
import type { VersionResources } from './version-resources.js';

/** With several priorities, or degraded hosts, they are of those that come first. */
export class HashGauges {
  readonly #health: ClusterSpec['health'];
  readonly #balancer: HashSpec;
  readonly #panicThreshold: RuntimeInteger;
  readonly #scope: Scope;
  /** What they were worked out from. */
  #hosts: HostSetData | undefined;
  #overprovisioning = 0;
  #panicPercent = 0;

  /** Throws a RangeError when there is no room for them. */
  constructor(health: ClusterSpec['health'], balancer: HashSpec, resources: VersionResources, runtime: Runtime) {
    this.#health = health;
    this.#balancer = balancer;
    this.#panicThreshold = runtime.integer('upstream.healthy_panic_threshold', health.panicThreshold);
    this.#scope =
      balancer.policy === 'ring_hash'
        ? resources.addScope('ring_hash_lb.', RingHashStats)
        : resources.addScope('maglev_lb.', MaglevStats);
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
