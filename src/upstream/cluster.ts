// A cluster on one worker: its hosts, its load balancer, and a connection pool for each host.

import type { Protocol, StreamInfo } from '../access-log/stream/stream-info.js';
import type { Priority } from '../common/priority.js';
import { knownHeader } from '../common/text/header-names.js';
import type { Word64 } from '../common/xxh64.js';
import type { HeaderBlock } from '../http/headers/header-block.js';
import type { MetadataMatch } from '../http/routing/actions/metadata-match.js';
import { HashPolicy } from '../http/routing/hashing/hash-policy.js';
import { configuredMetadata, MetadataRule } from '../http/routing/matching/value-rule.js';
import { addressText, decodeSockaddr, encodeAddress, parseAddress } from '../io/addresses/address.js';
import { type BufferLimits, bufferLimits } from '../io/transport/buffer-limits.js';
import type { RuntimeFraction } from '../runtime/runtime.js';
import { ClusterStats, HostStats } from '../stats/layouts/cluster.js';
import { DnsCacheStats } from '../stats/layouts/dns-cache.js';
import type { DynamicCounter, DynamicHistogram, Scope } from '../stats/thread-stats.js';
import type { ClusterSpec } from './cluster-config.js';
import type { ClusterSnapshot } from './cluster-snapshot.js';
import { type ConnectionTraits, connectionTraits } from './connections/connect-options.js';
import { HostPools } from './connections/host-pools.js';
import { HostProtocols } from './connections/host-protocols.js';
import { HostTransport } from './connections/host-transport.js';
import { HttpPool, type PooledCluster } from './connections/http-pool.js';
import { MAX_AHEAD, needsConnection, type StreamCounts } from './connections/preconnect.js';
import type { ClientEnds } from './connections/proxy-header.js';
import { type RequestedHost, requestedHost } from './connections/requested-host.js';
import { ClusterEvents } from './event-report.js';
import { FAILING_FLAGS, healthStatus, UNHEALTHY_FLAGS } from './hosts/health-flags.js';
import { Host, NO_BLOCK } from './hosts/host.js';
import { HostOverrides } from './hosts/host-overrides.js';
import { HostSet, hasSameAddresses } from './hosts/host-set.js';
import { NOWHERE } from './hosts/locality.js';
import { OWN_TRANSPORT } from './hosts/transport-matches.js';
import { ClusterLimits, RuntimeThresholds } from './limits.js';
import { AggregateBalancer } from './load-balancer/aggregate-balancer.js';
import { ClusterLoadBalancer } from './load-balancer/cluster-load-balancer.js';
import type { ClusterBalancer } from './load-balancer/load-balancer.js';
import { type ReadFrom, ShardBalancer } from './load-balancer/shard-balancer.js';
import { SubsetBalancer } from './load-balancer/subsets/subset-balancer.js';
import { HostMonitor, OutlierCounting } from './outliers/host-monitor.js';
import type { RequestFilters } from './request-filters.js';
import { AddressReader, type DestinationReader, type DestinationSpec } from './requested-hosts/destination.js';
import { NameReader } from './requested-hosts/name-reader.js';
import { RequestedHosts } from './requested-hosts/requested-hosts.js';
import { ResponseStats } from './response-stats.js';
import { ClusterWord, HostWord } from './shared-words.js';
import type { UpstreamThread } from './upstream-thread.js';

/** A host with its connections. */
export type ClusterHost = Host<HostPools>;

