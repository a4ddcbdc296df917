// The active health checks of one version of a cluster: of the hosts that discovery knows, and of those that it has removed and
// that are still healthy.

import type { Timers } from '../../../io/time/timing-wheel.js';
import type { RuntimeInteger } from '../../../runtime/runtime.js';
import { HealthCheckStats } from '../../../stats/layouts/cluster.js';
import type { Scope } from '../../../stats/thread-stats.js';
import type { ClusterSpec } from '../../../upstream/cluster-config.js';
import { firstCheckMs, type IntervalBounds, nextCheckMs } from '../../../upstream/health-checks/check-interval.js';
import type { Checker, OnChecked } from '../../../upstream/health-checks/checker.js';
import type { HealthCheckSpec } from '../../../upstream/health-checks/health-check-spec.js';
import { CHECKED_FLAGS, hasPassed, Outcome } from '../../../upstream/health-checks/host-health.js';
import { HealthFlag } from '../../../upstream/hosts/health-flags.js';
import { keyOf, type ResolvedEndpoint } from '../../../upstream/hosts/host.js';
import type { CheckThread } from './check-thread.js';
import { CheckedHost, type HostChecks } from './checked-host.js';

/** The cluster whose hosts are checked. */
export interface CheckedCluster {
  readonly spec: ClusterSpec;
  /** Of HealthCheckStats. */
  readonly stats: Scope;
  /** Whether it has ever had a connection. */
  hasTraffic(): boolean;
  /** Of the HealthFlag bits in `mask` the host has these. */
  observe(key: string, mask: number, flags: number): void;
  /** A check of the host has passed, and it is healthy. */
  hostPassed(key: string): void;
  /** A host that was kept because it was healthy is so no more: take() is to be called again. */
  hostFailed(): void;
}

const OBSERVED_FLAGS = CHECKED_FLAGS | HealthFlag.PendingDynamicRemoval;
/** Discovery has said of a host that it is not to be used: when it removes it, it goes. */
const GIVEN_UP_FLAGS = HealthFlag.FailedEdsHealth | HealthFlag.EdsStatusDraining;

/** Flags of a host that neither gauge counts. */
const NOT_COUNTED = HealthFlag.FailedActiveHealthCheck;

export class ClusterHealthChecks implements HostChecks {
  readonly spec: HealthCheckSpec;
  readonly #thread: CheckThread;
  readonly #cluster: CheckedCluster;
  readonly #minMs: RuntimeInteger;
  readonly #maxMs: RuntimeInteger;
  #hosts = new Map<string, CheckedHost>();
  /** The gauges count these hosts. */
  #isCounted = false;
  /** Of those that there were when it was asked for: their first check has no outcome yet. */
  readonly #awaited = new Set<CheckedHost>();
  #onAwaited: (() => void) | undefined;

  constructor(spec: HealthCheckSpec, cluster: CheckedCluster, thread: CheckThread) {
    this.spec = spec;
    this.#cluster = cluster;
    this.#thread = thread;
    this.#minMs = thread.runtime.integer('health_check.min_interval', 0);
    this.#maxMs = thread.runtime.integer('health_check.max_interval', Number.POSITIVE_INFINITY);
  }

