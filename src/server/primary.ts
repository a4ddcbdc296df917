// The primary thread without a configuration: its sockets, stats, shared memory, timers and workers, and the messages between
// them. It is created first, and the configured objects are built on it.

import { watchdogsOf, workerKillMs } from '../config/fields/watchdogs.js';
import type { Bootstrap } from '../config/generated/api.js';
import type { LoadCounts } from '../config/load/load.js';
import { EXTENSIONS } from '../extensions/index.js';
import { ExtensionRegistry } from '../extensions/registry.js';
import { loadShim, type NativeShim } from '../io/shim.js';
import { TimerDriver } from '../io/time/timer-driver.js';
import { countInternalErrors, internalError } from '../log/internal-errors.js';
import { SCRIPT_THREAD_OPTIONS } from '../scripts/thread-options.js';
import { BufferMemoryStats, bufferMemoryPrefix } from '../stats/layouts/buffer-memory.js';
import { FilesystemStats } from '../stats/layouts/filesystem.js';
import { HandOverStats } from '../stats/layouts/hand-over.js';
import { ListenerManagerStats } from '../stats/layouts/listener.js';
import { DispatcherStats, dispatcherPrefix, ServerStats } from '../stats/layouts/server.js';
import { LoopWatch } from '../stats/loop-watch.js';
import { statsSettings } from '../stats/settings/settings.js';
import { StatsStore } from '../stats/store.js';
import type { Scope } from '../stats/thread-stats.js';
import { TlsContexts } from '../tls/tls-contexts.js';
import { DnsResolver } from '../upstream/dns/resolver.js';
import { forgetTokenBucketThread, tokenBucketMemory } from '../upstream/shared-token-buckets.js';
import { SharedWordsOwner } from '../upstream/shared-words.js';
import { errorCounts } from '../worker/stats/error-counts.js';
import type { EpochFacts } from './restart/epoch-facts.js';
import { TakeOver } from './restart/take-over.js';
import { ProcessStats } from './stats/server-stats.js';
import { Watchdog } from './stats/watchdog.js';
import { AllThreads } from './workers/all-threads.js';
import { PrimaryPorts } from './workers/primary-ports.js';
import { Publication } from './workers/publication.js';
import { Snapshots } from './workers/snapshots.js';
import { stuckWorkers } from './workers/stuck-workers.js';
import { WorkerScopes } from './workers/worker-scopes.js';
import { WorkerSet } from './workers/worker-set.js';

export interface PrimaryOptions {
  readonly bootstrap: Bootstrap;
  readonly concurrency: number;
  readonly revision: string;
  /** Values of --stats-tag. */
  readonly statsTags: readonly string[];
  /** Counts contention (--enable-mutex-tracing). */
  readonly tracesContention: boolean;
  /** Connections pass from the parent process to this one, and from this one to a child (--hand-over-connections). */
  readonly handsOverConnections: boolean;
  /** Counts collected while the configuration was loaded. */
  readonly counts: LoadCounts;
  readonly epoch: EpochFacts;
  /** Workers evaluate modules of scripts. */
  readonly hasScripts: boolean;
}

export class Primary {
  /** Number of workers. */
  readonly concurrency: number;
  readonly epoch: EpochFacts;
  readonly shim: NativeShim;
  readonly extensions = new ExtensionRegistry(EXTENSIONS);
  readonly resolver = new DnsResolver();
  readonly tls: TlsContexts;
  readonly timers: TimerDriver;
  readonly store: StatsStore;
  readonly processStats: ProcessStats;
  /** Stat scopes in which workers count. */
  readonly scopes: WorkerScopes;
  /** The scope listener_manager. */
  readonly listenerManagerStats: Scope;
  readonly words = new SharedWordsOwner();
  /** Block of `words` in which all connections of the process are counted. */
  readonly listenersBlock = this.words.allocateListener();
  /** Memory of the token buckets that workers share. */
  readonly tokenBuckets = tokenBucketMemory();
  readonly watchdog: Watchdog;
  /** Undefined without enable_dispatcher_stats. */
  readonly loopWatch: LoopWatch | undefined;
  readonly workers: WorkerSet;
  readonly threads: AllThreads;
  readonly snapshots: Snapshots;
  readonly publication: Publication;
  readonly ports: PrimaryPorts;
  /** The state of a take-over by a child process. */
  readonly takeOver = new TakeOver();
  readonly #serverStats: Scope;

