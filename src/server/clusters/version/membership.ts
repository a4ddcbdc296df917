// The hosts of one version of a cluster: those that discovery finds, and those that health checks keep; and what is seen of their
// health. Until the version is in use they are only checked. Then the directory holds them, and workers are told of changes.

import { messageOf } from '../../../common/errors/errors.js';
import { shownName } from '../../../common/text/shown.js';
import type { Cluster } from '../../../config/generated/api.js';
import { getLogger } from '../../../log/logger.js';
import { ClusterStats, HealthCheckStats } from '../../../stats/layouts/cluster.js';
import type { Scope } from '../../../stats/thread-stats.js';
import type { ClusterSpec, DiscoverySpec } from '../../../upstream/cluster-config.js';
import type { ClusterSnapshot } from '../../../upstream/cluster-snapshot.js';
import { healthCheckSpec } from '../../../upstream/health-checks/health-check-spec.js';
import { HealthFlag } from '../../../upstream/hosts/health-flags.js';
import type { ResolvedEndpoint } from '../../../upstream/hosts/host.js';
import type { HostChanges } from '../../../upstream/hosts/host-directory.js';
import { ObservedHealth } from '../../../upstream/hosts/observed-health.js';
import type { CheckThread } from '../health-checks/check-thread.js';
import { ClusterHealthChecks } from '../health-checks/cluster-health-checks.js';
import type { ClusterResources } from './cluster-resources.js';
import type { FoundHosts, HostSeeker } from './host-discovery.js';
import { OutlierDetection, type OutlierDetectionContext } from './outlier-detection.js';
import { UpdateMerge } from './update-merge.js';
import type { VersionResources } from './version-resources.js';

const logger = getLogger('upstream');

export interface MembershipContext extends OutlierDetectionContext {
  /** Where hosts are checked. */
  readonly checks: CheckThread;
  /** The scope cluster_manager. */
  readonly managerStats: Scope;
}

export interface MembershipEvents {
  /** Workers are to be told of the hosts. */
  changed(): void;
  /** Its first hosts are known, and checked where it has health checks; or it is known that there are none. */
  initialized(): void;
}

export class Membership implements HostSeeker {
  isInitialized = false;
  /** Undefined where it is not configured. */
  readonly outliers: OutlierDetection | undefined;
  readonly #name: string;
  /** Its hosts are where names lead: a change of address is as urgent as another host. */
  readonly #hasLogicalHost: boolean;
  readonly #resources: ClusterResources;
  readonly #events: MembershipEvents;
  /** Undefined without health_checks. */
  readonly #checks: ClusterHealthChecks | undefined;
  readonly #merge: UpdateMerge;
  readonly #observed = new ObservedHealth();
  #observation: NodeJS.Immediate | undefined;
  #found: FoundHosts;
  /** Those that were found, and those that were removed and are kept; undefined before any were. */
  #endpoints: readonly ResolvedEndpoint[] | undefined;
  #version = 0;
  #isActive = false;

