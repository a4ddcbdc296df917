// Circuit breakers: a cluster's limits on connections, pending requests, requests and retries. All workers share the counts.

import { Priority } from '../common/priority.js';
import { Runtime } from '../runtime/runtime.js';
import { ClusterWord, type SharedWords } from './shared-words.js';

/** The limited resources, in the order of the words in a cluster's block. */
export const enum LimitKind {
  Connections = 0,
  PendingRequests = 1,
  Requests = 2,
  Retries = 3,
}

export const LIMIT_KINDS = 4;

/** The limits of one priority. */
export interface Thresholds {
  readonly maxConnections: number;
  readonly maxPendingRequests: number;
  readonly maxRequests: number;
  readonly maxRetries: number;
  /** ANY_POOLS: pools are not counted. */
  readonly maxConnectionPools: number;
  /** Replaces maxRetries. */
  readonly retryBudget: RetryBudget | undefined;
}

/** A limit on retries in proportion to the current requests. */
export interface RetryBudget {
  /** Percent of the active and pending requests. */
  readonly percent: number;
  /** Retries that are always permitted. */
  readonly minConcurrency: number;
}

export const DEFAULT_RETRY_BUDGET: RetryBudget = { percent: 20, minConcurrency: 3 };

/** No limit of connection pools. */
export const ANY_POOLS = 2 ** 32 - 1;

export const DEFAULT_THRESHOLDS: Thresholds = {
  maxConnections: 1024,
  maxPendingRequests: 1024,
  maxRequests: 1024,
  maxRetries: 3,
  maxConnectionPools: ANY_POOLS,
  retryBudget: undefined,
};

/** A cluster's limits with runtime overrides: `circuit_breakers.<cluster>.<default or high>.max_requests` and so on. */
export class RuntimeThresholds {
  readonly runtime: Runtime;
  readonly #cluster: string;
  readonly #configured: readonly [Thresholds, Thresholds];
  #version = -1;
  #current: readonly [Thresholds, Thresholds];

  /** `configured` as [default, high]. */
  constructor(cluster: string, configured: readonly [Thresholds, Thresholds], runtime = new Runtime()) {
    this.runtime = runtime;
    this.#cluster = cluster;
    this.#configured = configured;
    this.#current = configured;
  }

  /** [default, high]. Becomes another object when the runtime changes. */
  get current(): readonly [Thresholds, Thresholds] {
    if (this.#version !== this.runtime.version) {
      this.#version = this.runtime.version;
      this.#current = [this.#read('default', Priority.Default), this.#read('high', Priority.High)];
    }
    return this.#current;
  }

  #read(name: string, priority: Priority): Thresholds {
    const prefix = `circuit_breakers.${this.#cluster}.${name}.`;
    const configured = this.#configured[priority];
    const value = (key: string, otherwise: number) => this.runtime.get(`${prefix}${key}`)?.integer ?? otherwise;
    return {
      maxConnections: value('max_connections', configured.maxConnections),
      maxPendingRequests: value('max_pending_requests', configured.maxPendingRequests),
      maxRequests: value('max_requests', configured.maxRequests),
      maxRetries: value('max_retries', configured.maxRetries),
      maxConnectionPools: value('max_connection_pools', configured.maxConnectionPools),
      retryBudget: this.#readBudget(`${prefix}retry_budget.`, configured.retryBudget),
    };
  }

  /** Returns the retry budget. Runtime may also set one where none is configured. */
  #readBudget(prefix: string, configured: RetryBudget | undefined): RetryBudget | undefined {
    const percent = this.runtime.get(`${prefix}budget_percent`)?.double;
    const minConcurrency = this.runtime.get(`${prefix}min_retry_concurrency`)?.integer;
    if (percent === undefined && minConcurrency === undefined) return configured;
    const base = configured ?? DEFAULT_RETRY_BUDGET;
    return { percent: percent ?? base.percent, minConcurrency: minConcurrency ?? base.minConcurrency };
  }
}

/** One worker's access to a cluster's circuit breakers. The worker that acquires a slot releases it exactly once. */
export class ClusterLimits {
  readonly #shared: SharedWords;
  /** Index of the first counter's word. */
  readonly #first: number;
  readonly #pools: number;
  readonly #thresholds: RuntimeThresholds;
  readonly #runtime: Runtime;
  /** Limits by priority and kind, as of runtime version #version. */
  readonly #max = new Int32Array(2 * LIMIT_KINDS);
  #version = -1;

