// The memory of controllers, which the primary allocates for the workers: filters of the same configuration and stat_prefix share one.

import type { PrimaryFilterContext, PrimaryPart, PrimaryPort, WorkerContext, WorkerPort } from '../../../sdk.js';

const PORT = 'envoy.filters.http.adaptive_concurrency';

interface Held {
  readonly memory: SharedArrayBuffer;
  users: number;
}

const onPrimary = new WeakMap<PrimaryPort, Map<string, Held>>();

/** Makes a memory available to the workers, until the part is closed. `create` allocates it. */
export function shareMemory(context: PrimaryFilterContext, key: string, create: () => SharedArrayBuffer): PrimaryPart {
  const port = context.port(PORT);
  const held = onPrimary.get(port) ?? new Map<string, Held>();
  onPrimary.set(port, held);
  const publish = () => port.publish([...held].map(([name, { memory }]) => [name, memory]));
  const own = held.get(key) ?? { memory: create(), users: 0 };
  if (own.users++ === 0) {
    held.set(key, own);
    publish();
  }
  return {
    close() {
      if (--own.users > 0) return;
      held.delete(key);
      publish();
    },
  };
}

/** A worker's view of the memories. */
export class SharedMemories {
  readonly isLeader: boolean;
  readonly #port: WorkerPort;
  #memories = new Map<string, SharedArrayBuffer>();
  readonly #waiting = new Map<string, Set<(memory: SharedArrayBuffer) => void>>();

  static of(context: WorkerContext): SharedMemories {
    const port = context.port(PORT);
    const memories = onWorkers.get(port) ?? new SharedMemories(port);
    onWorkers.set(port, memories);
    return memories;
  }

  private constructor(port: WorkerPort) {
    this.#port = port;
    this.isLeader = port.worker === 0;
    port.onState = () => this.#changed();
    this.#changed();
  }

  /** Calls `use` once with the memory, now or when the primary has published it. Returns a function that stops that. */
  find(key: string, use: (memory: SharedArrayBuffer) => void): () => void {
    const memory = this.#memories.get(key);
    if (memory !== undefined) use(memory);
    else this.#waiting.set(key, (this.#waiting.get(key) ?? new Set()).add(use));
    return () => {
      const uses = this.#waiting.get(key);
      if (uses?.delete(use) && uses.size === 0) this.#waiting.delete(key);
    };
  }

  #changed(): void {
    this.#memories = new Map((this.#port.state ?? []) as [string, SharedArrayBuffer][]);
    for (const [key, uses] of this.#waiting) {
      const memory = this.#memories.get(key);
      if (memory === undefined) continue;
      this.#waiting.delete(key);
      for (const use of uses) use(memory);
    }
  }
}

const onWorkers = new WeakMap<WorkerPort, SharedMemories>();
