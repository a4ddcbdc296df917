// A server: brings the primary, its workers and what is configured up, and takes them down.
//
//   clusters (names resolved) → listeners (sockets bound) → workers (snapshot built) → LIVE … shutdown

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { FileLogOptions } from '../access-log/files/file-log.js';
import { messageOf } from '../common/errors/errors.js';
import { inTurns } from '../common/time/next-turn.js';
import { SharedRun } from '../common/time/shared-run.js';
import { monitoredConnections } from '../config/fields/connection-monitor.js';
import type { Bootstrap, Node } from '../config/generated/api.js';
import type { EventStream, PostEndpoint } from '../extensions/factories.js';
import { collectStartGarbage } from '../io/start-garbage.js';
import { monotonicMs } from '../io/time/timer-driver.js';
import { getLogger, type LoggingOptions, levelRules } from '../log/logger.js';
import { ListenerManagerStats } from '../stats/layouts/listener.js';
import { HealthFailure, ServerHealth } from '../worker/messages/server-health.js';
import type { DynamicOptions } from '../xds/reading/settings.js';
import { clusterFacts } from './clusters/cluster-facts.js';
import type { DrainDefaults } from './draining/drain-manager.js';
import { fullNode } from './full-node.js';
import type { InitManager } from './init/init-manager.js';
import { Primary, type PrimaryOptions } from './primary.js';
import type { ReloadPlan } from './reload/comparison/comparison.js';
import { reloadParts } from './reload/reload-parts.js';
import type { HotRestart } from './restart/hot-restart.js';
import { StatsImport } from './restart/stats-import.js';
import { RunningConfiguration } from './running/running-configuration.js';
import { compileInTurn, inlineMore } from './start/optimizer.js';
import { StartUp } from './start/start-up.js';
import { ServerState } from './state.js';
import { FlushSchedule } from './stats/flush-schedule.js';
import { LostSamples } from './stats/lost-samples.js';
import type { ProcessHoldings } from './stats/server-stats.js';
import type { StartData } from './workers/worker-set.js';

export interface ServerOptions extends PrimaryOptions {
  readonly logging: Omit<LoggingOptions, 'threadId'>;
  readonly fileFlush: FileLogOptions;
  /** Bytes that each worker may hold of requests and responses. */
  readonly workerMemory: number;
  /** --drain-time-s and --drain-strategy. */
  readonly draining: DrainDefaults;
  /** The server's own address, for x-forwarded-for of clients on this machine. */
  readonly localIp: string;
  readonly dynamic: DynamicOptions;
  /** Adds an endpoint that streams events to the admin interface. */
  readonly serveEvents: (stream: EventStream) => void;
  /** Adds an endpoint that takes a body to the admin interface; what it returns removes it. */
  readonly serveEndpoint: (endpoint: PostEndpoint) => () => void;
  /** Undefined with --disable-hot-restart. */
  readonly restart: Pick<HotRestart, 'load' | 'refreshStats' | 'shareSockets' | 'statsCame'> | undefined;
}

/** When what is needed later is loaded and the start's memory given back: not at once, for the first requests may share a core with this. */
const SETTLING_MS = 500;

const logger = getLogger('main');

export class Server {
  readonly primary: Primary;
  readonly #startedMs = monotonicMs();
  /** As management servers get it: what is configured, completed with what Baton is. */
  readonly node: Node;
  readonly configuration: RunningConfiguration;
  readonly flushes: FlushSchedule;
  /** What a parent process has counted. */
  readonly parentStats: StatsImport;
  readonly #options: ServerOptions;
  readonly #health = new ServerHealth();
  readonly #lostSamples = new LostSamples();
  readonly #statsUpdate = new SharedRun(() => this.#updateStats());
  readonly #startUp: StartUp;
  #state = ServerState.PreInitializing;
  #settling: NodeJS.Timeout | undefined;
  #shuttingDown: Promise<void> | undefined;
  readonly #ended = new AbortController();

