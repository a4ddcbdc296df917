// A server: starts and shuts down the primary, the workers and the running configuration.
//
//   clusters (names resolved) → listeners (sockets bound) → workers (snapshot built) → LIVE … shutdown

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { FileLogOptions } from '../access-log/files/file-log.js';
import { messageOf } from '../common/errors/errors.js';
import { inTurns } from '../common/time/next-turn.js';
import { SharedRun } from '../common/time/shared-run.js';
import { monitoredConnections } from '../config/fields/connection-monitor.js';
import { internalBufferBytes } from '../config/fields/internal-listener.js';
import type { Bootstrap, Node } from '../config/generated/api.js';
import type { EventStream, PostEndpoint } from '../extensions/factories.js';
import { tracerScopes } from '../extensions/share-tracer.js';
import { collectStartGarbage } from '../io/start-garbage.js';
import { monotonicMs } from '../io/time/timer-driver.js';
import { getLogger, type LoggingOptions, levelRules } from '../log/logger.js';
import { overloadSpec } from '../runtime/overload/overload-spec.js';
import type { ReadScript } from '../scripts/reading/task.js';
import { ListenerManagerStats } from '../stats/layouts/listener.js';
import { serverPlace } from '../upstream/server-place.js';
import { HealthFailure, ServerHealth } from '../worker/messages/server-health.js';
import type { DynamicOptions } from '../xds/reading/settings.js';
import { clusterFacts } from './clusters/cluster-facts.js';
import type { DrainDefaults } from './draining/drain-manager.js';
import { fullNode } from './full-node.js';
import { IdleTrim, processCpuMs } from './idle-trim.js';
import type { InitManager } from './init/init-manager.js';
import { Primary, type PrimaryOptions } from './primary.js';
import type { ReloadPlan } from './reload/comparison/comparison.js';
import { reloadParts } from './reload/reload-parts.js';
import type { HotRestart } from './restart/hot-restart.js';
import { StatsImport } from './restart/stats-import.js';
import { RunningConfiguration } from './running/running-configuration.js';
import { limitCompilationQueue, raiseInliningLimit } from './start/optimizer.js';
import { StartUp } from './start/start-up.js';
import { ServerState } from './state.js';
import { FlushSchedule } from './stats/flush-schedule.js';
import { LostSamples } from './stats/lost-samples.js';
import type { ProcessHoldings } from './stats/server-stats.js';
import type { StartData } from './workers/worker-set.js';

export interface ServerOptions extends Omit<PrimaryOptions, 'hasScripts'> {
  readonly logging: Omit<LoggingOptions, 'threadId'>;
  readonly fileFlush: FileLogOptions;
  /** Bytes that each worker may buffer of requests and responses. */
  readonly workerMemory: number;
  /** --drain-time-s and --drain-strategy. */
  readonly draining: DrainDefaults;
  /** The server's own address, for x-forwarded-for of clients on this machine. */
  readonly localIp: string;
  readonly dynamic: DynamicOptions;
  /** The modules that the bootstrap registers. */
  readonly scripts: readonly ReadScript[];
  /** Adds an admin endpoint that streams events. */
  readonly serveEvents: (stream: EventStream) => void;
  /** Adds an admin endpoint that takes a request body. Returns a function that removes it. */
  readonly serveEndpoint: (endpoint: PostEndpoint) => () => void;
  /** Undefined with --disable-hot-restart. */
  readonly restart: Pick<HotRestart, 'load' | 'refreshStats' | 'shareSockets' | 'parentStatsImported'> | undefined;
}

/**
 * Delay before the reload modules are loaded and start-up memory is freed: the first requests may share a core with this work.
 */
const SETTLING_MS = 500;

const logger = getLogger('main');

export class Server {
  readonly primary: Primary;
  readonly #startedMs = monotonicMs();
  /** The node that management servers receive: the configured fields and Baton's own. */
  readonly node: Node;
  readonly configuration: RunningConfiguration;
  readonly flushes: FlushSchedule;
  /** Stats of the parent process. */
  readonly parentStats: StatsImport;
  readonly #options: ServerOptions;
  readonly #health = new ServerHealth();
  readonly #lostSamples = new LostSamples();
  readonly #statsUpdate = new SharedRun(() => this.#updateStats());
  readonly #startUp: StartUp;
  #dispatching: () => Promise<void> = async () => {};
  #state = ServerState.PreInitializing;
  #settling: NodeJS.Timeout | undefined;
  #shuttingDown: Promise<void> | undefined;
  /** Undefined until the start has settled. */
  #idleTrim: IdleTrim | undefined;
  readonly #ended = new AbortController();

