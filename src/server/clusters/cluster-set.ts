// The clusters on the primary, which are added, changed and removed while traffic flows. A new version of a cluster warms while
// the previous one serves, and replaces it on all workers at once.

import { isDeepStrictEqual } from 'node:util';
import { shownName } from '../../common/text/shown.js';
import { discoveryType } from '../../config/fields/discovery.js';
import { fileOfSource, isFileSource } from '../../config/fields/file-of-source.js';
import type { Cluster } from '../../config/generated/api.js';
import { getLogger } from '../../log/logger.js';
import { ClusterManagerStats, ThreadLocalClusterManagerStats } from '../../stats/layouts/cluster.js';
import type { StatsStore } from '../../stats/store.js';
import type { Scope } from '../../stats/thread-stats.js';
import type { EventReport } from '../../upstream/event-report.js';
import type { FailedCheckReport } from '../../upstream/health-checks/failed-check-report.js';
import type { OutlierReport } from '../../upstream/outliers/outlier-report.js';
import type { HostRefusal, HostRequest } from '../../upstream/requested-hosts/host-request.js';
import type { Resource } from '../../xds/resource.js';
import type { ConfigSources } from '../../xds/subscription.js';
import type { InitManager, InitTarget } from '../init/init-manager.js';
import { ClusterChanges, type ClusterParts, type PublishedClusters, partsOf } from './cluster-changes.js';
import { DnsCaches } from './dns-caches.js';
import { EndpointSubscriptions } from './version/endpoint-subscription.js';
import { type ClusterOrigin, PrimaryCluster, type PrimaryClusterContext } from './version/primary-cluster.js';
import { ResourcePool } from './version/resource-pool.js';

const upstream = getLogger('upstream');

export interface ClusterSetContext
  extends Omit<PrimaryClusterContext, 'subscriptions' | 'changed' | 'dnsCaches' | 'initialized' | 'refuseHost'> {
  readonly store: StatsStore;
  /** Returns the sources of endpoint assignments. Called for the first cluster of type EDS. */
  readonly sources: () => ConfigSources;
  /** The scope thread_local_cluster_manager.main_thread. */
  readonly inflated: SetStats;
  /** The number of clusters is not counted in `managerStats` and `inflated`. */
  readonly isUncounted?: boolean;
}

export interface ClusterSetEvents {
  /** Called when a cluster has its first hosts, its hosts have changed, or another version of it is in use. */
  changed(cluster: PrimaryCluster): void;
  removed(name: string): void;
  /** Called when a cluster does not get a requested host. */
  refuseHost?(refusal: HostRefusal): void;
  /** Called with all changes of one turn. */
  publish(changes: PublishedClusters): void;
}

/** Static clusters that are put into use together, once all are ready. */
export interface StagedClusters {
  /** Names of the clusters that are not ready. */
  readonly waiting: ReadonlySet<string>;
  /** Resolves when all are ready. */
  readonly ready: Promise<void>;
  /** Replaces the previous versions on all workers at once. */
  commit(): void;
  /** Stops the clusters unused. A no-op after commit(). */
  discard(): void;
}

/** Where a set counts its clusters. */
type SetStats = Pick<Scope, 'increment' | 'set'>;

const UNCOUNTED: SetStats = { increment: () => {}, set: () => {} };

/** Clusters whose gauges one step updates: less than 1 ms of work. */
const UPDATES_PER_STEP = 512;

export class ClusterSet {
  /** The context of each cluster. */
  readonly #clusterContext: PrimaryClusterContext;
  readonly #stats: SetStats;
  readonly #inflated: SetStats;
  readonly #events: ClusterSetEvents;
  readonly #resources: ResourcePool;
  /** Versions in use. */
  readonly #active = new Map<string, PrimaryCluster>();
  /** New versions that are not ready yet. */
  readonly #warming = new Map<string, PrimaryCluster>();
  readonly #targets = new Map<PrimaryCluster, InitTarget>();
  /** Callbacks for staged clusters, which are not put into use when they are ready. */
  readonly #staged = new Map<PrimaryCluster, () => void>();
  #init: InitManager | undefined;
  /** During the start clusters are used without warming: there is no traffic yet. */
  #isStarting = true;
  #specVersion = 0;
  readonly #changes: ClusterChanges;
  /** Called after the start with whether any version is warming. */
  onWarming: (isWarming: boolean) => void = () => {};
  /** Called when a version of a cluster is put into use. */
  onActive: (name: string) => void = () => {};

