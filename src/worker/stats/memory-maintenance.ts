// Maintains a worker's memory once a second, updates its stats, and logs when half of it is in use and when its shortage affects
// clients.

import type { MemoryUse } from '../../io/memory.js';
import type { MemoryRelief } from '../../io/memory-relief.js';
import { PageReleaser } from '../../io/page-releaser.js';
import type { NativeShim } from '../../io/shim.js';
import type { Transport } from '../../io/transport/transport.js';
import { getLogger } from '../../log/logger.js';
import { BufferMemoryStats } from '../../stats/layouts/buffer-memory.js';
import type { Scope } from '../../stats/thread-stats.js';

const logger = getLogger('main');

/** Steps between two warnings of the same kind. */
const WARNING_STEPS = 60;

export interface MemoryMaintenanceContext {
  readonly transport: Transport;
  readonly relief: MemoryRelief;
  readonly shim: Pick<NativeShim, 'releasePages' | 'trimMemory'>;
  readonly scope: Scope;
}

export class MemoryMaintenance {
  readonly #name: string;
  readonly #context: MemoryMaintenanceContext;
  readonly #pages: PageReleaser;
  #fallbacks = 0;
  #waits = 0;
  #ended = 0;
  #refusals = 0;
  readonly #half = new WarningLimit();
  readonly #short = new WarningLimit();

  /** `name` is the worker's name in logs. */
  constructor(name: string, context: MemoryMaintenanceContext) {
    this.#name = name;
    this.#context = context;
    this.#count(context.transport.memory.use());
    this.#pages = new PageReleaser(context.transport, context.shim, (use) => this.#count(use));
  }

  close(): void {
    this.#pages.close();
  }

  #count(use: MemoryUse): void {
    const { relief, scope, transport } = this.#context;
    const { at } = BufferMemoryStats;
    const waits = transport.memory.pressure.waiting.total;
    const { ended } = relief;
    const hurt = ended - this.#ended + use.refusals - this.#refusals;
    scope.set(at.buffer_memory_limit, use.limit);
    scope.set(at.buffer_memory_used, use.used);
    scope.set(at.buffer_memory_unsent, use.unsent);
    scope.set(at.buffer_memory_outside, use.outside);
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

  #warn(hurt: number, { limit, unsent, used }: MemoryUse): void {
    const inUse = `${megabytes(used + unsent)} of ${megabytes(limit)} MB are in use`;
    const isShort = this.#short.permits(hurt > 0);
    // The other warning includes this information.
    if (this.#half.permits(used + unsent > limit / 2) && !isShort) {
      logger.warning(
        `${this.#name} holds much of requests and responses: ${inUse}, and near the limit clients that wait are cut off; ${REMEDY}`,
      );
    }
    if (!isShort) return;
    logger.warning(
      `${this.#name} is short of memory for requests: ${inUse}, and ${hurt} requests were ended or refused in the last second; ${REMEDY}`,
    );
  }
}

const REMEDY = 'see server.worker_<N>.buffer_memory_* and --worker-buffer-memory-mb';

/** Limits a warning to once per WARNING_STEPS. */
class WarningLimit {
  #steps = 0;

  /** Called once per step. Returns whether to warn. */
  permits(isTrue: boolean): boolean {
    this.#steps--;
    if (!isTrue || this.#steps > 0) return false;
    this.#steps = WARNING_STEPS;
    return true;
  }
}

function megabytes(bytes: number): string {
  return (bytes / 1024 / 1024).toFixed(0);
}
