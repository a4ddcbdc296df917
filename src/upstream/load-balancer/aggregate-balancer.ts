// Chooses among the clusters of an aggregate: their priorities, one cluster after the other, are those of one cluster.

import type { Random } from '../../common/random.js';
import type { Word64 } from '../../common/xxh64.js';
import type { HostSetData } from '../hosts/host-set.js';
import type { HealthPolicy } from './health-parts.js';
import { type HostGroup, hostsByPriority } from './host-group.js';
import { priorityLoads } from './priority-load.js';

/** A cluster as the balancer sees it. */
export interface AggregatedCluster {
  /** Another object after each change. */
  readonly snapshot: { readonly hosts: HostSetData; readonly policy: { readonly weighsHealth: boolean } };
}

/** The part of the requests that a cluster gets. */
interface Part<C> {
  /** Upper bound, exclusive, of its percents. */
  readonly below: number;
  readonly cluster: C;
}

export class AggregateBalancer<C extends AggregatedCluster> {
  readonly #references: readonly { readonly current: C | undefined }[];
  readonly #health: HealthPolicy;
  /** The snapshots for which the parts were computed; undefined: the cluster does not exist. */
  #snapshots: readonly unknown[] | undefined;
  #parts: readonly Part<C>[] = [];

  /** @param references in the order of preference; clusters that do not exist are left out */
  constructor(references: readonly { readonly current: C | undefined }[], health: HealthPolicy) {
    this.#references = references;
    this.#health = health;
  }

  /** Returns undefined if no cluster has hosts. Within the cluster, its own policy picks the host. */
  pick(random: Random, hash?: Word64): C | undefined {
    if (this.#hasChanged()) this.#compute();
    const percent = hash === undefined ? random.below(100) : hash.modulo(100);
    for (const part of this.#parts) if (percent < part.below) return part.cluster;
    return undefined;
  }

  #hasChanged(): boolean {
    const before = this.#snapshots;
    if (before === undefined) return true;
    for (let index = 0; index < before.length; index++) {
      if (before[index] !== this.#references[index]!.current?.snapshot) return true;
    }
    return false;
  }

  #compute(): void {
    const clusters = this.#references.map(({ current }) => current);
    const groups: HostGroup[] = [];
    const owners: C[] = [];
    for (const cluster of clusters) {
      if (cluster === undefined) continue;
      for (const group of hostsByPriority(cluster.snapshot.hosts, cluster.snapshot.policy.weighsHealth)) {
        if (group.total === 0) continue;
        groups.push(group);
        owners.push(cluster);
      }
    }
    const { overprovisioning, panicThreshold } = this.#health;
    const loads = priorityLoads(groups, overprovisioning, panicThreshold);
    let below = 0;
    this.#parts = owners.map((cluster, index) => {
      below += loads.healthy[index]! + loads.degraded[index]!;
      return { below, cluster };
    });
    this.#snapshots = clusters.map((cluster) => cluster?.snapshot);
  }
}
