// Circuit breakers: a cluster's limits on connections, pending requests, requests and retries, shared by all workers.

import { Priority } from '../common/priority.js';
import { Runtime } from '../runtime/runtime.js';
import { ClusterWord, type SharedWords } from './shared-words.js';

/** What is limited; the order is that of the words in a cluster's block. */
export const enum LimitKind {
  Connections = 0,
  PendingRequests = 1,
  Requests = 2,
  Retries = 3,
}

export const LIMIT_KINDS = 4;

/** Limits of one priority. */
export interface Thresholds {
  readonly maxConnections: number;
  readonly maxPendingRequests: number;
  readonly maxRequests: number;
  readonly maxRetries: number;
  /** In place of maxRetries. */
  readonly retryBudget: RetryBudget | undefined;
}

/** Retries in proportion to the requests that there are. */
export interface RetryBudget {
  /** Of the requests that are under way or wait for a connection. */
  readonly percent: number;
  /** So many are granted in any case. */
  readonly minConcurrency: number;
}

export const DEFAULT_RETRY_BUDGET: RetryBudget = { percent: 20, minConcurrency: 3 };

export const DEFAULT_THRESHOLDS: Thresholds = {
  maxConnections: 1024,
  maxPendingRequests: 1024,
  maxRequests: 1024,
  maxRetries: 3,
  retryBudget: undefined,
};

/** A cluster's limits as runtime has them now: `circuit_breakers.<cluster>.<default or high>.max_requests` and so on. */
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

  /** [default, high]; may be another object once the runtime's version is another. */
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
      retryBudget: this.#readBudget(`${prefix}retry_budget.`, configured.retryBudget),
    };
  }

  /** Runtime may also set one where none is configured. */
  #readBudget(prefix: string, configured: RetryBudget | undefined): RetryBudget | undefined {
    const percent = this.runtime.get(`${prefix}budget_percent`)?.double;
    const minConcurrency = this.runtime.get(`${prefix}min_retry_concurrency`)?.integer;
    if (percent === undefined && minConcurrency === undefined) return configured;
    const base = configured ?? DEFAULT_RETRY_BUDGET;
    return { percent: percent ?? base.percent, minConcurrency: minConcurrency ?? base.minConcurrency };
  }
}

/** One worker's face of a cluster's breakers. What is acquired is released exactly once, by the same worker. */
export class ClusterLimits {
  readonly #shared: SharedWords;
  /** Word of the first counter. */
  readonly #first: number;
  readonly #thresholds: RuntimeThresholds;
  readonly #runtime: Runtime;
  /** Largest values, by priority and kind, as of this version of runtime. */
  readonly #max = new Int32Array(2 * LIMIT_KINDS);
  #version = -1;

  /** `block` is the cluster's in SharedWords. */
  constructor(shared: SharedWords, block: number, thresholds: RuntimeThresholds) {
    this.#shared = shared;
    this.#first = block + ClusterWord.Limits;
    this.#thresholds = thresholds;
    this.#runtime = thresholds.runtime;
  }

  /** Takes one if the breaker is closed. */
  tryAcquire(kind: LimitKind, priority: Priority = Priority.Default): boolean {
    if (this.#version !== this.#runtime.version) this.#update();
    const at = priority * LIMIT_KINDS + kind;
    return this.#shared.tryAcquire(this.#first + at, this.#max[at]!);
  }

  /** tryAcquire() for a retry, whose limit may depend on the requests that there are now. */
  tryAcquireRetry(priority: Priority = Priority.Default): boolean {
    const requests = this.current(LimitKind.Requests, priority) + this.current(LimitKind.PendingRequests, priority);
    const limit = retryLimit(this.#thresholds.current[priority], requests);
    return this.#shared.tryAcquire(this.#first + priority * LIMIT_KINDS + LimitKind.Retries, limit);
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
    if (this.#version !== this.#runtime.version) this.#update();
    return this.#max[priority * LIMIT_KINDS + kind]!;
  }

  /** Whether tryAcquire() would refuse now. */
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

/** The threshold of a kind, as large as a counter can become. */
export function limitOf(limits: Thresholds, kind: LimitKind): number {
  return Math.min(limits[FIELDS[kind]], LARGEST);
}

/** How many retries there may be beside so many requests, under way or waiting for a connection. */
export function retryLimit(limits: Thresholds, requests: number): number {
  const budget = limits.retryBudget;
  if (budget === undefined) return limitOf(limits, LimitKind.Retries);
  return Math.min(LARGEST, Math.max(Math.floor((budget.percent / 100) * requests), budget.minConcurrency));
}

/** Word of a cluster's counter, for the primary, which reads gauges from it. */
export function limitWord(block: number, kind: LimitKind, priority: Priority): number {
  return block + ClusterWord.Limits + priority * LIMIT_KINDS + kind;
}

const FIELDS = ['maxConnections', 'maxPendingRequests', 'maxRequests', 'maxRetries'] as const;

const LARGEST = 2 ** 31 - 1;