  constructor(options: ServerOptions) {
    const { bootstrap, draining, dynamic, fileFlush, localIp, scripts, serveEndpoint } = options;
    this.#options = options;
    this.primary = new Primary({ ...options, hasScripts: options.scripts.length > 0 });
    this.node = this.completed(bootstrap.node);
    const { extensions, scopes } = this.primary;
    scopes.hold(tracerScopes(bootstrap.tracing?.http?.typed_config, extensions));
    this.configuration = new RunningConfiguration(this.primary, {
      ...{ bootstrap, draining, dynamic, fileFlush, localIp, scripts, serveEndpoint },
      node: this.node,
    });
    this.flushes = this.#createFlushes();
    this.parentStats = new StatsImport(this.primary, this.flushes);
    this.#startUp = new StartUp(
      {
        ...this.configuration.steps,
        startWorkers: () => this.#startWorkers(),
        dispatching: async () => {
          await this.#dispatching();
          if (!this.isEnding) logger.info('starting main dispatch loop');
        },
        entered: (state) => {
          this.#state = state;
        },
      },
      this.#ended.signal,
    );
    if (bootstrap.flags_path) this.#applyFlagFiles(bootstrap.flags_path);
  }

  /** Returns the node, as configured or as shown, with Baton's own fields. */
  completed(node: Node = {}): Node {
    return fullNode(node, this.#options.dynamic.disabledExtensions);
  }

  get state(): ServerState {
    return this.#state === ServerState.Live && this.#health.isFailing ? ServerState.Draining : this.#state;
  }

  /** The server takes traffic, whether or not health checks pass. */
  get isLive(): boolean {
    return this.#state === ServerState.Live;
  }

  get isEnding(): boolean {
    return this.#ended.signal.aborted;
  }

  /** What this process holds, without its parent. */
  get holdings(): ProcessHoldings {
    const memoryAllocated = this.primary.processStats.memoryAllocated(this.parentStats.holdings);
    return { memoryAllocated, connections: this.#connectionCount };
  }

  /** Sets or clears one of the reasons for failing health checks. All threads see it at once. */
  setHealth(failure: HealthFailure, isFailing: boolean): void {
    this.#health.set(failure, isFailing);
    this.primary.processStats.setLive(!this.#health.isFailing);
  }

  /**
   * Resolves when the server is live, or was shut down earlier. Rejects, with everything closed, when a listener's address cannot
   * be bound.
   * @param dispatching called when the admin interface has to answer; see StartUp
   */
  async start(dispatching: () => Promise<void> = async () => {}): Promise<void> {
    if (this.isEnding) return;
    this.#dispatching = dispatching;
    try {
      this.configuration.runtime.watch();
      await this.#startUp.precede(this.#createSinks());
      if (this.isEnding) return;
      this.#logStart();
      await this.#startUp.run();
    } catch (error) {
      await this.shutDown();
      throw error;
    }
    if (this.isEnding) return;
    // Set only now: code that runs once compiles faster without it, which shortens the start by a sixth.
    raiseInliningLimit();
    this.#settling = setTimeout(() => void this.#settle(), SETTLING_MS);
    this.primary.watchdog.start();
    this.primary.processStats.recordInitialization(monotonicMs() - this.#startedMs);
    this.flushes.start();
  }

  /** The init manager that the start waits for; undefined when there is none. */
  get waitingFor(): InitManager | undefined {
    return this.#startUp.waitingFor;
  }

  /** Why the configuration cannot be reloaded now; undefined when it can. */
  get obstacleToReload(): string | undefined {
    if (!this.isLive || this.isEnding) return 'the server is not live';
    const { isBeginning, isDone } = this.primary.takeOver;
    // The child has read its configuration and takes over this process's listeners as they were then.
    return isBeginning || isDone ? 'another process takes over from this one' : undefined;
  }

  /**
   * Applies another configuration completely or not at all. Rejects with everything as before, or with a ChangeFailure that says
   * that the rollback failed too. `next`: the bootstrap that runs afterwards.
   */
  reload(plan: ReloadPlan, next: Bootstrap): Promise<void> {
    return this.configuration.reload(plan, next, this.#ended.signal);
  }

  /** Updates the gauges that the primary keeps, before stats are read. Asynchronous; the event loop is not blocked. */
  updateStats(): Promise<void> {
    return this.#statsUpdate.run();
  }

  async #updateStats(): Promise<void> {
    this.primary.workers.broadcast({ kind: 'count-memory' });
    // Readers of the parent's counters must not see lower ones here. Before it is live, a server has no such readers.
    if (this.isLive) await this.#options.restart?.parentStatsImported;
    await inTurns(this.configuration.clusters.updateGauges());
    const { processStats, resolver, tls } = this.primary;
    const { holdings } = this.parentStats;
    processStats.update(this.state, this.#connectionCount, holdings, resolver.counters, tls.firstExpiries);
  }

  /** Ends all workers and closes everything. Resolves when done; may be called twice, by a failed start and by a signal. */
  shutDown(): Promise<void> {
    this.#shuttingDown ??= this.#shutDown();
    return this.#shuttingDown;
  }

  async #settle(): Promise<void> {
    try {
      await reloadParts();
      logger.debug('the modules for reloads are loaded');
    } catch (error) {
      logger.warning(`the modules for reloads are not loaded yet: ${messageOf(error)}`);
    }
    const { shim } = this.primary;
    collectStartGarbage(shim);
    // Otherwise memory used to load the configuration stays in the C library's heap.
    shim.trimMemory();
    if (this.#shuttingDown === undefined) this.#idleTrim = new IdleTrim({ shim, cpuMs: processCpuMs });
  }

  /** Logs the milestones by which wrappers and harnesses recognize a start (FACTS §7.7). */
  #logStart(): void {
    const { clusters = [], listeners = [], secrets = [] } = this.#options.bootstrap.static_resources ?? {};
    logger.info(`loading ${secrets.length} static secret(s)`);
    logger.info(`loading ${clusters.length} cluster(s)`);
    logger.info(`loading ${listeners.length} listener(s)`);
  }

  async #shutDown(): Promise<void> {
    const { loopWatch, resolver, threads, timers, watchdog, workers } = this.primary;
    const { listeners } = this.configuration;
    this.#ended.abort();
    this.flushes.stop();
    clearTimeout(this.#settling);
    this.#idleTrim?.close();
    watchdog.close();
    loopWatch?.close();
    listeners.drains.manager.close();
    listeners.releaseSockets();
    await this.configuration.freeze();
    await workers.end();
    // After the workers' last counts.
    await this.flushes.finish();
    await this.configuration.close();
    resolver.close();
    // Only now: a worker that is still starting duplicates these descriptors.
    listeners.close();
    threads.close();
    timers.close();
  }

  /** Connections of this process, without its parent's. */
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
      // Earlier, the merged histograms would lack names that the workers have not reported yet.
      mergesHistograms: () => this.isLive,
      flushed: () => this.parentStats.flushed(),
      reclaimMemory: () => {
        this.#lostSamples.report(this.primary.store.dropped());
        if (!this.isEnding) this.primary.publication.reclaimMemory();
      },
    });
  }

  /** Applies the flag files, whose presence sets how the server starts (FACTS §2.12). */
  #applyFlagFiles(directory: string): void {
    logger.info(`server flags path: ${directory}`);
    if (!existsSync(join(directory, 'drain'))) return;
    logger.info('starting server in drain mode');
    this.setHealth(HealthFailure.Requested, true);
  }

  async #createSinks(): Promise<void> {
    const { calls, clusters } = this.configuration.upstream;
    const context = {
      calls,
      node: { ...this.#options.bootstrap.node, user_agent_name: 'baton' },
      clusters: () => clusterFacts(clusters.byName.values()),
      serveEvents: this.#options.serveEvents,
    };
    await this.flushes.createSinks(context);
    if (!this.isEnding) return;
    // The server ended while the sinks' code was loaded.
    await this.flushes.sinks.close();
    calls.close();
  }

  async #startWorkers(): Promise<void> {
    const { listenerManagerStats, snapshots, workers } = this.primary;
    snapshots.next({});
    limitCompilationQueue();
    const { restart } = this.#options;
    await Promise.all([workers.start((index) => this.#startData(index)), restart?.load()]);
    await restart?.shareSockets();
    if (this.isEnding) return;
    this.configuration.listeners.startListening();
    listenerManagerStats.set(ListenerManagerStats.at.workers_started, 1);
  }

  /** Returns the current data with which a worker starts. */
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
      internalBufferBytes: internalBufferBytes(bootstrap),
      overload: overloadSpec(bootstrap),
      logging,
      levelRules: levelRules(),
      health: this.#health.buffer,
      extensionStates: ports.states,
      identity: { ip: localIp, cluster, node, zone: locality?.zone ?? '' },
      defaultTracer: bootstrap.tracing?.http?.typed_config,
      node: this.node,
      place: serverPlace(bootstrap),
      fileFlush,
      runtime: this.configuration.runtime.runtime.snapshot,
      heartbeat: watchdog.heartbeat,
      watchesLoop: this.primary.loopWatch !== undefined,
      snapshot: snapshots.complete(this.configuration.snapshots()),
    };
  }
}
