// All workers on the primary: started, notified and ended together.

import type { MessagePort } from 'node:worker_threads';
import { withRemedy } from '../../common/errors/shortages.js';
import { registerLoggerFiles } from '../../log/logger.js';
import type { ToWorker, WorkerStart } from '../../worker/messages/messages.js';
import type { SnapshotFailure } from './snapshots.js';
import { WorkerThread } from './worker-thread.js';

/** Workers that have not ended after this time are terminated. */
const WORKER_END_MS = 3000;
/** The start fails when this many workers have died before all of them run. */
const DEATHS_AT_START = 5;

/** Returns the current data with which the worker `index` starts. */
export type StartData = (index: number) => Omit<WorkerStart, 'isReplacement'>;

export interface WorkerSetEvents {
  /** Called when a worker runs the snapshot `version`. Returns whether all workers run the latest one. */
  applied(index: number, version: number): boolean;
  /** Called when a worker cannot use a snapshot as it is. */
  failed(failure: SnapshotFailure): void;
  /** Called with a message for an extension's part on the primary. */
  extension(index: number, name: string, message: unknown): void;
  /** Called when a worker has died; another one will replace it. Its share of shared counts must be released. */
  died(index: number): void;
}

export class WorkerSet {
  readonly #count: number;
  readonly #execArgv: readonly string[] | undefined;
  readonly #events: WorkerSetEvents;
  readonly #workers: WorkerThread[] = [];

  /** `execArgv`: options of Node for the threads; undefined: those of this process. */
  constructor(count: number, execArgv: readonly string[] | undefined, events: WorkerSetEvents) {
    this.#count = count;
    this.#execArgv = execArgv;
    this.#events = events;
  }

  get isStarted(): boolean {
    return this.#workers.length > 0;
  }

  /** Resolves when all workers run the latest snapshot. Rejects when a worker cannot use it, or when too many die. */
  start(startData: StartData): Promise<void> {
    return new Promise((resolve, reject) => {
      let deaths = 0;
      for (let index = 0; index < this.#count; index++) {
        const worker = new WorkerThread(index, this.#execArgv, {
          startData: () => startData(index),
          applied: (version) => {
            if (this.#events.applied(index, version)) resolve();
          },
          failed: (failure) => {
            this.#events.failed(failure);
            reject(new Error(failure.message));
          },
          extension: (name, message) => this.#events.extension(index, name, message),
          loggerFiles: registerLoggerFiles,
          died: (error) => {
            this.#events.died(index);
            // Better to end than never to become live: a supervisor can then start another server.
            if (++deaths < DEATHS_AT_START) return;
            reject(new Error(`workers have died ${deaths} times during start-up: ${withRemedy(error)}`));
          },
        });
        this.#workers.push(worker);
      }
      for (const worker of this.#workers) worker.start();
    });
  }

  thread(index: number): WorkerThread {
    return this.#workers[index]!;
  }

  broadcast(message: ToWorker): void {
    for (const worker of this.#workers) worker.send(message);
  }

  send(index: number, message: ToWorker): void {
    this.#workers[index]?.send(message);
  }

  /** Returns the answers that arrive in time. */
  async query<T>(question: (reply: MessagePort) => ToWorker, timeoutMs?: number): Promise<T[]> {
    const answers = await Promise.all(this.#workers.map((worker) => worker.query<T>(question, timeoutMs)));
    return answers.filter((answer) => answer !== undefined);
  }

  /** Resolves when all workers have ended. */
  async end(): Promise<void> {
    await Promise.all(this.#workers.map((worker) => worker.end(WORKER_END_MS)));
  }
}
