// The configuration that a server runs with, on the primary. Files, management servers and reloads of the bootstrap change it while
// traffic flows. Each change goes to the workers in a snapshot; nothing comes back from them.
//
//   sources → clusters, routes, filter configurations, listeners → snapshots

import type { FileLogOptions } from '../../access-log/files/file-log.js';
import { Random } from '../../common/random.js';
import type { Bootstrap, Node } from '../../config/generated/api.js';
import type { PostEndpoint } from '../../extensions/factories.js';
import { monotonicMs } from '../../io/time/timer-driver.js';
import { LayeredRuntime } from '../../runtime/layered-runtime.js';
import { ClusterManagerStats, ThreadLocalClusterManagerStats } from '../../stats/layouts/cluster.js';
import { RuntimeStats } from '../../stats/layouts/runtime.js';
import { FAILED_CHECK_PORT, type FailedCheckReport } from '../../upstream/health-checks/failed-check-report.js';
import { OUTLIER_PORT, type OutlierReport } from '../../upstream/outliers/outlier-report.js';
import { ON_DEMAND_PORT } from '../../worker/routes/awaited-hosts.js';
import { ServerConfigSources } from '../../xds/config-sources.js';
import type { DynamicOptions } from '../../xds/reading/settings.js';
import { ClusterDiscovery } from '../clusters/cds.js';
import { ClusterSet } from '../clusters/cluster-set.js';
import { PrimaryCheckThread } from '../clusters/health-checks/primary-check-thread.js';
import { HostWatch } from '../clusters/host-watch.js';
import { OutlierEventLog } from '../clusters/outlier-event-log.js';
import { PrimaryCalls } from '../clusters/primary-calls.js';
import type { DrainDefaults } from '../draining/drain-manager.js';
import { FilterConfigSet } from '../filter-configs/filter-config-set.js';
import { ListenerDiscovery } from '../listeners/lds.js';
import { ListenerSet } from '../listeners/listener-set.js';
import { FilterParts } from '../listeners/version/filter-parts.js';
import type { Primary } from '../primary.js';
import type { ReloadPlan } from '../reload/comparison/comparison.js';
import { DepartingClusters } from '../reload/departing-clusters.js';
import type { NamedSources } from '../reload/sources-in-use.js';
import { PrimaryRouteSet } from '../routes/primary-route-set.js';
import { RtdsLayers } from '../runtime/rtds-layers.js';
import type { StartSteps } from '../start/start-up.js';
import type { SnapshotParts } from '../workers/snapshots.js';
import { ConnectionLimits } from './connection-limits.js';

export interface ConfigurationOptions {
  /** Of files that are written to. */
  readonly fileFlush: FileLogOptions;
  readonly bootstrap: Bootstrap;
  readonly dynamic: DynamicOptions;
  /** As management servers are told of it. */
  readonly node: Node;
  readonly draining: DrainDefaults;
  /** Adds an endpoint that takes a body to the admin interface; what it returns removes it. */
  readonly serveEndpoint: (endpoint: PostEndpoint) => () => void;
}

/** There may be many hosts to check: of the descriptors that are left to operators, checks leave half. */
const CHECKS_RESERVE = 32;

/** The steps of a start that bring up what is configured. */
export type ConfigurationSteps = Omit<StartSteps, 'startWorkers' | 'entered'>;

export class RunningConfiguration {
  readonly runtime: LayeredRuntime;
  readonly connectionLimits: ConnectionLimits;
  readonly clusters: ClusterSet;
  /** Undefined where none is configured. */
  readonly outlierEvents: OutlierEventLog | undefined;
  readonly clusterDiscovery: ClusterDiscovery;
  readonly routes: PrimaryRouteSet;
  /** Discovered configurations of HTTP filters. */
  readonly filterConfigs: FilterConfigSet;
  readonly listeners: ListenerSet;
  /** Undefined without dynamic_resources.lds_config. */
  readonly listenerDiscovery: ListenerDiscovery | undefined;
  /** The primary's own calls to clusters. */
  readonly calls: PrimaryCalls;
  readonly hosts: HostWatch;
  readonly #primary: Primary;
  readonly #checks: PrimaryCheckThread;
  /** Connections of health checks. */
  readonly #checkCalls: PrimaryCalls;
  readonly #sources: ServerConfigSources;
  /** The bootstrap of the start, with what reloads have changed since. */
  #bootstrap: Bootstrap;
  readonly #rtds = new RtdsLayers();
  readonly #parts: FilterParts;
  readonly #departing: DepartingClusters;

