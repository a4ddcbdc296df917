// The gauges of one priority's circuit breakers: workers only count in shared words, and the primary reads them.

import type { Priority } from '../../common/priority.js';
import { CircuitBreakerRemainingStats, CircuitBreakerStats } from '../../stats/layouts/cluster.js';
import type { StatsStore } from '../../stats/store.js';
import type { Scope, ScopeRef } from '../../stats/thread-stats.js';
import type { ClusterSpec } from '../../upstream/cluster-config.js';
import { LimitKind, limitOf, limitWord, type Thresholds } from '../../upstream/limits.js';
import type { SharedWordsOwner } from '../../upstream/shared-words.js';

export class BreakerGauges {
  readonly #store: StatsStore;
  readonly #priority: Priority;
  readonly #scopes: ScopeRef[] = [];
  readonly #open: Scope;
  readonly #remaining: Scope | undefined;

  constructor(store: StatsStore, prefix: string, spec: ClusterSpec, priority: Priority) {
    this.#store = store;
    this.#priority = priority;
    this.#open = this.#add(prefix, CircuitBreakerStats);
    this.#remaining = spec.trackRemaining[priority] ? this.#add(prefix, CircuitBreakerRemainingStats) : undefined;
  }

  update(words: SharedWordsOwner, block: number, thresholds: readonly [Thresholds, Thresholds]): void {
    const limits = thresholds[this.#priority];
    const left = (kind: LimitKind) =>
      Math.max(0, limitOf(limits, kind) - words.read(limitWord(block, kind, this.#priority)));
    const connections = left(LimitKind.Connections);
    const pending = left(LimitKind.PendingRequests);
    const requests = left(LimitKind.Requests);
    const retries = left(LimitKind.Retries);
    const open = CircuitBreakerStats.at;
    setIfChanged(this.#open, open.cx_open, connections === 0 ? 1 : 0);
    setIfChanged(this.#open, open.rq_pending_open, pending === 0 ? 1 : 0);
    setIfChanged(this.#open, open.rq_open, requests === 0 ? 1 : 0);
    setIfChanged(this.#open, open.rq_retry_open, retries === 0 ? 1 : 0);
    if (this.#remaining === undefined) return;
    const remaining = CircuitBreakerRemainingStats.at;
    this.#remaining.set(remaining.remaining_cx, connections);
    this.#remaining.set(remaining.remaining_pending, pending);
    this.#remaining.set(remaining.remaining_rq, requests);
    this.#remaining.set(remaining.remaining_retries, retries);
  }

  /** The primary alone writes them: nobody is waited for. */
  remove(): void {
    for (const ref of this.#scopes) this.#store.removeScope(ref);
  }

  #add(prefix: string, layout: Parameters<StatsStore['addScope']>[1]): Scope {
    const ref = this.#store.addScope(prefix, layout);
    this.#scopes.push(ref);
    return this.#store.scope(ref);
  }
}

/** A gauge that was never changed stays unused. */
function setIfChanged(scope: Scope, at: number, value: number): void {
  if (scope.page[scope.base + at] !== value) scope.set(at, value);
}
