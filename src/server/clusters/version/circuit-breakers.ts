// The circuit breakers of one version of a cluster, as the primary sees them: their limits, and the gauges of how much is left.
// Threads only count, in the words of the cluster.

import { Priority } from '../../../common/priority.js';
import type { Runtime } from '../../../runtime/runtime.js';
import { CircuitBreakerRemainingStats, CircuitBreakerStats } from '../../../stats/layouts/cluster.js';
import type { ClusterSpec } from '../../../upstream/cluster-config.js';
import { LimitKind, limitOf, RuntimeThresholds, retryLimit, type Thresholds } from '../../../upstream/limits.js';
import type { GaugeShare } from './gauge-share.js';
import type { VersionResources } from './version-resources.js';

/** Of one priority. */
interface BreakerGauges {
  readonly open: GaugeShare;
  /** Undefined without track_remaining. */
  readonly remaining: GaugeShare | undefined;
}

export class CircuitBreakers {
  /** Limits without retry budgets. */
  readonly runtimeThresholds: RuntimeThresholds;
  readonly #resources: VersionResources;
  /** By priority. */
  readonly #gauges: readonly BreakerGauges[];

  /** Throws a RangeError when there is no room for the gauges. */
  constructor(spec: ClusterSpec, resources: VersionResources, runtime: Runtime) {
    this.runtimeThresholds = new RuntimeThresholds(spec.name, spec.thresholds, runtime);
    this.#resources = resources;
    this.#gauges = [
      this.#addGauges('circuit_breakers.default.', spec.trackRemaining[Priority.Default]),
      this.#addGauges('circuit_breakers.high.', spec.trackRemaining[Priority.High]),
    ];
  }

  /** Limits of the default and of the high priority, as runtime and retry budgets have them now. */
  get thresholds(): readonly [Thresholds, Thresholds] {
    return [this.#thresholdsOf(Priority.Default), this.#thresholdsOf(Priority.High)];
  }

  updateGauges(): void {
    for (const [priority, { open, remaining }] of this.#gauges.entries()) {
      const limits = this.#thresholdsOf(priority);
      const left = (kind: LimitKind) =>
        Math.max(0, limitOf(limits, kind) - this.#resources.shared.held(kind, priority));
      const connections = left(LimitKind.Connections);
      const pending = left(LimitKind.PendingRequests);
      const requests = left(LimitKind.Requests);
      const retries = left(LimitKind.Retries);
      const { at } = CircuitBreakerStats;
      open.set(at.cx_open, connections === 0 ? 1 : 0);
      open.set(at.rq_pending_open, pending === 0 ? 1 : 0);
      open.set(at.rq_open, requests === 0 ? 1 : 0);
      open.set(at.rq_retry_open, retries === 0 ? 1 : 0);
      if (remaining === undefined) continue;
      const { at: of } = CircuitBreakerRemainingStats;
      remaining.set(of.remaining_cx, connections);
      remaining.set(of.remaining_cx_pools, NO_LIMIT);
      remaining.set(of.remaining_pending, pending);
      remaining.set(of.remaining_rq, requests);
      remaining.set(of.remaining_retries, retries);
    }
  }

  #addGauges(part: string, tracksRemaining: boolean): BreakerGauges {
    const share = (layout: typeof CircuitBreakerStats | typeof CircuitBreakerRemainingStats) =>
      this.#resources.share(this.#resources.addScope(part, layout));
    return {
      open: share(CircuitBreakerStats),
      remaining: tracksRemaining ? share(CircuitBreakerRemainingStats) : undefined,
    };
  }

  #thresholdsOf(priority: Priority): Thresholds {
    const limits = this.runtimeThresholds.current[priority];
    if (limits.retryBudget === undefined) return limits;
    const { shared } = this.#resources;
    const requests = shared.held(LimitKind.Requests, priority) + shared.held(LimitKind.PendingRequests, priority);
    return { ...limits, maxRetries: retryLimit(limits, requests) };
  }
}

/** Of pools: 0 would say that there may be no more of them. A power of two, so that sums of shares are exact. */
const NO_LIMIT = 2 ** 53;
