// The primary: brings a server up from its configuration, keeps its workers alive, and takes it down.
//
//   clusters (names resolved) → listeners (sockets bound) → workers (snapshot built) → LIVE … shutdown

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { FileLogOptions } from '../access-log/file-log.js';
import { inTurns } from '../common/next-turn.js';
import { inlineMore } from '../common/optimizer.js';
import { HealthFailure, ServerHealth } from '../common/server-health.js';
import type { Bootstrap, Node } from '../config/generated/api.js';
import type { LoadCounts } from '../config/load/load.js';
import { watchdogsOf } from '../config/watchdogs.js';
import type { EventStream, PostEndpoint } from '../extensions/factories.js';
import { EXTENSIONS } from '../extensions/index.js';
import { ExtensionRegistry } from '../extensions/registry.js';
import { loadShim, type NativeShim } from '../io/shim.js';
import { collectStartGarbage } from '../io/start-garbage.js';
import { monotonicMs, TimerDriver } from '../io/timer-driver.js';
import { ConnectionLimit, GLOBAL_CONNECTION_LIMIT, UNLIMITED } from '../listener/connection-limit.js';
import { Level } from '../log/levels.js';
import { getLogger, type LoggingOptions, levelRules } from '../log/logger.js';
import { FilesystemStats } from '../stats/layouts/filesystem.js';
import { HandOverStats } from '../stats/layouts/hand-over.js';
import { ListenerManagerStats } from '../stats/layouts/listener.js';
import { ServerStats } from '../stats/layouts/server.js';
import { statsSettings } from '../stats/settings/settings.js';
import { StatsStore } from '../stats/store.js';
import type { Scope } from '../stats/thread-stats.js';
import { DnsResolver } from '../upstream/dns/resolver.js';
import { SharedWords, SharedWordsOwner } from '../upstream/shared-words.js';
import type { WorkerStart } from '../worker/messages.js';
import type { DynamicOptions } from '../xds/reading/settings.js';
import { clusterFacts } from './clusters/primary-cluster.js';
import type { DrainOptions } from './draining/drain-manager.js';
import { ListenerDrains } from './draining/listener-drains.js';
import { fullNode } from './full-node.js';
import type { InitManager } from './init/init-manager.js';
import type { ReloadPlan } from './reload/comparison.js';
import type { EpochFacts } from './restart/epoch-facts.js';
import type { HotRestart } from './restart/hot-restart.js';
import { StatsImport } from './restart/stats-import.js';
import { Succession } from './restart/succession.js';
import { TakeOver } from './restart/take-over.js';
import { RunningConfiguration } from './running/running-configuration.js';
import { StartUp } from './start/start-up.js';
import { ServerState } from './state.js';
import { FlushSchedule } from './stats/flush-schedule.js';
import { LostSamples } from './stats/lost-samples.js';
import { ProcessStats } from './stats/server-stats.js';
import { Watchdog } from './stats/watchdog.js';
import { AllThreads } from './workers/all-threads.js';
import { PrimaryPorts } from './workers/primary-ports.js';
import { Publication } from './workers/publication.js';
import { Snapshots } from './workers/snapshots.js';
import { WorkerScopes } from './workers/worker-scopes.js';
import { WorkerSet } from './workers/worker-set.js';

export interface ServerOptions {
  readonly bootstrap: Bootstrap;
  readonly concurrency: number;
  readonly revision: string;
  readonly logging: Omit<LoggingOptions, 'threadId'>;
  readonly fileFlush: FileLogOptions;
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
  /** Undefined with --disable-hot-restart. */
  readonly restart: Pick<HotRestart, 'load' | 'refreshStats' | 'statsCame'> | undefined;
}

/** When the memory of the start is given back: not while the first requests come, which may share a core with this. */
const SETTLING_MS = 500;

const logger = getLogger('main');

