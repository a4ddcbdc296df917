// The hosts of one version of a cluster, from discovery and as kept by health checks, and what is observed of their health. Until
// the version is in use its hosts are only checked. Then the directory holds them, and workers are notified of changes.

import { isDeepStrictEqual } from 'node:util';
import { messageOf } from '../../../common/errors/errors.js';
import { shownName } from '../../../common/text/shown.js';
import type { Cluster } from '../../../config/generated/api.js';
import { getLogger } from '../../../log/logger.js';
import type { RuntimeInteger } from '../../../runtime/runtime.js';
import { ClusterStats, HealthCheckStats } from '../../../stats/layouts/cluster.js';
import type { Scope } from '../../../stats/thread-stats.js';
import { DROP_LIMIT_KEY, isSamePolicy, limitDrop } from '../../../upstream/assignment-policy.js';
import type { ClusterSpec } from '../../../upstream/cluster-config.js';
import type { ClusterSnapshot } from '../../../upstream/cluster-snapshot.js';
import type { DiscoverySpec } from '../../../upstream/discovery-config.js';
import { healthCheckSpec } from '../../../upstream/health-checks/health-check-spec.js';
import { DEGRADED_FLAGS, HealthFlag, UNHEALTHY_FLAGS } from '../../../upstream/hosts/health-flags.js';
import type { ResolvedEndpoint } from '../../../upstream/hosts/host.js';
import type { HostChanges, KnownHost } from '../../../upstream/hosts/host-directory.js';
import { ObservedHealth } from '../../../upstream/hosts/observed-health.js';
import type { Shards } from '../../../upstream/hosts/shards.js';
import type { EventFiles } from '../event-files.js';
import type { CheckThread } from '../health-checks/check-thread.js';
import { ClusterHealthChecks } from '../health-checks/cluster-health-checks.js';
import { HealthEventLog } from '../health-checks/health-event-log.js';
import type { ClusterResources } from './cluster-resources.js';
import type { DiscoveryListener, FoundHosts } from './discovery.js';
import { OutlierDetection, type OutlierDetectionContext } from './outlier-detection.js';
import { TransportStats } from './transport-stats.js';
import { UpdateMerge } from './update-merge.js';
import type { VersionResources } from './version-resources.js';

const logger = getLogger('upstream');

export interface MembershipContext extends OutlierDetectionContext {
  /** The thread of the health checks. */
  readonly checks: CheckThread;
  readonly eventFiles: EventFiles;
  /** The scope cluster_manager. */
  readonly managerStats: Scope;
}

export interface MembershipEvents {
  /** Called when workers must be notified of the hosts. */
  changed(): void;
  /** Called when a host was observed to be unhealthy or degraded. */
  hostDegraded(): void;
  /** Called when its first hosts are known, and checked if health checks are configured, or when there are none. */
  initialized(): void;
}

