// Looks after a worker's memory once a second: gives pages that are not used any more back to the kernel, keeps the stats up to date,
// and logs when clients suffer because it is short.

import type { MemoryUse } from '../../io/memory.js';
import type { MemoryRelief } from '../../io/memory-relief.js';
import type { NativeShim } from '../../io/shim.js';
import type { Transport } from '../../io/transport/transport.js';
import { getLogger } from '../../log/logger.js';
import { BufferMemoryStats } from '../../stats/layouts/buffer-memory.js';
import type { Scope } from '../../stats/thread-stats.js';

const logger = getLogger('main');

const STEP_MS = 1000;
/** Between two parts of what is given back at a time. */
const PART_MS = 10;
/** Steps between two warnings. */
const QUIET_STEPS = 60;
/** What the shim has freed stays with the C library, which is asked for it where it is at least so much. */
const TRIM_BYTES = 32 * 1024 * 1024;

export interface CaredFor {
  readonly transport: Transport;
  readonly relief: MemoryRelief;
  readonly shim: Pick<NativeShim, 'releasePages' | 'trimMemory'>;
  readonly scope: Scope;
}

export class MemoryCare {
  readonly #name: string;
  readonly #of: CaredFor;
  #timer: NodeJS.Timeout;
  #fallbacks = 0;
  #waits = 0;
  #ended = 0;
  #refusals = 0;
  #quietSteps = 0;
  /** Most that was unsent since the C library was asked. */
  #mostUnsent = 0;

  /** `name` is the worker's, as logs have it. */
  constructor(name: string, of: CaredFor) {
    this.#name = name;
    this.#of = of;
    this.#count(of.transport.memory.use());
    this.#timer = setTimeout(this.#step, STEP_MS).unref();
  }

  close(): void {
    clearTimeout(this.#timer);
  }

  readonly #step = (): void => {
    const { transport } = this.#of;
    const { memory } = transport;
    // What the last turn has released may be all that there is.
    transport.settle();
    const hasMore = memory.pageReturn.step(this.#release);
    const use = memory.use();
    this.#count(use);
    this.#trim(use.unsent);
    this.#sleep(hasMore);
  };

  readonly #part = (): void => {
    this.#sleep(this.#of.transport.memory.pageReturn.purge(this.#release));
  };

  #sleep(hasMore: boolean): void {
    this.#timer = (hasMore ? setTimeout(this.#part, PART_MS) : setTimeout(this.#step, STEP_MS)).unref();
  }

  readonly #release = (start: number, bytes: number): void => {
    const { shim, transport } = this.#of;
    shim.releasePages(transport.memory.bytes, start, bytes);
  };

  #trim(unsent: number): void {
    this.#mostUnsent = Math.max(this.#mostUnsent, unsent);
    if (this.#mostUnsent - unsent < TRIM_BYTES) return;
    this.#mostUnsent = unsent;
    this.#of.shim.trimMemory();
  }

  #count(use: MemoryUse): void {
    const { relief, scope, transport } = this.#of;
    const { at } = BufferMemoryStats;
    const waits = transport.memory.pressure.waiting.total;
    const { ended } = relief;
    const hurt = ended - this.#ended + use.refusals - this.#refusals;
    scope.set(at.buffer_memory_limit, use.limit);
    scope.set(at.buffer_memory_used, use.used);
    scope.set(at.buffer_memory_unsent, use.unsent);
    scope.set(at.buffer_memory_resident, use.resident);
    scope.add(at.buffer_memory_fallbacks, use.fallbacks - this.#fallbacks);
    scope.add(at.buffer_memory_waits, waits - this.#waits);
    scope.add(at.buffer_memory_ended, ended - this.#ended);
    scope.add(at.buffer_memory_refusals, use.refusals - this.#refusals);
    this.#fallbacks = use.fallbacks;
    this.#waits = waits;
    this.#ended = ended;
    this.#refusals = use.refusals;
    this.#warn(hurt, use);
  }

  #warn(hurt: number, { limit, used }: MemoryUse): void {
    this.#quietSteps--;
    if (hurt === 0 || this.#quietSteps > 0) return;
    this.#quietSteps = QUIET_STEPS;
    logger.warning(
      `${this.#name} is short of memory for requests: ${megabytes(used)} of ${megabytes(limit)} MB are in use, and ${hurt} ` +
        'requests were ended or refused in the last second; see server.worker_<N>.buffer_memory_* and --worker-buffer-memory-mb',
    );
  }
}

function megabytes(bytes: number): string {
  return (bytes / 1024 / 1024).toFixed(0);
}