export class Cluster implements PooledCluster {
  readonly thread: UpstreamThread;
  readonly name: string;
  readonly stats: Scope;
  readonly responses: ResponseStats;
  readonly limits: ClusterLimits;
  readonly spec: ClusterSpec;
  /** The share of requests that are refused at once (upstream.maintenance_mode). */
  readonly maintenance: RuntimeFraction;
  /** The share of requests that its load assignment demands to drop: 0 to 1. */
  dropRatio = 0;
  readonly bufferLimits: BufferLimits;
  /** Undefined: its requests are not measured. */
  readonly measurements: ClusterMeasurements | undefined;
  /** Undefined: no outlier detection. */
  readonly outliers: OutlierCounting | undefined;
  /** Hosts are chosen by a hash of the request. */
  readonly picksByHash: boolean;
  /** Replaces that of routes; undefined: that applies. */
  readonly hashPolicy: HashPolicy | undefined;
  /** Of its pools; undefined unless it connects to the hosts that are picked next. */
  readonly counts: StreamCounts | undefined;
  /** The hosts that are connected in advance; undefined: all. */
  readonly #preconnected: MetadataRule | undefined;
  /** Indexes of the hosts that are picked next, which have been connected in advance. */
  #foreseen: number[] = [];
  /** Hosts are chosen by metadata of the request. */
  readonly hasSubsets: boolean;
  /** Requests may name their hosts; undefined: they do not. */
  readonly overrides: HostOverrides | undefined;
  /** Requests name their hosts, which are found here; undefined: a load balancer picks. */
  readonly requestedHosts: RequestedHosts | undefined;
  /** The shards of a Redis cluster with slots; undefined: it has none. */
  shards: ShardBalancer | undefined;
  /** Undefined: none are reported. */
  readonly events: ClusterEvents | undefined;
  /** Chooses the cluster of an aggregate. */
  #aggregate: AggregateBalancer<Cluster> | undefined;
  /** The upstream HTTP filters of its requests; undefined: it has none of its own. */
  filters: RequestFilters | undefined;
  readonly #destinations: DestinationReader | undefined;
  /** The load balancer uses active request counts. Only then do the workers share these counts. */
  readonly #countsActiveRequests: boolean;
  readonly #protocols: HostProtocols;
  /** By the number of a host's transport socket; undefined: plain. */
  readonly #transports: readonly (HostTransport | undefined)[];
  /** The connections of each client are its own. */
  readonly namesClients: boolean;
  /** Connections bring the filter state of their stream to internal listeners. */
  readonly passesState: boolean;
  readonly #requestedHost: RequestedHost | undefined;
  /** Hosts with connection pools. */
  readonly #pooled = new Set<ClusterHost>();
  #hasFailing = false;
  /** Indexes of hosts by address, from the first look-up until the addresses change. */
  #indexes: Map<string, number> | undefined;
  #snapshot: ClusterSnapshot;
  #hosts: HostSet<ClusterHost>;
  #balancer: ClusterBalancer;

