// The clusters of one worker by name, and the references by which routes hold on to a name while clusters come and go.

import { Cluster, loadBalancerOf } from './cluster.js';
import type { ClusterSnapshot } from './cluster-snapshot.js';
import type { ClusterLoadBalancer } from './load-balancer/cluster-load-balancer.js';
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
  /** Of clusters that there are. */
  readonly #references = new Map<string, ClusterReference>();
  /** Of other names, for as long as a route has them: a cluster of that name may come. */
  readonly #vacant = new Map<string, WeakRef<ClusterReference>>();
  readonly #unused = new FinalizationRegistry<string>((name) => {
    if (this.#vacant.get(name)?.deref() === undefined) this.#vacant.delete(name);
  });

  constructor(thread: UpstreamThread) {
    this.#thread = thread;
  }

  /** How many clusters there are. */
  get size(): number {
    return this.#references.size;
  }

  /** The reference of a name, whether the cluster exists or not. */
  reference(name: string): ClusterReference {
    const known = this.find(name);
    if (known !== undefined) return known;
    const reference = new ClusterReference(name);
    this.#unused.register(reference, name);
    this.#vacant.set(name, new WeakRef(reference));
    return reference;
  }

  /** The reference of a name that a route or a cluster has; names that clients make up leave nothing behind. */
  find(name: string): ClusterReference | undefined {
    return this.#references.get(name) ?? this.#vacant.get(name)?.deref();
  }

  /** Makes what apply() takes, in steps where that takes long: the hosts before serve meanwhile. */
  *prepare(snapshot: ClusterSnapshot): Generator<void, ClusterLoadBalancer> {
    const balancer = loadBalancerOf(this.#thread, snapshot);
    yield* balancer.prepare();
    return balancer;
  }

  /** Adds a cluster, or takes its new hosts; a changed cluster replaces the old one, which is drained. */
  apply(snapshot: ClusterSnapshot, balancer?: ClusterLoadBalancer): void {
    const { name } = snapshot.spec;
    const reference = this.reference(name);
    const { current } = reference;
    if (current !== undefined && current.snapshot.specVersion === snapshot.specVersion) {
      current.updateHosts(snapshot, balancer);
      return;
    }
    reference.current = new Cluster(this.#thread, snapshot, balancer);
    this.#references.set(name, reference);
    this.#vacant.delete(name);
    current?.drain();
  }

  /** Requests that are under way go on; there may be none of that name. */
  remove(name: string): void {
    const reference = this.#references.get(name);
    if (reference === undefined) return;
    this.#references.delete(name);
    this.#vacant.set(name, new WeakRef(reference));
    reference.current!.drain();
    reference.current = undefined;
  }

  /** Closes connections to all hosts that have had no request for `idleMs`. */
  closeIdle(idleMs: number): void {
    for (const { current } of this.#references.values()) current!.closeIdle(idleMs);
  }

  /** The thread ends: idle connections are closed, and counted as such. */
  end(): void {
    for (const { current } of this.#references.values()) current?.drain();
  }
}
