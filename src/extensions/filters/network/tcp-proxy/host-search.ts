// The search for the host of one proxied connection: its cluster, which may have to be requested, a host of it, which may have to be
// requested too, and another one after a failed connect.

import { ResponseFlag } from '../../../../access-log/stream/response-flags.js';
import type { StreamInfo } from '../../../../access-log/stream/stream-info.js';
import { Word64, xxh64Text } from '../../../../common/xxh64.js';
import { LB_NAMESPACE, MetadataMatch } from '../../../../http/routing/actions/metadata-match.js';
import { ipOfAddress } from '../../../../io/addresses/address.js';
import { Timer } from '../../../../io/time/timing-wheel.js';
import type { DownstreamConnection } from '../../../../listener/downstream-connection.js';
import { TcpOnDemandStats, TcpStats } from '../../../../stats/layouts/tcp.js';
import type { Cluster, ClusterHost } from '../../../../upstream/cluster.js';
import type { ClusterOutcome, ClusterWaiter } from '../../../../upstream/missing-clusters.js';
import { HostWait } from '../../../../upstream/requested-hosts/host-wait.js';
import type { HostWaiter } from '../../../../upstream/requested-hosts/requested-hosts.js';
import { backoffDelayMs } from './connect-backoff.js';
import type { ProxyContext } from './proxy-context.js';

/** Why a connection has no host, as Envoy numbers the reasons. */
export const enum NoStart {
  Connect = 0,
  Host = 1,
  Limit = 2,
  Route = 3,
}

/** The connection that needs a host. */
export interface HostSeeker {
  readonly proxy: ProxyContext;
  readonly downstream: DownstreamConnection;
  readonly info: StreamInfo;
  /** Called when the cluster is known. Returns false if the connection has ended. */
  clusterFound(cluster: Cluster): boolean;
  /** Called for each attempt. `cluster`: the host's, of an aggregate. */
  hostFound(cluster: Cluster, host: ClusterHost): void;
  /** Called when there is none. */
  fail(flags: number, details: string, reason: NoStart): void;
  /** Called when one of the above has thrown within a turn of the search. */
  onFault(): void;
}

export class HostSearch implements HostWaiter, ClusterWaiter {
  readonly #seeker: HostSeeker;
  /** The cluster of the connection, perhaps an aggregate; undefined: it is not known yet. */
  cluster: Cluster | undefined;
  /** What the metadata of the host must have, if the cluster has subsets. */
  #match: MetadataMatch | undefined;
  /** Created when the connection waits until its cluster has the host that it names. */
  #hostWait: HostWait | undefined;
  /** Created when a connect is delayed after a failed one. */
  #backoff: Timer<HostSearch> | undefined;
  /** The cluster that it waits for; '': none. */
  #awaitedCluster = '';

  constructor(seeker: HostSeeker) {
    this.#seeker = seeker;
  }

  begin(): void {
    const { downstream, proxy } = this.#seeker;
    const { options } = proxy;
    const { clusterName: name } = downstream;
    if (name === '') {
      const { match, reference } = options.pickCluster();
      this.#match = match;
      return this.#useClusterOr(reference.current, reference.name);
    }
    this.#match = options.match;
    this.#useClusterOr(options.selectedCluster(name), name);
  }

