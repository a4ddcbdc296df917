// What is asked of the primary and all workers alike: memory, profiles, logs, contention.

import type { ContentionSums } from '../../common/process/contention.js';
import { type ThreadMemory, threadMemory } from '../../common/process/thread-memory.js';
import type { ProfileCommand, ProfileReply } from '../../common/profiling/profile.js';
import { ProfiledThread } from '../../common/profiling/profiled-thread.js';
import type { LevelRules } from '../../log/level-rules.js';
import { reopenLog, setLevelRules } from '../../log/logger.js';
import { ContentionWatch } from '../stats/contention-watch.js';
import type { WorkerSet } from './worker-set.js';

/** How long a thread may take for a profile. */
const PROFILE_MS = 5000;

export class AllThreads {
  readonly #concurrency: number;
  readonly #workers: WorkerSet;
  readonly #contention: ContentionWatch | undefined;
  readonly #profiled = new ProfiledThread('primary');

  /** `tracesContention`: contention is counted (--enable-mutex-tracing). */
  constructor(concurrency: number, tracesContention: boolean, workers: WorkerSet) {
    this.#concurrency = concurrency;
    this.#workers = workers;
    this.#contention = tracesContention ? new ContentionWatch(concurrency) : undefined;
  }

  /** Undefined when contention is not counted. */
  get contention(): ContentionSums | undefined {
    return this.#contention?.sums;
  }

  /** Where a worker counts how often it waited. */
  contentionBuffer(worker: number): SharedArrayBuffer | undefined {
    return this.#contention?.bufferOf(worker);
  }

  /** Sets log levels in all threads, and in those that start later. */
  setLevelRules(rules: LevelRules): void {
    setLevelRules(rules);
    this.#workers.broadcast({ kind: 'log-levels', rules });
  }

  /** Resolves when the workers have handled all messages sent so far. A worker that is too busy to answer is not waited for. */
  async handled(): Promise<void> {
    await this.#workers.ask<undefined>((reply) => ({ kind: 'handled', reply }));
  }

  /** Opens log files anew. */
  reopenLogs(): void {
    reopenLog();
    this.#workers.broadcast({ kind: 'reopen-logs' });
  }

  /** Heap sizes of all threads that answer in time. */
  async memory(): Promise<ThreadMemory[]> {
    const workers = await this.#workers.ask<ThreadMemory>((reply) => ({ kind: 'memory', reply }));
    return [threadMemory('primary'), ...workers];
  }

  /** What every thread answers to a command about profiles, the primary first. */
  async profile(command: ProfileCommand): Promise<ProfileReply[]> {
    const question = this.#workers.ask<ProfileReply>((reply) => ({ kind: 'profile', command, reply }), PROFILE_MS);
    const primary = await this.#profiled.run(command);
    const answers = new Map((await question).map((answer) => [answer.thread, answer]));
    const workers = Array.from({ length: this.#concurrency }, (_, index) => {
      const thread = `worker_${index}`;
      return answers.get(thread) ?? { thread, error: 'it has not answered in time' };
    });
    return [primary, ...workers];
  }

  close(): void {
    this.#contention?.close();
  }
}
