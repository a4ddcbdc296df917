// Circuit breakers: a cluster's limits on connections, pending requests, requests and retries, shared by all workers.

import { ClusterWord, type SharedWords } from './shared-words.js';

/** What is limited; the order is that of the words in a cluster's block. */
export const enum LimitKind {
  Connections = 0,
  PendingRequests = 1,
  Requests = 2,
  Retries = 3,
}

export const LIMIT_KINDS = 4;

/** Routing priority; each has limits of its own. */
export const enum Priority {
  Default = 0,
  High = 1,
}

/** Limits of one priority. */
export interface Thresholds {
  readonly maxConnections: number;
  readonly maxPendingRequests: number;
  readonly maxRequests: number;
  readonly maxRetries: number;
}

export const DEFAULT_THRESHOLDS: Thresholds = {
  maxConnections: 1024,
  maxPendingRequests: 1024,
  maxRequests: 1024,
  maxRetries: 3,
};

/** One worker's face of a cluster's breakers. What is acquired is released exactly once, by the same worker. */
export class ClusterLimits {
  readonly #shared: SharedWords;
  /** Word of the first counter. */
  readonly #first: number;
  /** Largest values, by priority and kind. */
  readonly #max = new Int32Array(2 * LIMIT_KINDS);

  /** `block` is the cluster's in SharedWords; thresholds as [default, high]. */
  constructor(shared: SharedWords, block: number, thresholds: readonly [Thresholds, Thresholds]) {
    this.#shared = shared;
    this.#first = block + ClusterWord.Limits;
    for (const [priority, limits] of thresholds.entries()) this.setThresholds(priority, limits);
  }

  /** New limits, also while requests are counted. */
  setThresholds(priority: Priority, limits: Thresholds): void {
    const at = priority * LIMIT_KINDS;
    this.#max[at + LimitKind.Connections] = Math.min(limits.maxConnections, LARGEST);
    this.#max[at + LimitKind.PendingRequests] = Math.min(limits.maxPendingRequests, LARGEST);
    this.#max[at + LimitKind.Requests] = Math.min(limits.maxRequests, LARGEST);
    this.#max[at + LimitKind.Retries] = Math.min(limits.maxRetries, LARGEST);
  }

  /** Takes one if the breaker is closed. */
  tryAcquire(kind: LimitKind, priority: Priority = Priority.Default): boolean {
    const at = priority * LIMIT_KINDS + kind;
    return this.#shared.tryAcquire(this.#first + at, this.#max[at]!);
  }

  /** Takes one though the breaker may be open: as a pool's first connection, without which requests could never go on. */
  acquire(kind: LimitKind, priority: Priority = Priority.Default): void {
    this.#shared.acquire(this.#first + priority * LIMIT_KINDS + kind);
  }

  release(kind: LimitKind, priority: Priority = Priority.Default): void {
    this.#shared.release(this.#first + priority * LIMIT_KINDS + kind);
  }

  /** How many all workers hold. */
  current(kind: LimitKind, priority: Priority = Priority.Default): number {
    return this.#shared.read(this.#first + priority * LIMIT_KINDS + kind);
  }

  max(kind: LimitKind, priority: Priority = Priority.Default): number {
    return this.#max[priority * LIMIT_KINDS + kind]!;
  }

  /** Whether tryAcquire() would refuse now. */
  isOpen(kind: LimitKind, priority: Priority = Priority.Default): boolean {
    return this.current(kind, priority) >= this.max(kind, priority);
  }
}

/** Word of a cluster's counter, for the primary, which reads gauges from it. */
export function limitWord(block: number, kind: LimitKind, priority: Priority): number {
  return block + ClusterWord.Limits + priority * LIMIT_KINDS + kind;
}

const LARGEST = 2 ** 31 - 1;