  /** Begins another attempt after `failures` failed connects, with the delay of backoff_options. */
  retry(failures: number): void {
    const { options, thread } = this.#seeker.proxy;
    const { backoff } = options;
    if (backoff === undefined) return this.#tryAgain();
    this.#backoff ??= new Timer<HostSearch>(this, (search) => search.#guard(() => search.#tryAgain()));
    thread.wheel.schedule(this.#backoff, backoffDelayMs(backoff, failures, thread.random.fraction()));
  }

  /** Ends what the search waits for. */
  stop(): void {
    const { options, thread } = this.#seeker.proxy;
    if (this.#backoff !== undefined) thread.wheel.cancel(this.#backoff);
    this.#hostWait?.stop();
    if (this.#awaitedCluster !== '') options.onDemand!.clusters.cancel(this.#awaitedCluster, this);
    this.#awaitedCluster = '';
  }

  // ── The cluster ──────────────────────────────────────────────────────────────────────────────────────────────────

  #useClusterOr(cluster: Cluster | undefined, name: string): void {
    if (cluster === undefined) this.#requestCluster(name);
    else this.#useCluster(cluster);
  }

  /** Requests a cluster that does not exist, or fails. */
  #requestCluster(name: string): void {
    const { onDemand } = this.#seeker.proxy.options;
    if (onDemand === undefined || name === '') return this.#failWithoutCluster();
    onDemand.stats.increment(TcpOnDemandStats.at.on_demand_cluster_attempt);
    this.#awaitedCluster = name;
    onDemand.clusters.request(onDemand.from, name, this);
  }

  clusterSettled(outcome: ClusterOutcome): void {
    const name = this.#awaitedCluster;
    this.#awaitedCluster = '';
    const { options } = this.#seeker.proxy;
    options.onDemand!.stats.increment(OUTCOME_STATS[outcome]);
    this.#guard(() => {
      const cluster = outcome === 'available' ? options.selectedCluster(name) : undefined;
      if (cluster === undefined) this.#failWithoutCluster();
      else this.#useCluster(cluster);
    });
  }

  #failWithoutCluster(): void {
    this.#seeker.proxy.stats.increment(TcpStats.at.downstream_cx_no_route);
    this.#seeker.fail(ResponseFlag.NoClusterFound, 'cluster_not_found', NoStart.Route);
  }

  #useCluster(cluster: Cluster): void {
    this.cluster = cluster;
    if (this.#seeker.clusterFound(cluster)) this.#findHost();
  }

  // ── Its host ─────────────────────────────────────────────────────────────────────────────────────────────────────

  #findHost(): void {
    const hash = this.#hash();
    const cluster = this.cluster!.clusterOfHost(hash);
    const host: ClusterHost | undefined =
      cluster.requestedHosts === undefined
        ? (this.#overriddenHost(cluster) ??
          cluster.pickHost(hash, 0, cluster.hasSubsets ? this.#currentMatch() : undefined))
        : this.#namedHost(cluster);
    if (host !== undefined) {
      cluster.overrides?.select(this.#seeker.info, host.address);
      return this.#seeker.hostFound(cluster, host);
    }
    if (this.#hostWait?.isWaiting === true) return;
    const details = this.#hostWait?.refusalOf(cluster) ?? 'no_healthy_upstream';
    this.#seeker.fail(ResponseFlag.NoHealthyUpstream, details, NoStart.Host);
  }

  /** Returns the host that metadata of the connection name; undefined: the load balancer picks. */
  #overriddenHost(cluster: Cluster): ClusterHost | undefined {
    for (const address of cluster.overrides?.addresses(undefined, this.#seeker.info) ?? []) {
      const host = cluster.namedHostAt(address);
      if (host !== undefined) return host;
    }
    return undefined;
  }

  /** Returns the hash of the client's address; undefined: any host may be picked. */
  #hash(): Word64 | undefined {
    const { info, proxy } = this.#seeker;
    if (!proxy.options.hashesSourceIp || (!this.cluster!.picksByHash && !this.cluster!.isAggregate)) return undefined;
    const ip = ipOfAddress(info.downstreamRemoteAddress);
    if (ip === '') return undefined;
    xxh64Text(ip, hash);
    return hash;
  }

  /** Merges dynamic metadata of the connection into the configured fields. */
  #currentMatch(): MetadataMatch | undefined {
    const fields = this.#seeker.info.dynamicMetadata?.get(LB_NAMESPACE);
    if (fields === undefined) return this.#match;
    return this.#match === undefined ? MetadataMatch.from(fields) : this.#match.merge(fields);
  }

  /** Returns the host that the connection names. Begins to wait for it if it must be requested first: see #hostWait. */
  #namedHost(cluster: Cluster): ClusterHost | undefined {
    const named = cluster.namedHost(undefined, this.#seeker.info);
    if (typeof named !== 'string') return named;
    this.#hostWait ??= new HostWait(this);
    return this.#hostWait.begin(cluster, named) ? undefined : cluster.countNoHost();
  }

  hostSettled(details = 'no_healthy_upstream'): void {
    this.#guard(() => this.#hostWait!.settle(details, () => this.#tryAgain()));
  }

  /** Begins another attempt, or one after waiting for a host. The cluster may have been replaced, with other hosts, or removed. */
  #tryAgain(): void {
    const { downstream, proxy } = this.#seeker;
    const { name } = this.cluster!;
    const { options } = proxy;
    const cluster = downstream.clusterName === '' ? options.findCluster(name) : options.selectedCluster(name);
    if (cluster === undefined)
      return this.#seeker.fail(ResponseFlag.NoClusterFound, 'cluster_not_found', NoStart.Route);
    this.cluster = cluster;
    this.#findHost();
  }

  /** An exception ends the connection. */
  #guard(act: () => void): void {
    try {
      act();
    } catch (error) {
      this.#seeker.onFault();
      throw error;
    }
  }
}

const { at } = TcpOnDemandStats;
const OUTCOME_STATS: Readonly<Record<ClusterOutcome, number>> = {
  available: at.on_demand_cluster_success,
  missing: at.on_demand_cluster_missing,
  timeout: at.on_demand_cluster_timeout,
};

/** Reused for each new connection. */
const hash = new Word64();
