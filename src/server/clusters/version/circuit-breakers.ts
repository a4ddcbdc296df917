// The circuit breakers of one version of a cluster, on the primary: their limits, and the gauges of what remains. Threads only
// count, in the shared words of the cluster.

import { Priority } from '../../../common/priority.js';
import type { Runtime } from '../../../runtime/runtime.js';
import { CircuitBreakerRemainingStats, CircuitBreakerStats } from '../../../stats/layouts/cluster.js';
import type { ClusterSpec } from '../../../upstream/cluster-config.js';
import {
  ANY_POOLS,
  LIMIT_KINDS,
  LimitKind,
  limitOf,
  RuntimeThresholds,
  retryLimit,
  type Thresholds,
} from '../../../upstream/limits.js';
import type { GaugeShare } from './gauge-share.js';
import type { VersionResources } from './version-resources.js';

/** Gauges by LimitKind. */
const OPEN = (['cx_open', 'rq_pending_open', 'rq_open', 'rq_retry_open'] as const).map(
  (gauge) => CircuitBreakerStats.at[gauge],
);
const REMAINING = (['remaining_cx', 'remaining_pending', 'remaining_rq', 'remaining_retries'] as const).map(
  (gauge) => CircuitBreakerRemainingStats.at[gauge],
);

const USED_BY_TRAFFIC = ['cx_open', 'cx_pool_open', 'rq_open', 'rq_pending_open'] as const;

/** Value of remaining_cx_pools, where 0 would mean that no more are allowed. A power of two, so that sums of shares are exact. */
const NO_LIMIT = 2 ** 53;

/** The gauges of one priority. */
interface BreakerGauges {
  readonly open: GaugeShare;
  /** Undefined without track_remaining. */
  readonly remaining: GaugeShare | undefined;
}

export class CircuitBreakers {
  /** Limits without retry budgets. */
  readonly runtimeThresholds: RuntimeThresholds;
  readonly #resources: VersionResources;
  #isUsed = false;
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

  /** The current limits of the default and the high priority, with runtime and retry budgets applied. */
  get thresholds(): readonly [Thresholds, Thresholds] {
    return [this.#thresholdsOf(Priority.Default), this.#thresholdsOf(Priority.High)];
  }

  updateGauges(): void {
    for (const [priority, { open, remaining }] of this.#gauges.entries()) {
      const limits = this.#thresholdsOf(priority);
      for (let kind = 0; kind < LIMIT_KINDS; kind++) {
        const left = Math.max(0, limitOf(limits, kind) - this.#resources.shared.held(kind, priority));
        open.set(OPEN[kind]!, left === 0 ? 1 : 0);
        remaining?.set(REMAINING[kind]!, left);
      }
      const { maxConnectionPools: pools } = limits;
      const left = pools === ANY_POOLS ? NO_LIMIT : Math.max(0, pools - this.#resources.shared.pools(priority));
      open.set(CircuitBreakerStats.at.cx_pool_open, left === 0 ? 1 : 0);
      remaining?.set(CircuitBreakerRemainingStats.at.remaining_cx_pools, left);
    }
    if (!this.#isUsed && this.#resources.shared.hasTraffic) this.#use();
  }

  /** As in Envoy, traffic makes the gauges used ones, whose value sinks get: 0 while no limit is reached. */
  #use(): void {
    this.#isUsed = true;
    for (const gauge of USED_BY_TRAFFIC) this.#gauges[Priority.Default]!.open.touch(CircuitBreakerStats.at[gauge]);
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
