// The primary: brings a server up from its configuration, keeps its workers alive, and takes it down.
//
//   clusters (names resolved) → listeners (sockets bound) → workers (snapshot built) → LIVE … shutdown

import { durationMs } from '../common/duration.js';
import { Random } from '../common/random.js';
import type { Bootstrap } from '../config/generated/api.js';
import { EXTENSIONS } from '../extensions/index.js';
import { ExtensionRegistry } from '../extensions/registry.js';
import { addressText } from '../io/address.js';
import { loadShim, type NativeShim } from '../io/shim.js';
import { monotonicMs, TimerDriver } from '../io/timer-driver.js';
import { Level } from '../log/levels.js';
import { getLogger, type LoggingOptions, reopenLog } from '../log/logger.js';
import { ClusterManagerStats } from '../stats/layouts/cluster.js';
import { FilesystemStats } from '../stats/layouts/filesystem.js';
import { ListenerManagerStats } from '../stats/layouts/listener.js';
import { StatsStore } from '../stats/store.js';
import type { Scope, ScopeRef } from '../stats/thread-stats.js';
import { DnsResolver } from '../upstream/dns/resolver.js';
import { SharedWordsOwner } from '../upstream/shared-words.js';
import type { ToWorker, WorkerStart } from '../worker/messages.js';
import { PrimaryCluster, type PrimaryClusterHost } from './primary-cluster.js';
import { PrimaryListener } from './primary-listener.js';
import { ProcessStats } from './server-stats.js';
import { Snapshots } from './snapshots.js';
import { ServerState } from './state.js';
import { WorkerThread } from './worker-thread.js';

export interface ServerOptions {
  readonly bootstrap: Bootstrap;
  readonly concurrency: number;
  readonly revision: string;
  readonly logging: Omit<LoggingOptions, 'threadId'>;
  readonly fileFlush: { readonly flushMinBytes: number; readonly flushIntervalMs: number };
  /** The server's own address, for x-forwarded-for of clients on this machine. */
  readonly localIp: string;
  /** Fields that the API does not have and that were accepted. */
  readonly unknownFields: number;
}

const DEFAULT_FLUSH_MS = 5000;
/** How long workers get to end before their threads are ended by force. */
const WORKER_END_MS = 3000;

/** How often workers may die before all of them run: the start has failed then. */
const DEATHS_AT_START = 5;

const logger = getLogger('main');

export class Server {
  readonly store: StatsStore;
  readonly startedMs = monotonicMs();
  readonly #options: ServerOptions;
  readonly #shim: NativeShim;
  readonly #words = new SharedWordsOwner();
  readonly #resolver = new DnsResolver();
  readonly #timers: TimerDriver;
  readonly #snapshots: Snapshots;
  readonly #processStats: ProcessStats;
  readonly #clusterManagerStats: Scope;
  readonly #listenerManagerStats: Scope;
  readonly #extensions = new ExtensionRegistry(EXTENSIONS);
  readonly #clusters = new Map<string, PrimaryCluster>();
  readonly #listeners = new Map<string, PrimaryListener>();
  readonly #scopes: Record<string, ScopeRef> = {};
  readonly #workers: WorkerThread[] = [];
  #state = ServerState.PreInitializing;
  #flushTimer: NodeJS.Timeout | undefined;
  #changed = new Set<PrimaryCluster>();
  #isEnding = false;

  constructor(options: ServerOptions) {
    const { concurrency } = options;
    this.#options = options;
    this.#shim = loadShim();
    this.store = new StatsStore({ workers: concurrency });
    this.#timers = new TimerDriver((error) => logger.exception(Level.Error, 'a timer failed', error));
    this.#snapshots = new Snapshots(this.store, this.#words, concurrency);
    this.#processStats = new ProcessStats(this.store, concurrency, options.revision);
    this.#processStats.countUnknownFields(options.unknownFields);
    this.#clusterManagerStats = this.#addScope('cluster_manager.', ClusterManagerStats);
    this.#listenerManagerStats = this.#addScope('listener_manager.', ListenerManagerStats);
    this.#addScope('filesystem.', FilesystemStats);
  }

  get state(): ServerState {
    return this.#state;
  }

  get clusters(): ReadonlyMap<string, PrimaryCluster> {
    return this.#clusters;
  }

  get listeners(): ReadonlyMap<string, PrimaryListener> {
    return this.#listeners;
  }

