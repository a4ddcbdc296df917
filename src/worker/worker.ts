// A worker thread: serves connections and executes the primary's messages until it is shut down.

import type { MessagePort } from 'node:worker_threads';
import { AccessLogFiles } from '../access-log/files/file-log.js';
import { isMemoryShortage } from '../common/errors/shortages.js';
import { ownHeapBytes, threadMemory } from '../common/process/thread-memory.js';
import { ProfiledThread } from '../common/profiling/profiled-thread.js';
import { Random } from '../common/random.js';
import { runSync } from '../common/time/next-turn.js';
import { atMostMs } from '../common/time/within-ms.js';
import { bufferLimitBytes } from '../config/fields/buffer-limit.js';
import { EXTENSIONS } from '../extensions/index.js';
import { ExtensionRegistry } from '../extensions/registry.js';
import { DatagramAccess } from '../io/datagrams/datagram-access.js';
import { openMemory } from '../io/memory.js';
import { loadShim, type NativeShim } from '../io/shim.js';
import { openThreadIo } from '../io/thread-io.js';
import type { TimerDriver } from '../io/time/timer-driver.js';
import type { Transport } from '../io/transport/transport.js';
import { countInternalErrors, guardThread, internalError } from '../log/internal-errors.js';
import { getLogger, initLogging, reopenLog, setLevelRules, watchLoggerFiles } from '../log/logger.js';
import { OVERLOAD_PORT, type OverloadSpec, type OverloadState } from '../runtime/overload/overload-state.js';
import { ThreadOverload } from '../runtime/overload/thread-overload.js';
import { Runtime } from '../runtime/runtime.js';
import type { RuntimeChange } from '../runtime/snapshot.js';
import { BufferMemoryStats, bufferMemoryPrefix } from '../stats/layouts/buffer-memory.js';
import { FilesystemStats } from '../stats/layouts/filesystem.js';
import { LoadShedPointStats } from '../stats/layouts/overload.js';
import { DispatcherStats, dispatcherPrefix, ServerStats } from '../stats/layouts/server.js';
import { LoopWatch } from '../stats/loop-watch.js';
import { type Scope, ThreadStats } from '../stats/thread-stats.js';
import { EVENT_PORT } from '../upstream/event-report.js';
import { FAILED_CHECK_PORT } from '../upstream/health-checks/failed-check-report.js';
import { InternalConnections } from '../upstream/internal-connections.js';
import { OUTLIER_PORT } from '../upstream/outliers/outlier-report.js';
import { REQUESTED_HOSTS_PORT } from '../upstream/requested-hosts/host-request.js';
import { SharedWords } from '../upstream/shared-words.js';
import { placeOfThread, type UpstreamThread } from '../upstream/upstream-thread.js';
import { WorkerPorts } from './extensions/worker-ports.js';
import { HandOver } from './hand-over/hand-over.js';
import { Heartbeat } from './messages/heartbeat.js';
import type { FromWorker, Snapshot, ToWorker, WorkerConnections, WorkerStart } from './messages/messages.js';
import { BufferedSampler } from './stats/buffered-sampler.js';
import { errorCounts } from './stats/error-counts.js';
import { FilesystemStatsUpdate } from './stats/filesystem-stats.js';
import { MemoryMaintenance } from './stats/memory-maintenance.js';
import { ThreadScopes } from './stats/thread-scopes.js';
import { WorkerConfiguration } from './worker-configuration.js';

const logger = getLogger('main');

/** A message to a worker that serves. */
type Instruction = Exclude<ToWorker, { readonly kind: 'shut-down' }>;

/**
 * Descriptors reserved for operations. A reload, a replaced thread, or one that renders or reads a configuration takes five to
 * ten; each admin connection, log file, stream to a management server and name lookup takes one or two.
 */
const DESCRIPTOR_RESERVE = 64;
/** After this many consecutive failed turns the thread serves no client any more, and ends. */
const MAX_FAILED_TURNS = 100;
/** Maximum time for writing buffered log lines when the worker ends. */
const FINAL_FLUSH_MS = 1000;

