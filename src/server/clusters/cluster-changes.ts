// Collects the changes of clusters in one turn, and publishes them at its end.

import { forEachGuarded } from '../../log/internal-errors.js';
import type { ClusterSnapshot } from '../../upstream/cluster-snapshot.js';
import { type PackedCluster, packCluster } from '../../upstream/packed-cluster.js';
import type { Retired } from '../workers/snapshots.js';
import type { PrimaryCluster } from './version/primary-cluster.js';

/** Clusters in the form that workers receive. */
export interface ClusterParts {
  readonly clusters: ClusterSnapshot[];
  readonly packedClusters: PackedCluster[];
}

export interface PublishedClusters extends ClusterParts {
  readonly removedClusters: string[];
  /** In no later snapshot. */
  readonly retired: readonly Retired[];
}

export class ClusterChanges {
  readonly #active: ReadonlyMap<string, PrimaryCluster>;
  readonly #publish: (changes: PublishedClusters) => void;
  #names = new Set<string>();
  #retired: Retired[] = [];
  #isDue = false;
  #isStopped = false;

  /** `active`: the live map of clusters in use, by name. */
  constructor(active: ReadonlyMap<string, PrimaryCluster>, publish: (changes: PublishedClusters) => void) {
    this.#active = active;
    this.#publish = publish;
  }

  /** Records that the cluster `name` has changed or was removed. */
  note(name: string): void {
    this.#names.add(name);
    this.#publishSoon();
  }

  retire(what: Retired): void {
    this.#retired.push(what);
    this.#publishSoon();
  }

  /** Publishes this turn's changes immediately. */
  flush(): void {
    if (!this.#isDue) return;
    this.#isDue = false;
    if (this.#isStopped) return;
    const parts: ClusterParts = { clusters: [], packedClusters: [] };
    const removedClusters: string[] = [];
    forEachGuarded(this.#names, 'internal error: a change of a cluster could not be sent to the workers', (name) => {
      const cluster = this.#active.get(name);
      if (cluster !== undefined) addTo(parts, cluster);
      else removedClusters.push(name);
    });
    const retired = this.#retired;
    this.#names = new Set();
    this.#retired = [];
    this.#publish({ ...parts, removedClusters, retired });
  }

  /** Stops publishing for good. */
  stop(): void {
    this.#isStopped = true;
  }

  #publishSoon(): void {
    if (this.#isDue || this.#isStopped) return;
    this.#isDue = true;
    setImmediate(() => this.flush());
  }
}

/** Returns clusters as workers receive them. */
export function partsOf(clusters: Iterable<PrimaryCluster>): ClusterParts {
  const parts: ClusterParts = { clusters: [], packedClusters: [] };
  for (const cluster of clusters) addTo(parts, cluster);
  return parts;
}

function addTo({ clusters, packedClusters }: ClusterParts, cluster: PrimaryCluster): void {
  const snapshot = cluster.snapshot();
  const packed = packCluster(snapshot);
  if (packed === undefined) clusters.push(snapshot);
  else packedClusters.push(packed);
}
