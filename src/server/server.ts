// The primary: brings a server up from its configuration, keeps its workers alive, and takes it down.
//
//   clusters (names resolved) → listeners (sockets bound) → workers (snapshot built) → LIVE … shutdown

import { setTimeout as setTimeoutPromise } from 'node:timers/promises';
import type { ContentionSums } from '../common/contention.js';
import { durationMs } from '../common/duration.js';
import { inTurns, nextTurn } from '../common/next-turn.js';
import type { ProfileCommand, ProfileReply } from '../common/profiling/profile.js';
import { ProfiledThread } from '../common/profiling/profiled-thread.js';
import { Random } from '../common/random.js';
import { type HealthFailure, ServerHealth } from '../common/server-health.js';
import { type ThreadMemory, threadMemory } from '../common/thread-memory.js';
import { withinMs } from '../common/within-ms.js';
import type { Bootstrap } from '../config/generated/api.js';
import type { LoadCounts } from '../config/load/load.js';
import type { EventStream, PostEndpoint } from '../extensions/factories.js';
import { EXTENSIONS } from '../extensions/index.js';
import { ExtensionRegistry } from '../extensions/registry.js';
import { loadShim, type NativeShim } from '../io/shim.js';
import { monotonicMs, TimerDriver } from '../io/timer-driver.js';
import { ConnectionLimit, GLOBAL_CONNECTION_LIMIT, UNLIMITED } from '../listener/connection-limit.js';
import type { LevelRules } from '../log/level-rules.js';
import { Level } from '../log/levels.js';
import { getLogger, type LoggingOptions, levelRules, reopenLog, setLevelRules } from '../log/logger.js';
import { LayeredRuntime } from '../runtime/layered-runtime.js';
import { ClusterManagerStats, ThreadLocalClusterManagerStats } from '../stats/layouts/cluster.js';
import { FilesystemStats } from '../stats/layouts/filesystem.js';
import { HandOverStats } from '../stats/layouts/hand-over.js';
import { ListenerManagerStats } from '../stats/layouts/listener.js';
import { RuntimeStats } from '../stats/layouts/runtime.js';
import { ServerStats } from '../stats/layouts/server.js';
import { statsSettings } from '../stats/settings/settings.js';
import { StatsStore } from '../stats/store.js';
import type { Scope, ScopeRef } from '../stats/thread-stats.js';
import { DnsResolver } from '../upstream/dns/resolver.js';
import { SharedWords, SharedWordsOwner } from '../upstream/shared-words.js';
import { ON_DEMAND_PORT } from '../worker/awaited-hosts.js';
import type { WorkerConnections, WorkerStart } from '../worker/messages.js';
import { ServerConfigSources } from '../xds/config-sources.js';
import type { DynamicOptions } from '../xds/reading/settings.js';
import type { ConfigSources } from '../xds/subscription.js';
import { fullNode } from './admin/full-node.js';
import { ClusterDiscoveryService } from './clusters/cds.js';
import { ClusterSet } from './clusters/cluster-set.js';
import { HostWatch } from './clusters/host-watch.js';
import { PrimaryCalls } from './clusters/primary-calls.js';
import { clusterFacts, type PrimaryCluster } from './clusters/primary-cluster.js';
import { type Drain, DrainManager, type DrainOptions } from './draining/drain-manager.js';
import { type OpenConnections, openConnections } from './draining/open-connections.js';
import { FilterConfigSet } from './filter-configs/filter-config-set.js';
import type { InitManager } from './init/init-manager.js';
import { FilterParts } from './listeners/filter-parts.js';
import { ListenerDiscovery } from './listeners/lds.js';
import { ListenerSet, type ListenerSetHost } from './listeners/listener-set.js';
import type { PrimaryListener } from './listeners/primary-listener.js';
import type { ReloadPlan } from './reload/comparison.js';
import { DepartingClusters } from './reload/departing-clusters.js';
import type { EpochFacts } from './restart/epoch-facts.js';
import { StatsImport } from './restart/stats-import.js';
import { Succession, type SuccessionHost } from './restart/succession.js';
import { PrimaryRouteSet } from './routes/primary-route-set.js';
import { RtdsLayers } from './runtime/rtds-layers.js';
import { type StartSteps, StartUp } from './start/start-up.js';
import { ServerState } from './state.js';
import { ContentionWatch } from './stats/contention-watch.js';
import { ProcessStats } from './stats/server-stats.js';
import { StatsFlush } from './stats/stats-flush.js';
import { StatsSinks } from './stats/stats-sinks.js';
import { Watchdog } from './stats/watchdog.js';
import { PrimaryPorts } from './workers/primary-ports.js';
import { type SnapshotParts, Snapshots } from './workers/snapshots.js';
import { WorkerScopes } from './workers/worker-scopes.js';
import { WorkerSet } from './workers/worker-set.js';