  constructor(
    primary: Primary,
    { bootstrap, draining, dynamic, fileFlush, node, serveEndpoint }: ConfigurationOptions,
  ) {
    const { extensions, ports, processStats, scopes, store } = primary;
    this.#primary = primary;
    this.#bootstrap = bootstrap;
    const publish = (parts: SnapshotParts) => this.#publish(parts);
    this.runtime = new LayeredRuntime({
      config: bootstrap.layered_runtime,
      serviceCluster: bootstrap.node?.cluster ?? '',
      stats: scopes.add('runtime.', RuntimeStats),
      changed: (snapshot) => {
        primary.workers.broadcast({ kind: 'runtime', snapshot });
        this.connectionLimits.update();
      },
    });
    this.connectionLimits = new ConnectionLimits(primary, this.runtime.runtime, bootstrap);
    this.#checks = this.#createChecks();
    const { event_log_path: eventLog } = bootstrap.cluster_manager?.outlier_detection ?? {};
    if (eventLog) this.outlierEvents = new OutlierEventLog(eventLog, fileFlush, store);
    this.clusters = this.#createClusters();
    const outliers = ports.port(OUTLIER_PORT);
    outliers.onMessage = (_worker, report) => this.clusters.reportOutlier(report as OutlierReport);
    outliers.onWorkerDeath = () => this.clusters.recheckOutliers();
    const zone = bootstrap.node?.locality?.zone ?? '';
    this.calls = new PrimaryCalls(primary, this.clusters.byName, this.runtime.runtime, zone);
    this.#checkCalls = new PrimaryCalls(primary, this.clusters.byName, this.runtime.runtime, zone, CHECKS_RESERVE);
    this.hosts = new HostWatch(this.clusters.byName, (fd, keepalive) => {
      this.calls.begin().transport.keepAlive(fd, keepalive);
    });
    ports.port(FAILED_CHECK_PORT).onMessage = (_worker, message) => {
      const { block, cluster } = message as FailedCheckReport;
      this.clusters.byName.get(cluster)?.membership.failedInTraffic(block);
    };
    const running = () => this.#bootstrap;
    this.#sources = new ServerConfigSources({
      get bootstrap() {
        return running();
      },
      ...{ dynamic, node, store },
      hosts: this.hosts,
      counted: (counts) => processStats.countDynamic(counts),
      failed: (what, error) => primary.internalError(what, error),
    });
    this.clusterDiscovery = new ClusterDiscovery(this.clusters);
    this.filterConfigs = new FilterConfigSet({ sources: this.#sources, store, scopes, publish });
    this.routes = new PrimaryRouteSet({
      sources: this.#sources,
      store,
      clusterProblem: (name) => this.clusters.problemOfRoutesTo(name),
      publish,
      onDemand: ports.port(ON_DEMAND_PORT),
    });
    const { filterConfigs, routes } = this;
    this.#parts = new FilterParts(extensions, ports, serveEndpoint, { routes, filterConfigs });
    this.listeners = new ListenerSet(primary, this.#parts, draining, publish);
    this.#departing = new DepartingClusters(this.clusters, this.listeners.formers, (names) => {
      this.clusterDiscovery.staticsRemoved(names);
    });
    const { lds_config: lds } = bootstrap.dynamic_resources ?? {};
    this.listenerDiscovery = lds && new ListenerDiscovery(lds, this.#sources, this.listeners);
  }

  get steps(): ConfigurationSteps {
    const { layered_runtime: runtime, static_resources: resources, dynamic_resources } = this.#bootstrap;
    const { clusters = [], listeners = [] } = resources ?? {};
    const { cds_config: cds } = dynamic_resources ?? {};
    const { listenerDiscovery } = this;
    return {
      startPrimaryClusters: (init) => {
        this.outlierEvents?.open();
        this.clusters.loadPrimary(clusters, init);
      },
      startRuntimeLayers: (init) => this.#rtds.start(runtime?.layers ?? [], this.runtime, this.#sources, init),
      startSecondaryClusters: (init) => this.clusters.loadSecondary(clusters, init),
      startClusterDiscovery: cds && ((init) => this.clusterDiscovery.start(cds, this.#sources, init)),
      clustersInitialized: () => this.clusters.initialized(),
      startListeners: (init) => this.listeners.open(listeners, init),
      startListenerDiscovery: listenerDiscovery && ((init) => listenerDiscovery.start(init)),
    };
  }

  /** Of the last CDS update that has changed a cluster: '' before the first one, and 'static' where no CDS is set up. */
  get clustersVersion(): string {
    const hasDiscovery = this.#bootstrap.dynamic_resources?.cds_config !== undefined;
    return hasDiscovery ? this.clusterDiscovery.version : 'static';
  }

  /** All of it, for a worker that starts. */
  snapshots(): SnapshotParts {
    return {
      // A copy: a thread that starts reads it later, and is sent changes relative to this.
      statScopes: { ...this.#primary.scopes.all },
      clusters: this.clusters.snapshots(),
      ...this.routes.snapshots(),
      ...this.filterConfigs.snapshots(),
      listeners: this.listeners.snapshots(),
    };
  }

  /** Resources in use that sources have delivered, and that may name further sources. */
  *namedSources(): Generator<NamedSources> {
    for (const { config, isStatic, name } of this.listeners.specs()) {
      if (!isStatic) yield { what: `listener '${name}'`, config };
    }
    for (const { config, origin, spec } of [...this.clusters.byName.values(), ...this.clusters.warming.values()]) {
      if (origin.isAddedViaApi) yield { what: `cluster '${spec.name}'`, config: config.eds_cluster_config };
    }
    for (const { name, resource } of this.routes.providers) {
      if (resource !== undefined) yield { what: `route configuration '${name}'`, config: resource.message.vhds };
    }
  }

  /** Applies another bootstrap, or rejects with everything as it was. `ended`: the server ends. */
  async reload(plan: ReloadPlan, next: Bootstrap, ended: AbortSignal): Promise<void> {
    const { carryOut, changesOf } = await import('../reload/on-demand.js');
    const { listeners, runtime, clusters } = this;
    const settle = this.#primary.publication.steps();
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
    this.listenerDiscovery?.close();
  }

  /** Closes all but the sockets of listeners, which a worker that is still starting may be about to copy. */
  async close(): Promise<void> {
    this.#checks.close();
    this.clusters.stop();
    this.#checkCalls.close();
    this.calls.close();
    await this.outlierEvents?.close();
  }

  #createChecks(): PrimaryCheckThread {
    const { store, timers } = this.#primary;
    return new PrimaryCheckThread({
      ...{ store, timers },
      random: new Random(),
      runtime: this.runtime.runtime,
      calls: () => this.#checkCalls,
      failed: (what, error) => this.#primary.internalError(what, error),
    });
  }

  #createClusters(): ClusterSet {
    const { concurrency, publication, resolver, scopes, snapshots, store, timers, words } = this.#primary;
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
        checks: this.#checks,
        outlierEvents: this.outlierEvents,
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

  /** Publishes the clusters that have changed in this turn first: `parts` may refer to them. */
  #publish(parts: SnapshotParts): void {
    this.clusters.flush();
    this.#primary.publication.publish(parts);
  }
}
