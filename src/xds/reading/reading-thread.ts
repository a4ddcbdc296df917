// The primary's end of the thread that reads resources. The thread is started by the first question, and ends when none has
// come for a while: what it has loaded is given back then.

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

/** Heap of the thread: a resource that needs more is refused instead of taking the process down. */
const MAX_HEAP_MB = 1024;
/** A thread at its limit gets 16 MB more to end in, which one collection of the young must not fill: it would end the process. */
const YOUNG_HEAP_MB = 12;
/** How long it waits for the next question. */
const IDLE_MS = 10_000;
/** How long after no thread could begin it is tried again. */
const RETRY_MS = 2000;
/** Warnings that are told once; further ones are not told at all. */
const MAX_TOLD = 10_000;

const logger = getLogger('config');

/** Said of what needs more memory than the thread may have. */
export const TOO_LARGE = `it needs more than ${MAX_HEAP_MB} MB of memory to read`;

/** No thread could begin, so nothing was read: what the system lacks now it may have later. */
export class NoThreadError extends Error {
  constructor(cause: unknown) {
    super(messageOf(cause), { cause });
    this.name = 'NoThreadError';
  }
}

export interface ReadingThreadOptions {
  readonly settings: ReadingSettings;
  /** What was counted while resources were read. */
  readonly counted: (counts: LoadCounts) => void;
  readonly idleMs?: number;
  readonly maxHeapMb?: number;
}

export class ReadingThread {
  readonly #options: ReadingThreadOptions;
  readonly #told = new Set<string>();
  /** Of questions without an answer. */
  readonly #open = new Set<AbortController>();
  #settings: ReadingSettings;
  #generation = 0;
  #pool: Piscina | undefined;
  /** Threads with former settings have ended. */
  #formers: Promise<unknown> = Promise.resolve();
  /** Why no thread could begin, as the log has said it. */
  #trouble = '';
  readonly #closed = new AbortController();

  constructor(options: ReadingThreadOptions) {
    this.#options = options;
    this.#settings = options.settings;
  }

  /** Another one: what was right before may be wrong, and the other way round. */
  get generation(): number {
    return this.#generation;
  }

  /** Reads otherwise from now on; what is being read is read anew. */
  renew(settings: ReadingSettings): void {
    if (isDeepStrictEqual(settings, this.#settings)) return;
    this.#settings = settings;
    this.#generation++;
    const former = this.#pool;
    this.#pool = undefined;
    if (former !== undefined) this.#formers = Promise.all([this.#formers, former.destroy()]);
  }

  /** Whether the thread is there now. */
  get isRunning(): boolean {
    return (this.#pool?.threads.length ?? 0) > 0;
  }

  /**
   * Rejects when the thread has died of the task; isTooLarge() says whether that is the fault of what was read. Rejects with a
   * NoThreadError when none could begin.
   */
  async ask<T extends ReadingTask>(task: T): Promise<ReadingResults[T['kind']]> {
    for (;;) {
      this.#pool ??= newPool(this.#settings, this.#options, (error) => this.#hasFailed(error));
      const pool = this.#pool;
      const open = new AbortController();
      leaveRemovedDirectory();
      let asked: Promise<unknown>;
      try {
        asked = pool.run(task, { signal: open.signal });
      } catch (error) {
        // The system has no thread for it. The pool has the task all the same, and would fail with it later, for nobody.
        this.#pool = undefined;
        throw new NoThreadError(error);
      }
      this.#open.add(open);
      try {
        const answer = await asked;
        if (pool === this.#pool) return answer as ReadingResults[T['kind']];
      } catch (error) {
        if (pool === this.#pool) throw open.signal.aborted ? open.signal.reason : error;
      } finally {
        this.#open.delete(open);
      }
    }
  }

  /** ask(), again and again as long as no thread can begin: until `unwanted`, or the end. */
  async askUntilAnswered<T extends ReadingTask>(task: T, unwanted?: AbortSignal): Promise<ReadingResults[T['kind']]> {
    for (;;) {
      try {
        const answer = await this.ask(task);
        this.#trouble = '';
        return answer;
      } catch (error) {
        if (!(error instanceof NoThreadError)) throw error;
        const { message } = error;
        if (message !== this.#trouble) logger.error(`no thread can read resources, it is tried again: ${message}`);
        this.#trouble = message;
      }
      const signals = [this.#closed.signal, ...(unwanted === undefined ? [] : [unwanted])];
      await pause(RETRY_MS, undefined, { signal: AbortSignal.any(signals) });
    }
  }

  /** Tells warnings that have not been told before, and passes on what was counted. */
  note({ warnings, counts }: { readonly warnings: readonly Problem[]; readonly counts: LoadCounts }): void {
    for (const warning of warnings) {
      if (this.#told.has(warning.message) || this.#told.size >= MAX_TOLD) continue;
      this.#told.add(warning.message);
      logger.warning(formatProblem(warning));
    }
    this.#options.counted(counts);
  }

  readonly encode: EncodeMessage = (message, value) =>
    this.askUntilAnswered({ kind: 'encode', message, value: value as object });

  /** Ends the thread; what it was asked is rejected. */
  async close(): Promise<void> {
    this.#closed.abort();
    await Promise.all([this.#formers, this.#pool?.destroy()]);
  }

  /** The thread has died without a task: the pool would keep those who ask waiting for the next question. */
  #hasFailed(error: Error): void {
    logger.error(`the thread that reads resources has failed: ${messageOf(error)}`);
    for (const open of this.#open) open.abort(isTooLarge(error) ? error : new NoThreadError(error));
  }
}

/** Whether the thread has died for want of memory. */
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
