// One cluster as the primary keeps it: its hosts as discovery finds them, their stats and shared words, and what workers
// are told of it.

import type { Random } from '../../common/random.js';
import { speaksHttp2 } from '../../config/checks/grpc-clusters.js';
import type { Cluster } from '../../config/generated/api.js';
import type { ClusterFacts } from '../../extensions/factories.js';
import type { Timers } from '../../io/timing-wheel.js';
import type { Runtime } from '../../runtime/runtime.js';
import {
  CircuitBreakerRemainingStats,
  CircuitBreakerStats,
  ClusterStats,
  HostStats,
} from '../../stats/layouts/cluster.js';
import { Http1CodecStats } from '../../stats/layouts/http.js';
import type { StatsStore } from '../../stats/store.js';
import type { Scope, ScopeRef } from '../../stats/thread-stats.js';
import {
  type ClusterDiscovery,
  type ClusterSpec,
  clusterDiscovery,
  clusterSpec,
  staticEndpoint,
} from '../../upstream/cluster-config.js';
import type { ClusterSnapshot } from '../../upstream/cluster-snapshot.js';
import { DnsCluster } from '../../upstream/dns/dns-cluster.js';
import type { DnsResolver } from '../../upstream/dns/resolver.js';
import { DEGRADED_FLAGS, EXCLUDED_FLAGS, UNHEALTHY_FLAGS } from '../../upstream/health-flags.js';
import type { ResolvedEndpoint } from '../../upstream/host.js';
import { HostDirectory, type HostResources, type KnownHost } from '../../upstream/host-directory.js';
import { LimitKind, limitOf, limitWord, Priority, RuntimeThresholds, type Thresholds } from '../../upstream/limits.js';
import { HostWord, type SharedWordsOwner } from '../../upstream/shared-words.js';

export interface PrimaryClusterHost {
  readonly store: StatsStore;
  readonly words: SharedWordsOwner;
  readonly resolver: DnsResolver;
  readonly timers: Timers;
  readonly random: Random;
  readonly runtime: Runtime;
  /** A host with these words and stats is in no snapshot from now on. */
  retireHost(block: number, scope: ScopeRef): void;
  /** The cluster's hosts have changed. */
  changed(cluster: PrimaryCluster): void;
  /** Its first hosts are known, or it is known that there are none. */
  initialized(cluster: PrimaryCluster): void;
}

export class PrimaryCluster {
  readonly config: Cluster;
  readonly spec: ClusterSpec;
  /** Workers know it. Hosts that speak HTTP/2 serve only gRPC calls of the primary. */
  readonly servesTraffic: boolean;
  /** It has looked for hosts. */
  isInitialized = false;
  readonly #host: PrimaryClusterHost;
  readonly #discovery: ClusterDiscovery;
  readonly #block: number;
  readonly #scope: ScopeRef;
  readonly #stats: Scope;
  readonly #thresholds: RuntimeThresholds;
  readonly #breakers: readonly [BreakerGauges, BreakerGauges];
  readonly #directory: HostDirectory;
  readonly #hostScopes = new Map<number, ScopeRef>();
  readonly #dns: DnsCluster | undefined;