class Worker {
  readonly #name: string;
  readonly #port: MessagePort;
  readonly #shim: NativeShim;
  readonly #runtime: Runtime;
  readonly #ports: WorkerPorts;
  readonly #transport: Transport;
  readonly #datagrams: DatagramAccess;
  readonly #timers: TimerDriver;
  readonly #configuration: WorkerConfiguration;
  readonly #accessLogFiles: AccessLogFiles;
  readonly #scopes: ThreadScopes;
  readonly #filesystemStats: FilesystemStatsUpdate;
  readonly #serverStats: Scope;
  readonly #profiled: ProfiledThread;
  readonly #heartbeat: Heartbeat;
  readonly #loopWatch: LoopWatch | undefined;
  readonly #sampler: BufferedSampler;
  readonly #memoryMaintenance: MemoryMaintenance;
  readonly #handOver: HandOver;
  /** Received parts of an incomplete runtime change. */
  #runtimeParts: RuntimeChange['entries'][] = [];
  /** A snapshot is being applied in steps. */
  #isApplying = false;
  /** Messages received meanwhile. */
  readonly #queue: Instruction[] = [];
  #isEnded = false;
  /** The error that is ending the thread. */
  #fatal: { readonly error: unknown } | undefined;

  constructor(start: WorkerStart, port: MessagePort) {
    this.#name = `worker_${start.index}`;
    this.#profiled = new ProfiledThread(this.#name);
    this.#port = port;
    this.#runtime = new Runtime(start.runtime);
    this.#ports = new WorkerPorts(start.index, start.extensionStates, (name, message, transfer) =>
      port.postMessage({ kind: 'extension', name, message } satisfies FromWorker, transfer),
    );
    const shim = loadShim();
    this.#shim = shim;
    this.#startLogging(start, shim);
    const stats = new ThreadStats(start.stats);
    const { relief, timers, ...io } = openThreadIo(shim, {
      memory: openMemory(start.bufferMemory),
      bufferLimit: bufferLimitBytes(),
      reserve: DESCRIPTOR_RESERVE,
      failed: internalError,
    });
    this.#timers = timers;
    this.#transport = io.transport;
    this.#accessLogFiles = new AccessLogFiles(start.fileFlush, {
      opened: (file, path, memory) => this.#send({ kind: 'log-opened', file, path, memory }),
      closed: (file) => this.#send({ kind: 'log-closed', file }),
    });
    this.#scopes = new ThreadScopes(stats);
    this.#scopes.add(start.snapshot.statScopes);
    this.#serverStats = this.#scopes.find('server.', ServerStats);
    countInternalErrors(errorCounts(this.#serverStats));
    this.#countMemory();
    this.#filesystemStats = new FilesystemStatsUpdate(
      this.#accessLogFiles,
      this.#scopes.find('filesystem.', FilesystemStats),
    );
    const failedChecks = this.#ports.port(FAILED_CHECK_PORT);
    const outliers = this.#ports.port(OUTLIER_PORT);
    const events = this.#ports.port(EVENT_PORT);
    const requestedHosts = this.#ports.port(REQUESTED_HOSTS_PORT);
    const extensions = new ExtensionRegistry(EXTENSIONS);
    const random = new Random();
    const thread: UpstreamThread = {
      ...io,
      wheel: timers.wheel,
      random,
      stats,
      words: new SharedWords(start.words),
      runtime: this.#runtime,
      policies: extensions,
      internal: new InternalConnections(start.internalBufferBytes),
      overload: start.overload && this.#overload(start.overload, random),
      ...placeOfThread(start.place),
      reportFailedCheck: (report) => failedChecks.send(report),
      reportOutlier: (report) => outliers.send(report),
      reportEvents: (report) => events.send(report),
      requestHost: (request) => requestedHosts.send(request),
    };
    this.#sampler = new BufferedSampler(this.#transport);
    const memoryScope = this.#scopes.find(bufferMemoryPrefix(start.index), BufferMemoryStats);
    this.#memoryMaintenance = new MemoryMaintenance(this.#name, {
      transport: io.transport,
      relief,
      shim,
      scope: memoryScope,
    });
    this.#heartbeat = new Heartbeat(start.heartbeat, start.index);
    if (start.watchesLoop)
      this.#loopWatch = new LoopWatch(shim, this.#scopes.find(dispatcherPrefix(start.index), DispatcherStats));
    this.#datagrams = new DatagramAccess(shim, io.transport, DESCRIPTOR_RESERVE);
    this.#configuration = new WorkerConfiguration(start, {
      thread,
      extensions,
      scopes: this.#scopes,
      ports: this.#ports,
      accessLogFiles: this.#accessLogFiles,
      datagrams: this.#datagrams,
      send: (message) => this.#send(message),
      end: (error) => this.#dieOf(error),
    });
    this.#followOverload(thread.overload);
    this.#handOver = new HandOver(shim, this.#transport, this.#scopes, this.#configuration.listeners);
  }

  #overload(spec: OverloadSpec, random: Random): ThreadOverload {
    const overload = new ThreadOverload(spec, random, (prefix) => this.#scopes.find(prefix, LoadShedPointStats));
    overload.set((this.#ports.port(OVERLOAD_PORT).state ?? {}) as OverloadState);
    return overload;
  }

  #followOverload(overload: ThreadOverload | undefined): void {
    if (overload === undefined) return;
    this.#ports.port(OVERLOAD_PORT).onState = (state) => {
      this.#configuration.listeners.overloadChanged(overload.set(state as OverloadState));
    };
  }

  /** Applies the first snapshot synchronously. If there are scripts, later, when they are evaluated; messages are queued meanwhile. */
  apply(snapshot: Snapshot): void {
    const { loading } = this.#configuration.scripts;
    if (loading === undefined) return this.#applyFirst(snapshot);
    this.#isApplying = true;
    void loading.then(() => {
      if (this.#isEnded) return;
      this.#applyFirst(snapshot);
      this.#applied();
    });
  }

  #applyFirst(snapshot: Snapshot): void {
    runSync(this.#configuration.apply(snapshot));
    this.#heartbeat.beat();
  }

  /** Applies a snapshot in steps. Messages received meanwhile are queued. */
  #applyInSteps(snapshot: Snapshot): void {
    const steps = this.#configuration.apply(snapshot);
    if (this.#isDone(steps)) return;
    this.#isApplying = true;
    const step = () => {
      if (this.#isEnded) return;
      if (!this.#isDone(steps)) {
        setImmediate(step);
        return;
      }
      this.#applied();
    };
    setImmediate(step);
  }

  /** Handles the messages that were queued while a snapshot was applied. */
  #applied(): void {
    this.#isApplying = false;
    while (!this.#isApplying && this.#queue.length > 0) this.#execute(this.#queue.shift()!);
  }

  /** Runs the next step of a snapshot. Returns whether it was the last. */
  #isDone(steps: Iterator<void>): boolean {
    try {
      return steps.next().done === true;
    } catch (error) {
      internalError('internal error: a snapshot was not applied', error);
      return true;
    }
  }

  /** Handles a message. Returns false for 'shut-down'. */
  handle(message: ToWorker): boolean {
    if (message.kind === 'shut-down') return false;
    if (this.#isApplying) this.#queue.push(message);
    else this.#execute(message);
    return true;
  }

  /** Executes a message. An exception affects neither connections nor later messages. */
  #execute(message: Instruction): void {
    try {
      this.#dispatch(message);
    } catch (error) {
      internalError(`internal error: the primary's message '${message.kind}' could not be handled`, error);
    }
  }

  #dispatch(message: Instruction): void {
    const { listeners } = this.#configuration;
    switch (message.kind) {
      case 'snapshot':
        return this.#applyInSteps(message.snapshot);
      case 'runtime':
        return this.#changeRuntime(message.change, message.isWhole);
      case 'reopen-logs':
        reopenLog();
        void this.#accessLogFiles.reopenAll();
        return;
      case 'log-levels':
        return setLevelRules(message.rules);
      case 'count-memory':
        return this.#countMemory();
      case 'shrink-heap':
        this.#shim.collectGarbage();
        return this.#shim.trimMemory();
      case 'handled':
        return answer(message.reply, undefined);
      case 'memory':
        return answer(message.reply, threadMemory(this.#name));
      case 'profile':
        return void this.#profiled.run(message.command).then((profile) => answer(message.reply, profile));
      case 'accept':
        return listeners.accept(message.id);
      case 'suspend-listeners':
        return listeners.suspend(message.ids);
      case 'add-sockets':
        return listeners.addSockets(message.sockets);
      case 'stop-listeners':
        return listeners.stop(message.ids, message.acceptRest);
      case 'drain':
        return listeners.drain(message.windows);
      case 'drain-changed':
        return listeners.changeDrain(message.windows);
      case 'drain-ended':
        this.#transport.beginTurn();
        return listeners.drainEnded(message.ids);
      case 'connections':
        return answer(message.reply, this.#connections());
      case 'hand-over':
        return this.#handOver.startSending(message.channels, message.descriptors);
      case 'take-over':
        return this.#handOver.startReceiving(message.channels);
      case 'extension-state':
        this.#transport.beginTurn();
        return this.#ports.changed(message.name, message.state);
    }
  }

  /** Ends all connections, logs their requests, and writes buffered data. */
  async end(): Promise<void> {
    this.#isEnded = true;
    this.#handOver.close();
    this.#transport.beginTurn();
    this.#configuration.end();
    this.#datagrams.close();
    this.#transport.destroy();
    this.#timers.close();
    this.#heartbeat.stop();
    this.#loopWatch?.close();
    this.#sampler.close();
    this.#memoryMaintenance.close();
    await atMostMs(this.#accessLogFiles.flush(), FINAL_FLUSH_MS);
    this.#accessLogFiles.flushSync(0);
    this.#filesystemStats.close();
  }

  /**
   * Guards the thread. An uncaught exception belongs to no connection: it comes from an event of Node in a filter or a script, or
   * from the worker itself. The thread continues unless memory is exhausted or every turn fails.
   */
  guard(): void {
    const { scripts } = this.#configuration;
    guardThread(
      (error) => {
        if (this.#fatal !== undefined) throw this.#fatal.error;
        if (!isMemoryShortage(error) && this.#transport.failedTurns < MAX_FAILED_TURNS) return false;
        return this.#dieOf(error);
      },
      (error) => this.#fatal === undefined && !isMemoryShortage(error) && scripts.claims(error),
    );
  }

  /** Ends the thread. Writes what can be written without waiting. */
  #dieOf(error: unknown): never {
    if (this.#fatal === undefined) {
      this.#fatal = { error };
      logger.critical({ err: error }, 'the worker ends after an internal error');
      this.#abandon(error);
    }
    throw error;
  }

  #abandon(error: unknown): void {
    this.#handOver.close();
    this.#transport.beginTurn();
    this.#configuration.abandon(error);
    // Before its end the event loop would accept once more: new connections belong to the replacement thread.
    this.#datagrams.close();
    this.#transport.destroy();
    this.#accessLogFiles.flushSync(FINAL_FLUSH_MS);
    this.#filesystemStats.close();
  }

  /** Starts logging, and reports to the primary which files have loggers. */
  #startLogging({ levelRules, logging }: WorkerStart, { threadId }: NativeShim): void {
    initLogging({ ...logging, threadId });
    setLevelRules(levelRules);
    const files = watchLoggerFiles((file) => this.#send({ kind: 'logger-files', files: [file] }));
    this.#send({ kind: 'logger-files', files });
  }

  #changeRuntime({ entries, version }: RuntimeChange, isWhole: boolean): void {
    this.#runtimeParts.push(entries);
    if (!isWhole) return;
    this.#runtime.change({ version, entries: this.#runtimeParts.flat() });
    this.#runtimeParts = [];
    this.#configuration.listeners.runtimeChanged();
  }

  #countMemory(): void {
    const { allocated, reserved } = ownHeapBytes();
    this.#serverStats.set(ServerStats.at.memory_allocated, allocated);
    this.#serverStats.set(ServerStats.at.memory_heap_size, reserved);
  }

  #connections(): WorkerConnections {
    const { closing, listeners: sockets } = this.#transport.counts();
    const { listeners } = this.#configuration;
    return { listeners: listeners.connections(), closing, accepting: sockets - listeners.suspendedSockets };
  }

  #send(message: FromWorker): void {
    this.#port.postMessage(message);
  }
}

/** Replies on the port of a request, and closes it. */
function answer(reply: MessagePort, value: unknown): void {
  reply.postMessage(value);
  reply.close();
}

/** The thread's entry point: serves until 'shut-down'. */
export default function run({ start, port }: { start: WorkerStart; port: MessagePort }): Promise<void> {
  const worker = new Worker(start, port);
  worker.guard();
  return new Promise((resolve) => {
    const onMessage = (message: ToWorker): void => {
      if (worker.handle(message)) return;
      // A closed port still delivers queued messages, which the ended worker cannot handle.
      port.off('message', onMessage);
      port.close();
      const failed = (error: unknown) => internalError('internal error: the worker did not end in order', error);
      void worker.end().catch(failed).then(resolve);
    };
    port.on('message', onMessage);
    worker.apply(start.snapshot);
  });
}
