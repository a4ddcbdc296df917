// The configuration that a server runs with, as the primary keeps it. It changes while traffic flows: by files, by management
// servers, by a reload of the bootstrap. Each change goes to the workers as a part of a snapshot, and nothing comes back from them.
//
//   sources → clusters, routes, filter configurations, listeners → snapshots

import { Random } from '../../common/random.js';
import type { Bootstrap, Node } from '../../config/generated/api.js';
import type { LoadCounts } from '../../config/load/load.js';
import type { PostEndpoint } from '../../extensions/factories.js';
import type { ExtensionRegistry } from '../../extensions/registry.js';
import type { NativeShim } from '../../io/shim.js';
import { monotonicMs } from '../../io/timer-driver.js';
import type { Timers } from '../../io/timing-wheel.js';
import { LayeredRuntime } from '../../runtime/layered-runtime.js';
import type { RuntimeSnapshot } from '../../runtime/snapshot.js';
import { ClusterManagerStats, ThreadLocalClusterManagerStats } from '../../stats/layouts/cluster.js';
import { RuntimeStats } from '../../stats/layouts/runtime.js';
import type { StatsStore } from '../../stats/store.js';
import type { Scope } from '../../stats/thread-stats.js';
import type { DnsResolver } from '../../upstream/dns/resolver.js';
import type { SharedWordsOwner } from '../../upstream/shared-words.js';
import { ON_DEMAND_PORT } from '../../worker/awaited-hosts.js';
import { ServerConfigSources } from '../../xds/config-sources.js';
import type { DynamicOptions } from '../../xds/reading/settings.js';
import { ClusterDiscoveryService } from '../clusters/cds.js';
import { ClusterSet } from '../clusters/cluster-set.js';
import { HostWatch } from '../clusters/host-watch.js';
import { PrimaryCalls } from '../clusters/primary-calls.js';
import type { ListenerDrains } from '../draining/listener-drains.js';
import { FilterConfigSet } from '../filter-configs/filter-config-set.js';
import { FilterParts } from '../listeners/filter-parts.js';
import type { InheritedSockets } from '../listeners/inherited-sockets.js';
import { ListenerDiscovery } from '../listeners/lds.js';
import { ListenerSet, type ListenerSetHost } from '../listeners/listener-set.js';
import type { ReloadPlan } from '../reload/comparison.js';
import { DepartingClusters } from '../reload/departing-clusters.js';
import type { NamedSources } from '../reload/sources-in-use.js';
import type { TakeOver } from '../restart/take-over.js';
import { PrimaryRouteSet } from '../routes/primary-route-set.js';
import { RtdsLayers } from '../runtime/rtds-layers.js';
import type { StartSteps } from '../start/start-up.js';
import type { PrimaryPorts } from '../workers/primary-ports.js';
import type { Publication } from '../workers/publication.js';
import type { SnapshotParts, Snapshots } from '../workers/snapshots.js';
import type { WorkerScopes } from '../workers/worker-scopes.js';
import type { WorkerSet } from '../workers/worker-set.js';

export interface RunningConfigurationHost {
  readonly bootstrap: Bootstrap;
  readonly dynamic: DynamicOptions;
  /** As management servers are told of it. */
  readonly node: Node;
  readonly concurrency: number;
  readonly shim: NativeShim;
  readonly store: StatsStore;
  readonly scopes: WorkerScopes;
  /** The scope listener_manager. */
  readonly listenerStats: Scope;
  readonly words: SharedWordsOwner;
  readonly timers: Timers;
  readonly resolver: DnsResolver;
  readonly extensions: ExtensionRegistry;
  readonly workers: WorkerSet;
  readonly ports: PrimaryPorts;
  readonly snapshots: Snapshots;
  readonly publication: Publication;
  readonly drains: ListenerDrains;
  /** Sockets of a parent process to take over. */
  readonly parentSockets: InheritedSockets | undefined;
  /** By a child process. */
  readonly takeOver: TakeOver;
  /** Adds an endpoint that takes a body to the admin interface; what it returns removes it. */
  serveEndpoint(endpoint: PostEndpoint): () => void;
  runtimeChanged(snapshot: RuntimeSnapshot): void;
  /** What was counted while resources were read. */
  counted(counts: LoadCounts): void;
  /** What should not happen, and was caught. */
  failed(what: string, error: unknown): void;
}

/** The steps of a start that bring up what is configured. */
export type ConfigurationSteps = Omit<StartSteps, 'startWorkers' | 'entered'>;

