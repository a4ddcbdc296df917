// A few threads that render large bodies, so that the primary only forwards pieces. They end when idle.

import { MessageChannel } from 'node:worker_threads';
import { Piscina } from 'piscina';
import { messageOf } from '../../common/errors/errors.js';
import { leaveRemovedDirectory } from '../../common/files/working-directory.js';
import { programFile } from '../../common/package/package-root.js';
import { getLogger } from '../../log/logger.js';
import { BodySlots, EndingError } from './body-slots.js';
import { RenderStream } from './render-stream.js';
import type { RenderTask } from './render-thread.js';
import type { RenderKind, RenderRequests, RenderSupplies } from './renderers.js';

const THREADS = 2;
/** Bodies that one thread renders in turns, so that a slow client does not block others. */
const BODIES_PER_THREAD = 64;
/** Longer than common scrape intervals, so that a scraper finds the thread with its reader of the stats. */
const IDLE_MS = 20_000;

const YOUNG_MB = 12;
/**
 * Each body buffers up to half a megabyte for its client. 32 KiB per second is less than any network provides on which stats
 * are read.
 */
const SLOT_OPTIONS = { slots: THREADS * BODIES_PER_THREAD, roundMs: 2000, minBytes: 64 * 1024, maxWaitMs: 30_000 };

const logger = getLogger('admin');

/** Pieces of a body, the first of which is available. */
export interface Body extends AsyncIterableIterator<Uint8Array> {
  /** Sets a listener that is called when the body is cut off because its client reads almost nothing. */
  whenCut(listener: () => void): void;
}

export interface RenderPoolOptions {
  /** The file that threads run; default: render-thread.js. */
  readonly entry?: URL;
  /** How long an idle thread waits before it ends. */
  readonly idleMs?: number;
}

export class RenderPool {
  readonly #slots = new BodySlots(SLOT_OPTIONS);
  readonly #options: RenderPoolOptions;
  #pool: Piscina | undefined;
  /** Bodies that are rendered or queued on a thread. */
  readonly #inProgress = new Set<RenderStream>();
  #isClosed = false;

  constructor(options: RenderPoolOptions = {}) {
    this.#options = options;
  }

  /** Number of bodies that are rendered or not yet consumed. */
  get bodies(): number {
    return this.#slots.size;
  }

  /** Current number of threads. */
  get threads(): number {
    return this.#pool?.threads.length ?? 0;
  }

  /**
   * Starts to render a body. Resolves with its pieces when the first is available; they must be consumed or ended with
   * return(). Rejects if the body cannot be rendered, with a NoSlotError if there are too many others; next() rejects for
   * later failures. `supply`: called when the thread requests data that it caches.
   */
  async render<K extends RenderKind>(
    kind: K,
    request: RenderRequests[K],
    supply?: () => RenderSupplies[K],
  ): Promise<Body> {
    if (this.#isClosed) throw new EndingError();
    const { port1, port2 } = new MessageChannel();
    const stream: RenderStream = new RenderStream(port1, supply, () => this.#slots.release(stream));
    try {
      await this.#slots.admit(stream);
      // close() may have been called in the meantime: nothing would end a pool created now.
      if (this.#isClosed) throw new EndingError();
    } catch (error) {
      stream.fail(error as Error);
      throw error;
    }
    const task: RenderTask = { kind, request, port: port2 };
    this.#pool ??= this.#newPool();
    leaveRemovedDirectory();
    try {
      const run = this.#pool.run(task, { transferList: [port2] });
      this.#inProgress.add(stream);
      run.catch((error: unknown) => stream.fail(died(error))).finally(() => this.#inProgress.delete(stream));
    } catch (error) {
      // The system has no thread for the task. The pool keeps the task and would fail with it later, without a receiver.
      this.#pool = undefined;
      stream.fail(died(error));
    }
    return withFirst(stream);
  }

  /** Ends all threads; bodies in progress fail with an EndingError. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const ending = new EndingError();
    this.#slots.close(ending);
    for (const stream of this.#inProgress) stream.fail(ending);
    await this.#pool?.destroy();
  }

  #newPool(): Piscina {
    const pool = newPool(this.#options);
    pool.on('error', (error: unknown) => this.#failed(pool, died(error)));
    return pool;
  }

  /**
   * Called when a thread has died before it received a body: the pool would let queued bodies wait until another thread
   * starts.
   */
  #failed(pool: Piscina, error: Error): void {
    logger.error(error.message);
    for (const stream of this.#inProgress) if (!stream.hasBegun) stream.fail(error);
    if (pool !== this.#pool || pool.threads.length > 0) return;
    this.#pool = undefined;
    void pool.destroy();
  }
}

function newPool({ entry, idleMs = IDLE_MS }: RenderPoolOptions): Piscina {
  return new Piscina({
    filename: (entry ?? programFile('admin/render/render-thread.js')).href,
    name: 'default',
    minThreads: 0,
    maxThreads: THREADS,
    concurrentTasksPerWorker: BODIES_PER_THREAD,
    idleTimeout: idleMs,
    // Waiting for tasks in Atomics.wait() would block the bodies in progress.
    atomics: 'disabled',
    recordTiming: false,
    // A larger heap would fill with pieces of text that are garbage immediately, and stay resident.
    resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB },
  });
}

function died(error: unknown): Error {
  return new Error(`a render thread has died: ${messageOf(error)}`);
}

/** Waits for the first piece, so that an immediate failure is an error and not an answer. */
async function withFirst(stream: RenderStream): Promise<Body> {
  const first = await stream.next();
  let isFirst = true;
  const pieces: Body = {
    next: () => {
      if (!isFirst) return stream.next();
      isFirst = false;
      return Promise.resolve(first);
    },
    return: () => {
      isFirst = false;
      return stream.return();
    },
    whenCut: (listener) => stream.whenCut(listener),
    [Symbol.asyncIterator]: () => pieces,
  };
  return pieces;
}
