// The hosts of services that the primary calls without a cluster (GoogleGrpc.target_uri). Each target is a cluster of its own, which
// only the primary knows.

import { clusterOfTarget } from '../../grpc/target.js';
import type { ClusterSet } from './cluster-set.js';
import type { PrimaryCluster } from './version/primary-cluster.js';

export class CallTargets {
  readonly #clusters: ClusterSet;
  /** Number of users, by name of the cluster. */
  readonly #users = new Map<string, number>();

  /** `clusters`: an empty set, which belongs to this object. */
  constructor(clusters: ClusterSet) {
    this.#clusters = clusters;
  }

  /** Returns the cluster of a target. release() must follow. Throws a RangeError when memory is short. */
  acquire(uri: string): PrimaryCluster {
    const name = nameOf(uri);
    const users = this.#users.get(name) ?? 0;
    if (users === 0) this.#clusters.setStatic([clusterOfTarget(uri, name)]);
    this.#users.set(name, users + 1);
    return this.#clusters.byName.get(name)!;
  }

  release(uri: string): void {
    const name = nameOf(uri);
    const users = this.#users.get(name)! - 1;
    this.#users.set(name, users);
    if (users > 0) return;
    this.#users.delete(name);
    this.#clusters.removeStatic([name]);
  }

  stop(): void {
    this.#clusters.stop();
  }
}

function nameOf(uri: string): string {
  return `google_grpc:${uri}`;
}
