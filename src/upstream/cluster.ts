// A cluster on one worker: its hosts, how one of them is chosen, and a pool of connections to each.

import { type BufferLimits, bufferLimits } from '../io/transport.js';
import { ClusterStats } from '../stats/layouts/cluster.js';
import type { Scope } from '../stats/thread-stats.js';
import type { ClusterSpec } from './cluster-config.js';
import type { ClusterSnapshot } from './cluster-snapshot.js';
import { Host } from './host.js';
import { HostSet } from './host-set.js';
import { HttpPool } from './http-pool.js';
import { ClusterLimits, type Priority } from './limits.js';
import { ClusterLoadBalancer } from './load-balancer/cluster-load-balancer.js';
import { ResponseStats } from './response-stats.js';
import type { ConnectingCluster } from './upstream-connection.js';
import type { UpstreamThread } from './upstream-thread.js';

export class Cluster implements ConnectingCluster {
  readonly thread: UpstreamThread;
  readonly name: string;
  readonly stats: Scope;
  readonly responses: ResponseStats;
  readonly limits: ClusterLimits;
  readonly spec: ClusterSpec;
  readonly bufferLimits: BufferLimits;
  /** The load balancer looks at active requests: only then are they counted together by all workers. */
  readonly countsActiveRequests: boolean;
  readonly #pools = new Map<Host, (HttpPool | undefined)[]>();
  #snapshot: ClusterSnapshot;
  #hosts: HostSet<Host>;
  #balancer: ClusterLoadBalancer;

  constructor(thread: UpstreamThread, snapshot: ClusterSnapshot) {
    const { spec } = snapshot;
    this.thread = thread;
    this.name = spec.name;
    this.spec = spec;
    this.stats = thread.stats.scope(snapshot.scope);
    this.responses = new ResponseStats(thread.stats, snapshot.scope.prefix);
    this.limits = new ClusterLimits(thread.words, snapshot.block, spec.thresholds);
    this.bufferLimits = bufferLimits(spec.perConnectionBufferLimit);
    this.countsActiveRequests = spec.loadBalancer.policy === 'least_request';
    this.#snapshot = snapshot;
    this.#hosts = new HostSet<Host>(snapshot.hosts, makeHost(this, snapshot));
    this.#balancer = this.#makeBalancer(snapshot);
  }

  /** The name under which logs and traces show the cluster. */
  get observabilityName(): string {
    return this.spec.observabilityName;
  }

  /** The host for a new request, or undefined when none may be used; that is counted. */
  pickHost(): Host | undefined {
    const index = this.#balancer.pick(this.thread.random);
    if (index < 0) {
      this.stats.increment(ClusterStats.at.upstream_cx_none_healthy);
      return undefined;
    }
    if (this.#balancer.pickedInPanic) this.stats.increment(ClusterStats.at.lb_healthy_panic);
    return this.#hosts.host(index);
  }

  /** The HTTP connections of this worker to a host of this cluster. */
  pool(host: Host, priority: Priority): HttpPool {
    let pools = this.#pools.get(host);
    if (pools === undefined) {
      pools = [undefined, undefined];
      this.#pools.set(host, pools);
    }
    return (pools[priority] ??= new HttpPool(this, host, priority));
  }

  /** Takes a new host list: connections to hosts that stay are kept, those to hosts that left are drained. */
  updateHosts(snapshot: ClusterSnapshot): void {
    const previous = this.#hosts;
    this.#snapshot = snapshot;
    this.#hosts = new HostSet<Host>(snapshot.hosts, makeHost(this, snapshot), previous);
    this.#balancer = this.#makeBalancer(snapshot);
    for (const host of this.#hosts.removedFrom(previous)) this.#drain(host);
  }

  /** The cluster is gone: idle connections end now, busy ones with their request. */
  drain(): void {
    for (const host of [...this.#pools.keys()]) this.#drain(host);
  }

  get snapshot(): ClusterSnapshot {
    return this.#snapshot;
  }

  #drain(host: Host): void {
    const pools = this.#pools.get(host);
    this.#pools.delete(host);
    for (const pool of pools ?? []) pool?.drain();
  }

  #makeBalancer({ block, hosts }: ClusterSnapshot): ClusterLoadBalancer {
    const { words } = this.thread.words;
    const { health, loadBalancer } = this.spec;
    return new ClusterLoadBalancer(hosts, loadBalancer, health, words, block, this.thread.random);
  }
}

function makeHost(cluster: Cluster, { hostScope, hosts }: ClusterSnapshot) {
  return (set: HostSet<Host>, index: number): Host => {
    const scope = { ...hostScope, chunk: hosts.statsChunks[index]!, base: hosts.statsBases[index]! };
    const stats = cluster.thread.stats.scope(scope);
    return new Host(hosts.blocks[index]!, hosts.hostnames[index]!, set.sockaddr(index), stats);
  };
}
