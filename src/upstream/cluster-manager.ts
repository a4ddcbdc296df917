// The clusters of one worker by name, and the references by which routes hold on to a name while clusters come and go.

import { Cluster, loadBalancerOf } from './cluster.js';
import type { ClusterSnapshot } from './cluster-snapshot.js';
import type { ClusterLoadBalancer } from './load-balancer/cluster-load-balancer.js';
import { type PackedCluster, unpackCluster } from './packed-cluster.js';
import type { UpstreamThread } from './upstream-thread.js';

/** A cluster's name, resolved once: `current` follows what the primary says. */
export class ClusterReference {
  readonly name: string;
  readonly #thread: UpstreamThread;
  /** Undefined: there is no such cluster, or it is still packed. */
  #made: Cluster | undefined;
  /** What it is made of when it is first used. */
  #packed: PackedCluster | undefined;

  constructor(name: string, thread: UpstreamThread) {
    this.name = name;
    this.#thread = thread;
  }

  /** Undefined: there is no cluster of that name. */
  get current(): Cluster | undefined {
    return this.#made ?? (this.#packed && this.#make(this.#packed));
  }

  /** Undefined as long as nobody has used the cluster. */
  get made(): Cluster | undefined {
    return this.#made;
  }

  /** This is the cluster from now on; undefined: there is none. */
  set(cluster: Cluster | undefined): void {
    this.#made = cluster;
    this.#packed = undefined;
  }

  /** The cluster, which nobody has used yet, is to be made of this. */
  pack(packed: PackedCluster): void {
    this.#packed = packed;
  }

  #make(packed: PackedCluster): Cluster {
    const cluster = new Cluster(this.#thread, unpackCluster(packed));
    this.set(cluster);
    return cluster;
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
    const reference = new ClusterReference(name, this.#thread);
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
    const { made } = reference;
    if (made !== undefined && made.snapshot.specVersion === snapshot.specVersion) {
      made.updateHosts(snapshot, balancer);
      return;
    }
    reference.set(new Cluster(this.#thread, snapshot, balancer));
    this.#keep(reference);
    made?.drain();
  }

  /** The same for clusters that are made when they are first used. Yields where there are many. */
  *applyPacked(clusters: readonly PackedCluster[]): Generator<void, void> {
    let done = 0;
    for (const packed of clusters) {
      const reference = this.reference(packed.name);
      if (reference.made !== undefined) this.apply(unpackCluster(packed));
      else {
        reference.pack(packed);
        this.#keep(reference);
      }
      if (++done % PACKED_PER_STEP === 0) yield;
    }
  }

  /** Requests that are under way go on; there may be none of that name. */
  remove(name: string): void {
    const reference = this.#references.get(name);
    if (reference === undefined) return;
    this.#references.delete(name);
    this.#vacant.set(name, new WeakRef(reference));
    reference.made?.drain();
    reference.set(undefined);
  }

  /** Closes connections to all hosts that have had no request for `idleMs`. */
  closeIdle(idleMs: number): void {
    for (const { made } of this.#references.values()) made?.closeIdle(idleMs);
  }

  /** The thread ends: idle connections are closed, and counted as such. */
  end(): void {
    for (const { made } of this.#references.values()) made?.drain();
  }

  /** There is a cluster of that name. */
  #keep(reference: ClusterReference): void {
    this.#references.set(reference.name, reference);
    this.#vacant.delete(reference.name);
  }
}

/** Less than a millisecond's work where none of them is in use. */
const PACKED_PER_STEP = 512;
