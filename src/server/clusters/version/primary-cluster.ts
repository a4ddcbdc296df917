// One version of a cluster's configuration on the primary, with its hosts. Before activate() it only warms, while the previous
// version serves.

import { forwardProxyConfig } from '../../../config/fields/discovery.js';
import type { Cluster } from '../../../config/generated/api.js';
import type { SensitiveValue } from '../../../config/schema/sensitive.js';
import { ClusterStats } from '../../../stats/layouts/cluster.js';
import { DnsCacheStats } from '../../../stats/layouts/dns-cache.js';
import type { ScopeRef } from '../../../stats/thread-stats.js';
import type { TlsContexts } from '../../../tls/tls-contexts.js';
import type { OverloadDrop } from '../../../upstream/assignment-policy.js';
import { type ClusterSpec, clusterSpec } from '../../../upstream/cluster-config.js';
import type { ClusterSnapshot } from '../../../upstream/cluster-snapshot.js';
import { discoverySpec } from '../../../upstream/discovery-config.js';
import type { EventReport } from '../../../upstream/event-report.js';
import type { KnownHost } from '../../../upstream/hosts/host-directory.js';
import type { Locality } from '../../../upstream/hosts/locality.js';
import type { LoadBalancingPolicies } from '../../../upstream/load-balancer/policy.js';
import type { OutlierReport } from '../../../upstream/outliers/outlier-report.js';
import type { HostRefusal, HostRequest } from '../../../upstream/requested-hosts/host-request.js';
import { InitManager } from '../../init/init-manager.js';
import type { DnsCaches, HeldDnsCache } from '../dns-caches.js';
import { CircuitBreakers } from './circuit-breakers.js';
import type { DiscoveryContext, HostDiscovery } from './discovery.js';
import { hostDiscovery } from './host-discovery.js';
import { Membership, type MembershipContext } from './membership.js';
import { PolicyGauges } from './policy-gauges.js';
import { SubsetCounts } from './subset-counts.js';
import { type FiltersContext, prepareFilters } from './version-filters.js';
import type { VersionResources } from './version-resources.js';
import { clusterTransports } from './version-tls.js';

export interface PrimaryClusterContext
  extends Omit<DiscoveryContext, 'cluster' | 'checks' | 'refuseHost'>,
    MembershipContext,
    FiltersContext {
  readonly dnsCaches: DnsCaches;
  /** Called when a cluster does not get a requested host. */
  refuseHost(refusal: HostRefusal): void;
  /** The available load-balancing policies. */
  readonly policies: LoadBalancingPolicies;
  /** The number of workers, and the primary: in Envoy, each thread has a load balancer and counts it. */
  readonly threads: number;
  /** The locality of this server; undefined: none is configured. */
  readonly locality: Locality | undefined;
  readonly tls: TlsContexts;
  /** Called when the hosts have changed and workers must be notified. */
  changed(cluster: PrimaryCluster): void;
  /** Called when the first hosts are known, and checked if health checks are configured, or when there are none. */
  initialized(cluster: PrimaryCluster): void;
}

/** The origin of a version. */
export interface ClusterOrigin {
  readonly isAddedViaApi: boolean;
  /** version_info of the resource; '' for static ones. */
  readonly version: string;
  readonly updatedAt: Date;
  /** Values of the configuration that must not be shown. */
  readonly sensitive: readonly SensitiveValue[];
}

export class PrimaryCluster {
  readonly config: Cluster;
  readonly origin: ClusterOrigin;
  readonly spec: ClusterSpec;
  /** Stats that only some clusters have. */
  readonly #scopes: Pick<ClusterSnapshot, 'http2Scope' | 'budgetScope' | 'sizeScope' | 'filterScopes'>;
  readonly breakers: CircuitBreakers;
  readonly membership: Membership;
  readonly discovery: HostDiscovery;
  /** Waits for the secrets of its TLS context: until they arrive, health checks could only fail. */
  readonly #secrets: InitManager;
  /** The DNS cache of a dynamic forward proxy. */
  readonly #dnsCache: HeldDnsCache | undefined;
  readonly #specVersion: number;
  readonly #resources: VersionResources;
  /** Undefined when the load-balancing policy has none. */
  readonly #policyGauges: PolicyGauges | undefined;
  /** Undefined when the cluster has no subsets. */
  readonly #subsetCounts: SubsetCounts | undefined;

