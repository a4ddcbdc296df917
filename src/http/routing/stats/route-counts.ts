// The stats of one virtual cluster, or of routes with one stat_prefix, as one worker counts them.

import { CodeCounters } from '../../../stats/code-counters.js';
import type { CounterSlot, Layout } from '../../../stats/layout.js';
import { RouteStats } from '../../../stats/layouts/route.js';
import { statScopeKey } from '../../../stats/scope-prefix.js';
import type { Scope, ThreadStats } from '../../../stats/thread-stats.js';

/** Finds a scope that the primary has created. */
export type FindScope = (prefix: string, layout: Layout) => Scope;

/** Counts nothing once its scope is removed: requests that began with removed routes may outlive it. */
export class RouteCounts {
  #scope: Scope | undefined;
  #codes: CodeCounters | undefined;

  constructor(scope: Scope, codes: CodeCounters) {
    this.#scope = scope;
    this.#codes = codes;
  }

  increment(at: CounterSlot): void {
    this.#scope?.increment(at);
  }

  countResponse(status: number): void {
    this.#codes?.count(status);
  }

  recordTime(milliseconds: number): void {
    this.#codes?.record(milliseconds);
  }

  /** Called when the scope is removed. */
  detach(): void {
    this.#scope = undefined;
    this.#codes = undefined;
  }
}

/** All of one worker. */
export class RouteCountsSet {
  readonly #stats: ThreadStats;
  readonly #find: FindScope;
  /** By statScopeKey(). */
  readonly #all = new Map<string, RouteCounts>();

  constructor(stats: ThreadStats, find: FindScope) {
    this.#stats = stats;
    this.#find = find;
  }

  /** Returns the stats of a scope. Throws when the primary has not created it. */
  of(prefix: string): RouteCounts {
    const key = statScopeKey(prefix, RouteStats);
    let counts = this.#all.get(key);
    if (counts === undefined) {
      counts = new RouteCounts(this.#find(prefix, RouteStats), new CodeCounters(this.#stats, prefix, ''));
      this.#all.set(key, counts);
    }
    return counts;
  }

  /** Called when the primary removes scopes. */
  remove(keys: readonly string[]): void {
    for (const key of keys) {
      this.#all.get(key)?.detach();
      this.#all.delete(key);
    }
  }
}
