// Requests to the primary and all workers: memory, profiles, logs, contention.

import type { ContentionSums } from '../../common/process/contention.js';
import { type ThreadMemory, threadMemory } from '../../common/process/thread-memory.js';
import type { ProfileCommand, ProfileReply } from '../../common/profiling/profile.js';
import { ProfiledThread } from '../../common/profiling/profiled-thread.js';
import type { LevelRules } from '../../log/level-rules.js';
import { reopenLog, setLevelRules } from '../../log/logger.js';
import { ContentionWatch } from '../stats/contention-watch.js';
import type { WorkerSet } from './worker-set.js';

/** Time limit of a thread's reply about a profile. */
const PROFILE_MS = 5000;

export class AllThreads {
  readonly #concurrency: number;
  readonly #workers: WorkerSet;
  readonly #contention: ContentionWatch | undefined;
  readonly #profiled = new ProfiledThread('primary');

  /** `tracesContention`: counts contention (--enable-mutex-tracing). */
  constructor(concurrency: number, tracesContention: boolean, workers: WorkerSet) {
    this.#concurrency = concurrency;
    this.#workers = workers;
    this.#contention = tracesContention ? new ContentionWatch(concurrency) : undefined;
  }

  /** Undefined when contention is not counted. */
  get contention(): ContentionSums | undefined {
    return this.#contention?.sums;
  }

  /** Returns the buffer in which a worker counts its contention. */
  contentionBuffer(worker: number): SharedArrayBuffer | undefined {
    return this.#contention?.bufferOf(worker);
  }

  /** Sets log levels in all threads, and in those that start later. */
  setLevelRules(rules: LevelRules): void {
    setLevelRules(rules);
    this.#workers.broadcast({ kind: 'log-levels', rules });
  }

  /** Resolves when the workers have handled all messages sent so far. Does not wait for a worker that fails to answer in time. */
  async handled(): Promise<void> {
    await this.#workers.query<undefined>((reply) => ({ kind: 'handled', reply }));
  }

  /** Reopens log files. */
  reopenLogs(): void {
    reopenLog();
    this.#workers.broadcast({ kind: 'reopen-logs' });
  }

  /** Returns the heap sizes of all threads that answer in time. */
  async memory(): Promise<ThreadMemory[]> {
    const workers = await this.#workers.query<ThreadMemory>((reply) => ({ kind: 'memory', reply }));
    return [threadMemory('primary'), ...workers];
  }

  /** Returns every thread's reply to a profile command, the primary's first. */
  async profile(command: ProfileCommand): Promise<ProfileReply[]> {
    const question = this.#workers.query<ProfileReply>((reply) => ({ kind: 'profile', command, reply }), PROFILE_MS);
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