export interface ServerOptions {
  readonly bootstrap: Bootstrap;
  readonly concurrency: number;
  readonly revision: string;
  readonly logging: Omit<LoggingOptions, 'threadId'>;
  readonly fileFlush: { readonly flushMinBytes: number; readonly flushIntervalMs: number };
  /** Counts contention (--enable-mutex-tracing). */
  readonly tracesContention: boolean;
  /** --drain-time-s and --drain-strategy: how drains are that say nothing else. */
  readonly draining: Pick<DrainOptions, 'timeMs' | 'strategy'>;
  /** Connections go to the child process and come from the parent (--hand-over-connections). */
  readonly handsOverConnections: boolean;
  /** The server's own address, for x-forwarded-for of clients on this machine. */
  readonly localIp: string;
  /** What was counted while the configuration was loaded. */
  readonly counts: LoadCounts;
  readonly dynamic: DynamicOptions;
  /** Adds an endpoint that streams events to the admin interface. */
  readonly serveEvents: (stream: EventStream) => void;
  /** Adds an endpoint that takes a body to the admin interface; what it returns removes it. */
  readonly serveEndpoint: (endpoint: PostEndpoint) => () => void;
  /** Values of --stats-tag. */
  readonly statsTags: readonly string[];
  readonly epoch: EpochFacts;
  /** Resolves when the stats of a parent process have been imported; undefined without hot restarts. */
  readonly refreshParentStats: (() => Promise<void>) | undefined;
}

const DEFAULT_FLUSH_MS = 5000;
/** How long a thread may take for a profile. */
const PROFILE_MS = 5000;
/** How long an answer waits for workers to stop listeners: they do between two turns. */
const STOP_WAIT_MS = 2000;
/** How long workers may take for a change of the configuration before it is taken back. */
const SETTLE_MS = 20_000;

const logger = getLogger('main');

export class Server {
  readonly store: StatsStore;
  readonly runtime: LayeredRuntime;
  readonly routes: PrimaryRouteSet;
  /** Discovered configurations of HTTP filters. */
  readonly filterConfigs: FilterConfigSet;
  readonly startedMs = monotonicMs();
  readonly #options: ServerOptions;
  readonly #shim: NativeShim;
  readonly #contention: ContentionWatch | undefined;
  readonly #health = new ServerHealth();
  readonly #words = new SharedWordsOwner();
  readonly #listenersBlock = this.#words.allocateListener();
  #connectionLimit: ConnectionLimit | undefined;
  readonly #resolver = new DnsResolver();
  readonly #timers: TimerDriver;
  readonly #snapshots: Snapshots;
  readonly #processStats: ProcessStats;
  readonly #listenerManagerStats: Scope;
  readonly #serverStats: Scope;
  readonly #inflated: Scope;
  readonly #watchdog: Watchdog;
  readonly #extensions = new ExtensionRegistry(EXTENSIONS);
  readonly #scopes: Record<string, ScopeRef> = {};
  readonly #workerScopes: WorkerScopes;
  #state = ServerState.PreInitializing;
  readonly #statsFlush: StatsFlush;
  readonly #calls: PrimaryCalls;
  readonly #hostWatch: HostWatch;
  readonly #sources: ServerConfigSources;
  readonly #rtds = new RtdsLayers();
  readonly #clusters: ClusterSet;
  readonly #clusterDiscovery: ClusterDiscoveryService;
  readonly #listeners: ListenerSet;
  readonly #departingClusters: DepartingClusters;
  readonly #listenerDiscovery: ListenerDiscovery | undefined;
  readonly #ports: PrimaryPorts;
  readonly #filterParts: FilterParts;
  readonly #workers: WorkerSet;
  readonly #drains: DrainManager;
  readonly #profiled = new ProfiledThread('primary');
  #sinks = new StatsSinks([]);
  #flushTimer: NodeJS.Timeout | undefined;
  readonly #startUp: StartUp;
  readonly #ended = new AbortController();
  readonly #import: StatsImport;
  /** What passes to a child process and comes from a parent. */
  readonly succession: Succession;