export class Server {
  readonly store: StatsStore;
  readonly startedMs = monotonicMs();
  /** As others are told of it: what is configured, and what it is. */
  readonly node: Node;
  readonly configuration: RunningConfiguration;
  readonly drains: ListenerDrains;
  readonly flushes: FlushSchedule;
  readonly threads: AllThreads;
  /** By a child process. */
  readonly takeOver = new TakeOver();
  /** What passes to a child process and comes from a parent. */
  readonly succession: Succession;
  readonly #options: ServerOptions;
  readonly #shim: NativeShim;
  readonly #health = new ServerHealth();
  readonly #words = new SharedWordsOwner();
  readonly #listenersBlock = this.#words.allocateListener();
  #connectionLimit: ConnectionLimit | undefined;
  readonly #resolver = new DnsResolver();
  readonly #timers: TimerDriver;
  readonly #snapshots: Snapshots;
  readonly #scopes: WorkerScopes;
  readonly #listenerManagerStats: Scope;
  readonly #serverStats: Scope;
  readonly #processStats: ProcessStats;
  readonly #lostSamples = new LostSamples();
  readonly #watchdog: Watchdog;
  readonly #extensions = new ExtensionRegistry(EXTENSIONS);
  readonly #workers: WorkerSet;
  readonly #publication: Publication;
  readonly #ports: PrimaryPorts;
  readonly #import: StatsImport;
  readonly #startUp: StartUp;
  #state = ServerState.PreInitializing;
  #settling: NodeJS.Timeout | undefined;
  readonly #ended = new AbortController();

