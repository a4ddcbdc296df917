// A few threads that make large bodies, so that the primary only passes pieces on. They end when nothing is asked of them.

import { MessageChannel } from 'node:worker_threads';
import { Piscina } from 'piscina';
import { messageOf } from '../../common/errors.js';
import { programFile } from '../../common/package-root.js';
import { getLogger } from '../../log/logger.js';
import { RenderStream } from './render-stream.js';
import type { RenderTask } from './render-thread.js';
import type { RenderKind, RenderRequests, RenderSupplies } from './renderers.js';

const THREADS = 2;
/** Bodies that one thread makes in turns: a client that takes its pieces slowly keeps no other waiting. */
const BODIES_A_THREAD = 64;
/** Longer than the time between two scrapes commonly is, so that a scraper finds the thread with its view of the stats. */
const IDLE_MS = 20_000;

const YOUNG_MB = 12;

const logger = getLogger('admin');

export interface RenderPoolOptions {
  /** The file that threads run; render-thread.js when left out. */
  readonly entry?: URL;
  /** How long a thread waits for something to do before it ends. */
  readonly idleMs?: number;
}

export class RenderPool {
  /** Bodies that are being made. */
  bodies = 0;
  readonly #options: RenderPoolOptions;
  #pool: Piscina | undefined;
  #isClosed = false;

  constructor(options: RenderPoolOptions = {}) {
    this.#options = options;
  }

  /** Threads that there are now. */
  get threads(): number {
    return this.#pool?.threads.length ?? 0;
  }

  /**
   * Begins to make a body. Resolves with its pieces when the first is there; they are to be read to their end or given up
   * with return(). Rejects when the body cannot be made, and next() does when that turns out later. `supply` is called when
   * the thread asks for what it may keep.
   */
  async render<K extends RenderKind>(
    kind: K,
    request: RenderRequests[K],
    supply?: () => RenderSupplies[K],
  ): Promise<AsyncIterableIterator<Uint8Array>> {
    if (this.#isClosed) throw new Error('the server is ending');
    this.#pool ??= newPool(this.#options);
    const { port1, port2 } = new MessageChannel();
    const stream = new RenderStream(port1, supply);
    const task: RenderTask = { kind, request, port: port2 };
    this.bodies++;
    this.#pool
      .run(task, { transferList: [port2] })
      .catch((error: unknown) => stream.fail(new Error(`a render thread has died: ${messageOf(error)}`)))
      .finally(() => this.bodies--);
    return withFirst(stream);
  }

  /** Ends all threads; bodies that are being made fail. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#pool?.destroy();
  }
}

function newPool({ entry, idleMs = IDLE_MS }: RenderPoolOptions): Piscina {
  const pool = new Piscina({
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
  pool.on('error', (error: unknown) => logger.error(`a render thread has died: ${messageOf(error)}`));
  return pool;
}

/** Waits for the first piece, so that what fails at once is an error and no answer. */
async function withFirst(stream: RenderStream): Promise<AsyncIterableIterator<Uint8Array>> {
  const first = await stream.next();
  let isFirst = true;
  const pieces: AsyncIterableIterator<Uint8Array> = {
    next: () => {
      if (!isFirst) return stream.next();
      isFirst = false;
      return Promise.resolve(first);
    },
    return: () => {
      isFirst = false;
      return stream.return();
    },
    [Symbol.asyncIterator]: () => pieces,
  };
  return pieces;
}
