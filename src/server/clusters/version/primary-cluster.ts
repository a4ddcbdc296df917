// One version of a cluster's configuration as the primary keeps it, with its hosts. Until it is activated it only gets ready, while
// the version before it serves.

import { speaksHttp2 } from '../../../config/fields/http-options.js';
import type { Cluster } from '../../../config/generated/api.js';
import type { SensitiveValue } from '../../../config/schema/sensitive.js';
import { ClusterStats } from '../../../stats/layouts/cluster.js';
import { type ClusterSpec, clusterSpec, discoverySpec } from '../../../upstream/cluster-config.js';
import type { ClusterSnapshot } from '../../../upstream/cluster-snapshot.js';
import type { KnownHost } from '../../../upstream/hosts/host-directory.js';
import type { LoadBalancingPolicies } from '../../../upstream/load-balancer/policy.js';
import type { OutlierReport } from '../../../upstream/outliers/outlier-report.js';
import { CircuitBreakers } from './circuit-breakers.js';
import type { GrpcLimits } from './grpc-limits.js';
import { type DiscoveryContext, type HostDiscovery, hostDiscovery } from './host-discovery.js';
import { Membership, type MembershipContext } from './membership.js';
import { PolicyGauges } from './policy-gauges.js';
import type { VersionResources } from './version-resources.js';

export interface PrimaryClusterContext extends DiscoveryContext, MembershipContext {
  /** How hosts can be chosen. */
  readonly policies: LoadBalancingPolicies;
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

export class PrimaryCluster {
  readonly config: Cluster;
  readonly origin: ClusterOrigin;
  readonly spec: ClusterSpec;
  /** Workers know it. Hosts that speak HTTP/2 serve only gRPC calls of the primary. */
  readonly servesTraffic: boolean;
  readonly breakers: CircuitBreakers;
  readonly membership: Membership;
  readonly discovery: HostDiscovery;
  readonly #specVersion: number;
  readonly #resources: VersionResources;
  /** Undefined where the load-balancing policy has none. */
  readonly #policyGauges: PolicyGauges | undefined;

  /** `resources` are released by stop(), or by the caller if it throws. `specVersion` is of this version of this cluster alone. */
  constructor(
    config: Cluster,
    origin: ClusterOrigin,
    specVersion: number,
    resources: VersionResources,
    context: PrimaryClusterContext,
  ) {
    this.config = config;
    this.origin = origin;
    this.spec = clusterSpec(config, context.policies);
    this.servesTraffic = !speaksHttp2(config);
    this.#specVersion = specVersion;
    this.#resources = resources;
    this.breakers = new CircuitBreakers(this.spec, resources, context.runtime);
    const { gauges } = context.policies.policyNamed(this.spec.loadBalancer.policy);
    if (gauges !== undefined) this.#policyGauges = new PolicyGauges(gauges, this.spec, resources, context.runtime);
    const discovery = discoverySpec(config);
    this.membership = new Membership(config, this.spec, discovery, resources, context, {
      changed: () => context.changed(this),
      initialized: () => {
        resources.shared.stats.set(ClusterStats.at.warming_state, 0);
        context.initialized(this);
      },
    });
    this.discovery = hostDiscovery(discovery, resources.shared, this.membership, context);
  }

  /** Begins to look for hosts. */
  start(): void {
    this.#resources.shared.stats.set(ClusterStats.at.warming_state, 1);
    this.discovery.start();
  }

  /** It takes the place of `former`, the version before it: from now on the hosts of the cluster are its own. */
  activate(former: PrimaryCluster | undefined): void {
    if (!this.servesTraffic) this.#resources.shared.limitCalls(this.breakers.runtimeThresholds);
    if (former !== undefined) this.discovery.succeed?.(former.discovery);
    this.membership.activate();
  }

  /** It is gone. */
  stop(): void {
    if (!this.isInitialized) this.#resources.shared.stats.set(ClusterStats.at.warming_state, 0);
    this.discovery.stop();
    this.membership.stop();
    this.#resources.release();
  }

  /** It has looked for hosts. */
  get isInitialized(): boolean {
    return this.membership.isInitialized;
  }

  /** Those of the version in use. */
  get hosts(): readonly KnownHost[] {
    return this.#resources.shared.directory.hosts;
  }

  /** What gRPC calls are limited by; undefined where workers limit requests. */
  get grpcLimits(): GrpcLimits | undefined {
    return this.servesTraffic ? undefined : this.#resources.shared.callLimits;
  }

  /** Of its own scope of stats. */
  get statPrefix(): string {
    return this.#resources.shared.scope.prefix;
  }

  /** '' when it has none; the cluster's name does for it then. */
  get edsServiceName(): string {
    return this.config.eds_cluster_config?.service_name ?? '';
  }

  /** Threads that still use another version of the cluster have other limits. */
  reportOutlier({ block, kind, specVersion }: OutlierReport): void {
    if (specVersion === this.#specVersion) this.membership.outliers?.reported(block, kind);
  }

  snapshot(): ClusterSnapshot {
    const { block, scope } = this.#resources.shared;
    return { spec: this.spec, specVersion: this.#specVersion, block, scope, ...this.membership.snapshot };
  }

  /** Brings up to date the gauges of circuit breakers, which workers only count, and of what workers choose hosts by. */
  updateGauges(): void {
    this.breakers.updateGauges();
    const { hosts, overprovisioning } = this.membership.snapshot;
    this.#policyGauges?.update(hosts, overprovisioning);
  }
}