export class RunningConfiguration {
  readonly runtime: LayeredRuntime;
  readonly clusters: ClusterSet;
  readonly clusterDiscovery: ClusterDiscoveryService;
  readonly routes: PrimaryRouteSet;
  /** Discovered configurations of HTTP filters. */
  readonly filterConfigs: FilterConfigSet;
  readonly listeners: ListenerSet;
  /** Undefined without dynamic_resources.lds_config. */
  readonly listenerDiscovery: ListenerDiscovery | undefined;
  /** The primary's own calls to clusters. */
  readonly calls: PrimaryCalls;
  readonly hosts: HostWatch;
  readonly #host: RunningConfigurationHost;
  readonly #sources: ServerConfigSources;
  /** That of the start, with what reloads have changed since. */
  #bootstrap: Bootstrap;
  readonly #rtds = new RtdsLayers();
  readonly #parts: FilterParts;
  readonly #departing: DepartingClusters;

  constructor(host: RunningConfigurationHost) {
    const { bootstrap, dynamic, scopes, store, words } = host;
    this.#host = host;
    const failed = (what: string, error: unknown) => host.failed(what, error);
    const publish = (parts: SnapshotParts) => this.#publish(parts);
    this.runtime = new LayeredRuntime({
      config: bootstrap.layered_runtime,
      serviceCluster: bootstrap.node?.cluster ?? '',
      stats: scopes.add('runtime.', RuntimeStats),
      changed: (snapshot) => host.runtimeChanged(snapshot),
    });
    this.clusters = this.#createClusters();
    this.hosts = new HostWatch(this.clusters.byName, (fd, keepalive) => {
      this.calls.begin().transport.keepAlive(fd, keepalive);
    });
    this.calls = new PrimaryCalls(host.shim, store, words, this.clusters.byName, this.runtime.runtime, failed);
    this.#bootstrap = bootstrap;
    const running = () => this.#bootstrap;
    this.#sources = new ServerConfigSources({
      get bootstrap() {
        return running();
      },
      store,
      hosts: this.hosts,
      node: host.node,
      dynamic,
      counted: (counts) => host.counted(counts),
      failed,
    });
    this.clusterDiscovery = new ClusterDiscoveryService(this.clusters);
    this.filterConfigs = new FilterConfigSet({ sources: this.#sources, store, scopes, publish });
    this.routes = new PrimaryRouteSet({
      sources: this.#sources,
      store,
      clusterProblem: (name) => this.clusters.problemOfRoutesTo(name),
      publish,
      onDemand: host.ports.port(ON_DEMAND_PORT),
    });
    this.#parts = new FilterParts(host.extensions, host.ports, (endpoint) => host.serveEndpoint(endpoint), {
      routes: this.routes,
      filterConfigs: this.filterConfigs,
    });
    this.listeners = new ListenerSet(this.#listenerSetHost(), host.listenerStats);
    this.#departing = new DepartingClusters(this.clusters, this.listeners.formers, (names) => {
      this.clusterDiscovery.staticsRemoved(names);
    });
    const { lds_config: lds } = bootstrap.dynamic_resources ?? {};
    this.listenerDiscovery = lds && new ListenerDiscovery(lds, this.#sources, this.listeners);
  }

  get steps(): ConfigurationSteps {
    const { layered_runtime: runtime, static_resources: resources, dynamic_resources } = this.#host.bootstrap;
    const { clusters = [], listeners = [] } = resources ?? {};
    const { cds_config: cds } = dynamic_resources ?? {};
    const { listenerDiscovery } = this;
    return {
      startPrimaryClusters: (init) => this.clusters.loadPrimary(clusters, init),
      startRuntimeLayers: (init) => this.#rtds.start(runtime?.layers ?? [], this.runtime, this.#sources, init),
      startSecondaryClusters: (init) => this.clusters.loadSecondary(clusters, init),
      startClusterDiscovery: cds && ((init) => this.clusterDiscovery.start(cds, this.#sources, init)),
      clustersInitialized: () => this.clusters.initialized(),
      startListeners: (init) => this.listeners.open(listeners, init),
      startListenerDiscovery: listenerDiscovery && ((init) => listenerDiscovery.start(init)),
    };
  }

  /** All of it, for a worker that begins. */
  snapshots(): SnapshotParts {
    return {
      // A copy: the thread takes it when it has begun, and what follows tells of changes against what was sent.
      scopes: { ...this.#host.scopes.all },
      clusters: this.clusters.snapshots(),
      ...this.routes.snapshots(),
      ...this.filterConfigs.snapshots(),
      listeners: this.listeners.snapshots(),
    };
  }

  /** What sources have delivered and is in use, as far as it may name sources of others. */
  *namedSources(): Generator<NamedSources> {
    for (const { active, isStatic, name, warming } of this.listeners.entries) {
      if (isStatic) continue;
      for (const version of [active, warming]) {
        if (version !== undefined) yield { what: `listener '${name}'`, config: version.spec.config };
      }
    }
    for (const { config, origin, spec } of [...this.clusters.byName.values(), ...this.clusters.warming.values()]) {
      if (origin.isAddedViaApi) yield { what: `cluster '${spec.name}'`, config: config.eds_cluster_config };
    }
    for (const { name, resource } of this.routes.providers) {
      if (resource !== undefined) yield { what: `route configuration '${name}'`, config: resource.message.vhds };
    }
  }

  /** Takes it to what another bootstrap says, or rejects with everything as it was. `ended`: the server ends. */
  async reload(plan: ReloadPlan, next: Bootstrap, ended: AbortSignal): Promise<void> {
    const [{ carryOut }, { changesOf }] = await Promise.all([
      import('../reload/carry-out.js'),
      import('../reload/changes.js'),
    ]);
    const { listeners, runtime, clusters } = this;
    const settle = this.#host.publication.steps();
    await carryOut(changesOf(plan, { runtime, clusters, departing: this.#departing, listeners, ended, settle }));
    this.#bootstrap = next;
    this.#sources.bootstrapChanged();
    this.listenerDiscovery?.staticsChanged();
  }

  /** No source, file or filter changes anything any more. */
  async freeze(): Promise<void> {
    this.#rtds.close();
    this.runtime.close();
    this.#parts.close();
    await this.#sources.close();
  }

  /** Ends what it has open, but for the sockets of listeners: a worker that is still starting makes its copies of those. */
  close(): void {
    this.calls.close();
    this.clusters.stop();
  }

  #createClusters(): ClusterSet {
    const { concurrency, publication, resolver, scopes, snapshots, store, timers, words } = this.#host;
    const { runtime } = this.runtime;
    const managerStats = scopes.add('cluster_manager.', ClusterManagerStats);
    const inflated = scopes.add('thread_local_cluster_manager.main_thread.', ThreadLocalClusterManagerStats);
    for (let index = 0; index < concurrency; index++) {
      scopes.add(`thread_local_cluster_manager.worker_${index}.`, ThreadLocalClusterManagerStats);
    }
    return new ClusterSet(
      {
        ...{ store, words, resolver, timers, runtime, managerStats, inflated },
        random: new Random(),
        now: monotonicMs,
        sources: () => this.#sources,
      },
      {
        changed: (cluster) => {
          this.calls.clusterChanged(cluster);
          this.hosts.clusterChanged(cluster);
        },
        removed: (name) => {
          this.calls.clusterRemoved(name);
          this.hosts.clusterRemoved(name);
        },
        publish: ({ clusters, removedClusters, retired }) => {
          for (const what of retired) snapshots.retire(what);
          publication.publish({ clusters, removedClusters });
        },
      },
    );
  }

  /** Behind the clusters that have come in this turn: what is told may refer to them. */
  #publish(parts: SnapshotParts): void {
    this.clusters.flush();
    this.#host.publication.publish(parts);
  }

  #listenerSetHost(): ListenerSetHost {
    const host = this.#host;
    const { concurrency, drains, extensions, parentSockets, scopes, shim, snapshots, store, takeOver, words } = host;
    return {
      ...{ shim, store, words, extensions, scopes, takeOver },
      parts: this.#parts,
      workers: concurrency,
      parent: parentSockets,
      drainOf: (listener) => drains.manager.windowOf(listener),
      drain: (ids, over) => drains.leave(ids, over),
      drainingChanged: () => drains.count(),
      publish: (parts) => this.#publish(parts),
      whenApplied: (callback) => snapshots.whenApplied(callback),
      outcome: () => snapshots.outcome(snapshots.version - 1),
      broadcast: (message) => host.workers.broadcast(message),
      stop: (listeners, acceptRest) => drains.stop(listeners, acceptRest),
      openConnections: () => drains.openConnections(),
    };
  }
}
