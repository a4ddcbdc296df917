// One version of a cluster's configuration as the primary keeps it: hosts as discovery finds them, and what workers are
// told of it. Until it is activated it only gets ready, while the version before it serves.

import { messageOf } from '../../../common/errors/errors.js';
import type { Random } from '../../../common/random.js';
import { speaksHttp2 } from '../../../config/fields/http-options.js';
import type { Cluster, ClusterLoadAssignment, ConfigSource } from '../../../config/generated/api.js';
import type { SensitiveValue } from '../../../config/schema/sensitive.js';
import type { Timers } from '../../../io/time/timing-wheel.js';
import { getLogger } from '../../../log/logger.js';
import type { Runtime } from '../../../runtime/runtime.js';
import { Kind } from '../../../stats/layout.js';
import { ClusterStats, HealthCheckStats } from '../../../stats/layouts/cluster.js';
import type { StatsStore } from '../../../stats/store.js';
import type { Scope } from '../../../stats/thread-stats.js';
import {
  type ClusterDiscovery,
  type ClusterSpec,
  clusterDiscovery,
  clusterSpec,
  endpointSpecs,
  overprovisioningFactor,
  staticEndpoint,
} from '../../../upstream/cluster-config.js';
import type { ClusterSnapshot } from '../../../upstream/cluster-snapshot.js';
import { DnsCluster } from '../../../upstream/dns/dns-cluster.js';
import type { DnsResolver } from '../../../upstream/dns/resolver.js';
import { healthCheckSpec } from '../../../upstream/health-checks/health-check-spec.js';
import { HealthFlag } from '../../../upstream/hosts/health-flags.js';
import type { ResolvedEndpoint } from '../../../upstream/hosts/host.js';
import { type HostChanges, type KnownHost, keyOf } from '../../../upstream/hosts/host-directory.js';
import { ObservedHealth } from '../../../upstream/hosts/observed-health.js';
import type { Thresholds } from '../../../upstream/limits.js';
import type { OutlierReport } from '../../../upstream/outliers/outlier-report.js';
import type { DynamicState } from '../../../xds/dynamic-state.js';
import type { CheckThread } from '../health-checks/check-thread.js';
import { ClusterHealthChecks } from '../health-checks/cluster-health-checks.js';
import { CircuitBreakers } from './circuit-breakers.js';
import type { ClusterResources } from './cluster-resources.js';
import type { EndpointSubscription, EndpointUser } from './endpoint-subscription.js';
import type { GrpcLimits } from './grpc-limits.js';
import { type HashGauges, hashGauges } from './hash-gauges.js';
import { HostPreparation } from './host-preparation.js';
import { OutlierDetection, type OutlierDetectionHost } from './outlier-detection.js';
import { UpdateMerge } from './update-merge.js';
import type { VersionResources } from './version-resources.js';

const logger = getLogger('upstream');

/** Longer assignments are prepared in steps: until then the hosts before them are used. */
const MANY_ENDPOINTS = 1000;

export interface PrimaryClusterHost extends OutlierDetectionHost {
  readonly store: StatsStore;
  readonly resolver: DnsResolver;
  readonly timers: Timers;
  readonly random: Random;
  readonly runtime: Runtime;
  /** Where hosts are checked. */
  readonly checks: CheckThread;
  /** Monotonic milliseconds. */
  readonly now: () => number;
  /** The scope cluster_manager. */
  readonly managerStats: Scope;
  endpoints(cluster: PrimaryCluster, source: ConfigSource, serviceName: string): EndpointSubscription;
  /** Workers are to be told of it: its hosts have changed. */
  changed(cluster: PrimaryCluster): void;
  /** Its first hosts are known, and checked where it has health checks; or it is known that there are none. */
  initialized(cluster: PrimaryCluster): void;
}

/** Where a version comes from. */
export interface ClusterOrigin {
  readonly isAddedViaApi: boolean;
  /** version_info of the resource; '' for static ones. */
  readonly version: string;
  readonly updatedAt: Date;
  /** What is not to be shown of the configuration. */
  readonly sensitive: readonly SensitiveValue[];
}

