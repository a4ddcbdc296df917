// The connections of one proxy on one thread: one to each host, which all clients of the proxy share.

import {
  type Cluster,
  type ClusterHost,
  murmurHash2,
  ReadFrom,
  type Scope,
  Timer,
  type Timers,
  Word64,
} from '../../../../sdk.js';
import { type Credentials, credentialsOf } from '../cluster-options.js';
import { ClusterCommandCounts, type CommandCounts } from './command-counts.js';
import { HostClient, type HostClientSettings } from './host-client.js';
import { slotOf } from './key-slot.js';

/** How often connections to hosts that a cluster no longer has are ended. */
const SWEEP_MS = 1000;

interface ClusterState {
  readonly credentials: Credentials | undefined;
  readonly counts: ClusterCommandCounts | undefined;
  /** Hosts that others have named, by address, as long as they have a connection. */
  readonly unknown: Map<string, ClusterHost>;
}

export class HostClients {
  readonly settings: HostClientSettings;
  readonly #wheel: Timers;
  readonly #usesHashTags: boolean;
  readonly #clients = new Map<ClusterHost, HostClient>();
  readonly #states = new WeakMap<Cluster, ClusterState>();
  readonly #current: (name: string) => Cluster | undefined;
  readonly #sweep = new Timer<HostClients>(this, sweep);
  readonly #hash = new Word64();
  readonly #unknownStats: Scope;

  /**
   * @param unknownStats of hosts that are not those of their cluster
   * @param current returns the cluster of that name
   */
  constructor(
    wheel: Timers,
    settings: HostClientSettings,
    usesHashTags: boolean,
    unknownStats: Scope,
    current: (name: string) => Cluster | undefined,
  ) {
    this.#wheel = wheel;
    this.settings = settings;
    this.#usesHashTags = usesHashTags;
    this.#unknownStats = unknownStats;
    this.#current = current;
  }