  constructor(options: ServerOptions) {
    const { bootstrap, concurrency } = options;
    this.#options = options;
    this.#shim = loadShim();
    this.node = fullNode(bootstrap.node ?? {}, options.dynamic.disabledExtensions);
    const settings = statsSettings(bootstrap.stats_config, options.statsTags);
    this.store = new StatsStore({ workers: concurrency, settings });
    this.#timers = new TimerDriver((error) => this.#internalError('a timer failed', error));
    const version = bootstrap.stats_server_version_override ?? `0x${options.revision.slice(0, 6)}`;
    this.#processStats = new ProcessStats(this.store, concurrency, Number(version) || 0, options.epoch);
    this.#processStats.countConfiguration(options.counts);
    this.#scopes = new WorkerScopes(this.store);
    this.#listenerManagerStats = this.#scopes.add('listener_manager.', ListenerManagerStats);
    this.#scopes.add('filesystem.', FilesystemStats);
    this.#serverStats = this.#scopes.add('server.', ServerStats);
    if (options.handsOverConnections) this.#scopes.add('server.hand_over.', HandOverStats);
    this.#watchdog = new Watchdog(this.store, concurrency, watchdogsOf(bootstrap));
    this.#workers = this.#createWorkers();
    this.threads = new AllThreads(concurrency, options.tracesContention, this.#workers);
    this.#snapshots = new Snapshots(this.store, this.#words, concurrency);
    this.#publication = new Publication(this.#snapshots, this.#workers);
    this.#ports = new PrimaryPorts(concurrency, (message) => this.#workers.broadcast(message));
    this.drains = new ListenerDrains({
      concurrency,
      defaults: options.draining,
      timers: this.#timers,
      now: monotonicMs,
      workers: this.#workers,
      publication: this.#publication,
      stats: this.#listenerManagerStats,
      listeners: () => this.configuration.listeners,
      takeOver: this.takeOver,
    });
    this.configuration = this.#createConfiguration();
    this.flushes = this.#createFlushes();
    this.#import = this.#createImport();
    this.succession = this.#createSuccession();
    this.#startUp = new StartUp(
      {
        ...this.configuration.steps,
        startWorkers: () => this.#startWorkers(),
        entered: (state) => {
          this.#state = state;
        },
      },
      this.#ended.signal,
    );
    if (bootstrap.flags_path) this.#obeyFlags(bootstrap.flags_path);
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

  /**
   * Resolves when the server is live, or has been shut down before it was. Rejects, with everything closed, when a
   * listener's address cannot be had.
   */
  async start(): Promise<void> {
    if (this.#isEnding) return;
    try {
      this.configuration.runtime.watch();
      await this.#createSinks();
      if (this.#isEnding) return;
      this.#tellStart();
      await this.#startUp.run();
    } catch (error) {
      await this.shutDown();
      throw error;
    }
    if (this.#isEnding) return;
    // Code that runs once is compiled sooner without it: starting takes a sixth less time.
    inlineMore();
    this.#settling = setTimeout(() => {
      collectStartGarbage(this.#shim);
      // What loading the configuration has used stays in the C library's heap otherwise.
      this.#shim.trimMemory();
    }, SETTLING_MS);
    this.#watchdog.start();
    this.#processStats.recordInitialization(monotonicMs() - this.startedMs);
    this.flushes.start();
  }

  /** The milestones by which wrappers and harnesses know a start (FACTS §7.7). */
  #tellStart(): void {
    const { clusters = [], listeners = [], secrets = [] } = this.#options.bootstrap.static_resources ?? {};
    logger.info(`loading ${secrets.length} static secret(s)`);
    logger.info(`loading ${clusters.length} cluster(s)`);
    logger.info(`loading ${listeners.length} listener(s)`);
    logger.info('starting main dispatch loop');
  }

  /** What it waits for before it is live; undefined when that is nothing. */
  get waitingFor(): InitManager | undefined {
    return this.#startUp.waitingFor;
  }

  /** Why the configuration cannot be reloaded now; undefined: it can. */
  get obstacleToReload(): string | undefined {
    if (!this.isLive || this.#isEnding) return 'the server is not live';
    const { isBeginning, isDone } = this.takeOver;
    // The child has read its configuration, and takes over from listeners that are as they were.
    return isBeginning || isDone ? 'another process takes over from this one' : undefined;
  }

  /** Takes the server to another configuration, or rejects with everything as it was. */
  reload(plan: ReloadPlan, next: Bootstrap): Promise<void> {
    return this.configuration.reload(plan, next, this.#ended.signal);
  }

  /** Brings gauges that the primary keeps up to date; done before stats are read. Others get turns of the loop meanwhile. */
  async updateStats(): Promise<void> {
    this.#workers.broadcast({ kind: 'count-memory' });
    // Who has read the counters of a parent process must not see them fall. One that is not live yet serves nobody.
    if (this.isLive) await this.#options.restart?.statsCame;
    await inTurns(this.configuration.clusters.updateGauges());
    const connections = this.#connectionCount;
    this.#processStats.update(this.state, connections, this.#import.holdings, this.#resolver.counters);
  }

  /** The limit of all connections of the process, for connections that the primary accepts. */
  globalConnectionLimit(): ConnectionLimit {
    const limit = this.configuration.runtime.runtime.integer(GLOBAL_CONNECTION_LIMIT, UNLIMITED);
    this.#connectionLimit ??= new ConnectionLimit(new SharedWords(this.#words.handle(0)), this.#listenersBlock, limit);
    return this.#connectionLimit;
  }

  /** Ends all workers and closes everything. Resolves when it is done. */
  async shutDown(): Promise<void> {
    if (this.#isEnding) return;
    this.#ended.abort();
    this.flushes.stop();
    clearTimeout(this.#settling);
    this.#watchdog.close();
    this.drains.manager.close();
    await this.configuration.freeze();
    await this.#workers.end();
    // With what the workers have counted to their end.
    await this.flushes.finish();
    this.configuration.close();
    this.#resolver.close();
    // A worker that is still starting makes its copies of these descriptors.
    this.configuration.listeners.close();
    this.threads.close();
    this.#timers.close();
  }

  get #isEnding(): boolean {
    return this.#ended.signal.aborted;
  }

  /** Of this process alone. */
  get #connectionCount(): number {
    return this.configuration.listeners.connectionCount((name) => this.#import.shareOf(name));
  }

  #createWorkers(): WorkerSet {
    return new WorkerSet(this.#options.concurrency, {
      startData: (index) => this.#startData(index),
      applied: (index, version) => this.#snapshots.applied(index, version),
      failed: (failure) => this.#snapshots.failed(failure),
      extension: (index, name, message) => this.#ports.receive(index, name, message),
      died: (index) => {
        this.#ports.workerDied(index);
        this.store.workerDied(index);
        this.#words.forgetWorker(index + 1);
        this.#watchdog.forget(index);
        this.#serverStats.increment(ServerStats.at.envoy_bug_failures);
      },
    });
  }

  #createConfiguration(): RunningConfiguration {
    const { bootstrap, concurrency, dynamic, epoch, serveEndpoint } = this.#options;
    return new RunningConfiguration({
      ...{ bootstrap, dynamic, concurrency, serveEndpoint },
      node: this.node,
      shim: this.#shim,
      store: this.store,
      scopes: this.#scopes,
      listenerStats: this.#listenerManagerStats,
      words: this.#words,
      timers: this.#timers,
      resolver: this.#resolver,
      extensions: this.#extensions,
      workers: this.#workers,
      ports: this.#ports,
      snapshots: this.#snapshots,
      publication: this.#publication,
      drains: this.drains,
      parentSockets: epoch.parentSockets,
      takeOver: this.takeOver,
      runtimeChanged: (snapshot) => {
        this.#workers.broadcast({ kind: 'runtime', snapshot });
        this.#connectionLimit?.update();
      },
      counted: (counts) => this.#processStats.countDynamic(counts),
      failed: (what, error) => this.#internalError(what, error),
    });
  }

  #createFlushes(): FlushSchedule {
    const { bootstrap, restart } = this.#options;
    return new FlushSchedule(bootstrap, {
      store: this.store,
      update: async () => {
        await restart?.refreshStats();
        await this.updateStats();
      },
      // Until then the merged histograms would lack the names that workers have yet to bring.
      mergesHistograms: () => this.isLive,
      feedsSinks: () => !this.takeOver.isDone,
      flushed: () => this.#import.flushed(),
      tidy: () => {
        this.#lostSamples.look(this.store.dropped());
        if (!this.#isEnding) this.#publication.tidy();
      },
      dropped: () => this.#processStats.countDroppedFlush(),
      failed: (what, error) => this.#internalError(what, error),
    });
  }

  #createImport(): StatsImport {
    return new StatsImport({
      store: this.store,
      takeOver: this.takeOver,
      credit: (name, amount) => this.flushes.sinks.credit(name, amount),
      given: (section, index) => this.flushes.sinks.given(section, index),
    });
  }

  #createSuccession(): Succession {
    const server = this;
    return new Succession({
      shim: this.#shim,
      store: this.store,
      concurrency: this.#options.concurrency,
      listeners: this.configuration.listeners,
      takeOver: this.takeOver,
      import: this.#import,
      get isEnding() {
        return server.#isEnding;
      },
      get connectionCount() {
        return server.#connectionCount;
      },
      get memoryAllocated() {
        return server.#processStats.memoryAllocated(server.#import.holdings);
      },
      send: (worker, message) => this.#workers.send(worker, message),
      flushStats: () => this.flushes.run(),
      given: (section, index) => this.flushes.sinks.given(section, index),
      stop: (listeners, acceptRest) => this.drains.stop(listeners, acceptRest),
      startDrain: (options) => this.drains.start(options),
      openConnections: () => this.drains.openConnections(),
    });
  }

