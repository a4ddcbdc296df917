// A few threads that make large bodies, so that the primary only passes pieces on. They end when nothing is asked of them.

import { MessageChannel } from 'node:worker_threads';
import { Piscina } from 'piscina';
import { messageOf } from '../../common/errors/errors.js';
import { leaveRemovedDirectory } from '../../common/files/working-directory.js';
import { programFile } from '../../common/package/package-root.js';
import { getLogger } from '../../log/logger.js';
import { BodyPlaces, EndingError } from './body-places.js';
import { RenderStream } from './render-stream.js';
import type { RenderTask } from './render-thread.js';
import type { RenderKind, RenderRequests, RenderSupplies } from './renderers.js';

const THREADS = 2;
/** Bodies that one thread makes in turns: a client that takes its pieces slowly keeps no other waiting. */
const BODIES_A_THREAD = 64;
/** Longer than the time between two scrapes commonly is, so that a scraper finds the thread with its view of the stats. */
const IDLE_MS = 20_000;

const YOUNG_MB = 12;
/** Half a megabyte of each may wait for its client. 32 KiB a second is less than any network has on which stats are read. */
const PLACES = { places: THREADS * BODIES_A_THREAD, roundMs: 2000, leastBytes: 64 * 1024, maxWaitMs: 30_000 };

const logger = getLogger('admin');

/** Pieces of a body, of which the first is there. */
export interface Body extends AsyncIterableIterator<Uint8Array> {
  /** `listener` is called when no more of it comes because its client has taken next to nothing of it. */
  whenCut(listener: () => void): void;
}

export interface RenderPoolOptions {
  /** The file that threads run; render-thread.js when left out. */
  readonly entry?: URL;
  /** How long a thread waits for something to do before it ends. */
  readonly idleMs?: number;
}

export class RenderPool {
  readonly #places = new BodyPlaces(PLACES);
  readonly #options: RenderPoolOptions;
  #pool: Piscina | undefined;
  /** Bodies that a thread makes, or is to make. */
  readonly #made = new Set<RenderStream>();
  #isClosed = false;

  constructor(options: RenderPoolOptions = {}) {
    this.#options = options;
  }

  /** Bodies that are being made, or have not been taken. */
  get bodies(): number {
    return this.#places.size;
  }

  /** Threads that there are now. */
  get threads(): number {
    return this.#pool?.threads.length ?? 0;
  }

  /**
   * Begins to make a body. Resolves with its pieces when the first is there; they are to be read to their end or given up
   * with return(). Rejects when the body cannot be made, and next() does when that turns out later; with a NoPlaceError when too
   * many others are. `supply` is called when the thread asks for what it may keep.
   */
  async render<K extends RenderKind>(
    kind: K,
    request: RenderRequests[K],
    supply?: () => RenderSupplies[K],
  ): Promise<Body> {
    if (this.#isClosed) throw new EndingError();
    const { port1, port2 } = new MessageChannel();
    const stream: RenderStream = new RenderStream(port1, supply, () => this.#places.release(stream));
    try {
      await this.#places.admit(stream);
      // It may have been closed since the place was given: a pool that is made now would be nobody's to end.
      if (this.#isClosed) throw new EndingError();
    } catch (error) {
      stream.fail(error as Error);
      throw error;
    }
    const task: RenderTask = { kind, request, port: port2 };
    this.#pool ??= this.#newPool();
    leaveRemovedDirectory();
    try {
      const made = this.#pool.run(task, { transferList: [port2] });
      this.#made.add(stream);
      made.catch((error: unknown) => stream.fail(died(error))).finally(() => this.#made.delete(stream));
    } catch (error) {
      // The system has no thread for it. The pool has the task all the same, and would fail with it later, for nobody.
      this.#pool = undefined;
      stream.fail(died(error));
    }
    return withFirst(stream);
  }

  /** Ends all threads; bodies that are being made fail with an EndingError. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const ending = new EndingError();
    this.#places.close(ending);
    for (const stream of this.#made) stream.fail(ending);
    await this.#pool?.destroy();
  }

  #newPool(): Piscina {
    const pool = newPool(this.#options);
    pool.on('error', (error: unknown) => this.#failed(pool, died(error)));
    return pool;
  }

  /** A thread has died before it was given a body: the pool would let those that wait for it wait until another thread begins. */
  #failed(pool: Piscina, error: Error): void {
    logger.error(error.message);
    for (const stream of this.#made) if (!stream.hasBegun) stream.fail(error);
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
    concurrentTasksPerWorker: BODIES_A_THREAD,
    idleTimeout: idleMs,
    // Waiting for tasks in Atomics.wait() would block the bodies that are being made.
    atomics: 'disabled',
    recordTiming: false,
    // More would be filled with pieces of text that are garbage at once, and stay resident.
    resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB },
  });
}

function died(error: unknown): Error {
  return new Error(`a render thread has died: ${messageOf(error)}`);
}

/** Waits for the first piece, so that what fails at once is an error and no answer. */
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