  /** stop() releases `resources`, or the caller if this throws. `specVersion` is unique among the versions of this cluster. */
  constructor(
    config: Cluster,
    origin: ClusterOrigin,
    specVersion: number,
    resources: VersionResources,
    context: PrimaryClusterContext,
  ) {
    this.config = config;
    this.origin = origin;
    this.#secrets = new InitManager(`Cluster ${config.name ?? ''}`);
    const cacheConfig = forwardProxyConfig(config)?.dns_cache_config;
    this.#dnsCache = cacheConfig && context.dnsCaches.acquire(cacheConfig, `cluster '${config.name ?? ''}'`);
    if (this.#dnsCache !== undefined) resources.whenUnused(this.#dnsCache.release);
    const transports = clusterTransports(config, resources, context.tls, this.#secrets);
    this.spec = clusterSpec(config, context.policies, transports, this.#dnsCache);
    const { http2, tracksBudgets, tracksSizes } = this.spec;
    this.#scopes = {
      http2Scope: http2 && resources.shared.http2Scope(),
      budgetScope: tracksBudgets ? resources.shared.budgetScope() : undefined,
      filterScopes: prepareFilters(this.spec, resources, context, this.#secrets),
      sizeScope: tracksSizes ? resources.shared.sizeScope() : undefined,
    };
    this.#specVersion = specVersion;
    this.#resources = resources;
    this.breakers = new CircuitBreakers(this.spec, resources, context.runtime);
    const { gauges } = context.policies.policyNamed(this.spec.loadBalancer.policy);
    if (gauges !== undefined) this.#policyGauges = new PolicyGauges(gauges, this.spec, resources, context);
    const { picksByHash, subsets } = this.spec.loadBalancer;
    if (subsets !== undefined)
      this.#subsetCounts = new SubsetCounts(
        config.name ?? '',
        subsets,
        picksByHash === true,
        resources,
        context.threads,
      );
    const discovery = discoverySpec(config);
    this.membership = new Membership(config, this.spec, discovery, resources, context, {
      changed: () => {
        this.#subsetCounts?.update(this.membership.snapshot.hosts);
        context.changed(this);
      },
      hostDegraded: () => this.discovery.note?.({ failures: 0, redirections: 0, degradedHosts: 1 }),
      initialized: () => {
        resources.shared.stats.set(ClusterStats.at.warming_state, 0);
        this.#subsetCounts?.update(this.membership.snapshot.hosts);
        context.initialized(this);
      },
    });
    this.discovery = hostDiscovery(discovery, resources.shared, this.membership, {
      ...context,
      cluster: this.spec,
      dnsCache: this.#dnsCache,
      refuseHost: (key, details) => context.refuseHost({ cluster: this.spec.name, specVersion, key, details }),
    });
  }

  /** Starts to look for hosts as soon as its secrets are known, or are not awaited any more. */
  start(): void {
    this.#resources.shared.stats.set(ClusterStats.at.warming_state, 1);
    this.#secrets.wait(() => this.discovery.start());
  }

  /** Puts this version into use in place of `former`, the previous one. */
  activate(former: PrimaryCluster | undefined): void {
    if (former !== undefined) this.discovery.inheritFrom?.(former.discovery);
    this.#resources.shared.trackEndpoints(this.spec.tracksEndpoints);
    this.membership.activate();
    this.#subsetCounts?.update(this.membership.snapshot.hosts);
  }

  /** Called when the version is discarded. */
  stop(): void {
    if (!this.isInitialized) this.#resources.shared.stats.set(ClusterStats.at.warming_state, 0);
    this.#secrets.wait(() => {});
    this.#subsetCounts?.end();
    this.discovery.stop();
    this.membership.stop();
    this.#resources.release();
  }

  /** It waits for no secret of a management server. */
  get hasLocalSecrets(): boolean {
    return this.#secrets.isLocal;
  }

  /** It has looked for hosts. */
  get isInitialized(): boolean {
    return this.membership.isInitialized;
  }

  /** The hosts of the version in use. */
  get hosts(): readonly KnownHost[] {
    return this.#resources.shared.directory.hosts;
  }

  /** The share of its requests that is dropped, as its assignment demands. */
  get drop(): OverloadDrop | undefined {
    return this.membership.snapshot.policy.drop;
  }

  /** The number of requests that were dropped for it so far. */
  get droppedByPolicy(): number {
    return this.#resources.shared.droppedByPolicy;
  }

  /** The scope of the cluster's stats. */
  get scope(): ScopeRef {
    return this.#resources.shared.scope;
  }

  /** Prefix of the cluster's stats. */
  get statPrefix(): string {
    return this.scope.prefix;
  }

  /** '' when not set; the cluster's name is used then. */
  get edsServiceName(): string {
    return this.config.eds_cluster_config?.service_name ?? '';
  }

  /** Ignores reports of threads that still use another version of the cluster, with other limits. */
  reportOutlier({ block, kind, specVersion }: OutlierReport): void {
    if (specVersion === this.#specVersion) this.membership.outliers?.reported(block, kind);
  }

  /** Ignores reports of threads that still use another version. */
  reportEvents({ failures, redirections, specVersion }: EventReport): void {
    if (specVersion === this.#specVersion) this.discovery.note?.({ failures, redirections, degradedHosts: 0 });
  }

  /** Ignores requests of threads that still use another version: they have been answered. */
  requestHost({ key, specVersion }: HostRequest): void {
    if (specVersion === this.#specVersion) this.discovery.request?.(key);
  }

  snapshot(): ClusterSnapshot {
    const { block, scope } = this.#resources.shared;
    const { spec } = this;
    return { spec, specVersion: this.#specVersion, block, scope, ...this.#scopes, ...this.membership.snapshot };
  }

  /** Updates the circuit breaker of the DNS cache. */
  #updateWaiting(): void {
    if (this.#dnsCache === undefined) return;
    const { maxWaiting, stats } = this.#dnsCache;
    const left = Math.max(0, maxWaiting - this.#resources.shared.waiting);
    stats.set(DnsCacheStats.at['circuit_breakers.rq_pending_open'], left === 0 ? 1 : 0);
    stats.set(DnsCacheStats.at['circuit_breakers.rq_pending_remaining'], left);
  }

  /** Updates the gauges of circuit breakers, for which workers only count, and of the load-balancing policy. */
  updateGauges(): void {
    this.breakers.updateGauges();
    this.#updateWaiting();
    if (this.#policyGauges === undefined) return;
    const { hosts, policy } = this.membership.snapshot;
    this.#policyGauges.update(hosts, policy);
  }
}
