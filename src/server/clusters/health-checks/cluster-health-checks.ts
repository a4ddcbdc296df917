// The active health checks of one version of a cluster. It checks the hosts of discovery, and hosts that discovery has removed
// but that are still healthy.

import type { Timers } from '../../../io/time/timing-wheel.js';
import type { RuntimeInteger } from '../../../runtime/runtime.js';
import { HealthCheckStats } from '../../../stats/layouts/cluster.js';
import type { Scope } from '../../../stats/thread-stats.js';
import type { ClusterSpec } from '../../../upstream/cluster-config.js';
import { firstCheckMs, type IntervalBounds, nextCheckMs } from '../../../upstream/health-checks/check-interval.js';
import type { Checker, OnChecked } from '../../../upstream/health-checks/checker.js';
import type { HealthCheckSpec } from '../../../upstream/health-checks/health-check-spec.js';
import type { CheckResult } from '../../../upstream/health-checks/health-event.js';
import { CHECKED_FLAGS, hasPassed, Outcome } from '../../../upstream/health-checks/host-health.js';
import { HealthFlag } from '../../../upstream/hosts/health-flags.js';
import { keyOf, type ResolvedEndpoint } from '../../../upstream/hosts/host.js';
import type { CheckThread } from './check-thread.js';
import { CheckedHost, type HostChecks } from './checked-host.js';
import type { HealthEventLog } from './health-event-log.js';

/** The cluster of the checked hosts. */
export interface CheckedCluster {
  readonly spec: ClusterSpec;
  /** The scope with HealthCheckStats. */
  readonly stats: Scope;
  /** Returns whether the cluster has ever had a connection. */
  hasTraffic(): boolean;
  /** Sets the HealthFlag bits in `mask` of the host `key` to `flags`. */
  observe(key: string, mask: number, flags: number): void;
  /** Called when checks of a host use a transport socket of their own: its number. */
  transportMatched(transport: number): void;
  /** Called when a check of the host has passed and the host is healthy. */
  hostPassed(key: string): void;
  /** Undefined: events of the checks are not logged. */
  readonly events: Pick<HealthEventLog, 'write'> | undefined;
  /** Called when a removed host that was kept as healthy has failed: the cluster must call setHosts() again. */
  hostFailed(): void;
}

const OBSERVED_FLAGS = CHECKED_FLAGS | HealthFlag.PendingDynamicRemoval;
/** Discovery reports the host as unusable: when discovery removes it, it is not kept. */
const UNUSABLE_FLAGS = HealthFlag.FailedEdsHealth | HealthFlag.EdsStatusDraining;

/** Flags of a host that counts in neither gauge. */
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
  /** Hosts present at whenChecked() that have no outcome of their first check yet. */
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
   * Sets the hosts that discovery has found. Returns the hosts of the cluster: these, and removed ones that still pass their
   * checks.
   */
  setHosts(endpoints: readonly ResolvedEndpoint[]): readonly ResolvedEndpoint[] {
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
      this.#keep(host, endpoint);
      if (known === undefined) added.push(host);
    }
    // Hosts that have replaced awaited ones are awaited as well.
    if (this.#awaited.size > 0) for (const host of added) this.#awaited.add(host);
    const kept: ResolvedEndpoint[] = [];
    for (const host of before.values()) {
      if (this.#hosts.has(host.key)) continue;
      if (listed.has(host.key) || !this.#isKept(host)) this.#remove(host);
      else {
        host.isPendingRemoval = true;
        this.#hosts.set(host.key, host);
        kept.push(host.endpoint);
        this.#observe(host);
      }
    }
    for (const host of added) host.start();
    // Last: the callback puts the hosts into use.
    for (const host of this.#awaited) if (this.#hosts.get(host.key) !== host) this.#removeAwaited(host);
    return kept.length === 0 ? endpoints : [...endpoints, ...kept];
  }

  /** Calls `ready` once, when each present host has been checked or is gone; possibly before this returns. */
  whenChecked(ready: () => void): void {
    for (const host of this.#hosts.values()) if (host.isNew) this.#awaited.add(host);
    if (this.#awaited.size === 0) ready();
    else this.#onAwaited = ready;
  }

  /** Called when the version is put into use: the gauges count its hosts from now on. */
  startCounting(): void {
    this.#isCounted = true;
    for (const host of this.#hosts.values()) this.#countChange(NOT_COUNTED, host.flags);
  }

  /** Called when a response to a request has reported that the host fails its checks. */
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

  schedule(begin: () => void): void {
    this.#thread.schedule(begin);
  }

  checker(endpoint: ResolvedEndpoint, onChecked: OnChecked): Checker {
    const { spec, stats } = this.#cluster;
    if (this.spec.transport !== undefined) this.#cluster.transportMatched(this.spec.transport);
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

  checked(host: CheckedHost, result: CheckResult): void {
    const { at } = HealthCheckStats;
    const { events, stats } = this.#cluster;
    const { after, before, outcome } = result;
    events?.write(host.endpoint, result);
    stats.increment(hasPassed(outcome) ? at.success : at.failure);
    if (outcome === Outcome.NetworkFailure || outcome === Outcome.Timeout) stats.increment(at.network_failure);
    if (outcome === Outcome.FailedInTraffic) stats.increment(at.passive_failure);
    if (this.#isCounted) this.#countChange(before, after);
    this.#observe(host);
    if (hasPassed(outcome) && host.isHealthy) this.#cluster.hostPassed(host.key);
    if (host.isPendingRemoval && !host.isHealthy) this.#cluster.hostFailed();
    this.#removeAwaited(host);
  }

  // ── Inside ───────────────────────────────────────────────────────────────────────────────────────────────────────

  get #bounds(): IntervalBounds {
    return { minMs: this.#minMs.value, maxMs: this.#maxMs.value };
  }

  #keep(host: CheckedHost, endpoint: ResolvedEndpoint): void {
    const before = host.flags;
    host.isPendingRemoval = false;
    host.moveTo(endpoint);
    if (this.#isCounted) this.#countChange(before, host.flags);
    this.#observe(host);
  }

  #isKept(host: CheckedHost): boolean {
    return !this.spec.removesHealthyHosts && host.isHealthy && (host.endpoint.healthFlags & UNUSABLE_FLAGS) === 0;
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

  #removeAwaited(host: CheckedHost): void {
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