  constructor(context: ClusterSetContext, events: ClusterSetEvents) {
    this.#stats = context.isUncounted ? UNCOUNTED : context.managerStats;
    this.#inflated = context.isUncounted ? UNCOUNTED : context.inflated;
    this.#events = events;
    this.#changes = new ClusterChanges(this.#active, (changes) => events.publish(changes));
    const { store, words } = context;
    this.#resources = new ResourcePool({ store, words, retire: (what) => this.#changes.retire(what) });
    this.#clusterContext = {
      ...context,
      dnsCaches: new DnsCaches(context),
      subscriptions: new EndpointSubscriptions(context.timers, context.sources),
      changed: (cluster) => this.#noteChange(cluster),
      initialized: (cluster) => this.#initialized(cluster),
      refuseHost: (refusal) => events.refuseHost?.(refusal),
    };
  }

  /** The clusters in use. */
  get byName(): ReadonlyMap<string, PrimaryCluster> {
    return this.#active;
  }

  /** Versions that are warming. */
  get warming(): ReadonlyMap<string, PrimaryCluster> {
    return this.#warming;
  }

  /** Loads the bootstrap's clusters that need no management server. `init` waits until each has looked for its hosts. */
  loadPrimary(configs: readonly Cluster[], init: InitManager): void {
    this.useInit(init);
    this.setStatic(configs.filter((config) => !isSecondary(config)));
  }

  /** Loads the other clusters of the bootstrap. */
  loadSecondary(configs: readonly Cluster[], init: InitManager): void {
    this.useInit(init);
    this.setStatic(configs.filter(isSecondary));
  }

  /** Sets the init manager that waits, during the start, for clusters added from now on. */
  useInit(init: InitManager): void {
    this.#init = init;
  }

  /** Called when all clusters of the start are ready. From now on a new version warms while the previous one serves. */
  initialized(): void {
    this.#init = undefined;
    this.#isStarting = false;
    this.#countClusters();
  }

  /**
   * Adds or changes static clusters, which must be checked already. Throws, with nothing changed, when one of them cannot be
   * created. A dynamic cluster with the same name becomes static.
   */
  setStatic(configs: readonly Cluster[]): void {
    for (const cluster of this.#createChanged(configs)) this.#add(cluster);
  }

  /** Removes those clusters of `names` that are static. */
  removeStatic(names: readonly string[]): void {
    for (const name of names) if (this.#newest(name)?.origin.isAddedViaApi === false) this.#remove(name);
  }

  /** Adds or changes static clusters in two steps. Throws, with nothing changed, when one of them cannot be created. */
  stage(set: readonly Cluster[]): StagedClusters {
    const made = this.#createChanged(set);
    const waiting = new Set(made.map(({ spec }) => spec.name));
    let isOver = false;
    const ready = new Promise<void>((resolve) => {
      for (const cluster of made) {
        this.#staged.set(cluster, () => {
          waiting.delete(cluster.spec.name);
          if (waiting.size === 0) resolve();
        });
      }
      if (made.length === 0) resolve();
      for (const cluster of made) cluster.start();
    });
    const end = (next: (cluster: PrimaryCluster) => void) => {
      if (isOver) return;
      isOver = true;
      for (const cluster of made) {
        this.#staged.delete(cluster);
        next(cluster);
      }
      this.#countClusters();
    };
    return {
      waiting,
      ready,
      commit: () => end((cluster) => this.#replace(cluster)),
      discard: () => end((cluster) => cluster.stop()),
    };
  }

  /**
   * Adds or changes a dynamic cluster. A no-op when its latest version is the same, or when a static cluster has the name.
   * Throws, with nothing changed, when it cannot be created.
   */
  setDynamic({ message, version, sensitive }: Resource<Cluster>): 'changed' | 'unchanged' | 'static' {
    const name = message.name ?? '';
    if (this.#newest(name)?.origin.isAddedViaApi === false) return 'static';
    if (this.#isUnchanged(message, true)) return 'unchanged';
    this.#add(this.#create(message, { isAddedViaApi: true, version, updatedAt: new Date(), sensitive }));
    return 'changed';
  }

  /** Removes a dynamic cluster. Returns whether there was one with that name. */
  removeDynamic(name: string): boolean {
    if (this.#newest(name)?.origin.isAddedViaApi !== true) return false;
    this.#remove(name);
    return true;
  }

  /** Returns all clusters in use, for a starting worker. */
  snapshots(): ClusterParts {
    return partsOf(this.#active.values());
  }

  /** Returns why routes cannot use the cluster `name`; undefined when they can. */
  routeProblem(name: string): string | undefined {
    // A staged cluster is put into use before the configuration that refers to it.
    const isKnown = this.#active.has(name) || [...this.#staged.keys()].some(({ spec }) => spec.name === name);
    return isKnown ? undefined : `unknown cluster '${name}'`;
  }

  /** Called when a response has reported that a host fails its health checks. */
  reportFailedCheck({ block, cluster }: FailedCheckReport): void {
    this.#active.get(cluster)?.membership.failedInTraffic(block);
  }

  /** Called when a thread has counted too many failures of a host. */
  reportOutlier(report: OutlierReport): void {
    this.#active.get(report.cluster)?.reportOutlier(report);
  }

  /** Called with events of a Redis cluster on a thread. */
  reportEvents(report: EventReport): void {
    this.#active.get(report.cluster)?.reportEvents(report);
  }

  /** Called when a thread has a request for a host that its cluster does not have. */
  requestHost(request: HostRequest): void {
    this.#active.get(request.cluster)?.requestHost(request);
  }

  /** Called when a worker has died, whose reports may be lost. */
  recheckOutliers(): void {
    for (const { membership } of this.#active.values()) membership.outliers?.recheck();
  }

  /** Updates some clusters in each step; the primary may serve other events between steps. */
  *updateGauges(): Generator<void, void> {
    let updated = 0;
    for (const cluster of this.#active.values()) {
      cluster.updateGauges();
      if (++updated % UPDATES_PER_STEP === 0) yield;
    }
  }

  /** Publishes this turn's changes immediately, so that what is published next may refer to them. */
  flush(): void {
    this.#changes.flush();
  }

  /** Stops all clusters, and stops publishing. */
  stop(): void {
    this.#changes.stop();
    for (const cluster of this.#staged.keys()) cluster.stop();
    for (const cluster of this.#warming.values()) cluster.stop();
    for (const cluster of this.#active.values()) cluster.stop();
  }

  /** Returns the latest version, in use or not. */
  #newest(name: string): PrimaryCluster | undefined {
    return this.#warming.get(name) ?? this.#active.get(name);
  }

  /** Returns whether the latest version has this configuration. */
  #isUnchanged(config: Cluster, isAddedViaApi: boolean): boolean {
    const newest = this.#newest(config.name ?? '');
    if (newest === undefined || newest.origin.isAddedViaApi !== isAddedViaApi) return false;
    return newest.config === config || isDeepStrictEqual(newest.config, config);
  }

  #create(config: Cluster, origin: ClusterOrigin): PrimaryCluster {
    const name = config.name ?? '';
    const resources = this.#resources.acquire(name, config.alt_stat_name || name);
    try {
      return new PrimaryCluster(config, origin, ++this.#specVersion, resources, this.#clusterContext);
    } catch (error) {
      resources.release();
      throw error;
    }
  }

  /** Creates the new and changed static clusters; either all of them, or none when one fails. */
  #createChanged(set: readonly Cluster[]): PrimaryCluster[] {
    const origin = { isAddedViaApi: false, version: '', updatedAt: new Date(), sensitive: [] };
    const made: PrimaryCluster[] = [];
    try {
      for (const config of set) if (!this.#isUnchanged(config, false)) made.push(this.#create(config, origin));
    } catch (error) {
      for (const cluster of made) cluster.stop();
      throw error;
    }
    return made;
  }

  /** Counts a new version, and discards one that is still warming. */
  #admit(name: string): void {
    const { at } = ClusterManagerStats;
    const isNew = this.#newest(name) === undefined;
    this.#stats.increment(isNew ? at.cluster_added : at.cluster_modified);
    this.#discardWarming(name);
  }

  /** Puts a version into use that is warm already. */
  #replace(cluster: PrimaryCluster): void {
    upstream.debug(`add/update cluster ${shownName(cluster.spec.name)}, already warm`);
    this.#admit(cluster.spec.name);
    this.#activate(cluster);
    this.#noteChange(cluster);
  }

  #add(cluster: PrimaryCluster): void {
    const { name } = cluster.spec;
    this.#admit(name);
    if (this.#isStarting) {
      upstream.debug(`add/update cluster ${shownName(name)} during init`);
      if (this.#init !== undefined) this.#targets.set(cluster, this.#init.add(`cluster ${name}`, isLocal(cluster)));
      this.#activate(cluster);
    } else {
      upstream.debug(`add/update cluster ${shownName(name)} starting warming`);
      this.#warming.set(name, cluster);
    }
    this.#countClusters();
    cluster.start();
  }

  #remove(name: string): void {
    upstream.debug(`removing cluster ${shownName(name)}`);
    this.#stats.increment(ClusterManagerStats.at.cluster_removed);
    this.#discardWarming(name);
    const active = this.#active.get(name);
    if (active !== undefined) {
      this.#active.delete(name);
      this.#discard(active);
      this.#events.removed(name);
      this.#changes.note(name);
    }
    this.#countClusters();
  }

  #discardWarming(name: string): void {
    const cluster = this.#warming.get(name);
    if (cluster === undefined) return;
    this.#warming.delete(name);
    this.#discard(cluster);
  }

  #discard(cluster: PrimaryCluster): void {
    cluster.stop();
    this.#ready(cluster);
  }

  /** Puts the cluster into use in place of the previous version, whose connections and requests continue. */
  #activate(cluster: PrimaryCluster): void {
    const { name } = cluster.spec;
    const former = this.#active.get(name);
    this.#active.set(name, cluster);
    cluster.activate(former);
    if (former !== undefined) this.#discard(former);
    this.#changes.note(name);
    this.onActive(name);
  }

  #initialized(cluster: PrimaryCluster): void {
    const staged = this.#staged.get(cluster);
    if (staged !== undefined) return staged();
    const { name } = cluster.spec;
    if (this.#warming.get(name) === cluster) {
      upstream.debug(`warming cluster ${shownName(name)} complete`);
      this.#warming.delete(name);
      this.#activate(cluster);
      this.#countClusters();
    }
    this.#noteChange(cluster);
    this.#ready(cluster);
  }

  #ready(cluster: PrimaryCluster): void {
    const target = this.#targets.get(cluster);
    if (target === undefined) return;
    this.#targets.delete(cluster);
    this.#countClusters();
    target.ready();
  }

  #countClusters(): void {
    const { at } = ClusterManagerStats;
    const warming = this.#isStarting ? this.#targets.size : this.#warming.size;
    this.#stats.set(at.active_clusters, this.#active.size);
    this.#stats.set(at.warming_clusters, warming);
    this.#inflated.set(ThreadLocalClusterManagerStats.at.clusters_inflated, this.#active.size);
    this.onWarming(this.#warming.size > 0);
  }

  #noteChange(cluster: PrimaryCluster): void {
    this.#events.changed(cluster);
    this.#changes.note(cluster.spec.name);
  }
}

/** Returns whether the hosts come from a management server, which is reached through other clusters. */
function isSecondary(cluster: Cluster): boolean {
  const { eds_config: source } = cluster.eds_cluster_config ?? {};
  return discoveryType(cluster) === 'EDS' && fileOfSource(source ?? {}) === undefined;
}

/** Returns whether a cluster needs neither DNS, nor a management server, nor health checks to be initialized. */
function isLocal({ config, hasLocalSecrets }: PrimaryCluster): boolean {
  const { eds_cluster_config: eds, health_checks: checks = [] } = config;
  if (checks.length > 0 || !hasLocalSecrets) return false;
  const type = discoveryType(config);
  return type === 'STATIC' || (type === 'EDS' && isFileSource(eds?.eds_config));
}