  /** Files whose presence says how the server is to begin (FACTS §2.12). */
  #obeyFlags(directory: string): void {
    logger.info(`server flags path: ${directory}`);
    if (!existsSync(join(directory, 'drain'))) return;
    logger.info('starting server in drain mode');
    this.setHealth(HealthFailure.OnPurpose, true);
  }

  async #createSinks(): Promise<void> {
    const { calls, clusters, hosts } = this.configuration;
    const context = {
      calls,
      hosts,
      node: { ...this.#options.bootstrap.node, user_agent_name: 'baton' },
      clusters: () => clusterFacts(clusters.byName.values()),
      serveEvents: this.#options.serveEvents,
    };
    await this.flushes.createSinks(this.#extensions, context, monotonicMs() - this.epoch.countedSinceMs);
    if (!this.#isEnding) return;
    // It was ended while their code was loaded.
    await this.flushes.sinks.close();
    calls.close();
  }

  async #startWorkers(): Promise<void> {
    this.#snapshots.make({}, false);
    await Promise.all([this.#workers.start(), this.#options.restart?.load()]);
    this.configuration.listeners.startListening();
    this.#listenerManagerStats.set(ListenerManagerStats.at.workers_started, 1);
  }

  /** Everything that a worker begins with, as it is now. */
  #startData(index: number): Omit<WorkerStart, 'isReplacement'> {
    const { bootstrap, concurrency, fileFlush, localIp, logging } = this.#options;
    return {
      index,
      workers: concurrency,
      stats: this.store.attachment(index),
      words: { ...this.#words.handle(index + 1), contention: this.threads.contentionBuffer(index) },
      listenersBlock: this.#listenersBlock,
      logging,
      levelRules: levelRules(),
      health: this.#health.buffer,
      extensionStates: this.#ports.states,
      identity: { ip: localIp, cluster: bootstrap.node?.cluster ?? '', node: bootstrap.node?.id ?? '' },
      fileFlush,
      runtime: this.configuration.runtime.snapshot,
      heartbeat: this.#watchdog.heartbeat,
      snapshot: this.#snapshots.make(this.configuration.snapshots(), true),
    };
  }

  /** What should not happen, and was caught. */
  #internalError(what: string, error: unknown): void {
    this.#serverStats.increment(ServerStats.at.envoy_bug_failures);
    logger.exception(Level.Error, what, error);
  }
}