  constructor(options: PrimaryOptions) {
    const { bootstrap, concurrency, epoch } = options;
    this.concurrency = concurrency;
    this.epoch = epoch;
    this.shim = loadShim();
    this.timers = new TimerDriver((error) => internalError('a timer failed', error));
    const settings = statsSettings(bootstrap.stats_config, options.statsTags);
    this.store = new StatsStore({ workers: concurrency, settings });
    this.tls = new TlsContexts(this.shim, this.store, bootstrap.static_resources?.secrets ?? [], epoch.ticketKeys);
    const version = bootstrap.stats_server_version_override ?? `0x${options.revision.slice(0, 6)}`;
    this.processStats = new ProcessStats(this.store, concurrency, Number(version) || 0, epoch);
    this.processStats.countConfiguration(options.counts);
    this.scopes = new WorkerScopes(this.store);
    this.listenerManagerStats = this.scopes.add('listener_manager.', ListenerManagerStats);
    this.scopes.add('filesystem.', FilesystemStats);
    this.#serverStats = this.scopes.add('server.', ServerStats);
    countInternalErrors(errorCounts(this.#serverStats));
    for (let index = 0; index < concurrency; index++) this.scopes.add(bufferMemoryPrefix(index), BufferMemoryStats);
    if (bootstrap.enable_dispatcher_stats === true) {
      for (let index = 0; index < concurrency; index++) this.scopes.add(dispatcherPrefix(index), DispatcherStats);
      this.loopWatch = new LoopWatch(this.shim, this.scopes.add('server.dispatcher.', DispatcherStats));
    }
    if (options.handsOverConnections) this.scopes.add('server.hand_over.', HandOverStats);
    const killMs = workerKillMs(bootstrap, options.hasScripts);
    this.watchdog = new Watchdog(
      this.store,
      concurrency,
      watchdogsOf(bootstrap),
      killMs === undefined ? undefined : stuckWorkers(killMs, (worker) => this.workers.thread(worker)),
    );
    this.snapshots = new Snapshots(this.store, this.words, concurrency);
    const execArgv = options.hasScripts ? SCRIPT_THREAD_OPTIONS : undefined;
    this.workers = new WorkerSet(concurrency, execArgv, {
      applied: (index, version) => this.snapshots.applied(index, version),
      failed: (failure) => this.snapshots.failed(failure),
      extension: (index, name, message) => this.ports.receive(index, name, message),
      died: (index) => this.#workerDied(index),
    });
    this.threads = new AllThreads(concurrency, options.tracesContention, this.workers);
    this.publication = new Publication(this.snapshots, this.workers);
    this.ports = new PrimaryPorts(concurrency, (message) => this.workers.broadcast(message));
  }

  /** Replaces workers that the code of users blocks, unless the bootstrap's kill_timeout is 0. */
  guardWorkers(bootstrap: Bootstrap): void {
    const killMs = workerKillMs(bootstrap, true);
    if (killMs === undefined) return;
    this.watchdog.guard(stuckWorkers(killMs, (worker) => this.workers.thread(worker)));
  }

  /** Releases the dead worker's share of all shared numbers. */
  #workerDied(index: number): void {
    this.ports.workerDied(index);
    this.store.workerDied(index);
    this.words.forgetWorker(index + 1);
    forgetTokenBucketThread(this.tokenBuckets, index + 1);
    this.watchdog.forget(index);
    this.#serverStats.increment(ServerStats.at.envoy_bug_failures);
  }
}