  constructor(options: ServerOptions) {
    const { bootstrap, draining, dynamic, fileFlush, serveEndpoint } = options;
    this.#options = options;
    this.primary = new Primary(options);
    this.node = this.completed(bootstrap.node);
    this.configuration = new RunningConfiguration(this.primary, {
      ...{ bootstrap, draining, dynamic, fileFlush, serveEndpoint },
      node: this.node,
    });
    this.flushes = this.#createFlushes();
    this.parentStats = new StatsImport(this.primary, this.flushes);
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

  /** A node as it is configured, or as it may be shown, with what Baton is. */
  completed(node: Node = {}): Node {
    return fullNode(node, this.#options.dynamic.disabledExtensions);
  }

  get state(): ServerState {
    return this.#state === ServerState.Live && this.#health.isFailing ? ServerState.Draining : this.#state;
  }

  /** It takes traffic, whether health checks pass or not. */
  get isLive(): boolean {
    return this.#state === ServerState.Live;
  }

  get isEnding(): boolean {
    return this.#ended.signal.aborted;
  }

  /** What this process takes, without its parent. */
  get holdings(): ProcessHoldings {
    const memoryAllocated = this.primary.processStats.memoryAllocated(this.parentStats.holdings);
    return { memoryAllocated, connections: this.#connectionCount };
  }

  /** Sets or clears one of the reasons for which health checks fail. All threads see it at once. */
  setHealth(failure: HealthFailure, isFailing: boolean): void {
    this.#health.set(failure, isFailing);
    this.primary.processStats.setLive(!this.#health.isFailing);
  }

  /**
   * Resolves when the server is live, or has been shut down before it was. Rejects, with everything closed, when a
   * listener's address cannot be had.
   */
  async start(): Promise<void> {
    if (this.isEnding) return;
    try {
      this.configuration.runtime.watch();
      await this.#createSinks();
      if (this.isEnding) return;
      this.#tellStart();
      await this.#startUp.run();
    } catch (error) {
      await this.shutDown();
      throw error;
    }
    if (this.isEnding) return;
    // Code that runs once is compiled sooner without it: starting takes a sixth less time.
    inlineMore();
    this.#settling = setTimeout(() => void this.#settle(), SETTLING_MS);
    this.primary.watchdog.start();
    this.primary.processStats.recordInitialization(monotonicMs() - this.#startedMs);
    this.flushes.start();
  }

  /** What it waits for before it is live; undefined when that is nothing. */
  get waitingFor(): InitManager | undefined {
    return this.#startUp.waitingFor;
  }

  /** Why the configuration cannot be reloaded now; undefined: it can. */
  get obstacleToReload(): string | undefined {
    if (!this.isLive || this.isEnding) return 'the server is not live';
    const { isBeginning, isDone } = this.primary.takeOver;
    // The child has read its configuration, and takes over from listeners that are as they were.
    return isBeginning || isDone ? 'another process takes over from this one' : undefined;
  }

  /**
   * Takes the server to another configuration: all or nothing. Rejects with everything as it was, or with a ChangeFailure that
   * says that this failed too. `next` is the bootstrap that runs afterwards.
   */
  reload(plan: ReloadPlan, next: Bootstrap): Promise<void> {
    return this.configuration.reload(plan, next, this.#ended.signal);
  }

  /** Updates the gauges that the primary keeps, before stats are read. The event loop goes on meanwhile. */
  updateStats(): Promise<void> {
    return this.#statsUpdate.run();
  }

  async #updateStats(): Promise<void> {
    this.primary.workers.broadcast({ kind: 'count-memory' });
    // Whoever has read the counters of a parent process must not see lower ones. A server that is not live yet serves nobody.
    if (this.isLive) await this.#options.restart?.statsCame;
    await inTurns(this.configuration.clusters.updateGauges());
    const { processStats, resolver } = this.primary;
    processStats.update(this.state, this.#connectionCount, this.parentStats.holdings, resolver.counters);
  }

  /** Ends all workers and closes everything. Resolves when it is done, for everybody who asks: a failed start and a signal may both. */
  shutDown(): Promise<void> {
    this.#shuttingDown ??= this.#shutDown();
    return this.#shuttingDown;
  }

  async #settle(): Promise<void> {
    try {
      await reloadParts();
      logger.debug('what reloads need is loaded');
    } catch (error) {
      logger.warning(`what reloads need is not loaded yet: ${messageOf(error)}`);
    }
    const { shim } = this.primary;
    collectStartGarbage(shim);
    // What loading the configuration has used stays in the C library's heap otherwise.
    shim.trimMemory();
  }

  /** The milestones by which wrappers and harnesses know a start (FACTS §7.7). */
  #tellStart(): void {
    const { clusters = [], listeners = [], secrets = [] } = this.#options.bootstrap.static_resources ?? {};
    logger.info(`loading ${secrets.length} static secret(s)`);
    logger.info(`loading ${clusters.length} cluster(s)`);
    logger.info(`loading ${listeners.length} listener(s)`);
    logger.info('starting main dispatch loop');
  }

  async #shutDown(): Promise<void> {
    const { resolver, threads, timers, watchdog, workers } = this.primary;
    const { listeners } = this.configuration;
    this.#ended.abort();
    this.flushes.stop();
    clearTimeout(this.#settling);
    watchdog.close();
    listeners.drains.manager.close();
    listeners.leaveSockets();
    await this.configuration.freeze();
    await workers.end();
    // With what the workers have counted to their end.
    await this.flushes.finish();
    await this.configuration.close();
    resolver.close();
    // A worker that is still starting makes its copies of these descriptors.
    listeners.close();
    threads.close();
    timers.close();
  }

  /** Without those of a parent process. */
  get #connectionCount(): number {
    return this.configuration.listeners.connectionCount((name) => this.parentStats.shareOf(name));
  }

  #createFlushes(): FlushSchedule {
    const { bootstrap, restart } = this.#options;
    return new FlushSchedule(this.primary, bootstrap, {
      update: async () => {
        await restart?.refreshStats();
        await this.updateStats();
      },
      // Until then the merged histograms would lack the names that workers have yet to bring.
      mergesHistograms: () => this.isLive,
      flushed: () => this.parentStats.flushed(),
      tidy: () => {
        this.#lostSamples.look(this.primary.store.dropped());
        if (!this.isEnding) this.primary.publication.tidy();
      },
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
    const { calls, clusters, hosts } = this.configuration.upstream;
    const context = {
      calls,
      hosts,
      node: { ...this.#options.bootstrap.node, user_agent_name: 'baton' },
      clusters: () => clusterFacts(clusters.byName.values()),
      serveEvents: this.#options.serveEvents,
    };
    await this.flushes.createSinks(context);
    if (!this.isEnding) return;
    // It was ended while their code was loaded.
    await this.flushes.sinks.close();
    calls.close();
  }

  async #startWorkers(): Promise<void> {
    const { listenerManagerStats, snapshots, workers } = this.primary;
    snapshots.next({});
    compileInTurn();
    const { restart } = this.#options;
    await Promise.all([workers.start((index) => this.#startData(index)), restart?.load()]);
    await restart?.shareSockets();
    if (this.isEnding) return;
    this.configuration.listeners.startListening();
    listenerManagerStats.set(ListenerManagerStats.at.workers_started, 1);
  }

  /** Everything that a worker begins with, as it is now. */
  #startData(index: number): ReturnType<StartData> {
    const { bootstrap, fileFlush, localIp, logging, workerMemory } = this.#options;
    const { cluster = '', id: node = '', locality } = bootstrap.node ?? {};
    const { concurrency, listenersBlock, ports, snapshots, store, threads, tokenBuckets, watchdog, words } =
      this.primary;
    return {
      index,
      workers: concurrency,
      stats: store.attachment(index),
      words: { ...words.handle(index + 1), contention: threads.contentionBuffer(index) },
      tokenBuckets,
      bufferMemory: workerMemory,
      listenersBlock,
      maxConnections: monitoredConnections(bootstrap),
      logging,
      levelRules: levelRules(),
      health: this.#health.buffer,
      extensionStates: ports.states,
      identity: { ip: localIp, cluster, node, zone: locality?.zone ?? '' },
      fileFlush,
      runtime: this.configuration.runtime.runtime.snapshot,
      heartbeat: watchdog.heartbeat,
      snapshot: snapshots.complete(this.configuration.snapshots()),
    };
  }
}