export class Membership implements DiscoveryListener {
  isInitialized = false;
  /** Undefined when not configured. */
  readonly outliers: OutlierDetection | undefined;
  readonly #name: string;
  /** The hosts are names that resolve to one address: a change of address is as urgent as another host. */
  readonly #hasLogicalHost: boolean;
  /** As in Envoy, only some kinds of clusters set max_host_weight. */
  readonly #countsWeights: boolean;
  readonly #needsHealthTimes: boolean;
  readonly #resources: ClusterResources;
  readonly #events: MembershipEvents;
  /** Undefined without health_checks. */
  readonly #checks: ClusterHealthChecks | undefined;
  readonly #merge: UpdateMerge;
  readonly #transports: TransportStats;
  readonly #observed = new ObservedHealth();
  #observation: NodeJS.Immediate | undefined;
  readonly #dropLimit: RuntimeInteger;
  #found: FoundHosts;
  /** The hosts of discovery, and removed ones that are kept; undefined before the first. */
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
    this.#hasLogicalHost = spec.hasLogicalHost || spec.destination?.kind === 'name';
    this.#needsHealthTimes = spec.loadBalancer.needsHealthTimes === true;
    this.#countsWeights = discovery.type === 'EDS' || discovery.type === 'STRICT_DNS';
    this.#resources = resources.shared;
    this.#events = events;
    this.#dropLimit = context.runtime.integer(DROP_LIMIT_KEY, 100);
    this.#found = this.#limited({ endpoints: [], policy: discovery.policy });
    this.#transports = new TransportStats(config, resources);
    const checks = healthCheckSpec(config);
    if (checks !== undefined) {
      const eventLog = HealthEventLog.of(checks, spec.name, context.eventFiles);
      if (eventLog !== undefined) resources.whenUnused(() => eventLog.release());
      const cluster = {
        spec,
        stats: resources.addScope('health_check.', HealthCheckStats),
        hasTraffic: () => resources.shared.hasTraffic,
        observe: (key: string, mask: number, flags: number) => this.observe(key, mask, flags),
        transportMatched: (transport: number) => this.#transports.count(transport),
        hostPassed: (key: string) => this.outliers?.passedHealthCheck(key),
        events: eventLog,
        hostFailed: () => void this.#applyFound(false),
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

  /** Called when the version is put into use: the cluster's hosts are this version's, or none before any are found. */
  activate(): void {
    this.#isActive = true;
    this.#setHosts();
    this.#checks?.startCounting();
    this.outliers?.start(this.#resources.directory.hosts);
  }

  stop(): void {
    this.#isActive = false;
    this.#checks?.stop();
    this.outliers?.stop();
    this.#merge.stop();
  }

  get snapshot(): Pick<ClusterSnapshot, 'hosts' | 'policy' | 'shards' | 'membershipVersion'> {
    const { policy, shards } = this.#found;
    const { directory } = this.#resources;
    const hosts = this.#needsHealthTimes
      ? { ...directory.data, healthySinceMs: directory.healthTimes() }
      : directory.data;
    const indexed = shards && indexShards(shards, directory.hosts);
    return { hosts, policy, shards: indexed, membershipVersion: this.#version };
  }

  /**
   * Sets the HealthFlag bits in `mask` of the host `key` (keyOf()) to `flags`. Observations of one turn are delivered together. A
   * version that is not active keeps them until it is.
   */
  observe(key: string, mask: number, flags: number): void {
    if (!this.#observed.set(key, mask, flags)) return;
    if ((flags & (UNHEALTHY_FLAGS | DEGRADED_FLAGS)) !== 0) this.#events.hostDegraded();
    this.#observation ??= setImmediate(() => {
      if (this.#applyObserved() && this.isInitialized) this.#merge.note(true);
    });
  }

  /** Called when a response has reported that the host with this block fails its checks. */
  failedInTraffic(block: number): void {
    const host = this.#checks && this.#resources.directory.hosts.find((each) => each.block === block);
    if (host !== undefined) this.#checks!.failedInTraffic(host.key);
  }

  // ── DiscoveryListener ────────────────────────────────────────────────────────────────────────────────────────────

  onHosts(hosts: FoundHosts): boolean {
    const isFirst = this.#endpoints === undefined;
    const before = this.#found;
    this.#found = this.#limited(hosts);
    const isOther =
      !isSamePolicy(before.policy, this.#found.policy) || !isDeepStrictEqual(before.shards, this.#found.shards);
    const hasChanged = this.#applyFound(isOther);
    return this.#isActive ? hasChanged : isFirst || isOther;
  }

  onUnusable({ length }: readonly ResolvedEndpoint[], error: unknown): void {
    this.#resources.stats.increment(ClusterStats.at.update_failure);
    logger.error(`cluster '${shownName(this.#name)}': its ${length} endpoints cannot be used: ${messageOf(error)}`);
  }

  onLooked(): void {
    if (this.isInitialized) return;
    if (this.#checks === undefined) this.#initialized();
    else this.#checks.whenChecked(() => this.#initialized());
  }

  // ── Inside ───────────────────────────────────────────────────────────────────────────────────────────────────────

  /** As in Envoy, the limit applies as it is when the hosts arrive. */
  #limited({ endpoints, policy, shards }: FoundHosts): FoundHosts {
    return { endpoints, shards, policy: limitDrop(policy, this.#dropLimit.value) };
  }

  /** Applies the hosts of discovery, and those kept by checks. Returns whether workers must be notified. */
  /** @param isOther the policy or the shards have changed */
  #applyFound(isOther: boolean): boolean {
    const { endpoints, shards } = this.#found;
    const hasShards = shards !== undefined;
    this.#endpoints = this.#checks === undefined ? endpoints : this.#checks.setHosts(endpoints);
    if (!this.#isActive) return false;
    const { added, removed, hasChanged } = this.#setHosts();
    const needsUpdate = hasChanged || isOther;
    // Before it is initialized, the whole cluster is published later.
    if (needsUpdate && this.isInitialized)
      this.#merge.note(added + removed === 0 && !this.#hasLogicalHost && !hasShards);
    return needsUpdate;
  }

  #initialized(): void {
    this.#applyObserved();
    this.isInitialized = true;
    this.#events.initialized();
  }

  /** Applies the observed health to the directory. Returns whether that has changed anything. */
  #applyObserved(): boolean {
    clearImmediate(this.#observation);
    this.#observation = undefined;
    if (!this.#isActive || !this.#resources.directory.updateHealth(this.#observed)) return false;
    this.#resources.countHosts(this.#countsWeights);
    return true;
  }

  #setHosts(): HostChanges {
    const { directory, stats } = this.#resources;
    const endpoints = this.#endpoints ?? [];
    let changes: HostChanges = { added: 0, removed: 0, priorities: 0, hasChanged: false };
    try {
      changes = directory.update(endpoints, this.#observed, (transport) => this.#transports.count(transport));
    } catch (error) {
      this.onUnusable(endpoints, error);
    }
    if (!changes.hasChanged) return changes;
    if (changes.added + changes.removed > 0) {
      this.#version++;
      stats.add(ClusterStats.at.membership_change, changes.priorities);
    }
    this.outliers?.setHosts(directory.hosts);
    this.#resources.countHosts(this.#countsWeights);
    return changes;
  }
}

/** Names hosts by their indexes. Those for which there was no memory are left out, and a shard without its primary is empty. */
function indexShards({ hosts, ranges }: Shards<string>, known: readonly KnownHost[]): Shards<number> {
  const indexes = new Map(known.map(({ key }, index) => [key, index]));
  const indexesOf = (keys: readonly string[]) =>
    indexes.has(keys[0]!) ? keys.flatMap((key) => indexes.get(key) ?? []) : [];
  return { ranges, hosts: hosts.map(indexesOf) };
}
