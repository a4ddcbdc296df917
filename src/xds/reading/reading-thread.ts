// The primary's end of the reading thread. The first task starts the thread; it ends when it is idle, which frees its memory.

import { setTimeout as pause } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { Piscina } from 'piscina';
import { messageOf } from '../../common/errors/errors.js';
import { leaveRemovedDirectory } from '../../common/files/working-directory.js';
import { programFile } from '../../common/package/package-root.js';
import type { LoadCounts } from '../../config/load/load.js';
import { formatProblem, type Problem } from '../../config/text/problem.js';
import { getLogger } from '../../log/logger.js';
import type { EncodeMessage } from '../resource-reader.js';
import type { ReadingResults, ReadingSettings, ReadingTask } from './task.js';

/** Heap limit of the thread: a resource that needs more is refused instead of ending the process. */
const MAX_HEAP_MB = 1024;
/**
 * At its limit a thread gets 16 MB more in which to terminate. A young generation that fills them in one collection would end the
 * process.
 */
const YOUNG_HEAP_MB = 12;
/** Idle timeout of the thread. */
const IDLE_MS = 10_000;
/** Retry delay after a thread could not be started. */
const RETRY_MS = 2000;
/** Distinct warnings that are logged, once each; further ones are dropped. */
const MAX_WARNINGS = 10_000;

const logger = getLogger('config');

/** The error for a resource that exceeds the heap limit. */
export const TOO_LARGE = `it needs more than ${MAX_HEAP_MB} MB of memory to read`;

/** No thread could be started and nothing was read: the system may have more resources later. */
export class NoThreadError extends Error {
  constructor(cause: unknown) {
    super(messageOf(cause), { cause });
    this.name = 'NoThreadError';
  }
}

export interface ReadingThreadOptions {
  readonly settings: ReadingSettings;
  /** Called with the counts from reading resources. */
  readonly counted: (counts: LoadCounts) => void;
  readonly idleMs?: number;
  readonly maxHeapMb?: number;
}

export class ReadingThread {
  readonly #options: ReadingThreadOptions;
  readonly #reported = new Set<string>();
  /** Tasks in flight. */
  readonly #open = new Set<AbortController>();
  #settings: ReadingSettings;
  #generation = 0;
  #pool: Piscina | undefined;
  /** Resolves when threads with earlier settings have ended. */
  #retired: Promise<unknown> = Promise.resolve();
  /** The last logged reason why no thread could start. */
  #lastFailure = '';
  readonly #closed = new AbortController();

  constructor(options: ReadingThreadOptions) {
    this.#options = options;
    this.#settings = options.settings;
  }

  /** Changes with the settings, which may change the result of a check. */
  get generation(): number {
    return this.#generation;
  }

  /** Replaces the settings. Tasks in flight are repeated. */
  updateSettings(settings: ReadingSettings): void {
    if (isDeepStrictEqual(settings, this.#settings)) return;
    this.#settings = settings;
    this.#generation++;
    const former = this.#pool;
    this.#pool = undefined;
    if (former !== undefined) this.#retired = Promise.all([this.#retired, former.destroy()]);
  }

  /** Whether the thread is running. */
  get isRunning(): boolean {
    return (this.#pool?.threads.length ?? 0) > 0;
  }

  /**
   * Runs a task. Rejects when the task has killed the thread; isTooLarge() returns whether the resource is the cause. Rejects
   * with a NoThreadError when no thread could start.
   */
  async run<T extends ReadingTask>(task: T): Promise<ReadingResults[T['kind']]> {
    for (;;) {
      this.#pool ??= newPool(this.#settings, this.#options, (error) => this.#hasFailed(error));
      const pool = this.#pool;
      const open = new AbortController();
      leaveRemovedDirectory();
      let answered: Promise<unknown>;
      try {
        answered = pool.run(task, { signal: open.signal });
      } catch (error) {
        // The system cannot start a thread. The pool has queued the task nevertheless, and would later fail it unobserved.
        this.#pool = undefined;
        throw new NoThreadError(error);
      }
      this.#open.add(open);
      try {
        const answer = await answered;
        if (pool === this.#pool) return answer as ReadingResults[T['kind']];
      } catch (error) {
        if (pool === this.#pool) throw open.signal.aborted ? open.signal.reason : error;
      } finally {
        this.#open.delete(open);
      }
    }
  }

  /** Like run(), but retries while no thread can start, until `unwanted` or close(). */
  async runWithRetries<T extends ReadingTask>(task: T, unwanted?: AbortSignal): Promise<ReadingResults[T['kind']]> {
    for (;;) {
      try {
        const answer = await this.run(task);
        this.#lastFailure = '';
        return answer;
      } catch (error) {
        if (!(error instanceof NoThreadError)) throw error;
        const { message } = error;
        if (message !== this.#lastFailure) logger.error(`no thread can read resources; retrying: ${message}`);
        this.#lastFailure = message;
      }
      const signals = [this.#closed.signal, ...(unwanted === undefined ? [] : [unwanted])];
      await pause(RETRY_MS, undefined, { signal: AbortSignal.any(signals) });
    }
  }

  /** Logs new warnings, and forwards the counts. */
  report({ warnings, counts }: { readonly warnings: readonly Problem[]; readonly counts: LoadCounts }): void {
    for (const warning of warnings) {
      if (this.#reported.has(warning.message) || this.#reported.size >= MAX_WARNINGS) continue;
      this.#reported.add(warning.message);
      logger.warning(formatProblem(warning));
    }
    this.#options.counted(counts);
  }

  readonly encode: EncodeMessage = (message, value) =>
    this.runWithRetries({ kind: 'encode', message, value: value as object });

  /** Ends the thread; tasks in flight are rejected. */
  async close(): Promise<void> {
    this.#closed.abort();
    await Promise.all([this.#retired, this.#pool?.destroy()]);
  }

  /** Called when the thread has died without a task: the pool would not settle its tasks before the next one. */
  #hasFailed(error: Error): void {
    logger.error(`the thread that reads resources has failed: ${messageOf(error)}`);
    for (const open of this.#open) open.abort(isTooLarge(error) ? error : new NoThreadError(error));
  }
}

/** Returns whether the thread has died by exceeding its heap limit. */
export function isTooLarge(error: unknown): boolean {
  return (error as { readonly code?: unknown } | undefined)?.code === 'ERR_WORKER_OUT_OF_MEMORY';
}

function newPool(
  settings: ReadingSettings,
  { idleMs = IDLE_MS, maxHeapMb = MAX_HEAP_MB }: ReadingThreadOptions,
  failed: (error: Error) => void,
): Piscina {
  const pool = new Piscina({
    filename: programFile('xds/reading/thread.js').href,
    workerData: settings,
    minThreads: 0,
    maxThreads: 1,
    concurrentTasksPerWorker: 1,
    idleTimeout: idleMs,
    atomics: 'disabled',
    recordTiming: false,
    resourceLimits: { maxOldGenerationSizeMb: maxHeapMb, maxYoungGenerationSizeMb: YOUNG_HEAP_MB },
  });
  pool.on('error', failed);
  return pool;
}
