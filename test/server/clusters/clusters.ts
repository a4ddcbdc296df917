// A set of clusters with one worker that applies everything at once, and configuration sources that the test controls.

import { Random } from '../../../src/common/random.js';
import type {
  Cluster,
  ClusterLoadAssignment,
  HealthStatus,
  OutlierDetectionEvent,
} from '../../../src/config/generated/api.js';
import { EXTENSIONS } from '../../../src/extensions/index.js';
import { ExtensionRegistry } from '../../../src/extensions/registry.js';
import { loadShim } from '../../../src/io/shim.js';
import { TimingWheel } from '../../../src/io/time/timing-wheel.js';
import { Runtime } from '../../../src/runtime/runtime.js';
import { ClusterDiscovery } from '../../../src/server/clusters/cds.js';
import type { PublishedClusters } from '../../../src/server/clusters/cluster-changes.js';
import { ClusterSet } from '../../../src/server/clusters/cluster-set.js';
import { EventFiles } from '../../../src/server/clusters/event-files.js';
import type { PrimaryCalls } from '../../../src/server/clusters/primary-calls.js';
import { InitManager } from '../../../src/server/init/init-manager.js';
import { Snapshots } from '../../../src/server/workers/snapshots.js';
import { ClusterManagerStats, ThreadLocalClusterManagerStats } from '../../../src/stats/layouts/cluster.js';
import { StatsStore } from '../../../src/stats/store.js';
import { TlsContexts } from '../../../src/tls/tls-contexts.js';
import { DnsResolver } from '../../../src/upstream/dns/resolver.js';
import { unpackCluster } from '../../../src/upstream/packed-cluster.js';
import type { HostRefusal } from '../../../src/upstream/requested-hosts/host-request.js';
import { SharedWordsOwner } from '../../../src/upstream/shared-words.js';
import { FakeSources } from '../../xds/fake-sources.js';
import { FakeChecks } from './fake-checks.js';

export const ADS = { ads: {}, resource_api_version: 'V3' } as const;

export class Clusters {
  readonly store: StatsStore;
  readonly words: SharedWordsOwner;
  readonly sources = new FakeSources();
  readonly init = new InitManager('test');
  readonly changed: string[] = [];
  readonly removed: string[] = [];
  readonly published: PublishedClusters[] = [];
  readonly outlierEvents: OutlierDetectionEvent[] = [];
  readonly refusals: HostRefusal[] = [];
  readonly set: ClusterSet;
  readonly cds: ClusterDiscovery;
  readonly snapshots: Snapshots;
  readonly checks: FakeChecks;
  /** Notified of changes. */
  calls: PrimaryCalls | undefined;
  #nowMs = 0;
  readonly #wheel = new TimingWheel({
    nowMs: 0,
    onError: (error) => {
      throw error;
    },
  });

  /** `wordsBytes`: memory for clusters and hosts. `shared`: another set, whose stats and memory it uses. */
  constructor({ wordsBytes, shared }: { readonly wordsBytes?: number; readonly shared?: Clusters } = {}) {
    const store = shared?.store ?? new StatsStore({ workers: 1 });
    const words = shared?.words ?? new SharedWordsOwner(wordsBytes);
    this.store = store;
    this.words = words;
    this.snapshots = new Snapshots(store, words, 1);
    this.checks = new FakeChecks(this.#wheel);
    this.set = new ClusterSet(
      {
        store,
        words,
        resolver: new DnsResolver(),
        timers: this.#wheel,
        random: new Random(1),
        runtime: new Runtime(),
        threads: 2,
        policies: new ExtensionRegistry(EXTENSIONS),
        extensions: new ExtensionRegistry(EXTENSIONS),
        filterSecrets: () => {
          throw new Error('these clusters have no secrets');
        },
        locality: undefined,
        tls: new TlsContexts(loadShim(), store, []),
        now: () => this.#nowMs,
        checks: this.checks,
        eventFiles: new EventFiles({}, store),
        outlierEvents: { write: (event) => this.outlierEvents.push(event) },
        managerStats: store.scope(store.addScope('cluster_manager.', ClusterManagerStats)),
        inflated: store.scope(
          store.addScope('thread_local_cluster_manager.main_thread.', ThreadLocalClusterManagerStats),
        ),
        sources: () => this.sources,
      },
      {
        changed: (cluster) => {
          this.changed.push(cluster.spec.name);
          this.calls?.clusterChanged(cluster);
        },
        removed: (name) => {
          this.removed.push(name);
          this.calls?.clusterRemoved(name);
        },
        publish: (changes) => this.#publish(changes),
        refuseHost: (refusal) => void this.refusals.push(refusal),
      },
    );
    this.cds = new ClusterDiscovery(this.set, store);
  }

  /** Called when the clusters of a bootstrap are ready and the server serves. */
  start(configs: readonly Cluster[] = []): void {
    this.set.loadPrimary(configs, this.init);
    this.set.loadSecondary(configs, this.init);
    this.set.initialized();
  }

  /** Starts CDS. Returns the subscription on which updates are delivered. */
  startCds() {
    this.cds.start(ADS, this.sources, this.init);
    return this.sources.subscriptions.at(-1)!;
  }

  value(name: string): number | undefined {
    return this.store.value(name);
  }

  /** Returns whether a timer is pending. */
  get hasTimers(): boolean {
    return this.#wheel.nextWakeMs() !== Number.POSITIVE_INFINITY;
  }

  advance(ms: number): void {
    this.#nowMs += ms;
    this.#wheel.advance(this.#nowMs);
  }

  /** Resolves when the changes of this turn are published. */
  async turn(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
    await new Promise((resolve) => setImmediate(resolve));
  }

  /** Frees everything that waits for workers to run a later version. */
  settle(): void {
    for (let round = 0; round < 2; round++) this.snapshots.applied(0, this.snapshots.next({}).version);
  }

  /** Returns the hosts of a cluster as workers have them: `10.0.0.1:80`, and their other published data. */
  hosts(name: string): string[] {
    const cluster = this.set.byName.get(name)!;
    return [...cluster.hosts].map((host) => host.address);
  }

  #publish(changes: PublishedClusters): void {
    for (const what of changes.retired) this.snapshots.retire(what);
    // As workers have them when in use.
    this.published.push({ ...changes, clusters: [...changes.clusters, ...changes.packedClusters.map(unpackCluster)] });
    const { version } = this.snapshots.next(changes);
    this.snapshots.applied(0, version);
  }
}

export function staticCluster(name: string, ips: readonly string[], changes: Partial<Cluster> = {}): Cluster {
  return { name, type: 'STATIC', load_assignment: assignment(name, ips), ...changes };
}

export function edsCluster(name: string, changes: Partial<Cluster> = {}): Cluster {
  return { name, type: 'EDS', eds_cluster_config: { eds_config: ADS }, ...changes };
}

export interface EndpointChanges {
  readonly health?: HealthStatus;
  readonly weight?: number;
  readonly priority?: number;
}

export function assignment(
  name: string,
  ips: readonly string[],
  { health, priority, weight }: EndpointChanges = {},
): ClusterLoadAssignment {
  const lb_endpoints = ips.map((address) => ({
    endpoint: { address: { socket_address: { address, port_value: 80 } } },
    ...(health && { health_status: health }),
    ...(weight && { load_balancing_weight: weight }),
  }));
  return { cluster_name: name, endpoints: [{ lb_endpoints, ...(priority && { priority }) }] };
}

export function resource<M extends { readonly name?: string; readonly cluster_name?: string }>(message: M) {
  return { name: message.name ?? message.cluster_name ?? '', message };
}