  constructor(thread: UpstreamThread, snapshot: ClusterSnapshot, balancer = loadBalancerOf(thread, snapshot)) {
    const { spec } = snapshot;
    this.thread = thread;
    this.name = spec.name;
    this.spec = spec;
    this.stats = thread.stats.scope(snapshot.scope);
    this.responses = new ResponseStats(thread.stats, this.stats, snapshot.scope.prefix, thread.locality?.zone ?? '');
    const thresholds = new RuntimeThresholds(spec.name, spec.thresholds, thread.runtime);
    this.limits = new ClusterLimits(thread.words, snapshot.block, thresholds);
    this.maintenance = thread.runtime.fraction(`upstream.maintenance_mode.${spec.name}`, {});
    this.bufferLimits = bufferLimits(spec.perConnectionBufferLimit);
    const { http2Scope } = snapshot;
    this.#protocols = new HostProtocols(thread.memory, spec, http2Scope && thread.stats.scope(http2Scope));
    this.#transports = spec.transports.map((each) =>
      each === null ? undefined : new HostTransport(each, thread.stats),
    );
    this.namesClients = this.#transports.some((each) => each?.namesClient);
    this.passesState = this.#transports.some((each) => each?.passthrough !== undefined);
    const requestNames = spec.transports.find((each) => each?.tls)?.tls?.requestNames;
    this.#requestedHost = requestNames && requestedHost(requestNames);
    this.picksByHash = spec.loadBalancer.picksByHash === true;
    this.hashPolicy = spec.hashPolicy && HashPolicy.of(spec.hashPolicy, `cluster ${spec.name}`);
    this.hasSubsets = spec.loadBalancer.subsets !== undefined;
    this.overrides = spec.loadBalancer.overrides && new HostOverrides(spec.loadBalancer.overrides);
    const { preconnect } = spec;
    const isPredictive = (preconnect?.predictive ?? 1) > 1 && spec.loadBalancer.isPredictable === true;
    this.counts = isPredictive && !this.hasSubsets ? { pending: 0, active: 0, free: 0 } : undefined;
    this.#preconnected = preconnect?.hosts && new MetadataRule(preconnect.hosts, PRECONNECTED);
    this.#countsActiveRequests = spec.loadBalancer.countsActiveRequests === true;
    this.measurements = measurementsOf(thread, snapshot);
    this.outliers = outlierCounting(thread, snapshot);
    this.#snapshot = snapshot;
    this.dropRatio = snapshot.policy.drop?.ratio ?? 0;
    this.#hosts = new HostSet<ClusterHost>(snapshot.hosts, makeHost(this, snapshot));
    this.#hasFailing = snapshot.hosts.healthFlags.some(isFailing);
    this.#balancer = balancer;
    this.shards = shardsOf(snapshot);
    this.events = eventsOf(thread, snapshot);
    if (spec.destination === undefined) return;
    this.#destinations = destinationReader(this, spec.destination);
    this.requestedHosts = requestedHosts(this, snapshot, spec.destination, (index) =>
      spec.destination!.kind === 'name' ? this.#hosts.describe(index).hostname : this.#addressAt(index),
    );
    this.requestedHosts.update(snapshot.hosts);
  }

  get hostCount(): number {
    return this.#hosts.count;
  }

  /** Returns the raw sockaddr of a host, by its index below hostCount. */
  hostAddress(index: number): Uint8Array {
    return this.#hosts.sockaddr(index);
  }

  /** Returns a host, healthy or not, by its index below hostCount. */
  hostWith(index: number): ClusterHost {
    return this.#hosts.host(index);
  }

  /** Returns the number of healthy and degraded hosts. Scans all hosts. */
  usableHostCount(): number {
    let count = 0;
    for (const flags of this.#hosts.data.healthFlags) if ((flags & UNHEALTHY_FLAGS) === 0) count++;
    return count;
  }

  /** Returns the counter `cluster.<name>.<name>`, which exists from its first increment. Frequent callers must keep it. */
  counter(name: string): DynamicCounter {
    return this.thread.stats.dynamicCounter(this.#snapshot.scope.prefix, name);
  }

  /** Returns the histogram `cluster.<name>.<name>` of milliseconds, in the same way. */
  histogram(name: string): DynamicHistogram {
    return this.thread.stats.dynamicHistogram(this.#snapshot.scope.prefix, name);
  }

  /**
   * Returns the host for a new request. Returns undefined, and counts that, when no host may be used.
   * @param hash of the request, with picksByHash
   * @param attempt number of hosts that have failed the request already
   * @param match metadata of the request, with hasSubsets
   */
  pickHost(hash?: Word64, attempt?: number, match?: MetadataMatch): ClusterHost | undefined {
    if (this.requestedHosts !== undefined) return this.countNoHost();
    if (this.#foreseen.length > 0) return this.#hosts.host(this.#foreseen.shift()!);
    const index = this.#balancer.pick(this.thread.random, hash, attempt, match);
    if (this.#balancer.pickedInPanic) this.stats.increment(ClusterStats.at.lb_healthy_panic);
    return index < 0 ? this.countNoHost() : this.#hosts.host(index);
  }

  /** Returns a host of a shard. Returns undefined, and counts that, when none may be used. */
  shardHost(shard: number, from: ReadFrom): ClusterHost | undefined {
    const index = this.shards?.pick(shard, from, this.thread.random) ?? -1;
    return index < 0 ? this.countNoHost() : this.#hosts.host(index);
  }

  /** Called once for an aggregate, with its clusters. */
  aggregates(clusters: readonly { readonly current: Cluster | undefined }[]): void {
    const { policy, spec } = this.#snapshot;
    this.#aggregate = new AggregateBalancer<Cluster>(clusters, { ...spec.health, ...policy });
  }

  /** Returns the cluster whose host a new request gets: itself, or one of an aggregate; itself also if none of these has hosts. */
  clusterOfHost(hash?: Word64): Cluster {
    return this.#aggregate === undefined ? this : (this.#aggregate.pick(this.thread.random, hash) ?? this);
  }

  get isAggregate(): boolean {
    return this.#aggregate !== undefined;
  }

  /**
   * Returns the host that a request or connection names, in a cluster with requestedHosts. Returns its key where the host must be requested
   * first; undefined, and counts that, when it names none, or an unhealthy one. `headers`: undefined for a connection.
   */
  namedHost(headers: HeaderBlock | undefined, info: StreamInfo): ClusterHost | string | undefined {
    const key = this.#destinations!.read(headers, info);
    if (key === undefined) return this.countNoHost();
    const index = this.requestedHosts!.find(key);
    if (index === undefined) return key;
    // As in Envoy, the health of original destinations is not regarded.
    const isRegarded = this.spec.destination!.kind === 'name';
    if (isRegarded && (this.#hosts.data.healthFlags[index]! & UNHEALTHY_FLAGS) !== 0) return this.countNoHost();
    return this.#hosts.host(index);
  }

  /** Returns whether a request is dropped, and counts that. For clusters with a dropRatio. */
  dropsRequest(): boolean {
    // fraction() is below 1.
    if (this.thread.random.fraction() >= this.dropRatio) return false;
    Atomics.add(this.thread.words.words, this.#snapshot.block + ClusterWord.DroppedByPolicy, 1);
    return true;
  }

  /** Counts that a request gets no host. */
  countNoHost(): undefined {
    this.stats.increment(ClusterStats.at.upstream_cx_none_healthy);
    return undefined;
  }

  #addressAt(index: number): string {
    const raw = this.#hosts.sockaddr(index);
    return addressText(decodeSockaddr(raw, 0, raw.length));
  }

  /** Returns whether the host is still one of the cluster's. */
  has(host: Host): boolean {
    return this.#hosts.has(host);
  }

  /** Returns the host with this address (`127.0.0.1:80`), healthy or not; a logical host also by an earlier address. */
  hostAt(address: string): ClusterHost | undefined {
    const index = this.spec.hasLogicalHost && this.#hosts.count > 0 ? 0 : this.#indexOf(address);
    return index === undefined ? undefined : this.#hosts.host(index);
  }

  /**
   * Returns a new host that is not one of the cluster's, but is connected to as those are. `address`: as for hostAt(). `stats`: with
   * HostStats. Returns undefined for a text that is no IP address with a port.
   */
  unknownHost(address: string, stats: Scope): ClusterHost | undefined {
    const parsed = parseAddress(address);
    if (parsed === undefined || parsed.ip === '') return undefined;
    return new Host<HostPools>(NO_BLOCK, UNKNOWN_HOST, encodeAddress(parsed), stats);
  }

  /** Returns the host with this canonical address (`127.0.0.1:80`), healthy or not. */
  namedHostAt(address: string): ClusterHost | undefined {
    const index = this.#indexOf(address);
    return index === undefined ? undefined : this.#hosts.host(index);
  }

  /** Returns the host with this address that a filter has chosen, if its health permits that (override_host_status). */
  overrideHost(address: string): ClusterHost | undefined {
    const index = this.#indexOf(address);
    if (index === undefined) return undefined;
    const status = healthStatus(this.#hosts.data.healthFlags[index]!);
    return (this.spec.overrideStatuses & (1 << status)) === 0 ? undefined : this.#hosts.host(index);
  }

  #indexOf(address: string): number | undefined {
    this.#indexes ??= this.#indexAddresses();
    return this.#indexes.get(address);
  }

  #indexAddresses(): Map<string, number> {
    const indexes = new Map<string, number>();
    for (let index = this.#hosts.count - 1; index >= 0; index--) indexes.set(this.#addressAt(index), index);
    return indexes;
  }

  /**
   * Returns the pool of this worker's HTTP connections to the host. `client`: the protocol of the request's client; undefined: the request
   * is Baton's own. `traits`: of its connections; undefined where they do not depend on it. Returns undefined, and counts that, when the
   * circuit breaker of pools is open.
   */
  pool(host: ClusterHost, priority: Priority, client?: Protocol, traits?: ConnectionTraits): HttpPool | undefined {
    const pool = this.#poolOf(host, priority, client, traits);
    if (this.counts !== undefined && pool !== undefined) this.#preconnect(this.counts, pool, client, traits);
    return pool;
  }

  /**
   * Connects to the hosts that the next requests get, if the requests need more connections by the configured ratio. `used`: the pool of
   * the request that is about to start.
   */
  #preconnect(counts: StreamCounts, used: HttpPool, client?: Protocol, traits?: ConnectionTraits): void {
    const ratio = this.spec.preconnect!.predictive;
    for (let ahead = 0; ahead < MAX_AHEAD && needsConnection(counts, ratio, 1); ahead++) {
      if (this.#foreseen.length >= this.#hosts.count) return;
      const index = this.#balancer.pick(this.thread.random);
      if (index < 0) return;
      this.#foreseen.push(index);
      const host = this.#hosts.host(index);
      const pool = this.#poolOf(host, used.priority, client, traits);
      if (pool?.preconnect(ratio) === true) continue;
      if (pool !== used) pool?.reportEmpty();
      return;
    }
  }

  /** Returns whether the host may be connected in advance, and counts it if not. */
  connectsAhead(host: Host<unknown>): boolean {
    if (this.#preconnected === undefined || this.#preconnected.matches(configuredMetadata(host.metadata))) return true;
    this.stats.increment(ClusterStats.at.upstream_cx_preconnect_skipped);
    return false;
  }

  #poolOf(host: ClusterHost, priority: Priority, client?: Protocol, traits?: ConnectionTraits): HttpPool | undefined {
    const { alpn, protocol } = this.#protocols.of(client);
    const pools = (host.pools ??= new HostPools());
    const found = pools.find(priority, protocol, traits?.key);
    const pool = found ?? new HttpPool(this, host, priority, protocol, { alpn, traits });
    if (this.limits.limitsPools(priority) && !reservePool(pool, pools)) {
      this.stats.increment(ClusterStats.at.upstream_cx_pool_overflow);
      return undefined;
    }
    if (found === undefined) {
      pools.add(pool);
      this.#pooled.add(host);
    }
    return pool;
  }

  transportOf({ transport }: Host): HostTransport | undefined {
    return this.#transports[transport];
  }

  /** Connections depend on the host that requests name. */
  get connectsByName(): boolean {
    return this.#requestedHost !== undefined;
  }

  /**
   * Returns what a request determines of its connections; undefined where they do not depend on it. `client`: the ends of its client's
   * connection; undefined: it is Baton's own. `stream`: with the filter state to share.
   */
  traitsOf(
    headers: HeaderBlock,
    client: ClientEnds | undefined,
    stream: Pick<StreamInfo, 'filterState'> | undefined,
  ): ConnectionTraits | undefined {
    const authority = this.#requestedHost?.(headers);
    const named = this.namesClients ? client : undefined;
    const shared = this.passesState ? stream?.filterState?.shared() : undefined;
    if (authority === undefined && named === undefined && shared === undefined) return undefined;
    return connectionTraits(authority, named, shared);
  }

  poolEmptied({ host, options }: HttpPool): void {
    if (options.traits !== undefined) (host as ClusterHost).pools?.forget(options.traits.key);
  }

  /**
   * Called when a request has a connection to `host`, or when a connection of another protocol, which counts as a request, is
   * connected.
   */
  requestBegan(host: Host<unknown>): void {
    host.stats.increment(HostStats.at.rq_total);
    this.stats.increment(ClusterStats.at.upstream_rq_total);
    this.requestResumed(host);
  }

  /** Called for a request that began in another process. */
  requestResumed(host: Host<unknown>): void {
    host.stats.increment(HostStats.at.rq_active);
    this.stats.increment(ClusterStats.at.upstream_rq_active);
    if (this.#countsActiveRequests && host.block !== NO_BLOCK)
      this.thread.words.acquire(host.block + HostWord.ActiveRequests);
  }

  /** Called when the request no longer uses the host. */
  requestEnded(host: Host<unknown>): void {
    host.stats.decrement(HostStats.at.rq_active);
    this.stats.decrement(ClusterStats.at.upstream_rq_active);
    if (this.#countsActiveRequests && host.block !== NO_BLOCK)
      this.thread.words.release(host.block + HostWord.ActiveRequests);
  }

  /** Replaces the host list. Connections to remaining hosts are kept, those to removed hosts are drained. */
  updateHosts(snapshot: ClusterSnapshot, balancer = loadBalancerOf(this.thread, snapshot)): void {
    const hasOtherMembers = snapshot.membershipVersion !== this.#snapshot.membershipVersion;
    this.#snapshot = snapshot;
    this.#foreseen = [];
    this.dropRatio = snapshot.policy.drop?.ratio ?? 0;
    // Kept when only the health has changed: for 10,000 hosts it takes many milliseconds to build.
    if (this.#indexes !== undefined && !hasSameAddresses(snapshot.hosts, this.#hosts.data)) this.#indexes = undefined;
    this.#hosts = new HostSet<ClusterHost>(snapshot.hosts, makeHost(this, snapshot), this.#hosts);
    this.#balancer = balancer;
    this.shards = shardsOf(snapshot);
    for (const host of this.#hosts.takeRemoved()) this.#drain(host);
    this.#noteFailing();
    this.requestedHosts?.update(snapshot.hosts);
    if (this.spec.closesOnHostChange && hasOtherMembers) this.drain();
  }

  /**
   * Called with a response of a health-checked cluster. Reports the host if the response has x-envoy-immediate-health-check-fail.
   */
  observeHealthHeader(host: ClusterHost, headers: HeaderBlock): void {
    // Reported once for each update of hosts or of their health.
    if (headers.findId(IMMEDIATE_FAIL) < 0 || host.failureReportedIn === this.#snapshot) return;
    host.failureReportedIn = this.#snapshot;
    this.thread.reportFailedCheck({ cluster: this.name, block: host.block });
  }

  /**
   * Called when hosts changed, and for a cluster that is not used any more. Closes idle connections now, busy ones after their
   * request.
   */
  drain(): void {
    for (const host of [...this.#pooled]) this.#drain(host);
  }

  /** Called when the cluster was replaced or removed. */
  retire(): void {
    this.requestedHosts?.close();
    this.events?.close();
    this.filters?.close();
    this.drain();
  }

  /** Closes connections that have had no request for `idleMs`. */
  closeIdle(idleMs: number): void {
    for (const { pools } of this.#pooled) for (const pool of pools!.all()) pool.closeIdle(idleMs);
  }

  get snapshot(): ClusterSnapshot {
    return this.#snapshot;
  }

  /**
   * Stops new requests on connections to hosts that have just failed: a load balancer at that address may give new connections to
   * a better instance.
   */
  #noteFailing(): void {
    const { healthFlags } = this.#hosts.data;
    const hasFailing = healthFlags.some(isFailing);
    if (!hasFailing && !this.#hasFailing) return;
    this.#hasFailing = hasFailing;
    for (let index = 0; index < healthFlags.length; index++) {
      const host = this.#hosts.known(index);
      if (host === undefined) continue;
      const wasFailing = host.isFailing;
      host.isFailing = isFailing(healthFlags[index]!);
      if (wasFailing || !host.isFailing) continue;
      this.#drain(host);
      for (const socket of [...(host.sockets ?? [])]) socket.hostFailed();
    }
  }

  #drain(host: ClusterHost): void {
    const { pools } = host;
    host.pools = undefined;
    this.#pooled.delete(host);
    for (const pool of pools?.all() ?? []) pool.drain();
  }
}

/** Closes the idle connections of the host's other pools if there is no place for this one, as Envoy does. */
function reservePool(pool: HttpPool, pools: HostPools): boolean {
  if (pool.reserve()) return true;
  for (const other of pools.all()) {
    other.closeIdle(0);
    if (pool.reserve()) return true;
  }
  return false;
}

const UNKNOWN_HOST = {
  hostname: '',
  locality: NOWHERE,
  localityMetadata: undefined,
  isCanary: false,
  metadata: undefined,
  additional: undefined,
  transport: OWN_TRANSPORT,
};

function shardsOf({ hosts, shards }: ClusterSnapshot): ShardBalancer | undefined {
  return shards && new ShardBalancer(shards, hosts.healthFlags);
}

function eventsOf(thread: UpstreamThread, { spec, specVersion }: ClusterSnapshot): ClusterEvents | undefined {
  const { name: cluster, reportedEvents: reported } = spec;
  return (
    reported &&
    new ClusterEvents(reported, thread.wheel, (counts) => {
      thread.reportEvents({ cluster, specVersion, ...counts });
    })
  );
}

function destinationReader({ stats }: Cluster, spec: DestinationSpec): DestinationReader {
  if (spec.kind === 'name') return new NameReader(spec.defaultPort);
  return new AddressReader(spec, () => stats.increment(ClusterStats.at.original_dst_host_invalid));
}

function requestedHosts(
  { name, thread }: Cluster,
  { block, specVersion }: ClusterSnapshot,
  spec: DestinationSpec,
  keyAt: (index: number) => string,
): RequestedHosts {
  const cache = spec.kind === 'name' ? thread.stats.scope(spec.scope) : undefined;
  const waiting = block + ClusterWord.Waiting;
  return new RequestedHosts(name, specVersion, keyAt, {
    request: thread.requestHost,
    tryWait() {
      if (thread.words.tryAcquire(waiting, spec.maxWaiting)) return true;
      cache?.increment(DnsCacheStats.at.dns_rq_pending_overflow);
      return false;
    },
    stopWaiting: () => thread.words.release(waiting),
    beginTurn: () => thread.transport.beginTurn(),
  });
}

/** Histograms of the cluster's requests that its configuration asks for. */
export interface ClusterMeasurements {
  /** With TimeoutBudgetStats. */
  readonly budgets: Scope | undefined;
  /** With MessageSizeStats. */
  readonly sizes: Scope | undefined;
}

function measurementsOf({ stats }: UpstreamThread, { budgetScope, sizeScope }: ClusterSnapshot) {
  if (budgetScope === undefined && sizeScope === undefined) return undefined;
  return { budgets: budgetScope && stats.scope(budgetScope), sizes: sizeScope && stats.scope(sizeScope) };
}

/** Returns the load balancer for the hosts of a snapshot. It can be prepared before the snapshot is in use. */
export function loadBalancerOf(thread: UpstreamThread, snapshot: ClusterSnapshot): ClusterBalancer {
  const { hosts, policy: assignment, scope, spec } = snapshot;
  const { clock, localCluster, locality, policies, random, runtime, stats, words } = thread;
  const { localities, policy: name, settings, subsets } = spec.loadBalancer;
  const policy = policies.policyNamed(name);
  const health = { ...spec.health, ...assignment };
  const zones = localCluster && { localCluster, stats: stats.scope(scope) };
  const context = { words: words.words, random, clock, runtime, locality, zones };
  const cluster = { policy, settings, localities, health };
  if (subsets !== undefined) return new SubsetBalancer(hosts, subsets, cluster, context, stats.scope(scope));
  return new ClusterLoadBalancer(hosts, cluster, context);
}

function makeHost({ outliers, thread }: Cluster, { hosts, scope }: ClusterSnapshot) {
  const prefix = `${scope.prefix}endpoint.`;
  return (set: HostSet<ClusterHost>, index: number): ClusterHost => {
    const ref = { prefix, chunk: hosts.statsChunks[index]!, base: hosts.statsBases[index]! };
    const block = hosts.blocks[index]!;
    const monitor = outliers && new HostMonitor(outliers, block);
    const stats = thread.stats.scope(ref);
    const host = new Host<HostPools>(block, set.describe(index), set.sockaddr(index), stats, monitor);
    host.isFailing = isFailing(set.data.healthFlags[index]!);
    return host;
  };
}

function isFailing(flags: number): boolean {
  return (flags & FAILING_FLAGS) !== 0;
}

function outlierCounting({ runtime, words, reportOutlier }: UpstreamThread, { spec, specVersion }: ClusterSnapshot) {
  if (spec.outliers === undefined) return undefined;
  return new OutlierCounting(spec.outliers, runtime, words.words, (block, kind) =>
    reportOutlier({ cluster: spec.name, specVersion, block, kind }),
  );
}

const PRECONNECTED = 'preconnect_policy.preconnect_enabled_metadata';
const IMMEDIATE_FAIL = knownHeader('x-envoy-immediate-health-check-fail');
