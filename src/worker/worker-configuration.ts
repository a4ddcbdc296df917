// A worker's configuration: runtime objects built from the primary's snapshots.

import { setLocalNode } from '../access-log/attributes/local-node.js';
import type { AccessLogFiles } from '../access-log/files/file-log.js';
import { messageOf } from '../common/errors/errors.js';
import { isDescriptorShortage } from '../common/errors/shortages.js';
import { shownName } from '../common/text/shown.js';
import type { WorkerContext } from '../extensions/factories.js';
import type { ExtensionRegistry } from '../extensions/registry.js';
import { requestMatchers } from '../extensions/request-matchers.js';
import { clusterFilters } from '../extensions/upstream-filters.js';
import { headerBlocks } from '../http/headers/header-block.js';
import { RouteCountsSet } from '../http/routing/stats/route-counts.js';
import type { DatagramAccess } from '../io/datagrams/datagram-access.js';
import { monotonicMs } from '../io/time/timer-driver.js';
import { getLogger } from '../log/logger.js';
import { SCRIPTS_PORT } from '../scripts/published.js';
import { WorkerScripts } from '../scripts/worker-scripts.js';
import { ThreadLocalClusterManagerStats } from '../stats/layouts/cluster.js';
import type { Scope } from '../stats/thread-stats.js';
import { ClusterManager } from '../upstream/cluster-manager.js';
import type { ClusterBalancer } from '../upstream/load-balancer/load-balancer.js';
import { type HostRefusal, REQUESTED_HOSTS_PORT } from '../upstream/requested-hosts/host-request.js';
import { SharedTokenBuckets } from '../upstream/shared-token-buckets.js';
import type { UpstreamThread } from '../upstream/upstream-thread.js';
import { AwaitedClusters, MISSING_CLUSTERS_PORT } from './clusters/awaited-clusters.js';
import { callsOf, timersOf } from './extensions/extension-thread.js';
import { FilterConfigs } from './extensions/filter-configs.js';
import { GenericSecrets } from './extensions/generic-secrets.js';
import type { WorkerPorts } from './extensions/worker-ports.js';
import { WorkerListeners } from './listeners/worker-listeners.js';
import type { FromWorker, ListenerSnapshot, Snapshot, WorkerStart } from './messages/messages.js';
import { SECRETS_PORT } from './messages/published-secrets.js';
import { ServerHealth } from './messages/server-health.js';
import { ON_DEMAND_PORT } from './routes/awaited-hosts.js';
import { RouteTables } from './routes/route-tables.js';
import { specifiersOf } from './routes/specifiers.js';
import type { ThreadScopes } from './stats/thread-scopes.js';

export interface ConfigurationContext {
  readonly thread: UpstreamThread;
  readonly datagrams: DatagramAccess;
  readonly extensions: ExtensionRegistry;
  readonly scopes: ThreadScopes;
  readonly ports: WorkerPorts;
  readonly accessLogFiles: AccessLogFiles;
  /** Sends to the primary. */
  readonly send: (message: FromWorker) => void;
  /** Ends the thread because of `error`; another one replaces it. */
  readonly end: (error: unknown) => void;
}

const logger = getLogger('main');

export class WorkerConfiguration {
  readonly listeners: WorkerListeners;
  readonly scripts: WorkerScripts;
  readonly #context: ConfigurationContext;
  readonly #isReplacement: boolean;
  readonly #clusters: ClusterManager;
  readonly #filterConfigs = new FilterConfigs();
  readonly #routes: RouteTables;
  readonly #routeCounts: RouteCountsSet;
  readonly #inflated: Scope;