  constructor(options: ServerOptions) {
    const { concurrency } = options;
    this.#options = options;
    this.#shim = loadShim();
    this.#contention = options.tracesContention ? new ContentionWatch(concurrency) : undefined;
    const settings = statsSettings(options.bootstrap.stats_config, options.statsTags);
    this.store = new StatsStore({ workers: concurrency, settings });
    this.#workerScopes = new WorkerScopes(this.store, this.#scopes);
    this.#import = new StatsImport(this.store, (name, amount) => this.#sinks.credit(name, amount));
    this.#timers = new TimerDriver((error) => this.#internalError('a timer failed', error));
    this.#snapshots = new Snapshots(this.store, this.#words, concurrency);
    this.#processStats = new ProcessStats(this.store, concurrency, options.revision, options.epoch);
    this.#processStats.countConfiguration(options.counts);
    const clusterManagerStats = this.#addScope('cluster_manager.', ClusterManagerStats);
    this.#listenerManagerStats = this.#addScope('listener_manager.', ListenerManagerStats);
    this.#addScope('filesystem.', FilesystemStats);
    this.#serverStats = this.#addScope('server.', ServerStats);
    if (options.handsOverConnections) this.#addScope('server.hand_over.', HandOverStats);
    this.#inflated = this.#addScope('thread_local_cluster_manager.main_thread.', ThreadLocalClusterManagerStats);
    for (let index = 0; index < concurrency; index++) {
      this.#addScope(`thread_local_cluster_manager.worker_${index}.`, ThreadLocalClusterManagerStats);
    }
    this.#watchdog = new Watchdog(this.store, concurrency, options.bootstrap.watchdogs);
    this.runtime = new LayeredRuntime({
      config: options.bootstrap.layered_runtime,
      serviceCluster: options.bootstrap.node?.cluster ?? '',
      stats: this.#addScope('runtime.', RuntimeStats),
      changed: (snapshot) => {
        this.#workers.broadcast({ kind: 'runtime', snapshot });
        this.#connectionLimit?.update();
      },
    });
    this.#statsFlush = new StatsFlush(this.store, {
      begin: async () => {
        await options.refreshParentStats?.();
        await this.updateStats();
      },
      // Until then the merged histograms would lack the names that workers have yet to bring.
      mergesHistograms: () => this.#state === ServerState.Live,
      end: () => this.#endFlush(),
    });
    this.#clusters = new ClusterSet(
      {
        store: this.store,
        words: this.#words,
        resolver: this.#resolver,
        timers: this.#timers,
        random: new Random(),
        runtime: this.runtime.runtime,
        now: monotonicMs,
        managerStats: clusterManagerStats,
        inflated: this.#inflated,
        sources: () => this.#sources,
      },
      {
        changed: (cluster) => {
          this.#calls.clusterChanged(cluster);
          this.#hostWatch.clusterChanged(cluster);
        },
        removed: (name) => {
          this.#calls.clusterRemoved(name);
          this.#hostWatch.clusterRemoved(name);
        },
        publish: ({ clusters, removedClusters, retired }) => {
          for (const what of retired) this.#snapshots.retire(what);
          this.#publish({ clusters, removedClusters });
        },
      },
    );
    this.#clusterDiscovery = new ClusterDiscoveryService(this.#clusters);
    this.#ports = new PrimaryPorts(concurrency, (message) => this.#workers.broadcast(message));
    this.#drains = new DrainManager({
      timers: this.#timers,
      now: monotonicMs,
      listeners: () => [...this.#listeners.byName.values(), ...this.#listeners.formers.listeners()],
      broadcast: (message) => this.#workers.broadcast(message),
      stopListeners: (inboundOnly, acceptRest) => this.stopListeners(inboundOnly, acceptRest),
      changed: () => this.#countDraining(),
    });
    this.#workers = new WorkerSet(concurrency, {
      startData: (index) => this.#startData(index),
      applied: (index, version) => this.#snapshots.applied(index, version),
      failed: (version, message) => this.#snapshots.failed(version, message),
      extension: (index, name, message) => this.#ports.receive(index, name, message),
      died: (index) => {
        this.#ports.workerDied(index);
        this.store.workerDied(index);
        this.#words.forgetWorker(index + 1);
        this.#watchdog.forget(index);
        this.#serverStats.increment(ServerStats.at.envoy_bug_failures);
      },
    });
    this.#hostWatch = new HostWatch(this.#clusters.byName);
    this.#calls = new PrimaryCalls(
      this.#shim,
      this.store,
      this.#words,
      this.#clusters.byName,
      this.runtime.runtime,
      (what, error) => this.#internalError(what, error),
    );
    this.#sources = new ServerConfigSources({
      bootstrap: options.bootstrap,
      store: this.store,
      hosts: this.#hostWatch,
      node: () => fullNode(options.bootstrap.node ?? {}, EXTENSIONS, options.dynamic.disabledExtensions),
      dynamic: options.dynamic,
      counted: (counts) => this.#processStats.countDynamic(counts),
      failed: (what, error) => this.#internalError(what, error),
    });
    this.filterConfigs = new FilterConfigSet({
      sources: this.#sources,
      store: this.store,
      scopes: this.#workerScopes,
      publish: (parts) => this.#publish(parts),
    });
    this.routes = new PrimaryRouteSet({
      sources: this.#sources,
      store: this.store,
      clusterProblem: (name) => this.#clusters.problemOfRoutesTo(name),
      publish: (parts) => this.#publish(parts),
      onDemand: this.#ports.port(ON_DEMAND_PORT),
    });
    this.#filterParts = new FilterParts(this.#extensions, this.#ports, options.serveEndpoint, {
      routes: this.routes,
      filterConfigs: this.filterConfigs,
    });
    this.#listeners = new ListenerSet(this.#listenerSetHost(), this.#listenerManagerStats);
    this.#departingClusters = new DepartingClusters(this.#clusters, this.#listeners.formers);
    const { lds_config: lds } = options.bootstrap.dynamic_resources ?? {};
    this.#listenerDiscovery = lds && new ListenerDiscovery(lds, this.#sources, this.#listeners);
    this.succession = new Succession(this.#successionHost());
    this.#startUp = new StartUp(this.#startSteps(), this.#ended.signal);
  }

  /** Where everything that changes while the server runs comes from. */
  get sources(): ConfigSources {
    return this.#sources;
  }

  get epoch(): EpochFacts {
    return this.#options.epoch;
  }

  get state(): ServerState {
    return this.#state === ServerState.Live && this.#health.isFailing ? ServerState.Draining : this.#state;
  }

  /** It has all that it needs and takes traffic, whether health checks pass or not. */
  get isLive(): boolean {
    return this.#state === ServerState.Live;
  }

  /** Whether health checks are to fail, for one of the reasons that there are: all threads see it at once. */
  setHealth(failure: HealthFailure, isFailing: boolean): void {
    this.#health.set(failure, isFailing);
    this.#processStats.setLive(!this.#health.isFailing);
  }

  get clusters(): ReadonlyMap<string, PrimaryCluster> {
    return this.#clusters.byName;
  }

  /** Versions of clusters that are not in use yet. */
  get warmingClusters(): ReadonlyMap<string, PrimaryCluster> {
    return this.#clusters.warming;
  }

  get clusterDiscovery(): ClusterDiscoveryService {
    return this.#clusterDiscovery;
  }

  /** The active ones. */
  get listeners(): ReadonlyMap<string, PrimaryListener> {
    return this.#listeners.byName;
  }

  get listenerSet(): ListenerSet {
    return this.#listeners;
  }

  /** Undefined without dynamic_resources.lds_config. */
  get listenerDiscovery(): ListenerDiscovery | undefined {
    return this.#listenerDiscovery;
  }

  /**
   * Resolves when the server is live, or has been shut down before it was. Rejects, with everything closed, when a
   * listener's address cannot be had.
   */
  async start(): Promise<void> {
    if (this.#isEnding) return;
    try {
      this.runtime.watch();
      await this.#createSinks();
      const { secrets = [] } = this.#options.bootstrap.static_resources ?? {};
      if (!this.#isEnding) logger.info(`loading ${secrets.length} static secret(s)`);
      await this.#startUp.run();
    } catch (error) {
      await this.shutDown();
      throw error;
    }
    if (this.#isEnding) return;
    // What loading the configuration has used stays in the C library's heap otherwise.
    this.#shim.trimMemory();
    this.#watchdog.start();
    this.#processStats.recordInitialization(monotonicMs() - this.startedMs);
    this.#flushTimer = setInterval(() => this.#flushInterval(), this.#flushIntervalMs);
  }

  /** What it waits for before it is live; undefined when that is nothing. */
  get waitingFor(): InitManager | undefined {
    return this.#startUp.waitingFor;
  }

  /** Why the configuration cannot be reloaded now; undefined: it can. */
  get obstacleToReload(): string | undefined {
    if (!this.isLive || this.#isEnding) return 'the server is not live';
    return this.succession.isReplaced ? 'another process takes over from this one' : undefined;
  }

  /** Takes the server to another configuration, or rejects with everything as it was. */
  async reload(plan: ReloadPlan): Promise<void> {
    const [{ carryOut }, { changesOf }] = await Promise.all([
      import('./reload/carry-out.js'),
      import('./reload/changes.js'),
    ]);
    let settled = this.#snapshots.version;
    await carryOut(
      changesOf(plan, {
        runtime: this.runtime,
        clusters: this.#clusters,
        departing: this.#departingClusters,
        listeners: this.#listeners,
        ended: this.#ended.signal,
        settle: async () => {
          const since = settled;
          // Changes of this turn are published together at its end.
          await nextTurn();
          this.#publish({});
          settled = this.#snapshots.version;
          await withinMs(this.#snapshots.outcome(since), SETTLE_MS, 'a worker has not taken the change in time');
        },
      }),
    );
  }

  /** Brings gauges that the primary keeps up to date; done before stats are read. Others get turns of the loop meanwhile. */
  async updateStats(): Promise<void> {
    await inTurns(this.#clusters.updateGauges());
    const connections = this.#connectionCount;
    this.#processStats.update(this.state, connections, this.#import.holdings, this.#resolver.counters);
  }

  /** One interval of histograms ends; resolves when all of them are merged. */
  flushStats(): Promise<void> {
    return this.#statsFlush.run();
  }

  /**
   * No listener, or none for inbound traffic, accepts from now on; connections that there are go on. Resolves when the sockets
   * are closed, or when a worker that is too busy has kept them open for a while. With `acceptRest` what waits at the sockets is
   * accepted first.
   */
  async stopListeners(inboundOnly: boolean, acceptRest: boolean): Promise<void> {
    await this.#stop(this.#listeners.stop(inboundOnly), acceptRest);
  }

  /** Of this process alone. */
  get #connectionCount(): number {
    return this.#listeners.connectionCount((name) => this.#import.shareOf(name));
  }

  async #stop(listeners: readonly PrimaryListener[], acceptRest: boolean): Promise<void> {
    const ids = listeners.map((listener) => listener.id);
    const close = () => {
      for (const listener of listeners) listener.close();
    };
    // With the copies here a socket would still take connections after the workers have seen the last one, and reset them.
    if (acceptRest) await this.#whenApplied(close);
    this.#workers.broadcast({ kind: 'stop-listeners', ids, acceptRest });
    // A worker that was about to begin has made its copies of the sockets by then.
    await this.#whenApplied(close);
  }

  /** Asks connections to end, for a time: see DrainManager. Time and strategy are those of the command line if left out. */
  startDrain(options: Omit<DrainOptions, 'timeMs' | 'strategy'> & Partial<DrainOptions>): Drain {
    return this.#drains.start({ ...this.#options.draining, ...options });
  }

  get drains(): DrainManager {
    return this.#drains;
  }

  /** What the workers have open now. */
  async openConnections(): Promise<OpenConnections> {
    const answers = await this.#workers.ask<WorkerConnections>((reply) => ({ kind: 'connections', reply }));
    return openConnections(answers, this.#options.concurrency);
  }

  get concurrency(): number {
    return this.#options.concurrency;
  }

  /** How often threads waited for each other; undefined unless --enable-mutex-tracing asks to count it. */
  get contention(): ContentionSums | undefined {
    return this.#contention?.sums;
  }

  /** stats_flush_on_admin: stats are flushed when the admin interface is asked for them, and at no other time. */
  get flushesStatsOnAdmin(): boolean {
    return this.#options.bootstrap.stats_flush_on_admin === true;
  }

  /** The limit of all connections of the process, for connections that the primary accepts. */
  globalConnectionLimit(): ConnectionLimit {
    const limit = this.runtime.runtime.integer(GLOBAL_CONNECTION_LIMIT, UNLIMITED);
    this.#connectionLimit ??= new ConnectionLimit(new SharedWords(this.#words.handle(0)), this.#listenersBlock, limit);
    return this.#connectionLimit;
  }

  /** Levels of loggers, in all threads and in those to come. */
  setLevelRules(rules: LevelRules): void {
    setLevelRules(rules);
    this.#workers.broadcast({ kind: 'log-levels', rules });
  }

  /** The heaps of all threads; one that does not answer is left out. */
  async memory(): Promise<ThreadMemory[]> {
    const workers = await this.#workers.ask<ThreadMemory>((reply) => ({ kind: 'memory', reply }));
    return [threadMemory('primary'), ...workers];
  }

  /** What every thread answers to a command about profiles, the primary first. */
  async profile(command: ProfileCommand): Promise<ProfileReply[]> {
    const question = this.#workers.ask<ProfileReply>((reply) => ({ kind: 'profile', command, reply }), PROFILE_MS);
    const primary = await this.#profiled.run(command);
    const answers = new Map((await question).map((answer) => [answer.thread, answer]));
    const workers = Array.from({ length: this.#options.concurrency }, (_, index) => {
      const thread = `worker_${index}`;
      return answers.get(thread) ?? { thread, error: 'it has not answered in time' };
    });
    return [primary, ...workers];
  }

  /** Opens log files anew, in all threads. */
  reopenLogs(): void {
    reopenLog();
    this.#workers.broadcast({ kind: 'reopen-logs' });
  }

  /** Ends all workers and closes everything. Resolves when it is done. */
  async shutDown(): Promise<void> {
    if (this.#isEnding) return;
    this.#ended.abort();
    clearInterval(this.#flushTimer);
    this.#watchdog.close();
    this.#rtds.close();
    this.runtime.close();
    this.#filterParts.close();
    await this.#sinks.close();
    this.#drains.close();
    await this.#sources.close();
    this.#calls.close();
    this.#clusters.stop();
    this.#resolver.close();
    await this.#workers.end();
    // A worker that is still starting makes its copies of these descriptors.
    this.#listeners.close();
    this.#contention?.close();
    this.#timers.close();
  }

  /** Calls back when the workers have handled what they have been told; resolves then, or when one is too busy for it. */
  async #whenApplied(callback: () => void): Promise<void> {
    this.#publish({});
    const applied = new Promise<void>((resolve) =>
      this.#snapshots.whenApplied(() => {
        callback();
        resolve();
      }),
    );
    const timeout = new AbortController();
    await Promise.race([
      applied,
      setTimeoutPromise(STOP_WAIT_MS, undefined, { signal: timeout.signal }).catch(() => {}),
    ]);
    timeout.abort();
  }

  #startSteps(): StartSteps {
    const { clusters = [], listeners = [] } = this.#options.bootstrap.static_resources ?? {};
    const { cds_config: cds } = this.#options.bootstrap.dynamic_resources ?? {};
    return {
      startPrimaryClusters: (init) => this.#clusters.loadPrimary(clusters, init),
      startRuntimeLayers: (init) => {
        const { layers = [] } = this.#options.bootstrap.layered_runtime ?? {};
        this.#rtds.start(layers, this.runtime, this.#sources, init);
      },
      startSecondaryClusters: (init) => this.#clusters.loadSecondary(clusters, init),
      startClusterDiscovery: cds && ((init) => this.#clusterDiscovery.start(cds, this.#sources, init)),
      clustersInitialized: () => this.#clusters.initialized(),
      startListeners: (init) => this.#listeners.open(listeners, init),
      startListenerDiscovery: this.#listenerDiscovery && ((init) => this.#listenerDiscovery?.start(init)),
      startWorkers: async () => {
        this.#snapshots.make({}, false);
        await this.#workers.start();
        this.#listeners.startListening();
        this.#listenerManagerStats.set(ListenerManagerStats.at.workers_started, 1);
      },
      entered: (state) => {
        this.#state = state;
      },
    };
  }

  #listenerSetHost(): ListenerSetHost {
    const server = this;
    return {
      shim: this.#shim,
      store: this.store,
      words: this.#words,
      extensions: this.#extensions,
      parts: this.#filterParts,
      workers: this.concurrency,
      scopes: this.#workerScopes,
      parent: this.#options.epoch.parentSockets,
      get isReplaced() {
        return server.succession.isReplaced;
      },
      drainOf: (listener) => this.#drains.windowOf(listener),
      drain: (ids, over) => this.#drains.leave(ids, this.#options.draining, over),
      drainingChanged: () => this.#countDraining(),
      publish: (parts) => this.#publish(parts),
      whenApplied: (callback) => this.#snapshots.whenApplied(callback),
      send: (worker, message) => this.#workers.send(worker, message),
      stop: (listeners, acceptRest) => this.#stop(listeners, acceptRest),
      openConnections: () => this.openConnections(),
    };
  }

  #successionHost(): SuccessionHost {
    const server = this;
    return {
      shim: this.#shim,
      store: this.store,
      concurrency: this.concurrency,
      listeners: this.#listeners,
      import: this.#import,
      get isEnding() {
        return server.#isEnding;
      },
      get connectionCount() {
        return server.#connectionCount;
      },
      send: (worker, message) => this.#workers.send(worker, message),
      flushStats: () => this.flushStats(),
      given: (section, index) => this.#sinks.given(section, index),
      stop: (listeners, acceptRest) => this.#stop(listeners, acceptRest),
      startDrain: (options) => this.startDrain(options),
      openConnections: () => this.openConnections(),
    };
  }

  #countDraining(): void {
    let draining = this.#listeners.formers.listenerCount;
    for (const listener of this.#listeners.byName.values()) if (this.#drains.isDraining(listener)) draining++;
    this.#listenerManagerStats.set(ListenerManagerStats.at.total_listeners_draining, draining);
  }

  async #createSinks(): Promise<void> {
    const context = {
      calls: this.#calls,
      hosts: this.#hostWatch,
      node: { ...this.#options.bootstrap.node, user_agent_name: 'baton' },
      flushIntervalMs: this.#flushIntervalMs,
      clusters: () => clusterFacts(this.#clusters.byName.values()),
      serveEvents: this.#options.serveEvents,
    };
    this.#sinks = await StatsSinks.create(this.#options.bootstrap.stats_sinks ?? [], this.#extensions, context);
    if (!this.#isEnding) return;
    // It was ended while their code was loaded.
    await this.#sinks.close();
    this.#calls.close();
  }

  /** Everything that a worker begins with, as it is now. */
  #startData(index: number): WorkerStart {
    const { bootstrap, concurrency, fileFlush, localIp, logging } = this.#options;
    return {
      index,
      workers: concurrency,
      stats: this.store.attachment(index),
      words: { ...this.#words.handle(index + 1), contention: this.#contention?.bufferOf(index) },
      listenersBlock: this.#listenersBlock,
      logging,
      levelRules: levelRules(),
      health: this.#health.buffer,
      extensionStates: this.#ports.states,
      identity: { ip: localIp, cluster: bootstrap.node?.cluster ?? '', node: bootstrap.node?.id ?? '' },
      fileFlush,
      runtime: this.runtime.snapshot,
      heartbeat: this.#watchdog.heartbeat,
      snapshot: this.#snapshots.make(
        {
          scopes: this.#scopes,
          clusters: this.#clusters.snapshots(),
          ...this.routes.snapshots(),
          ...this.filterConfigs.snapshots(),
          listeners: this.#listeners.snapshots(index),
        },
        true,
      ),
    };
  }

  #addScope(prefix: string, layout: Parameters<StatsStore['addScope']>[1]): Scope {
    const ref = this.store.addScope(prefix, layout);
    this.#scopes[prefix] = ref;
    return this.store.scope(ref);
  }

  get #flushIntervalMs(): number {
    const { stats_flush_interval: interval } = this.#options.bootstrap;
    return interval === undefined ? DEFAULT_FLUSH_MS : durationMs(interval);
  }

  #flushInterval(): void {
    if (this.flushesStatsOnAdmin) {
      this.store.reserve();
      this.#tidyStats();
    } else if (this.#statsFlush.isRunning) {
      this.#processStats.countDroppedFlush();
    } else {
      this.flushStats().catch((error) => this.#internalError('a flush of the stats failed', error));
    }
  }

  async #endFlush(): Promise<void> {
    if (!this.succession.isReplaced) await this.#sinks.flush(this.store);
    this.#import.flushed();
    this.#tidyStats();
  }

  /** What should not happen, and was caught. */
  #internalError(what: string, error: unknown): void {
    this.#serverStats.increment(ServerStats.at.envoy_bug_failures);
    logger.exception(Level.Error, what, error);
  }

  /** Memory that nobody uses any more is given back, and memory that was added reaches the workers. */
  #tidyStats(): void {
    this.#snapshots.reclaim();
    if ((this.#snapshots.hasNewChunks || this.#snapshots.needsVersion) && !this.#isEnding) this.#publish({});
  }

  get #isEnding(): boolean {
    return this.#ended.signal.aborted;
  }

  /** A new version for the workers, once there are any: those that begin get everything. */
  #publish(parts: SnapshotParts): void {
    if (this.#workers.isStarted)
      this.#workers.broadcast({ kind: 'snapshot', snapshot: this.#snapshots.make(parts, false) });
  }
}
