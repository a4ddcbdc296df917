// The configuration that a server runs, on the primary. Files, management servers and bootstrap reloads change it while traffic
// flows. Each change reaches the workers in a snapshot.
//
//   sources → clusters, routes, filter configurations, listeners → snapshots

import type { FileLogOptions } from '../../access-log/files/file-log.js';
import type { Bootstrap, Node } from '../../config/generated/api.js';
import type { PostEndpoint } from '../../extensions/factories.js';
import { internalError } from '../../log/internal-errors.js';
import { LayeredRuntime } from '../../runtime/layered-runtime.js';
import { SCRIPTS_PORT } from '../../scripts/published.js';
import type { ReadScript } from '../../scripts/reading/task.js';
import { RuntimeStats } from '../../stats/layouts/runtime.js';
import { MISSING_CLUSTERS_PORT } from '../../worker/clusters/awaited-clusters.js';
import { SECRETS_PORT } from '../../worker/messages/published-secrets.js';
import { ON_DEMAND_PORT } from '../../worker/routes/awaited-hosts.js';
import { collectionName } from '../../xds/collection-name.js';
import { ServerConfigSources } from '../../xds/config-sources.js';
import type { DynamicOptions } from '../../xds/reading/settings.js';
import { ClusterDiscovery } from '../clusters/cds.js';
import type { ClusterSet } from '../clusters/cluster-set.js';
import { OnDemandClusters } from '../clusters/on-demand/on-demand-clusters.js';
import { PrimaryUpstream } from '../clusters/primary-upstream.js';
import type { DrainDefaults } from '../draining/drain-manager.js';
import { FilterConfigSet } from '../filter-configs/filter-config-set.js';
import { HealthDelegate } from '../health-discovery/health-delegate.js';
import { ListenerDiscovery } from '../listeners/lds.js';
import { ListenerSet } from '../listeners/listener-set.js';
import { FilterParts } from '../listeners/version/filter-parts.js';
import { LoadReporter } from '../load-reports/load-reporter.js';
import { startOverload } from '../overload/start-overload.js';
import type { Primary } from '../primary.js';
import type { ReloadPlan } from '../reload/comparison/comparison.js';
import { DrainingClusters } from '../reload/draining-clusters.js';
import { reloadParts } from '../reload/reload-parts.js';
import type { NamedSources } from '../reload/sources-in-use.js';
import { PrimaryRouteSet } from '../routes/primary-route-set.js';
import { RouteSecrets } from '../routes/route-secrets.js';
import { RtdsLayers } from '../runtime/rtds-layers.js';
import { RuntimePublication } from '../runtime/runtime-publication.js';
import { ScriptSet } from '../scripts/script-set.js';
import { GenericSecrets } from '../secrets/generic-secrets.js';
import { SecretSet } from '../secrets/secret-set.js';
import type { StartSteps } from '../start/start-up.js';
import type { SnapshotParts } from '../workers/snapshots.js';
import { ConnectionLimits } from './connection-limits.js';

export interface ConfigurationOptions {
  /** Flush options of written files. */
  readonly fileFlush: FileLogOptions;
  readonly bootstrap: Bootstrap;
  readonly dynamic: DynamicOptions;
  /** The node that management servers receive. */
  readonly node: Node;
  readonly draining: DrainDefaults;
  /** This server's own address. */
  readonly localIp: string;
  /** The modules that the bootstrap registers. */
  readonly scripts: readonly ReadScript[];
  /** Adds an admin endpoint that takes a request body. Returns a function that removes it. */
  readonly serveEndpoint: (endpoint: PostEndpoint) => () => void;
}

/** The steps of a start that create the configured objects. */
export type ConfigurationSteps = Omit<StartSteps, 'startWorkers' | 'dispatching' | 'entered'>;

export class RunningConfiguration {
  readonly runtime: LayeredRuntime;
  readonly runtimePublication: RuntimePublication;
  readonly connectionLimits: ConnectionLimits;
  readonly upstream: PrimaryUpstream;
  /** The clusters of `upstream`. */
  readonly clusters: ClusterSet;
  readonly clusterDiscovery: ClusterDiscovery;
  readonly #onDemandClusters: OnDemandClusters;
  readonly routes: PrimaryRouteSet;
  /** Discovered configurations of HTTP filters. */
  readonly filterConfigs: FilterConfigSet;
  /** Secrets that sources deliver. */
  readonly secrets: SecretSet;
  readonly scripts: ScriptSet;
  readonly listeners: ListenerSet;
  /** Undefined without dynamic_resources.lds_config. */
  readonly listenerDiscovery: ListenerDiscovery | undefined;
  readonly #primary: Primary;
  readonly #sources: ServerConfigSources;
  readonly #node: Node;
  /** The start's bootstrap with the changes of later reloads. */
  #bootstrap: Bootstrap;
  readonly #rtds = new RtdsLayers();
  readonly #parts: FilterParts;
  readonly #filterSecrets: GenericSecrets;
  readonly #drainingClusters: DrainingClusters;
  /** Undefined without cluster_manager.load_stats_config. */
  readonly #loadReporter: LoadReporter | undefined;
  /** Undefined without overload_manager. */
  readonly #overload: { close(): void } | undefined;
  /** Undefined without hds_config. */
  readonly #healthDelegate: HealthDelegate | undefined;