  /** `block`: the cluster's block in SharedWords. */
  constructor(shared: SharedWords, block: number, thresholds: RuntimeThresholds) {
    this.#shared = shared;
    this.#first = block + ClusterWord.Limits;
    this.#pools = block + ClusterWord.Pools;
    this.#thresholds = thresholds;
    this.#runtime = thresholds.runtime;
  }

  /** Takes a slot unless the breaker is open. */
  tryAcquire(kind: LimitKind, priority: Priority = Priority.Default): boolean {
    if (this.#version !== this.#runtime.version) this.#update();
    const at = priority * LIMIT_KINDS + kind;
    return this.#shared.tryAcquire(this.#first + at, this.#max[at]!);
  }

  /** tryAcquire() for a retry, whose limit may depend on the current requests. */
  tryAcquireRetry(priority: Priority = Priority.Default): boolean {
    const requests = this.current(LimitKind.Requests, priority) + this.current(LimitKind.PendingRequests, priority);
    const limit = retryLimit(this.#thresholds.current[priority], requests);
    return this.#shared.tryAcquire(this.#first + priority * LIMIT_KINDS + LimitKind.Retries, limit);
  }

  /** Takes a slot even if the breaker is open: for a pool's first connection, without which its requests would wait forever. */
  acquire(kind: LimitKind, priority: Priority = Priority.Default): void {
    this.#shared.acquire(this.#first + priority * LIMIT_KINDS + kind);
  }

  release(kind: LimitKind, priority: Priority = Priority.Default): void {
    this.#shared.release(this.#first + priority * LIMIT_KINDS + kind);
  }

  /** Returns whether connection pools are limited, and therefore counted. */
  limitsPools(priority: Priority): boolean {
    return this.#thresholds.current[priority].maxConnectionPools < ANY_POOLS;
  }

  /** Counts a pool that gets its first connection. Returns false if there are too many of them. */
  tryAcquirePool(priority: Priority): boolean {
    const limit = Math.min(this.#thresholds.current[priority].maxConnectionPools, MAX_COUNT);
    return this.#shared.tryAcquire(this.#pools + priority, limit);
  }

  releasePool(priority: Priority): void {
    this.#shared.release(this.#pools + priority);
  }

  /** Returns how many slots all workers hold. */
  current(kind: LimitKind, priority: Priority = Priority.Default): number {
    return this.#shared.read(this.#first + priority * LIMIT_KINDS + kind);
  }

  max(kind: LimitKind, priority: Priority = Priority.Default): number {
    if (this.#version !== this.#runtime.version) this.#update();
    return this.#max[priority * LIMIT_KINDS + kind]!;
  }

  /** Returns whether tryAcquire() would fail now. */
  isOpen(kind: LimitKind, priority: Priority = Priority.Default): boolean {
    return this.current(kind, priority) >= this.max(kind, priority);
  }

  #update(): void {
    this.#version = this.#runtime.version;
    for (const [priority, limits] of this.#thresholds.current.entries()) {
      for (let kind = 0; kind < LIMIT_KINDS; kind++) this.#max[priority * LIMIT_KINDS + kind] = limitOf(limits, kind);
    }
  }
}

/** Returns the threshold of a kind, capped at the largest value of a counter. */
export function limitOf(limits: Thresholds, kind: LimitKind): number {
  return Math.min(limits[FIELDS[kind]], MAX_COUNT);
}

/** Returns how many retries are permitted with this number of active and pending requests. */
export function retryLimit(limits: Thresholds, requests: number): number {
  const budget = limits.retryBudget;
  if (budget === undefined) return limitOf(limits, LimitKind.Retries);
  return Math.min(MAX_COUNT, Math.max(Math.floor((budget.percent / 100) * requests), budget.minConcurrency));
}

/** Returns the index of a counter's word, for the primary, which reads gauges from it. */
export function limitWord(block: number, kind: LimitKind, priority: Priority): number {
  return block + ClusterWord.Limits + priority * LIMIT_KINDS + kind;
}

const FIELDS = ['maxConnections', 'maxPendingRequests', 'maxRequests', 'maxRetries'] as const;

const MAX_COUNT = 2 ** 31 - 1;