  constructor(config: Cluster, host: PrimaryClusterHost) {
    this.config = config;
    this.#host = host;
    this.spec = clusterSpec(config);
    this.servesTraffic = !speaksHttp2(config);
    this.#discovery = clusterDiscovery(config);
    this.#block = host.words.allocateCluster();
    const prefix = `cluster.${this.spec.observabilityName}.`;
    this.#scope = host.store.addScope(prefix, ClusterStats);
    this.#stats = host.store.scope(this.#scope);
    host.store.addScope(`${prefix}http1.`, Http1CodecStats);
    this.#thresholds = new RuntimeThresholds(this.spec.name, this.spec.thresholds, host.runtime);
    this.#breakers = [
      new BreakerGauges(host.store, `${prefix}circuit_breakers.default.`, this.spec, Priority.Default),
      new BreakerGauges(host.store, `${prefix}circuit_breakers.high.`, this.spec, Priority.High),
    ];
    this.#directory = new HostDirectory({
      allocate: (address) => this.#allocate(`${prefix}host.${address}.`),
      retire: (resources) => this.#retire(resources),
    });
    this.#dns = this.#discovery.type === 'STATIC' ? undefined : this.#dnsCluster();
  }

  /** Begins to look for hosts. */
  start(): void {
    this.#stats.set(ClusterStats.at.warming_state, 1);
    if (this.#dns !== undefined) {
      this.#dns.start();
      return;
    }
    this.#setHosts(this.#discovery.endpoints.flatMap((endpoint) => staticEndpoint(endpoint) ?? []));
    this.#initialized();
  }

  stop(): void {
    this.#dns?.stop();
  }

  get hosts(): Iterable<KnownHost> {
    return this.#directory.hosts;
  }

  /** Limits of the default and of the high priority, as runtime has them now. */
  get thresholds(): readonly [Thresholds, Thresholds] {
    return this.#thresholds.current;
  }

  /** Of its own scope of stats. */
  get statPrefix(): string {
    return this.#scope.prefix;
  }

  get hostCount(): number {
    return this.#directory.size;
  }

  /** HealthFlag bits of a host: what discovery says and what was found out since. */
  healthFlags(host: KnownHost): number {
    return host.endpoint.healthFlags | this.#host.words.read(host.block + HostWord.Health);
  }

  snapshot(): ClusterSnapshot {
    return {
      spec: this.spec,
      specVersion: 0,
      block: this.#block,
      scope: this.#scope,
      hostScope: { prefix: `${this.#scope.prefix}host.`, layout: 0, chunk: 0, base: 0 },
      hosts: this.#directory.data,
    };
  }

  /** Brings the gauges of circuit breakers up to date: workers only count. */
  updateGauges(): void {
    const limits = this.#thresholds.current;
    for (const breaker of this.#breakers) breaker.update(this.#host.words, this.#block, limits);
  }

  #dnsCluster(): DnsCluster {
    const { random, resolver, timers } = this.#host;
    return new DnsCluster(this.#discovery, {
      timers,
      random,
      resolve: (name, family) => resolver.resolve(name, family),
      count: (stat) => this.#stats.increment(ClusterStats.at[stat]),
      onHosts: (endpoints) => {
        this.#setHosts(endpoints);
        this.#host.changed(this);
      },
      onInitialized: () => this.#initialized(),
    });
  }

  #initialized(): void {
    this.isInitialized = true;
    this.#stats.set(ClusterStats.at.warming_state, 0);
    this.#host.initialized(this);
  }

  #setHosts(endpoints: readonly ResolvedEndpoint[]): void {
    const { added, removed } = this.#directory.update(endpoints);
    const { at } = ClusterStats;
    if (added + removed > 0) this.#stats.increment(at.membership_change);
    let healthy = 0;
    let degraded = 0;
    let excluded = 0;
    let heaviest = 0;
    for (const { endpoint } of this.#directory.hosts) {
      if (endpoint.healthFlags & DEGRADED_FLAGS) degraded++;
      else if ((endpoint.healthFlags & UNHEALTHY_FLAGS) === 0) healthy++;
      if (endpoint.healthFlags & EXCLUDED_FLAGS) excluded++;
      heaviest = Math.max(heaviest, endpoint.weight);
    }
    this.#stats.set(at.membership_total, this.#directory.size);
    this.#stats.set(at.membership_healthy, healthy);
    this.#stats.set(at.membership_degraded, degraded);
    this.#stats.set(at.membership_excluded, excluded);
    this.#stats.set(at.max_host_weight, heaviest);
  }

  #allocate(prefix: string): HostResources {
    // Every host is matched with the one transport socket that there is.
    this.#stats.increment(ClusterStats.at['default.total_match_count']);
    const scope = this.#host.store.addScope(prefix, HostStats, { hidden: true });
    const block = this.#host.words.allocateHost();
    this.#hostScopes.set(block, scope);
    return { block, statsChunk: scope.chunk, statsBase: scope.base };
  }

  #retire({ block }: HostResources): void {
    this.#host.retireHost(block, this.#hostScopes.get(block)!);
    this.#hostScopes.delete(block);
  }
}

/** Clusters as sinks of stats see them. */
export function* clusterFacts(clusters: Iterable<PrimaryCluster>): Generator<ClusterFacts> {
  for (const { spec, statPrefix, hostCount, thresholds } of clusters) {
    yield {
      name: spec.name,
      statsPrefix: statPrefix,
      maxPendingRequests: thresholds[Priority.Default].maxPendingRequests,
      hosts: hostCount,
    };
  }
}

/** The gauges of one priority's circuit breakers. */
class BreakerGauges {
  readonly #priority: Priority;
  readonly #open: Scope;
  readonly #remaining: Scope | undefined;

  constructor(store: StatsStore, prefix: string, spec: ClusterSpec, priority: Priority) {
    this.#priority = priority;
    this.#open = store.scope(store.addScope(prefix, CircuitBreakerStats));
    this.#remaining = spec.trackRemaining[priority]
      ? store.scope(store.addScope(prefix, CircuitBreakerRemainingStats))
      : undefined;
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
    setIfChanged(this.#open, open.cx_open, connections === 0 ? 1 : 0);
    setIfChanged(this.#open, open.rq_pending_open, pending === 0 ? 1 : 0);
    setIfChanged(this.#open, open.rq_open, requests === 0 ? 1 : 0);
    setIfChanged(this.#open, open.rq_retry_open, retries === 0 ? 1 : 0);
    if (this.#remaining === undefined) return;
    const remaining = CircuitBreakerRemainingStats.at;
    this.#remaining.set(remaining.remaining_cx, connections);
    this.#remaining.set(remaining.remaining_pending, pending);
    this.#remaining.set(remaining.remaining_rq, requests);
    this.#remaining.set(remaining.remaining_retries, retries);
  }
}

/** A gauge that was never changed stays unused. */
function setIfChanged(scope: Scope, at: number, value: number): void {
  if (scope.page[scope.base + at] !== value) scope.set(at, value);
}
