// Collects what changes of the clusters in one turn, and publishes it at its end.

import { forEachGuarded } from '../../log/internal-errors.js';
import type { ClusterSnapshot } from '../../upstream/cluster-snapshot.js';
import { type PackedCluster, packCluster } from '../../upstream/packed-cluster.js';
import type { Retired } from '../workers/snapshots.js';
import type { PrimaryCluster } from './version/primary-cluster.js';

/** Clusters as workers get them. */
export interface ClusterParts {
  readonly clusters: ClusterSnapshot[];
  readonly packedClusters: PackedCluster[];
}

export interface PublishedClusters extends ClusterParts {
  readonly removedClusters: string[];
  /** No later snapshot contains these. */
  readonly retired: readonly Retired[];
}

export class ClusterChanges {
  readonly #active: ReadonlyMap<string, PrimaryCluster>;
  readonly #publish: (changes: PublishedClusters) => void;
  #names = new Set<string>();
  #retired: Retired[] = [];
  #isDue = false;
  #isStopped = false;

  /** `active` are the clusters in use by name, now and later. */
  constructor(active: ReadonlyMap<string, PrimaryCluster>, publish: (changes: PublishedClusters) => void) {
    this.#active = active;
    this.#publish = publish;
  }

  /** The cluster of that name has changed, or is gone. */
  note(name: string): void {
    this.#names.add(name);
    this.#publishSoon();
  }

  retire(what: Retired): void {
    this.#retired.push(what);
    this.#publishSoon();
  }

  /** Publishes now what has changed in this turn. */
  flush(): void {
    if (!this.#isDue) return;
    this.#isDue = false;
    if (this.#isStopped) return;
    const parts: ClusterParts = { clusters: [], packedClusters: [] };
    const removedClusters: string[] = [];
    forEachGuarded(this.#names, 'internal error: a change of a cluster does not reach the workers', (name) => {
      const cluster = this.#active.get(name);
      if (cluster?.servesTraffic) addTo(parts, cluster);
      else removedClusters.push(name);
    });
    const retired = this.#retired;
    this.#names = new Set();
    this.#retired = [];
    this.#publish({ ...parts, removedClusters, retired });
  }

  /** Publishes nothing any more. */
  stop(): void {
    this.#isStopped = true;
  }

  #publishSoon(): void {
    if (this.#isDue || this.#isStopped) return;
    this.#isDue = true;
    setImmediate(() => this.flush());
  }
}

/** All of these that serve traffic. */
export function partsOf(clusters: Iterable<PrimaryCluster>): ClusterParts {
  const parts: ClusterParts = { clusters: [], packedClusters: [] };
  for (const cluster of clusters) if (cluster.servesTraffic) addTo(parts, cluster);
  return parts;
}

function addTo({ clusters, packedClusters }: ClusterParts, cluster: PrimaryCluster): void {
  const snapshot = cluster.snapshot();
  const packed = packCluster(snapshot);
  if (packed === undefined) clusters.push(snapshot);
  else packedClusters.push(packed);
}
