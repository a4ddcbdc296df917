// The connections of one proxy on one thread: one to each host, which all clients of the proxy share.

import { type Cluster, type ClusterHost, murmurHash2, Timer, type Timers, Word64 } from '../../../../sdk.js';
import { type Credentials, credentialsOf } from '../cluster-options.js';
import { ClusterCommandCounts, type CommandCounts } from './command-counts.js';
import { HostClient, type HostClientSettings } from './host-client.js';

/** How often connections to hosts that a cluster no longer has are ended. */
const SWEEP_MS = 1000;

interface ClusterState {
  readonly credentials: Credentials | undefined;
  readonly counts: ClusterCommandCounts | undefined;
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

  /** @param current returns the cluster of that name */
  constructor(
    wheel: Timers,
    settings: HostClientSettings,
    usesHashTags: boolean,
    current: (name: string) => Cluster | undefined,
  ) {
    this.#wheel = wheel;
    this.settings = settings;
    this.#usesHashTags = usesHashTags;
    this.#current = current;
  }

  /** Returns the cluster that a key goes to: `cluster`, or one of an aggregate. */
  clusterOf(cluster: Cluster | undefined, key: Buffer | undefined): Cluster | undefined {
    return cluster?.isAggregate ? cluster.clusterOfHost(key && this.#hashOf(key)) : cluster;
  }

  /** Returns the host for a key; undefined if none may be used. */
  pick(cluster: Cluster, key: Buffer | undefined): ClusterHost | undefined {
    return key === undefined || !cluster.picksByHash ? cluster.pickHost() : cluster.pickHost(this.#hashOf(key));
  }

  #hashOf(key: Buffer): Word64 {
    const hashed = this.#usesHashTags ? hashTag(key) : key;
    murmurHash2(hashed, 0, hashed.length, this.#hash);
    return this.#hash;
  }

  /** Returns the shared connection; undefined if the cluster may not have another one. */
  of(cluster: Cluster, host: ClusterHost): HostClient | undefined {
    const existing = this.#clients.get(host);
    if (existing !== undefined && !existing.isClosed) return existing;
    const client = this.#create(cluster, host, () => {
      if (this.#clients.get(host) === client) this.#clients.delete(host);
    });
    if (client.isClosed) return undefined;
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
      if (this.#current(cluster.name) === cluster && cluster.has(host)) continue;
      this.#clients.delete(host);
      client.drain();
    }
    if (this.#clients.size > 0) this.#wheel.reschedule(this.#sweep, SWEEP_MS);
  }

  close(): void {
    this.#wheel.cancel(this.#sweep);
    for (const client of [...this.#clients.values()]) client.close();
    this.#clients.clear();
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
      };
      this.#states.set(cluster, state);
    }
    return state;
  }
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
