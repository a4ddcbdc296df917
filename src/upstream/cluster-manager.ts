// The clusters of one worker by name, and the references through which routes follow a name while clusters are added and removed.

import { Cluster, loadBalancerOf } from './cluster.js';
import type { ClusterSnapshot } from './cluster-snapshot.js';
import type { ClusterBalancer } from './load-balancer/load-balancer.js';
import { type PackedCluster, unpackCluster } from './packed-cluster.js';
import type { RequestFilters } from './request-filters.js';
import type { HostRefusal } from './requested-hosts/host-request.js';
import type { UpstreamThread } from './upstream-thread.js';

/** A cluster name that is looked up once. `current` follows the primary's updates. */
export class ClusterReference {
  readonly name: string;
  readonly #create: (snapshot: ClusterSnapshot) => Cluster;
  /** Undefined: the cluster does not exist, or is still packed. */
  #cluster: Cluster | undefined;
  /** The packed form, until the first use. */
  #packed: PackedCluster | undefined;

  constructor(name: string, create: (snapshot: ClusterSnapshot) => Cluster) {
    this.name = name;
    this.#create = create;
  }

  /** The cluster, which is built on first use; undefined: none has that name. */
  get current(): Cluster | undefined {
    return this.#cluster ?? (this.#packed && this.#build(this.#packed));
  }

  /** The cluster if it has been built, that is, used. */
  get built(): Cluster | undefined {
    return this.#cluster;
  }

  /** Replaces the cluster; undefined: it was removed. */
  set(cluster: Cluster | undefined): void {
    this.#cluster = cluster;
    this.#packed = undefined;
  }

  /** Sets the packed form of a cluster that has not been used yet. */
  pack(packed: PackedCluster): void {
    this.#packed = packed;
  }

  #build(packed: PackedCluster): Cluster {
    const cluster = this.#create(unpackCluster(packed));
    this.set(cluster);
    return cluster;
  }
}

export class ClusterManager {
  /** Creates the upstream HTTP filters of a cluster. Undefined: requests pass none on this thread. */
  filtersOf: ((snapshot: ClusterSnapshot) => RequestFilters | undefined) | undefined;
  readonly #thread: UpstreamThread;
  /** References of existing clusters. */
  readonly #references = new Map<string, ClusterReference>();
  /** References of missing clusters, as long as a route holds them: the cluster may be added later. */
  readonly #vacant = new Map<string, WeakRef<ClusterReference>>();
  readonly #unused = new FinalizationRegistry<string>((name) => {
    if (this.#vacant.get(name)?.deref() === undefined) this.#vacant.delete(name);
  });

  constructor(thread: UpstreamThread) {
    this.#thread = thread;
  }

  /** The number of clusters. */
  get size(): number {
    return this.#references.size;
  }

  readonly #create = (snapshot: ClusterSnapshot, balancer?: ClusterBalancer): Cluster => {
    const cluster = new Cluster(this.#thread, snapshot, balancer);
    cluster.filters = this.filtersOf?.(snapshot);
    const { aggregated } = snapshot.spec;
    if (aggregated !== undefined) cluster.aggregates(aggregated.map((name) => this.reference(name)));
    return cluster;
  };

  /** Returns the reference of a name, whether the cluster exists or not. */
  reference(name: string): ClusterReference {
    const known = this.find(name);
    if (known !== undefined) return known;
    const reference = new ClusterReference(name, this.#create);
    this.#unused.register(reference, name);
    this.#vacant.set(name, new WeakRef(reference));
    return reference;
  }

  /** Returns the reference of a cluster's or a route's name. Creates none, so that names chosen by clients use no memory. */
  find(name: string): ClusterReference | undefined {
    return this.#references.get(name) ?? this.#vacant.get(name)?.deref();
  }

  /** Builds the load balancer that apply() takes, in steps because that can take long. The previous hosts serve meanwhile. */
  *prepare(snapshot: ClusterSnapshot): Generator<void, ClusterBalancer> {
    const balancer = loadBalancerOf(this.#thread, snapshot);
    yield* balancer.prepare();
    return balancer;
  }

  /** Adds a cluster, or updates its hosts. A cluster with a changed configuration replaces the old one, which is drained. */
  apply(snapshot: ClusterSnapshot, balancer?: ClusterBalancer): void {
    const { name } = snapshot.spec;
    this.#noteLocal(name, snapshot);
    const reference = this.reference(name);
    const { built } = reference;
    if (built !== undefined && built.snapshot.specVersion === snapshot.specVersion) {
      built.updateHosts(snapshot, balancer);
      return;
    }
    reference.set(this.#create(snapshot, balancer));
    this.#keep(reference);
    built?.retire();
  }

  /** Adds clusters that are built on first use. Yields after every PACKED_PER_STEP clusters. */
  *applyPacked(clusters: readonly PackedCluster[]): Generator<void, void> {
    let done = 0;
    for (const packed of clusters) {
      const reference = this.reference(packed.name);
      if (reference.built !== undefined) this.apply(unpackCluster(packed));
      else {
        this.#noteLocal(packed.name, packed);
        reference.pack(packed);
        this.#keep(reference);
      }
      if (++done % PACKED_PER_STEP === 0) yield;
    }
  }

  /** Removes a cluster; a no-op when it does not exist. Requests in flight continue. */
  remove(name: string): void {
    const reference = this.#references.get(name);
    if (reference === undefined) return;
    this.#references.delete(name);
    this.#vacant.set(name, new WeakRef(reference));
    reference.built?.retire();
    reference.set(undefined);
  }

  /** Called when the primary does not add a host that a thread has requested. */
  hostRefused({ cluster, details, key }: HostRefusal): void {
    this.#references.get(cluster)?.built?.requestedHosts?.settle(key, details);
  }

  /** Called when the thread cannot apply clusters. Nobody else would end the waits for hosts that they may have. */
  notApplied(names: Iterable<string>): void {
    for (const name of names) this.#references.get(name)?.built?.requestedHosts?.close();
  }

  /** Closes connections that have had no request for `idleMs`, in all clusters. */
  closeIdle(idleMs: number): void {
    for (const { built } of this.#references.values()) built?.closeIdle(idleMs);
  }

  /** Called when the thread ends. Closes idle connections, which are counted as closed. */
  end(): void {
    for (const { built } of this.#references.values()) built?.drain();
  }

  /** Updates what zone-aware routing needs, if this is the local cluster. */
  #noteLocal(name: string, cluster: ClusterSnapshot | PackedCluster): void {
    const { localCluster } = this.#thread;
    if (localCluster?.name !== name) return;
    localCluster.update(('text' in cluster ? unpackCluster(cluster) : cluster).hosts);
  }

  /** Records that the reference's cluster exists. */
  #keep(reference: ClusterReference): void {
    this.#references.set(reference.name, reference);
    this.#vacant.delete(reference.name);
  }
}

/** Takes less than a millisecond when none of the clusters is in use. */
const PACKED_PER_STEP = 512;