  constructor(start: WorkerStart, context: ConfigurationContext) {
    const { accessLogFiles, datagrams, extensions, ports, scopes, thread } = context;
    this.#context = context;
    this.#isReplacement = start.isReplacement;
    this.#inflated = scopes.find(`thread_local_cluster_manager.worker_${start.index}.`, ThreadLocalClusterManagerStats);
    this.#clusters = new ClusterManager(thread);
    ports.port(REQUESTED_HOSTS_PORT).onState = (refusals) => {
      for (const refusal of refusals as readonly HostRefusal[]) this.#clusters.hostRefused(refusal);
    };
    this.#routeCounts = new RouteCountsSet(thread.stats, (prefix, layout) => scopes.find(prefix, layout));
    const matchers = requestMatchers(thread.stats);
    const specifiers = specifiersOf(extensions, { ...thread, clusters: this.#clusters });
    const tableThread = {
      clusters: this.#clusters,
      runtime: thread.runtime,
      routeCounts: this.#routeCounts,
      matchers,
      specifiers,
    };
    this.#routes = new RouteTables(tableThread, ports.port(ON_DEMAND_PORT));
    this.scripts = new WorkerScripts(ports.port(SCRIPTS_PORT));
    const tokenBuckets = new SharedTokenBuckets(start.tokenBuckets, start.index + 1, monotonicMs);
    setLocalNode(start.node);
    const workerContext: WorkerContext = {
      ...thread,
      clusters: this.#clusters,
      missingClusters: new AwaitedClusters(ports.port(MISSING_CLUSTERS_PORT), () => thread.transport.beginTurn()),
      calls: callsOf(thread, this.#clusters, start.identity.ip),
      timers: timersOf(thread),
      routes: this.#routes,
      routeCounts: this.#routeCounts,
      matchers,
      specifiers,
      filterConfigs: this.#filterConfigs,
      scripts: this.scripts,
      secrets: new GenericSecrets(ports.port(SECRETS_PORT)),
      datagrams,
      accessLogFiles,
      extensions,
      headerBlocks: headerBlocks(thread.memory),
      identity: start.identity,
      defaultTracer: start.defaultTracer,
      node: start.node,
      port: (name) => ports.port(name),
      serverHealth: new ServerHealth(start.health),
      scope: (prefix, layout) => scopes.find(prefix, layout),
      tokenBucket: (name, rate) => tokenBuckets.open(name, rate),
    };
    this.#clusters.filtersOf = (snapshot) => clusterFilters(snapshot, workerContext);
    this.listeners = new WorkerListeners(workerContext, start);
  }

  /** Applies a snapshot and notifies the primary. Yields during long work so that requests are served. */
  *apply(snapshot: Snapshot): Generator<void, void> {
    const { scopes, send, thread } = this.#context;
    try {
      thread.stats.addChunks(snapshot.chunks);
      scopes.add(snapshot.statScopes);
      const balancers: ClusterBalancer[] = [];
      for (const cluster of snapshot.clusters) balancers.push(yield* this.#clusters.prepare(cluster));
      for (const [index, cluster] of snapshot.clusters.entries()) this.#clusters.apply(cluster, balancers[index]);
      yield* this.#clusters.applyPacked(snapshot.packedClusters);
      this.#filterConfigs.apply(snapshot);
      yield* this.#routes.prepare(snapshot);
      yield* this.listeners.prepare(snapshot);
      this.#routes.apply(snapshot);
      for (const listener of snapshot.listeners) this.#applyListener(listener, snapshot);
      this.listeners.applyRoutes(snapshot.inlineRoutes);
      if (snapshot.removedListeners.length > 0) {
        thread.transport.beginTurn();
        this.listeners.remove(snapshot.removedListeners);
      }
      scopes.remove(snapshot.removedStatScopes);
      this.#routeCounts.remove(snapshot.removedStatScopes);
      this.#routes.remove(snapshot);
      this.#filterConfigs.remove(snapshot);
      for (const name of snapshot.removedClusters) this.#clusters.remove(name);
      this.#inflated.set(ThreadLocalClusterManagerStats.at.clusters_inflated, this.#clusters.size);
      send({ kind: 'applied', version: snapshot.version });
    } catch (error) {
      logger.error({ err: error }, `snapshot ${snapshot.version} cannot be used`);
      this.#clusters.notApplied(clusterNames(snapshot));
      this.#failed(snapshot, messageOf(error));
      if (!this.#endsThread(snapshot, error)) return;
      setImmediate(() => this.#context.end(error));
    }
  }

  /** Ends all connections. */
  end(): void {
    this.listeners.end();
    this.#clusters.end();
  }

  /** Called before the thread dies of `error`. Ends all connections, which are counted and logged. */
  abandon(error: unknown): void {
    this.listeners.abandon(error);
    try {
      this.#clusters.end();
    } catch {
      // The cause is already reported, and log lines must still be written.
    }
  }

  /** Applies a listener. One that cannot be built does not affect the others. */
  #applyListener(listener: ListenerSnapshot, snapshot: Snapshot): void {
    try {
      this.listeners.apply(listener);
    } catch (error) {
      if (this.#endsThread(snapshot, error)) throw error;
      logger.error({ err: error }, `listener '${shownName(listener.name)}' cannot be built`);
      this.#failed(snapshot, `listener '${listener.name}' cannot be built: ${messageOf(error)}`);
      if (this.#isReplacement && snapshot.isComplete) this.listeners.applyLater(listener);
    }
  }

  /**
   * Returns whether the error ends the thread. A replacement worker that has no descriptors for its listen sockets ends, so that its
   * own replacement retries: otherwise clients would wait on sockets from which no thread accepts. When this happens while the server
   * starts, the whole server ends instead.
   */
  #endsThread({ isComplete }: Snapshot, error: unknown): boolean {
    return this.#isReplacement && isComplete && isDescriptorShortage(error);
  }

  #failed({ isComplete, version }: Snapshot, message: string): void {
    this.#context.send({ kind: 'failed', version, isComplete, message });
  }
}

function clusterNames({ clusters, packedClusters }: Snapshot): string[] {
  return [...clusters.map(({ spec }) => spec.name), ...packedClusters.map(({ name }) => name)];
}
