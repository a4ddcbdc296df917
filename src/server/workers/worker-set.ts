// All workers as the primary sees them: started together, told things together, ended together.

import type { MessagePort } from 'node:worker_threads';
import { withRemedy } from '../../common/errors/shortages.js';
import { noteLoggerFiles } from '../../log/logger.js';
import type { ToWorker, WorkerStart } from '../../worker/messages/messages.js';
import type { SnapshotFailure } from './snapshots.js';
import { WorkerThread } from './worker-thread.js';

/** Workers that have not ended after this time are terminated. */
const WORKER_END_MS = 3000;
/** The start has failed when workers have died this often before all of them run. */
const DEATHS_AT_START = 5;

/** Gives everything that the worker of that index begins with, as it is now. */
export type StartData = (index: number) => Omit<WorkerStart, 'isReplacement'>;

export interface WorkerSetEvents {
  /** It runs the snapshot of this version. Returns whether all workers run the latest one. */
  applied(index: number, version: number): boolean;
  /** It cannot use the snapshot of this version as it is. */
  failed(failure: SnapshotFailure): void;
  /** It has sent something for the part of an extension on the primary. */
  extension(index: number, name: string, message: unknown): void;
  /** It has died, and another one will take its place. What it held of shared numbers has to be taken back. */
  died(index: number): void;
}

export class WorkerSet {
  readonly #count: number;
  readonly #events: WorkerSetEvents;
  readonly #workers: WorkerThread[] = [];

  constructor(count: number, events: WorkerSetEvents) {
    this.#count = count;
    this.#events = events;
  }

  get isStarted(): boolean {
    return this.#workers.length > 0;
  }

  /** Resolves when all workers run the latest snapshot. Rejects when one cannot use it, or they die again and again. */
  start(startData: StartData): Promise<void> {
    return new Promise((resolve, reject) => {
      let deaths = 0;
      for (let index = 0; index < this.#count; index++) {
        const worker = new WorkerThread(index, {
          startData: () => startData(index),
          applied: (version) => {
            if (this.#events.applied(index, version)) resolve();
          },
          failed: (failure) => {
            this.#events.failed(failure);
            reject(new Error(failure.message));
          },
          extension: (name, message) => this.#events.extension(index, name, message),
          loggerFiles: noteLoggerFiles,
          died: (error) => {
            this.#events.died(index);
            // A server that never becomes live is worse than none: a supervisor would start another one.
            if (++deaths < DEATHS_AT_START) return;
            reject(new Error(`workers have died ${deaths} times as they began: ${withRemedy(error)}`));
          },
        });
        this.#workers.push(worker);
      }
      for (const worker of this.#workers) worker.start();
    });
  }

  broadcast(message: ToWorker): void {
    for (const worker of this.#workers) worker.send(message);
  }

  send(index: number, message: ToWorker): void {
    this.#workers[index]?.send(message);
  }

  /** The answers of those that answer in time. */
  async ask<T>(question: (reply: MessagePort) => ToWorker, timeoutMs?: number): Promise<T[]> {
    const answers = await Promise.all(this.#workers.map((worker) => worker.ask<T>(question, timeoutMs)));
    return answers.filter((answer) => answer !== undefined);
  }

  /** Resolves when all of them have ended. */
  async end(): Promise<void> {
    await Promise.all(this.#workers.map((worker) => worker.end(WORKER_END_MS)));
  }
}
