// The gauges of one priority's circuit breakers: workers only count in shared words, and the primary reads them.

import { Priority } from '../../../common/priority.js';
import { CircuitBreakerRemainingStats, CircuitBreakerStats } from '../../../stats/layouts/cluster.js';
import type { ScopeRequest, StatsStore } from '../../../stats/store.js';
import type { ScopeRef } from '../../../stats/thread-stats.js';
import type { ClusterSpec } from '../../../upstream/cluster-config.js';
import { LimitKind, limitOf, limitWord, type Thresholds } from '../../../upstream/limits.js';
import type { SharedWordsOwner } from '../../../upstream/shared-words.js';
import { GaugeShare } from './gauge-share.js';

/** Of the default and of the high priority. Throws a RangeError, with nothing left, when there is no room for them. */
export function breakerGauges(store: StatsStore, spec: ClusterSpec): readonly [BreakerGauges, BreakerGauges] {
  const prefix = `cluster.${spec.observabilityName}.circuit_breakers.`;
  const ofDefault = new BreakerGauges(store, `${prefix}default.`, spec, Priority.Default);
  try {
    return [ofDefault, new BreakerGauges(store, `${prefix}high.`, spec, Priority.High)];
  } catch (error) {
    ofDefault.remove();
    throw error;
  }
}

export class BreakerGauges {
  readonly #store: StatsStore;
  readonly #priority: Priority;
  readonly #scopes: readonly ScopeRef[];
  readonly #open: GaugeShare;
  readonly #remaining: GaugeShare | undefined;

  constructor(store: StatsStore, prefix: string, spec: ClusterSpec, priority: Priority) {
    this.#store = store;
    this.#priority = priority;
    const requests: ScopeRequest[] = [{ prefix, layout: CircuitBreakerStats }];
    if (spec.trackRemaining[priority]) requests.push({ prefix, layout: CircuitBreakerRemainingStats });
    this.#scopes = store.addScopes(requests);
    const [open, remaining] = this.#scopes;
    this.#open = new GaugeShare(store.scope(open!));
    if (remaining !== undefined) this.#remaining = new GaugeShare(store.scope(remaining));
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
    this.#open.set(open.cx_open, connections === 0 ? 1 : 0);
    this.#open.set(open.rq_pending_open, pending === 0 ? 1 : 0);
    this.#open.set(open.rq_open, requests === 0 ? 1 : 0);
    this.#open.set(open.rq_retry_open, retries === 0 ? 1 : 0);
    if (this.#remaining === undefined) return;
    const remaining = CircuitBreakerRemainingStats.at;
    this.#remaining.set(remaining.remaining_cx, connections);
    this.#remaining.set(remaining.remaining_cx_pools, NO_LIMIT);
    this.#remaining.set(remaining.remaining_pending, pending);
    this.#remaining.set(remaining.remaining_rq, requests);
    this.#remaining.set(remaining.remaining_retries, retries);
  }

  /** The primary alone writes them: nobody is waited for. */
  remove(): void {
    this.#open.withdraw();
    this.#remaining?.withdraw();
    for (const ref of this.#scopes) this.#store.removeScope(ref);
  }
}

/** Of pools: 0 would say that there may be no more of them. A power of two, so that sums of shares are exact. */
const NO_LIMIT = 2 ** 53;
