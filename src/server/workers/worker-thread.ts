// One worker on the primary: a long-lived task in its own thread, which is restarted when the thread dies.

import { MessageChannel, type MessagePort } from 'node:worker_threads';
import { Piscina } from 'piscina';
import { messageOf } from '../../common/errors/errors.js';
import { leaveRemovedDirectory } from '../../common/files/working-directory.js';
import { programFile } from '../../common/package/package-root.js';
import { atMostMs } from '../../common/time/within-ms.js';
import { internalError } from '../../log/internal-errors.js';
import { getLogger, type LoggerFile } from '../../log/logger.js';
import type { FromWorker, ToWorker, WorkerStart } from '../../worker/messages/messages.js';
import { LeftLogLines } from './left-log-lines.js';
import type { SnapshotFailure } from './snapshots.js';

const logger = getLogger('main');

/** A worker that lived for less than this is restarted after a pause, which grows up to MAX_PAUSE_MS. */
const SHORT_LIFE_MS = 5000;
const MAX_PAUSE_MS = 1000;
/** Time limit of an answer; threads answer between two turns of their loops. */
const ANSWER_MS = 1000;

export interface WorkerThreadEvents {
  /** Returns the current data with which the thread starts. */
  startData(): Omit<WorkerStart, 'isReplacement'>;
  /** Called when the thread uses the snapshot `version`. */
  applied(version: number): void;
  /** Called when the thread cannot use a snapshot as it is. */
  failed(failure: SnapshotFailure): void;
  /** Called with a message for an extension's part on the primary. */
  extension(name: string, message: unknown): void;
  /** Called with source files that have loggers in the thread. */
  loggerFiles(files: readonly LoggerFile[]): void;
  /** Called when the thread has died of `error`. Its share of shared numbers must be released. */
  died(error: unknown): void;
}

export class WorkerThread {
  readonly index: number;
  readonly #execArgv: readonly string[] | undefined;
  readonly #events: WorkerThreadEvents;
  readonly #logLines = new LeftLogLines();
  #pool: Piscina;
  #port: MessagePort | undefined;
  #isEnding = false;
  #beginning: AbortController | undefined;
  #deaths = 0;
  #restart: NodeJS.Timeout | undefined;
  #ended: Promise<void> = Promise.resolve();

  /** `execArgv`: see WorkerSet. */
  constructor(index: number, execArgv: readonly string[] | undefined, events: WorkerThreadEvents) {
    this.index = index;
    this.#execArgv = execArgv;
    this.#events = events;
    this.#pool = this.#newPool();
  }

  start(): void {
    leaveRemovedDirectory();
    const { port1, port2 } = new MessageChannel();
    const startedAt = performance.now();
    this.#port = port1;
    port1.on('message', (message: FromWorker) => this.#receive(message));
    this.#beginning = new AbortController();
    const { signal } = this.#beginning;
    const start: WorkerStart = { ...this.#events.startData(), isReplacement: this.#restart !== undefined };
    const task = { start, port: port2 };
    this.#ended = this.#run(task, { transferList: [port2], signal }).then(
      () => port1.close(),
      (error: unknown) => {
        port1.close();
        this.#died(signal.aborted ? signal.reason : error, performance.now() - startedAt);
      },
    );
  }

  send(message: ToWorker): void {
    this.#port?.postMessage(message);
  }

  /** Sends a question to the thread. Resolves with undefined when it fails to answer in time, or has died. */
  query<T>(question: (reply: MessagePort) => ToWorker, timeoutMs = ANSWER_MS): Promise<T | undefined> {
    const { port1, port2 } = new MessageChannel();
    return new Promise((resolve) => {
      const timer = setTimeout(() => port1.close(), timeoutMs);
      port1.on('message', (answer: T) => resolve(answer));
      port1.on('close', () => {
        clearTimeout(timer);
        resolve(undefined);
      });
      if (this.#port === undefined) port1.close();
      else this.#port.postMessage(question(port2), [port2]);
    });
  }

  /** Node's number of the thread; undefined while there is none. */
  get threadId(): number | undefined {
    return this.#pool.threads[0]?.threadId;
  }

  /** Ends the thread at once, whatever it does. Another one replaces it. */
  terminate(): void {
    void this.#pool.threads[0]?.terminate();
  }

  /** Requests the thread's end, and resolves when it has ended. Terminates it after `timeoutMs`. */
  async end(timeoutMs: number): Promise<void> {
    this.#isEnding = true;
    clearTimeout(this.#restart);
    this.send({ kind: 'shut-down' });
    await atMostMs(this.#ended, timeoutMs);
    await this.#pool.destroy();
  }

  #newPool(): Piscina {
    const pool = new Piscina({
      filename: programFile('worker/worker.js').href,
      name: 'default',
      minThreads: 0,
      maxThreads: 1,
      idleTimeout: Number.POSITIVE_INFINITY,
      // Waiting for tasks in Atomics.wait() would block the thread's event loop.
      atomics: 'disabled',
      recordTiming: false,
      ...(this.#execArgv && { execArgv: [...this.#execArgv] }),
    });
    // The thread failed before it took its task, which would otherwise wait forever.
    pool.on('error', (error: unknown) => this.#beginning?.abort(error));
    return pool;
  }

  #run(task: object, options: Parameters<Piscina['run']>[1]): Promise<void> {
    try {
      return this.#pool.run(task, options);
    } catch (error) {
      // The system could not start a thread. The pool still holds the task and would pass it to the next thread: replace the
      // pool.
      this.#pool = this.#newPool();
      return Promise.reject(error);
    }
  }

  #receive(message: FromWorker): void {
    try {
      this.#handle(message);
    } catch (error) {
      internalError(`internal error: the message '${message.kind}' of worker ${this.index} was not handled`, error);
    }
  }

  #handle(message: FromWorker): void {
    switch (message.kind) {
      case 'applied':
        return this.#events.applied(message.version);
      case 'failed':
        return this.#events.failed(message);
      case 'extension':
        return this.#events.extension(message.name, message.message);
      case 'log-opened':
        return this.#logLines.opened(message.file, message.path, message.memory);
      case 'log-closed':
        return this.#logLines.closed(message.file);
      case 'logger-files':
        return this.#events.loggerFiles(message.files);
    }
  }

  #died(error: unknown, livedMs: number): void {
    this.#logLines.write();
    if (this.#isEnding) return;
    logger.critical(`worker ${this.index} died: ${messageOf(error)}; starting another one`);
    this.#events.died(error);
    this.#deaths = livedMs < SHORT_LIFE_MS ? this.#deaths + 1 : 0;
    const pauseMs = this.#deaths === 0 ? 0 : Math.min(MAX_PAUSE_MS, 10 * 2 ** this.#deaths);
    this.#restart = setTimeout(() => this.start(), pauseMs);
  }
}