export class PrimaryCluster implements EndpointUser {
  readonly config: Cluster;
  readonly origin: ClusterOrigin;
  readonly spec: ClusterSpec;
  /** Workers know it. Hosts that speak HTTP/2 serve only gRPC calls of the primary. */
  readonly servesTraffic: boolean;
  /** It has looked for hosts. */
  isInitialized = false;
  /** Undefined where it is not configured. */
  readonly outliers: OutlierDetection | undefined;
  readonly #host: PrimaryClusterHost;
  readonly #specVersion: number;
  readonly #held: VersionResources;
  readonly #resources: ClusterResources;
  readonly #stats: Scope;
  readonly #discovery: ClusterDiscovery;
  readonly #breakers: CircuitBreakers;
  readonly #hashGauges: HashGauges | undefined;
  readonly #merge: UpdateMerge;
  readonly #preparation: HostPreparation;
  readonly #dns: DnsCluster | undefined;
  /** Undefined without health_checks. */
  readonly #checks: ClusterHealthChecks | undefined;
  readonly #observed = new ObservedHealth();
  #observation: NodeJS.Immediate | undefined;
  #subscription: EndpointSubscription | undefined;
  /** As discovery tells of them. */
  #discovered: readonly ResolvedEndpoint[] = [];
  /** With those that discovery has removed and that are kept. */
  #endpoints: readonly ResolvedEndpoint[] | undefined;
  #overprovisioning: number;
  #membershipVersion = 0;
  #isActive = false;

