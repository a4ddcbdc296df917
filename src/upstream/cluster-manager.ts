// The clusters of one worker by name, and the references by which routes hold on to a name while clusters come and go.

import { Cluster } from './cluster.js';
import type { ClusterSnapshot } from './cluster-snapshot.js';
import type { UpstreamThread } from './upstream-thread.js';

/** A cluster's name, resolved once: `current` follows what the primary says. */
export class ClusterReference {
  readonly name: string;
  current: Cluster | undefined;

  constructor(name: string) {
    this.name = name;
  }
}

export class ClusterManager {
  readonly #thread: UpstreamThread;
  readonly #references = new Map<string, ClusterReference>();
  #size = 0;

  constructor(thread: UpstreamThread) {
    this.#thread = thread;
  }

  /** How many clusters there are. */
  get size(): number {
    return this.#size;
  }

  /** The reference of a name, whether the cluster exists or not. */
  reference(name: string): ClusterReference {
    let reference = this.#references.get(name);
    if (reference === undefined) {
      reference = new ClusterReference(name);
      this.#references.set(name, reference);
    }
    return reference;
  }

  /** The reference of a name that a route or a cluster has; names that clients make up leave nothing behind. */
  find(name: string): ClusterReference | undefined {
    return this.#references.get(name);
  }

  /** Adds a cluster, or takes its new hosts; a changed cluster replaces the old one, which is drained. */
  apply(snapshot: ClusterSnapshot): void {
    const reference = this.reference(snapshot.spec.name);
    const { current } = reference;
    if (current !== undefined && current.snapshot.specVersion === snapshot.specVersion) {
      current.updateHosts(snapshot);
      return;
    }
    reference.current = new Cluster(this.#thread, snapshot);
    if (current === undefined) this.#size++;
    current?.drain();
  }

  remove(name: string): void {
    const reference = this.#references.get(name);
    if (reference?.current === undefined) return;
    reference.current.drain();
    reference.current = undefined;
    this.#size--;
  }
}
