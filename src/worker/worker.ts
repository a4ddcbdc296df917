// A worker thread: builds runtime objects from the primary's snapshots and serves connections until it is told to end.

import type { MessagePort } from 'node:worker_threads';
import { AccessLogFiles } from '../access-log/file-log.js';
import { Random } from '../common/random.js';
import type { WorkerContext } from '../extensions/factories.js';
import { EXTENSIONS } from '../extensions/index.js';
import { ExtensionRegistry } from '../extensions/registry.js';
import { HeaderBlockPool } from '../http/header-block.js';
import { Clock } from '../io/clock.js';
import { Memory } from '../io/memory.js';
import { loadShim } from '../io/shim.js';
import { TimerDriver } from '../io/timer-driver.js';
import { bufferLimits, Transport } from '../io/transport.js';
import { Level } from '../log/levels.js';
import { getLogger, initLogging, reopenLog } from '../log/logger.js';
import type { Layout } from '../stats/layout.js';
import { FilesystemStats } from '../stats/layouts/filesystem.js';
import { type Scope, type ScopeRef, ThreadStats } from '../stats/thread-stats.js';
import { ClusterManager } from '../upstream/cluster-manager.js';
import { SharedWords } from '../upstream/shared-words.js';
import { FilesystemStatsUpdate } from './filesystem-stats.js';
import type { FromWorker, Snapshot, ToWorker, WorkerStart } from './messages.js';
import { DEFAULT_BUFFER_LIMIT, WorkerListeners } from './worker-listeners.js';

const logger = getLogger('main');

/** How long buffered log lines may take to be written when the worker ends. */
const FINAL_FLUSH_MS = 1000;

class Worker {
  readonly #port: MessagePort;
  readonly #stats: ThreadStats;
  readonly #transport: Transport;
  readonly #timers: TimerDriver;
  readonly #clusters: ClusterManager;
  readonly #listeners: WorkerListeners;
  readonly #accessLogFiles: AccessLogFiles;
  readonly #scopes = new Map<string, ScopeRef>();
  readonly #filesystemStats: FilesystemStatsUpdate;

  constructor(start: WorkerStart, port: MessagePort) {
    this.#port = port;
    const shim = loadShim();
    initLogging({ ...start.logging, threadId: shim.threadId });
    const memory = new Memory();
    const clock = new Clock();
    this.#stats = new ThreadStats(start.stats);
    this.#timers = new TimerDriver((error) => logger.exception(Level.Error, 'a timer failed', error), clock);
    const limits = bufferLimits(DEFAULT_BUFFER_LIMIT);
    this.#transport = new Transport(shim, memory, clock, limits, (error) => {
      logger.exception(Level.Error, 'a connection was ended after an internal error', error);
    });
    this.#transport.onTurn = () => this.#timers.wheel.setTime(clock.monotonicMs);
    this.#accessLogFiles = new AccessLogFiles(start.fileFlush);
    for (const [prefix, ref] of Object.entries(start.snapshot.scopes)) this.#scopes.set(prefix, ref);
    this.#filesystemStats = new FilesystemStatsUpdate(
      this.#accessLogFiles,
      this.#scope('filesystem.', FilesystemStats),
    );
    const thread = {
      transport: this.#transport,
      memory,
      clock,
      wheel: this.#timers.wheel,
      random: new Random(),
      stats: this.#stats,
      words: new SharedWords(start.words),
    };
    this.#clusters = new ClusterManager(thread);
    const context: WorkerContext = {
      ...thread,
      clusters: this.#clusters,
      accessLogFiles: this.#accessLogFiles,
      extensions: new ExtensionRegistry(EXTENSIONS),
      headerBlocks: new HeaderBlockPool(memory),
      identity: start.identity,
      scope: (prefix, layout) => this.#scope(prefix, layout),
    };
    this.#listeners = new WorkerListeners(context, start.index, start.workers);
  }

  /** Makes a snapshot current and tells the primary. */
  apply(snapshot: Snapshot): void {
    try {
      this.#stats.addChunks(snapshot.chunks);
      for (const [prefix, ref] of Object.entries(snapshot.scopes)) this.#scopes.set(prefix, ref);
      for (const cluster of snapshot.clusters) this.#clusters.apply(cluster);
      for (const listener of snapshot.listeners) this.#listeners.apply(listener);
      for (const name of snapshot.removedListeners) this.#listeners.remove(name);
      for (const name of snapshot.removedClusters) this.#clusters.remove(name);
      this.#send({ kind: 'applied', version: snapshot.version });
    } catch (error) {
      logger.exception(Level.Error, `snapshot ${snapshot.version} cannot be used`, error);
      this.#send({ kind: 'failed', message: error instanceof Error ? error.message : String(error) });
    }
  }

  /** Returns false when the worker has ended. */
  handle(message: ToWorker): boolean {
    switch (message.kind) {
      case 'snapshot':
        this.apply(message.snapshot);
        return true;
      case 'reopen-logs':
        reopenLog();
        void this.#accessLogFiles.reopenAll();
        return true;
      case 'stop-listeners':
        for (const name of message.names) this.#listeners.stop(name);
        return true;
      case 'shut-down':
        return false;
    }
  }

  /** Closes all connections and writes out what is buffered. */
  async end(): Promise<void> {
    this.#transport.destroy();
    this.#timers.close();
    let timer: NodeJS.Timeout | undefined;
    const timeout = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, FINAL_FLUSH_MS);
    });
    await Promise.race([this.#accessLogFiles.flush(), timeout]);
    clearTimeout(timer);
    this.#accessLogFiles.flushSync(0);
    this.#filesystemStats.close();
  }

  /** The thread is about to die: what can be written without waiting is written. */
  abandon(): void {
    // Before its end the event loop would accept once more, for nobody: new connections are for the thread that follows.
    this.#transport.destroy();
    this.#accessLogFiles.flushSync(FINAL_FLUSH_MS);
  }

  #scope(prefix: string, layout: Layout): Scope {
    const ref = this.#scopes.get(prefix);
    if (ref === undefined) throw new Error(`no stats scope '${prefix}' was made for ${layout.entries.length} stats`);
    return this.#stats.scope(ref);
  }

  #send(message: FromWorker): void {
    this.#port.postMessage(message);
  }
}

/** The body of the thread: serves until the primary says 'shut-down'. */
export default function run({ start, port }: { start: WorkerStart; port: MessagePort }): Promise<void> {
  const worker = new Worker(start, port);
  // Lines of requests that were served before a failure are written all the same.
  process.on('uncaughtExceptionMonitor', (error) => {
    logger.exception(Level.Critical, 'the worker ends after an internal error', error);
    worker.abandon();
  });
  return new Promise((resolve) => {
    port.on('message', (message: ToWorker) => {
      if (worker.handle(message)) return;
      port.close();
      void worker.end().then(resolve);
    });
    worker.apply(start.snapshot);
  });
}