  /** `resources` are released by stop(), or by the caller if it throws. `specVersion` is of this version of this cluster alone. */
  constructor(
    config: Cluster,
    origin: ClusterOrigin,
    specVersion: number,
    resources: VersionResources,
    host: PrimaryClusterHost,
  ) {
    this.config = config;
    this.origin = origin;
    this.spec = clusterSpec(config);
    this.servesTraffic = !speaksHttp2(config);
    this.#host = host;
    this.#specVersion = specVersion;
    this.#held = resources;
    this.#resources = resources.shared;
    this.#stats = resources.shared.stats;
    this.#discovery = clusterDiscovery(config);
    this.#overprovisioning = overprovisioningFactor(config.load_assignment);
    this.#breakers = new CircuitBreakers(this.spec, resources, host.runtime);
    this.#hashGauges = hashGauges(this.spec, resources, host.runtime);
    this.#checks = this.#healthChecks();
    this.outliers = this.#outlierDetection();
    this.#merge = new UpdateMerge(this.#discovery.mergeWindowMs, {
      timers: host.timers,
      now: host.now,
      stats: host.managerStats,
      deliver: () => host.changed(this),
    });
    this.#preparation = new HostPreparation(resources.shared.directory);
    const { type } = this.#discovery;
    this.#dns = type === 'STRICT_DNS' || type === 'LOGICAL_DNS' ? this.#dnsCluster() : undefined;
  }

  /** Begins to look for hosts. */
  start(): void {
    this.#stats.set(ClusterStats.at.warming_state, 1);
    const { eds, endpoints, waitsForHosts } = this.#discovery;
    if (this.#dns !== undefined) {
      this.#dns.start();
      if (!waitsForHosts) this.#initialized();
    } else if (eds !== undefined) {
      this.#subscription = this.#host.endpoints(this, eds.source, eds.serviceName);
      this.#subscription.add(this);
    } else {
      this.#take(endpoints.flatMap((endpoint) => staticEndpoint(endpoint) ?? []));
      this.#looked();
    }
  }

  /** It takes the place of `former`, the version before it: from now on the hosts of the cluster are its own. */
  activate(former: PrimaryCluster | undefined): void {
    this.#isActive = true;
    if (!this.servesTraffic) this.#resources.limitCalls(this.#breakers.runtimeThresholds);
    if (this.#dns !== undefined && former !== undefined && former.#dns !== undefined)
      this.#checkAndKeep(this.#dns.succeed(former.#dns));
    // Without an answer, and without names that it shares with the version before it, it has no hosts.
    this.#setHosts(this.#endpoints ?? []);
    this.#checks?.count();
    this.outliers?.start(this.hosts);
    this.#preparation.discard();
  }

  /** It is gone. */
  stop(): void {
    if (!this.isInitialized) this.#stats.set(ClusterStats.at.warming_state, 0);
    this.#isActive = false;
    this.#dns?.stop();
    this.#checks?.stop();
    this.#merge.stop();
    this.#preparation.cancel();
    this.#preparation.discard();
    this.#subscription?.remove(this);
    this.outliers?.stop();
    this.#held.release();
  }

  get hosts(): Iterable<KnownHost> {
    return this.#resources.directory.hosts;
  }

  get hostCount(): number {
    return this.#resources.directory.size;
  }

  /** What gRPC calls are limited by; undefined where workers limit requests. */
  get grpcLimits(): GrpcLimits | undefined {
    return this.servesTraffic ? undefined : this.#resources.callLimits;
  }

  /** Limits of the default and of the high priority, as runtime and retry budgets have them now. */
  get thresholds(): readonly [Thresholds, Thresholds] {
    return this.#breakers.thresholds;
  }

  /** Of its own scope of stats. */
  get statPrefix(): string {
    return this.#resources.scope.prefix;
  }

  get stats(): Scope {
    return this.#stats;
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
    if (this.#checks === undefined) return;
    for (const host of this.hosts) if (host.block === block) return this.#checks.failedInTraffic(keyOf(host.endpoint));
  }

  /** Threads that still use another version of the cluster have other limits. */
  reportOutlier({ block, kind, specVersion }: OutlierReport): void {
    if (this.#isActive && specVersion === this.#specVersion) this.outliers?.reported(block, kind);
  }

  /** In percent. */
  get overprovisioning(): number {
    return this.#overprovisioning;
  }

  /** '' when it has none; the cluster's name does for it then. */
  get edsServiceName(): string {
    return this.config.eds_cluster_config?.service_name ?? '';
  }

  /** What is known of its assignment, of a cluster that gets its endpoints from EDS. */
  get assignment(): DynamicState | undefined {
    return this.#subscription?.state;
  }

  snapshot(): ClusterSnapshot {
    const { block, directory, scope } = this.#resources;
    return {
      spec: this.spec,
      specVersion: this.#specVersion,
      block,
      scope,
      hosts: directory.data,
      overprovisioning: this.#overprovisioning,
      membershipVersion: this.#membershipVersion,
    };
  }

  /** Brings up to date the gauges of circuit breakers, which workers only count, and of what workers choose hosts by. */
  updateGauges(): void {
    this.#breakers.updateGauges();
    this.#hashGauges?.update(this.#resources.directory.data, this.#overprovisioning);
  }

  // ── EndpointUser ─────────────────────────────────────────────────────────────────────────────────────────────────

  assigned(assignment: ClusterLoadAssignment): void {
    const endpoints = endpointSpecs(assignment).flatMap((endpoint) => staticEndpoint(endpoint) ?? []);
    this.#preparation.cancel();
    if (endpoints.length <= MANY_ENDPOINTS) return this.#assign(endpoints, assignment);
    this.#preparation.begin(
      endpoints,
      () => this.#assign(endpoints, assignment),
      (error) => {
        this.#cannotUse(endpoints, error);
        this.#looked();
      },
    );
  }

  unassigned(): void {
    this.#looked();
  }

  #assign(endpoints: readonly ResolvedEndpoint[], assignment: ClusterLoadAssignment): void {
    const overprovisioning = overprovisioningFactor(assignment);
    const isSameFactor = overprovisioning === this.#overprovisioning;
    this.#overprovisioning = overprovisioning;
    const hasChanged = this.#take(endpoints);
    if (this.#isActive) this.#preparation.discard();
    if (!hasChanged && isSameFactor) this.#stats.increment(ClusterStats.at.update_no_rebuild);
    else if (!hasChanged && this.#isActive) this.#merge.note(true);
    this.#looked();
  }

  #dnsCluster(): DnsCluster {
    const { random, resolver, timers } = this.#host;
    return new DnsCluster(this.#discovery, {
      timers,
      random,
      resolve: (name, family) => resolver.resolve(name, family),
      count: (stat) => this.#stats.increment(ClusterStats.at[stat]),
      onHosts: (endpoints) => this.#take(endpoints),
      onInitialized: () => this.#looked(),
    });
  }

  #healthChecks(): ClusterHealthChecks | undefined {
    const spec = healthCheckSpec(this.config);
    if (spec === undefined) return undefined;
    const { store } = this.#host;
    const { scope } = this.#resources;
    const checked = {
      spec: this.spec,
      stats: this.#held.addScope('health_check.', HealthCheckStats),
      hasTraffic: () => store.totalAt(scope, ClusterStats.at.upstream_cx_total, Kind.Counter) > 0,
      observe: (key: string, mask: number, flags: number) => this.observe(key, mask, flags),
      hostPassed: (key: string) => this.outliers?.passedHealthCheck(key),
      hostFailed: () => this.#take(this.#discovered),
    };
    return new ClusterHealthChecks(spec, checked, this.#host.checks);
  }

  /** It has looked for hosts: those that it has found are used when each of them has been checked. */
  #looked(): void {
    if (this.isInitialized) return;
    if (this.#checks === undefined) this.#initialized();
    else this.#checks.whenChecked(() => this.#initialized());
  }

  #outlierDetection(): OutlierDetection | undefined {
    const { outliers } = this.spec;
    if (outliers === undefined) return undefined;
    const flag = HealthFlag.FailedOutlierCheck;
    return new OutlierDetection(this.spec, outliers, this.#held, this.#host, (key, isEjected) =>
      this.observe(key, flag, isEjected ? flag : 0),
    );
  }

  #initialized(): void {
    if (this.isInitialized) return;
    this.#useObserved();
    this.isInitialized = true;
    this.#stats.set(ClusterStats.at.warming_state, 0);
    this.#host.initialized(this);
  }

  /** What was seen of its hosts is what workers will be told. Returns whether that is new. */
  #useObserved(): boolean {
    clearImmediate(this.#observation);
    this.#observation = undefined;
    if (!this.#isActive || !this.#resources.directory.updateHealth(this.#observed)) return false;
    this.#resources.countHosts();
    return true;
  }

  /** Returns whether they differ from those before. */
  #take(found: readonly ResolvedEndpoint[]): boolean {
    const isFirst = this.#endpoints === undefined;
    const endpoints = this.#checkAndKeep(found);
    if (!this.#isActive) return isFirst;
    const { added, removed, hasChanged } = this.#setHosts(endpoints);
    // What names resolve to is addresses: those of a logical host that has moved are as urgent as another host.
    const isMergeable = added + removed === 0 && this.#dns === undefined;
    // Before that it is told of as a whole, when its time comes.
    if (hasChanged && this.isInitialized) this.#merge.note(isMergeable);
    return hasChanged;
  }

  /** Returns those that it has from now on. */
  #checkAndKeep(found: readonly ResolvedEndpoint[]): readonly ResolvedEndpoint[] {
    this.#discovered = found;
    this.#endpoints = this.#checks === undefined ? found : this.#checks.take(found);
    return this.#endpoints;
  }

  /** There is no room for them: it goes on with the hosts that it has. */
  #cannotUse({ length }: readonly ResolvedEndpoint[], error: unknown): void {
    this.#stats.increment(ClusterStats.at.update_failure);
    logger.error(`cluster '${this.spec.name}': its ${length} endpoints cannot be used: ${messageOf(error)}`);
  }

  #setHosts(endpoints: readonly ResolvedEndpoint[]): HostChanges {
    const { directory } = this.#resources;
    let changes: HostChanges;
    try {
      changes = directory.update(endpoints, this.#observed);
    } catch (error) {
      this.#cannotUse(endpoints, error);
      return { added: 0, removed: 0, hasChanged: false };
    }
    if (!changes.hasChanged) return changes;
    if (changes.added + changes.removed > 0) {
      this.#membershipVersion++;
      this.#stats.increment(ClusterStats.at.membership_change);
    }
    this.outliers?.setHosts(this.hosts);
    this.#resources.countHosts();
    return changes;
  }
}