  /**
   * Checks these hosts from now on, and others no more. Returns the hosts that the cluster has: these, and those that are not
   * among them any more and pass their checks.
   */
  take(endpoints: readonly ResolvedEndpoint[]): readonly ResolvedEndpoint[] {
    const before = this.#hosts;
    const listed = new Set<string>();
    const added: CheckedHost[] = [];
    this.#hosts = new Map();
    for (const endpoint of endpoints) {
      const key = keyOf(endpoint);
      if (listed.has(key)) continue;
      listed.add(key);
      if (endpoint.check?.isDisabled) continue;
      const known = before.get(key);
      const host = known ?? new CheckedHost(endpoint, this);
      this.#hosts.set(key, host);
      this.#stays(host, endpoint);
      if (known === undefined) added.push(host);
    }
    // Those that have come in the place of others are awaited as well.
    if (this.#awaited.size > 0) for (const host of added) this.#awaited.add(host);
    const kept: ResolvedEndpoint[] = [];
    for (const host of before.values()) {
      if (this.#hosts.has(host.key)) continue;
      if (listed.has(host.key) || !this.#isKept(host)) this.#remove(host);
      else {
        host.isLeaving = true;
        this.#hosts.set(host.key, host);
        kept.push(host.endpoint);
        this.#observe(host);
      }
    }
    for (const host of added) host.start();
    // Behind all that: whoever waits puts the hosts into use.
    for (const host of this.#awaited) if (this.#hosts.get(host.key) !== host) this.#noLongerAwaited(host);
    return kept.length === 0 ? endpoints : [...endpoints, ...kept];
  }

  /** Calls that once each host of now has been checked, or is gone; perhaps before it returns. */
  whenChecked(ready: () => void): void {
    for (const host of this.#hosts.values()) if (host.isNew) this.#awaited.add(host);
    if (this.#awaited.size === 0) ready();
    else this.#onAwaited = ready;
  }

  /** The version is in use: the gauges are those of its hosts. */
  count(): void {
    this.#isCounted = true;
    for (const host of this.#hosts.values()) this.#countChange(NOT_COUNTED, host.flags);
  }

  /** A response to a request has said that the host's checks fail. */
  failedInTraffic(key: string): void {
    this.#hosts.get(key)?.failedInTraffic();
  }

  stop(): void {
    for (const host of this.#hosts.values()) this.#end(host);
    this.#hosts.clear();
  }

  // ── HostChecks ───────────────────────────────────────────────────────────────────────────────────────────────────

  get name(): string {
    return this.#cluster.spec.name;
  }

  get timers(): Timers {
    return this.#thread.timers;
  }

  soon(begin: () => void): void {
    this.#thread.soon(begin);
  }

  checker(endpoint: ResolvedEndpoint, onChecked: OnChecked): Checker {
    const { spec, stats } = this.#cluster;
    const onVerified = () => stats.increment(HealthCheckStats.at.verify_cluster);
    return this.#thread.checker({ spec: this.spec, cluster: spec, endpoint, onVerified, onChecked });
  }

  firstCheckMs(): number {
    return firstCheckMs(this.spec.intervals, this.#bounds, this.#thread.random);
  }

  nextCheckMs(hasPassed: boolean, isAtEdge: boolean): number {
    const last = { hasPassed, isAtEdge, hasTraffic: this.#cluster.hasTraffic() };
    return nextCheckMs(this.spec.intervals, last, this.#bounds, this.#thread.random);
  }

  countAttempt(): void {
    this.#cluster.stats.increment(HealthCheckStats.at.attempt);
  }

  checked(host: CheckedHost, outcome: Outcome, before: number, after: number): void {
    const { at } = HealthCheckStats;
    const { stats } = this.#cluster;
    stats.increment(hasPassed(outcome) ? at.success : at.failure);
    if (outcome === Outcome.NetworkFailure || outcome === Outcome.Timeout) stats.increment(at.network_failure);
    if (outcome === Outcome.FailedInTraffic) stats.increment(at.passive_failure);
    if (this.#isCounted) this.#countChange(before, after);
    this.#observe(host);
    if (hasPassed(outcome) && host.isHealthy) this.#cluster.hostPassed(host.key);
    if (host.isLeaving && !host.isHealthy) this.#cluster.hostFailed();
    this.#noLongerAwaited(host);
  }

  // ── Inside ───────────────────────────────────────────────────────────────────────────────────────────────────────

  get #bounds(): IntervalBounds {
    return { minMs: this.#minMs.value, maxMs: this.#maxMs.value };
  }

  #stays(host: CheckedHost, endpoint: ResolvedEndpoint): void {
    const before = host.flags;
    host.isLeaving = false;
    host.moveTo(endpoint);
    if (this.#isCounted) this.#countChange(before, host.flags);
    this.#observe(host);
  }

  #isKept(host: CheckedHost): boolean {
    return !this.spec.removesHealthyHosts && host.isHealthy && (host.endpoint.healthFlags & GIVEN_UP_FLAGS) === 0;
  }

  #remove(host: CheckedHost): void {
    this.#end(host);
    this.#cluster.observe(host.key, OBSERVED_FLAGS, 0);
  }

  #end(host: CheckedHost): void {
    if (this.#isCounted) this.#countChange(host.flags, NOT_COUNTED);
    host.stop();
  }

  #observe(host: CheckedHost): void {
    this.#cluster.observe(host.key, OBSERVED_FLAGS, host.flags);
  }

  #noLongerAwaited(host: CheckedHost): void {
    if (!this.#awaited.delete(host) || this.#awaited.size > 0) return;
    this.#onAwaited!();
  }

  #countChange(before: number, after: number): void {
    const { at } = HealthCheckStats;
    const { stats } = this.#cluster;
    const changed = before ^ after;
    if (changed & HealthFlag.FailedActiveHealthCheck) {
      if (after & HealthFlag.FailedActiveHealthCheck) stats.decrement(at.healthy);
      else stats.increment(at.healthy);
    }
    if (changed & HealthFlag.DegradedActiveHealthCheck) {
      if (after & HealthFlag.DegradedActiveHealthCheck) stats.increment(at.degraded);
      else stats.decrement(at.degraded);
    }
  }
}
