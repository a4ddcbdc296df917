// One worker as the primary sees it: a long-lived task in a thread of its own, started again whenever the thread dies.

import { MessageChannel, type MessagePort } from 'node:worker_threads';
import { Piscina } from 'piscina';
import { messageOf } from '../../common/errors/errors.js';
import { leaveRemovedDirectory } from '../../common/files/working-directory.js';
import { programFile } from '../../common/package/package-root.js';
import { atMostMs } from '../../common/time/within-ms.js';
import { internalError } from '../../log/internal-errors.js';
import { getLogger, type LoggerFile } from '../../log/logger.js';
import type { FromWorker, ToWorker, WorkerStart } from '../../worker/messages/messages.js';
import type { SnapshotFailure } from './snapshots.js';

const logger = getLogger('main');

/** After a shorter life than this a worker is restarted with a pause, which grows up to LONGEST_PAUSE_MS. */
const SHORT_LIFE_MS = 5000;
const LONGEST_PAUSE_MS = 1000;
/** How long to wait for an answer; threads answer between two turns of their loops. */
const ANSWER_MS = 1000;

export interface WorkerThreadEvents {
  /** Everything that the thread needs to begin, as of now. */
  startData(): Omit<WorkerStart, 'isReplacement'>;
  /** It uses the snapshot of this version. */
  applied(version: number): void;
  /** It cannot use the snapshot of this version as it is. */
  failed(failure: SnapshotFailure): void;
  /** It has sent something for the part of an extension on the primary. */
  extension(name: string, message: unknown): void;
  /** These source files have loggers in the thread. */
  loggerFiles(files: readonly LoggerFile[]): void;
  /** The thread has died of `error`. What it held of shared numbers has to be taken back. */
  died(error: unknown): void;
}

export class WorkerThread {
  readonly index: number;
  readonly #events: WorkerThreadEvents;
  #pool: Piscina;
  #port: MessagePort | undefined;
  #isEnding = false;
  #beginning: AbortController | undefined;
  #deaths = 0;
  #restart: NodeJS.Timeout | undefined;
  #ended: Promise<void> = Promise.resolve();

  constructor(index: number, events: WorkerThreadEvents) {
    this.index = index;
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

  /** Asks the thread something; undefined when it has not answered in time, or has died. */
  ask<T>(question: (reply: MessagePort) => ToWorker, timeoutMs = ANSWER_MS): Promise<T | undefined> {
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

  /** Tells the thread to end, and resolves when it has ended. It is terminated after `timeoutMs`. */
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
    });
    // The thread has failed before it took its task, which would wait for ever.
    pool.on('error', (error: unknown) => this.#beginning?.abort(error));
    return pool;
  }

  #run(task: object, options: Parameters<Piscina['run']>[1]): Promise<void> {
    try {
      return this.#pool.run(task, options);
    } catch (error) {
      // The system could not start a thread. The pool keeps the task all the same, and would give it to the next thread.
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
      case 'logger-files':
        return this.#events.loggerFiles(message.files);
    }
  }

  #died(error: unknown, livedMs: number): void {
    if (this.#isEnding) return;
    logger.critical(`worker ${this.index} died: ${messageOf(error)}; starting another one`);
    this.#events.died(error);
    this.#deaths = livedMs < SHORT_LIFE_MS ? this.#deaths + 1 : 0;
    const pauseMs = this.#deaths === 0 ? 0 : Math.min(LONGEST_PAUSE_MS, 10 * 2 ** this.#deaths);
    this.#restart = setTimeout(() => this.start(), pauseMs);
  }
}