  constructor(
    config: Cluster,
    spec: ClusterSpec,
    discovery: DiscoverySpec,
    resources: VersionResources,
    context: MembershipContext,
    events: MembershipEvents,
  ) {
    this.#name = spec.name;
    this.#hasLogicalHost = spec.hasLogicalHost;
    this.#resources = resources.shared;
    this.#events = events;
    this.#found = { endpoints: [], overprovisioning: discovery.overprovisioning };
    const checks = healthCheckSpec(config);
    if (checks !== undefined) {
      const cluster = {
        spec,
        stats: resources.addScope('health_check.', HealthCheckStats),
        hasTraffic: () => resources.shared.hasTraffic,
        observe: (key: string, mask: number, flags: number) => this.observe(key, mask, flags),
        hostPassed: (key: string) => this.outliers?.passedHealthCheck(key),
        hostFailed: () => void this.#use(false),
      };
      this.#checks = new ClusterHealthChecks(checks, cluster, context.checks);
    }
    if (spec.outliers !== undefined) {
      const flag = HealthFlag.FailedOutlierCheck;
      this.outliers = new OutlierDetection(spec, spec.outliers, resources, context, (key, isEjected) =>
        this.observe(key, flag, isEjected ? flag : 0),
      );
    }
    this.#merge = new UpdateMerge(discovery.mergeWindowMs, {
      timers: context.timers,
      now: context.now,
      stats: context.managerStats,
      deliver: () => events.changed(),
    });
  }

  /** From now on the hosts of the cluster are its own: none, where nothing has been found yet. */
  activate(): void {
    this.#isActive = true;
    this.#setHosts();
    this.#checks?.count();
    this.outliers?.start(this.#resources.directory.hosts);
  }

  stop(): void {
    this.#isActive = false;
    this.#checks?.stop();
    this.outliers?.stop();
    this.#merge.stop();
  }

  get snapshot(): Pick<ClusterSnapshot, 'hosts' | 'overprovisioning' | 'membershipVersion'> {
    const { overprovisioning } = this.#found;
    return { hosts: this.#resources.directory.data, overprovisioning, membershipVersion: this.#version };
  }

  /**
   * Of the HealthFlag bits in `mask`, the host with this key (keyOf()) has these: somebody has seen it. All that is seen in one
   * turn is delivered together. A version that is not active yet keeps it until then.
   */
  observe(key: string, mask: number, flags: number): void {
    if (!this.#observed.set(key, mask, flags)) return;
    this.#observation ??= setImmediate(() => {
      if (this.#useObserved() && this.isInitialized) this.#merge.note(true);
    });
  }

  /** A response to a request has said that the checks of the host with this block fail. */
  failedInTraffic(block: number): void {
    const host = this.#checks && this.#resources.directory.hosts.find((each) => each.block === block);
    if (host !== undefined) this.#checks!.failedInTraffic(host.key);
  }

  // ── HostSeeker ───────────────────────────────────────────────────────────────────────────────────────────────────

  found(hosts: FoundHosts): boolean {
    const isFirst = this.#endpoints === undefined;
    const isOtherFactor = hosts.overprovisioning !== this.#found.overprovisioning;
    this.#found = hosts;
    const isNew = this.#use(isOtherFactor);
    return this.#isActive ? isNew : isFirst || isOtherFactor;
  }

  cannotUse({ length }: readonly ResolvedEndpoint[], error: unknown): void {
    this.#resources.stats.increment(ClusterStats.at.update_failure);
    logger.error(`cluster '${shownName(this.#name)}': its ${length} endpoints cannot be used: ${messageOf(error)}`);
  }

  looked(): void {
    if (this.isInitialized) return;
    if (this.#checks === undefined) this.#initialized();
    else this.#checks.whenChecked(() => this.#initialized());
  }

  // ── Inside ───────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Its hosts are those that were found, and those that checks keep. Returns whether workers are to be told of anything new. */
  #use(isOtherFactor: boolean): boolean {
    const { endpoints } = this.#found;
    this.#endpoints = this.#checks === undefined ? endpoints : this.#checks.take(endpoints);
    if (!this.#isActive) return false;
    const { added, removed, hasChanged } = this.#setHosts();
    const isNew = hasChanged || isOtherFactor;
    // Before it is initialized it is told of as a whole, when its time comes.
    if (isNew && this.isInitialized) this.#merge.note(added + removed === 0 && !this.#hasLogicalHost);
    return isNew;
  }

  #initialized(): void {
    this.#useObserved();
    this.isInitialized = true;
    this.#events.initialized();
  }

  /** What was seen of its hosts is what workers will be told. Returns whether that is new. */
  #useObserved(): boolean {
    clearImmediate(this.#observation);
    this.#observation = undefined;
    if (!this.#isActive || !this.#resources.directory.updateHealth(this.#observed)) return false;
    this.#resources.countHosts();
    return true;
  }

  #setHosts(): HostChanges {
    const { directory, stats } = this.#resources;
    const endpoints = this.#endpoints ?? [];
    let changes: HostChanges = { added: 0, removed: 0, hasChanged: false };
    try {
      changes = directory.update(endpoints, this.#observed);
    } catch (error) {
      this.cannotUse(endpoints, error);
    }
    if (!changes.hasChanged) return changes;
    if (changes.added + changes.removed > 0) {
      this.#version++;
      stats.increment(ClusterStats.at.membership_change);
    }
    this.outliers?.setHosts(directory.hosts);
    this.#resources.countHosts();
    return changes;
  }
}