  /**
   * Resolves when the server is live, or has been shut down before it was. Rejects, with everything closed, when a
   * listener's address cannot be had.
   */
  async start(): Promise<void> {
    if (this.#isEnding) return;
    try {
      await this.#startClusters();
      this.#state = ServerState.Initializing;
      this.#openListeners();
      await this.#startWorkers();
    } catch (error) {
      await this.shutDown();
      throw error;
    }
    if (this.#isEnding) return;
    this.#state = ServerState.Live;
    this.#listenerManagerStats.set(ListenerManagerStats.at.workers_started, 1);
    this.#processStats.recordInitialization(monotonicMs() - this.startedMs);
    const { stats_flush_interval: interval } = this.#options.bootstrap;
    this.#flushTimer = setInterval(
      () => this.flushStats(),
      interval === undefined ? DEFAULT_FLUSH_MS : durationMs(interval),
    );
  }

  /** Brings gauges that the primary keeps up to date; done before stats are read. */
  updateStats(): void {
    for (const cluster of this.#clusters.values()) cluster.updateGauges();
    const connections = this.#connectionCount();
    this.#processStats.update(this.#state, this.startedMs, monotonicMs(), connections, this.#resolver.counters);
  }

  /** One interval of histograms ends. */
  flushStats(): void {
    this.updateStats();
    this.store.flush();
    this.#snapshots.reclaim();
  }

  /** Opens log files anew, in all threads. */
  reopenLogs(): void {
    reopenLog();
    this.#broadcast({ kind: 'reopen-logs' });
  }

  /** Ends all workers and closes everything. Resolves when it is done. */
  async shutDown(): Promise<void> {
    if (this.#isEnding) return;
    this.#isEnding = true;
    clearInterval(this.#flushTimer);
    for (const cluster of this.#clusters.values()) cluster.stop();
    this.#resolver.close();
    await Promise.all(this.#workers.map((worker) => worker.end(WORKER_END_MS)));
    // A worker that is still starting makes its copies of these descriptors.
    for (const listener of this.#listeners.values()) listener.stop();
    this.#timers.close();
  }

  async #startClusters(): Promise<void> {
    const configs = this.#options.bootstrap.static_resources?.clusters ?? [];
    logger.info(`loading ${configs.length} cluster(s)`);
    const waiting = new Set<PrimaryCluster>();
    await new Promise<void>((resolve) => {
      const host = this.#clusterHost((cluster) => {
        waiting.delete(cluster);
        if (waiting.size === 0) resolve();
      });
      for (const config of configs) {
        const cluster = new PrimaryCluster(config, host);
        this.#clusters.set(cluster.spec.name, cluster);
        waiting.add(cluster);
        this.#clusterManagerStats.increment(ClusterManagerStats.at.cluster_added);
      }
      if (configs.length === 0) resolve();
      for (const cluster of this.#clusters.values()) cluster.start();
    });
    this.#clusterManagerStats.set(ClusterManagerStats.at.active_clusters, this.#clusters.size);
    this.#clusterManagerStats.set(ClusterManagerStats.at.warming_clusters, 0);
    logger.info('cm init: all clusters initialized');
    logger.info('all clusters initialized. initializing init manager');
  }

  #clusterHost(initialized: (cluster: PrimaryCluster) => void): PrimaryClusterHost {
    return {
      store: this.store,
      words: this.#words,
      resolver: this.#resolver,
      timers: this.#timers,
      random: new Random(),
      retireHost: (block, scope) => this.#snapshots.retireHost(block, scope),
      changed: (cluster) => this.#clusterChanged(cluster),
      initialized,
    };
  }

  /** Changes of one turn travel together. */
  #clusterChanged(cluster: PrimaryCluster): void {
    if (this.#workers.length === 0) return;
    if (this.#changed.size === 0) setImmediate(() => this.#publishClusters());
    this.#changed.add(cluster);
  }

  #publishClusters(): void {
    const clusters = [...this.#changed].map((cluster) => cluster.snapshot());
    this.#changed = new Set();
    if (this.#isEnding) return;
    this.#broadcast({ kind: 'snapshot', snapshot: this.#snapshots.make({ clusters }, false) });
  }

  #openListeners(): void {
    const configs = this.#options.bootstrap.static_resources?.listeners ?? [];
    const { at } = ListenerManagerStats;
    logger.info(`loading ${configs.length} listener(s)`);
    for (const config of configs) {
      const listener = new PrimaryListener(config, this.#shim, this.#options.concurrency);
      this.#listeners.set(listener.name, listener);
      listener.addScopes(this.store, this.#extensions, this.#options.concurrency, this.#scopes);
      this.#listenerManagerStats.increment(at.listener_added);
      this.#listenerManagerStats.increment(at.listener_create_success);
      logger.info(`listener '${listener.name}' listens on ${addressText(listener.address)}`);
    }
    this.#listenerManagerStats.set(at.total_listeners_active, this.#listeners.size);
  }

  #startWorkers(): Promise<void> {
    logger.info('all dependencies initialized. starting workers');
    return new Promise((resolve, reject) => {
      let deaths = 0;
      for (let index = 0; index < this.#options.concurrency; index++) {
        const worker = new WorkerThread(index, {
          startData: () => this.#startData(index),
          applied: (version) => {
            if (this.#snapshots.applied(index, version)) resolve();
          },
          failed: (message) => reject(new Error(message)),
          died: () => {
            this.store.workerDied(index);
            this.#words.forgetWorker(index + 1);
            // A server that never becomes live is worse than none: whoever watches it starts another one.
            if (++deaths === DEATHS_AT_START) reject(new Error(`workers have died ${deaths} times as they began`));
          },
        });
        this.#workers.push(worker);
      }
      this.#snapshots.make({}, false);
      for (const worker of this.#workers) worker.start();
    });
  }

  /** Everything that a worker begins with, as it is now. */
  #startData(index: number): WorkerStart {
    const { bootstrap, concurrency, fileFlush, localIp, logging } = this.#options;
    return {
      index,
      workers: concurrency,
      stats: this.store.attachment(index),
      words: this.#words.handle(index + 1),
      logging,
      identity: { ip: localIp, cluster: bootstrap.node?.cluster ?? '', node: bootstrap.node?.id ?? '' },
      fileFlush,
      snapshot: this.#snapshots.make(
        {
          scopes: this.#scopes,
          clusters: [...this.#clusters.values()].map((cluster) => cluster.snapshot()),
          listeners: [...this.#listeners.values()].map((listener) => listener.snapshot(index)),
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

  #connectionCount(): number {
    let sum = 0;
    for (const listener of this.#listeners.values()) sum += this.store.value(listener.activeConnectionsStat) ?? 0;
    return sum;
  }

  #broadcast(message: ToWorker): void {
    for (const worker of this.#workers) worker.send(message);
  }
}