  constructor(
    primary: Primary,
    { bootstrap, draining, dynamic, fileFlush, localIp, node, scripts, serveEndpoint }: ConfigurationOptions,
  ) {
    const { extensions, ports, scopes, shim, store } = primary;
    this.#primary = primary;
    this.#bootstrap = bootstrap;
    this.#node = node;
    this.runtimePublication = new RuntimePublication(primary.workers);
    this.runtime = this.#createRuntime(bootstrap);
    const { runtime } = this.runtime;
    this.connectionLimits = new ConnectionLimits(primary, runtime, bootstrap);
    this.#overload = startOverload(primary, runtime, bootstrap);
    this.upstream = new PrimaryUpstream(primary, {
      ...{ bootstrap, runtime, fileFlush, localIp },
      sources: () => this.#sources,
      filterSecrets: () => this.#filterSecrets,
    });
    this.clusters = this.upstream.clusters;
    this.#sources = this.#createSources(dynamic, node);
    this.secrets = new SecretSet({ sources: this.#sources, store, shim, failed: internalError });
    primary.tls.discoverWith(this.secrets);
    const publish = (parts: SnapshotParts) => this.#publish(parts);
    this.clusterDiscovery = new ClusterDiscovery(this.clusters, store);
    const whenApplied = (callback: () => void) => primary.snapshots.whenApplied(callback);
    this.#onDemandClusters = new OnDemandClusters({
      ...{ clusters: this.clusters, sources: this.#sources, store, whenApplied },
      port: ports.port(MISSING_CLUSTERS_PORT),
    });
    this.filterConfigs = new FilterConfigSet({ sources: this.#sources, store, scopes, publish });
    this.#filterSecrets = new GenericSecrets(
      this.secrets,
      ports.port(SECRETS_PORT),
      bootstrap.static_resources?.secrets ?? [],
    );
    this.scripts = new ScriptSet(bootstrap, scripts, ports.port(SCRIPTS_PORT), store, {
      chains: () => this.routes.chains(),
      routes: () => this.routes.delivered(),
      routed: () => this.routes.routed(),
      discovered: (filter) => this.filterConfigs.scriptModules(filter),
    });
    this.routes = new PrimaryRouteSet({
      sources: this.#sources,
      store,
      scopes,
      secrets: new RouteSecrets(extensions, this.#filterSecrets),
      clusterProblem: (name) => this.clusters.routeProblem(name),
      scripts: this.scripts.isUsed ? this.scripts.ofRoutes : undefined,
      publish,
      whenApplied,
      onDemand: ports.port(ON_DEMAND_PORT),
    });
    const { filterConfigs, routes } = this;
    this.#parts = new FilterParts(extensions, ports, serveEndpoint, {
      ...{ routes, filterConfigs, secrets: this.#filterSecrets },
      scripts: this.scripts,
      guardWorkers: () => primary.guardWorkers(bootstrap),
    });
    this.listeners = new ListenerSet(primary, this.#parts, draining, publish);
    this.#drainingClusters = new DrainingClusters(this.clusters, this.listeners.draining, (names) => {
      this.clusterDiscovery.staticsRemoved(names);
    });
    this.#loadReporter = this.#createLoadReporter(bootstrap, node);
    this.#healthDelegate = this.#createHealthDelegate(bootstrap, node);
    const { lds_config: lds } = bootstrap.dynamic_resources ?? {};
    this.listenerDiscovery = lds && new ListenerDiscovery(lds, this.#sources, this.listeners);
  }

  get steps(): ConfigurationSteps {
    const { layered_runtime: runtime, static_resources: resources, dynamic_resources } = this.#bootstrap;
    const { clusters = [], listeners = [] } = resources ?? {};
    const { cds_config: cds, cds_resources_locator, lds_resources_locator } = dynamic_resources ?? {};
    const { listenerDiscovery } = this;
    const collection = (locator: string | undefined) =>
      locator ? collectionName(locator, this.#bootstrap, this.#node) : undefined;
    return {
      startPrimaryClusters: (init) => {
        this.upstream.openLog();
        this.clusters.loadPrimary(clusters, init);
      },
      startRuntimeLayers: (init) => this.#rtds.start(runtime?.layers ?? [], this.runtime, this.#sources, init),
      startSecondaryClusters: (init) => this.clusters.loadSecondary(clusters, init),
      startClusterDiscovery:
        cds && ((init) => this.clusterDiscovery.start(cds, this.#sources, init, collection(cds_resources_locator))),
      clustersInitialized: () => {
        this.clusters.initialized();
        this.#loadReporter?.start();
        this.#healthDelegate?.start();
      },
      startListeners: (init) => this.listeners.open(listeners, init),
      startListenerDiscovery:
        listenerDiscovery && ((init) => listenerDiscovery.start(init, collection(lds_resources_locator))),
    };
  }

  /** Version of the last CDS update that changed a cluster; '' before the first one, 'static' without CDS. */
  get clustersVersion(): string {
    const hasDiscovery = this.#bootstrap.dynamic_resources?.cds_config !== undefined;
    return hasDiscovery ? this.clusterDiscovery.version : 'static';
  }

  /** Returns the complete configuration for a starting worker. */
  snapshots(): SnapshotParts {
    return {
      // A copy: a starting thread reads it later, and then receives changes relative to it.
      statScopes: { ...this.#primary.scopes.all },
      ...this.clusters.snapshots(),
      ...this.routes.snapshots(),
      ...this.filterConfigs.snapshots(),
      listeners: this.listeners.snapshots(),
    };
  }

  /** Yields delivered resources in use that may name further sources. */
  *namedSources(): Generator<NamedSources> {
    for (const { config, isStatic, name } of this.listeners.specs()) {
      if (!isStatic) yield { what: `listener '${name}'`, config };
    }
    for (const { config, origin, spec } of [...this.clusters.byName.values(), ...this.clusters.warming.values()]) {
      if (!origin.isAddedViaApi) continue;
      const what = `cluster '${spec.name}'`;
      yield { what, config: config.eds_cluster_config };
      yield { what, config: [config.transport_socket, config.transport_socket_matches] };
    }
    for (const { name, resource } of this.routes.providers) {
      if (resource !== undefined) yield { what: `route configuration '${name}'`, config: resource.message.vhds };
    }
  }

  /** Applies another bootstrap, or rejects with everything as before. `ended`: aborted when the server ends. */
  async reload(plan: ReloadPlan, next: Bootstrap, ended: AbortSignal): Promise<void> {
    const { carryOut, changesOf } = await reloadParts();
    const { listeners, runtime, clusters } = this;
    const settle = this.#primary.publication.steps();
    await carryOut(
      changesOf(plan, { runtime, clusters, drainingClusters: this.#drainingClusters, listeners, ended, settle }),
    );
    await this.runtimePublication.sent();
    this.#bootstrap = next;
    this.#sources.bootstrapChanged();
    this.listenerDiscovery?.staticsChanged();
  }

  /** Stops all changes by sources, files and filters. */
  async freeze(): Promise<void> {
    this.#rtds.close();
    this.#overload?.close();
    this.#loadReporter?.close();
    await this.#healthDelegate?.close();
    this.scripts.close();
    this.runtime.close();
    this.#parts.close();
    this.secrets.close();
    this.#onDemandClusters.close();
    await this.#sources.close();
    this.listenerDiscovery?.close();
  }

  /** Closes everything except listener sockets, which a starting worker may be about to duplicate. */
  close(): Promise<void> {
    return this.upstream.close();
  }

  #createRuntime({ layered_runtime: config, node }: Bootstrap): LayeredRuntime {
    const { scopes } = this.#primary;
    return new LayeredRuntime({
      config,
      serviceCluster: node?.cluster ?? '',
      stats: scopes.add('runtime.', RuntimeStats),
      changed: (change) => {
        this.runtimePublication.send(change);
        this.connectionLimits.update();
      },
    });
  }

  #createLoadReporter({ cluster_manager: manager }: Bootstrap, node: Node): LoadReporter | undefined {
    const source = manager?.load_stats_config;
    if (source === undefined) return undefined;
    const { byName: clusters } = this.clusters;
    const { store } = this.#primary;
    const { calls } = this.upstream;
    return new LoadReporter({ source, node, calls, store, clusters, failed: internalError });
  }

  #createHealthDelegate({ hds_config: source }: Bootstrap, node: Node): HealthDelegate | undefined {
    if (source === undefined) return undefined;
    const { extensions: policies, store, tls } = this.#primary;
    const { calls, checks, eventFiles } = this.upstream;
    return new HealthDelegate({
      ...{ source, node, calls, store, tls, policies, checks, eventFiles },
      reader: () => this.#sources.reader(),
      failed: internalError,
    });
  }

  #createSources(dynamic: DynamicOptions, node: Node): ServerConfigSources {
    const { processStats, store } = this.#primary;
    return new ServerConfigSources({
      bootstrap: () => this.#bootstrap,
      ...{ dynamic, node, store },
      calls: this.upstream.calls,
      counted: (counts) => processStats.countDynamic(counts),
      prepare: (type, resources) => this.scripts.prepare(type, resources),
      failed: internalError,
    });
  }

  /** Publishes this turn's changed clusters first: `parts` may refer to them. */
  #publish(parts: SnapshotParts): void {
    this.clusters.flush();
    this.#primary.publication.publish(parts);
  }
}