  /** Returns the cluster that a key goes to: `cluster`, or one of an aggregate. */
  clusterOf(cluster: Cluster | undefined, key: Buffer | undefined): Cluster | undefined {
    return cluster?.isAggregate ? cluster.clusterOfHost(key && this.#hashOf(key)) : cluster;
  }

  /** Returns the host for a key, or any; undefined if none may be used. `reads`: the command changes nothing. */
  pick(cluster: Cluster, key: Buffer | undefined, reads: boolean): ClusterHost | undefined {
    const { shards } = cluster;
    if (shards !== undefined) {
      const shard =
        key === undefined ? cluster.thread.random.below(shards.count) : shards.shardOf(slotOf(hashTag(key)));
      return cluster.shardHost(shard, this.#readFrom(reads));
    }
    return key === undefined || !cluster.picksByHash ? cluster.pickHost() : cluster.pickHost(this.#hashOf(key));
  }

  /** Returns the hosts that together have all keys. */
  ofAllKeys(cluster: Cluster, reads: boolean): readonly (ClusterHost | undefined)[] {
    const { hostCount, shards } = cluster;
    if (shards === undefined) return Array.from({ length: hostCount }, (_, index) => cluster.hostWith(index));
    return Array.from({ length: shards.count }, (_, shard) => cluster.shardHost(shard, this.#readFrom(reads)));
  }

  #readFrom(reads: boolean): ReadFrom {
    return reads ? this.settings.readFrom : ReadFrom.Primary;
  }

  #hashOf(key: Buffer): Word64 {
    const hashed = this.#usesHashTags ? hashTag(key) : key;
    murmurHash2(hashed, 0, hashed.length, this.#hash);
    return this.#hash;
  }

  /**
   * Returns the host at an address that another one has named; undefined if there is none, or too many of them are not the cluster's own.
   */
  at(cluster: Cluster, address: string): ClusterHost | undefined {
    const text = withBrackets(address);
    const known = cluster.hostAt(text);
    if (known !== undefined) return known;
    const host = cluster.unknownHost(text, this.#unknownStats);
    if (host === undefined) return undefined;
    const hosts = this.#stateOf(cluster).unknown;
    const found = hosts.get(host.address);
    if (found !== undefined) return found;
    if (hosts.size >= this.settings.maxUnknownHosts) {
      cluster.counter('redis_cluster.max_upstream_unknown_connections_reached').increment();
      return undefined;
    }
    hosts.set(host.address, host);
    return host;
  }

  /** Returns the shared connection; undefined if the cluster may not have another one. */
  of(cluster: Cluster, host: ClusterHost): HostClient | undefined {
    const existing = this.#clients.get(host);
    if (existing !== undefined && !existing.isClosed) return existing;
    const client = this.#create(cluster, host, () => {
      if (this.#clients.get(host) === client) this.#clients.delete(host);
      this.#forget(cluster, host);
    });
    if (client.isClosed) {
      this.#forget(cluster, host);
      return undefined;
    }
    this.#clients.set(host, client);
    if (!this.#sweep.isScheduled) this.#wheel.reschedule(this.#sweep, SWEEP_MS);
    return client;
  }

  /** Returns a connection of its own; undefined as above. */
  dedicated(cluster: Cluster, host: ClusterHost): HostClient | undefined {
    const client = this.#create(cluster, host);
    return client.isClosed ? undefined : client;
  }

  /** Returns the counts of a command; undefined: they are not kept. */
  counts(cluster: Cluster, command: string): CommandCounts | undefined {
    return this.#stateOf(cluster).counts?.of(command);
  }

  /** Ends connections to removed hosts and of replaced clusters. */
  sweep(): void {
    for (const client of [...this.#clients.values()]) {
      const { cluster, host } = client;
      const isUsed = cluster.has(host) || this.#isStillUnknown(cluster, host);
      if (this.#current(cluster.name) === cluster && isUsed) continue;
      this.#clients.delete(host);
      this.#forget(cluster, host);
      client.drain();
    }
    if (this.#clients.size > 0) this.#wheel.reschedule(this.#sweep, SWEEP_MS);
  }

  close(): void {
    this.#wheel.cancel(this.#sweep);
    for (const client of [...this.#clients.values()]) client.close();
    this.#clients.clear();
  }

  #isStillUnknown(cluster: Cluster, host: ClusterHost): boolean {
    const { unknown } = this.#stateOf(cluster);
    return unknown.get(host.address) === host && cluster.hostAt(host.address) === undefined;
  }

  #forget(cluster: Cluster, host: ClusterHost): void {
    const { unknown } = this.#stateOf(cluster);
    if (unknown.get(host.address) === host) unknown.delete(host.address);
  }

  #create(cluster: Cluster, host: ClusterHost, closed?: () => void): HostClient {
    return new HostClient(cluster, host, this.settings, this.#stateOf(cluster).credentials, closed);
  }

  #stateOf(cluster: Cluster): ClusterState {
    let state = this.#states.get(cluster);
    if (state === undefined) {
      state = {
        credentials: credentialsOf(cluster),
        counts: this.settings.countsCommands ? new ClusterCommandCounts(cluster) : undefined,
        unknown: new Map(),
      };
      this.#states.set(cluster, state);
    }
    return state;
  }
}

/** Redis writes IPv6 addresses without brackets. */
function withBrackets(address: string): string {
  const colon = address.lastIndexOf(':');
  return address.indexOf(':') === colon || address[0] === '['
    ? address
    : `[${address.slice(0, colon)}]${address.slice(colon)}`;
}

function sweep(clients: HostClients): void {
  clients.sweep();
}

const OPEN = '{'.charCodeAt(0);
const CLOSE = '}'.charCodeAt(0);

/** Returns the part of a key between the first braces, if that is not empty: keys with the same one are on the same host. */
export function hashTag(key: Buffer): Buffer {
  const start = key.indexOf(OPEN);
  const end = start < 0 ? -1 : key.indexOf(CLOSE, start);
  return end <= start + 1 ? key : key.subarray(start + 1, end);
}
