// The stats and shared words of a cluster and its hosts. They belong to the cluster's name, not to a version of its
// configuration, so that counters continue and limits hold across changes.

import { Priority } from '../../../common/priority.js';
import { Kind } from '../../../stats/layout.js';
import {
  ClusterStats,
  HostStats,
  InternalUpstreamStats,
  MessageSizeStats,
  TimeoutBudgetStats,
} from '../../../stats/layouts/cluster.js';
import { Http1CodecStats, Http2Stats } from '../../../stats/layouts/http.js';
import { TlsFactoryStats, TlsStats } from '../../../stats/layouts/tls.js';
import { scopePrefix } from '../../../stats/scope-prefix.js';
import type { StatsStore } from '../../../stats/store.js';
import type { Scope, ScopeRef } from '../../../stats/thread-stats.js';
import { HostDirectory } from '../../../upstream/hosts/host-directory.js';
import type { HostResources } from '../../../upstream/hosts/host-preparation.js';
import { LIMIT_KINDS, type LimitKind, limitWord } from '../../../upstream/limits.js';
import { ClusterWord, type SharedWordsOwner } from '../../../upstream/shared-words.js';
import type { Retired } from '../../workers/snapshots.js';
import { EndpointStats } from './endpoint-stats.js';
import type { MembershipGauges } from './membership-gauges.js';

export interface ResourceOwner {
  readonly store: StatsStore;
  readonly words: SharedWordsOwner;
  /** Frees `retired`, which snapshots from the next one on do not contain. */
  retire(retired: Retired): void;
}

/** The use of a host by all threads. */
export interface HostUsage {
  /** Its connections and requests now. */
  readonly active: number;
  /** The number of its requests so far. */
  readonly requests: number;
}

/** The version at which a block is retired that was never in a snapshot. */
const IN_NO_SNAPSHOT = 0;

export class ClusterResources {
  /** The cluster's block in the shared words. */
  readonly block: number;
  /** cluster.<name>. */
  readonly scope: ScopeRef;
  readonly stats: Scope;
  /** The hosts of the version in use. */
  readonly directory: HostDirectory;
  readonly #owner: ResourceOwner;
  readonly #http1: ScopeRef;
  #http2: ScopeRef | undefined;
  #budgets: ScopeRef | undefined;
  #sizes: ScopeRef | undefined;
  readonly #membership: MembershipGauges;
  readonly #freed: () => void;
  /** Removed hosts that threads may still write to, by the prefix of their stats; undefined until the first one. */
  #removedHosts: Map<string, RemovedHost> | undefined;
  /** Undefined before the first version with TLS. */
  #tlsScopes: readonly ScopeRef[] = [];
  /** Undefined before the first version with an internal_upstream transport socket. */
  #internal: ScopeRef | undefined;
  /** Undefined unless the version in use shows the stats of its hosts. */
  #endpoints: EndpointStats | undefined;
  #users = 0;
  #retired: { isRevived: boolean } | undefined;

  /**
   * The arguments name the stats of the cluster and of its hosts. Throws a RangeError, with nothing left behind, when memory is
   * short.
   */
  constructor(
    owner: ResourceOwner,
    { prefix, hostPrefix }: { readonly prefix: string; readonly hostPrefix: string },
    membership: MembershipGauges,
    freed: () => void,
  ) {
    const { store, words } = owner;
    this.#owner = owner;
    this.#membership = membership;
    this.#freed = freed;
    this.block = words.allocateCluster();
    try {
      const scopes = store.addScopes([
        { prefix, layout: ClusterStats },
        { prefix: `${prefix}http1.`, layout: Http1CodecStats },
      ]);
      [this.scope, this.#http1] = scopes as [ScopeRef, ScopeRef];
    } catch (error) {
      words.retireCluster(this.block, IN_NO_SNAPSHOT);
      throw error;
    }
    this.stats = store.scope(this.scope);
    this.directory = new HostDirectory({
      allocate: (address) => this.#allocateHost(scopePrefix(`${hostPrefix}${address}.`)),
      retire: (host) => this.#retireHost(host),
    });
  }

  /** cluster.<name>.http2, which exists from the first version on that uses HTTP/2. Throws a RangeError when memory is short. */
  http2Scope(): ScopeRef {
    this.#http2 ??= this.#owner.store.addScopes([{ prefix: `${this.scope.prefix}http2.`, layout: Http2Stats }])[0]!;
    return this.#http2;
  }

  /** The histograms of timeout_budgets, which exist from the first version on that tracks them. Throws as http2Scope() does. */
  budgetScope(): ScopeRef {
    this.#budgets ??= this.#owner.store.addScope(this.scope.prefix, TimeoutBudgetStats);
    return this.#budgets;
  }

  /** The histograms of request_response_sizes, in the same way. */
  sizeScope(): ScopeRef {
    this.#sizes ??= this.#owner.store.addScope(this.scope.prefix, MessageSizeStats);
    return this.#sizes;
  }

  retain(): void {
    this.#users++;
    if (this.#retired === undefined) return;
    this.#retired.isRevived = true;
    this.#retired = undefined;
  }

  /** Called when the hosts of the directory or their health have changed. `countsWeights`: for max_host_weight. */
  countHosts(countsWeights: boolean): void {
    const { hosts } = this.directory;
    this.#membership.set(this.stats, this, hosts, countsWeights);
    this.#endpoints?.update(hosts);
  }

  /** Shows or hides the stats of the hosts, from now on. */
  trackEndpoints(isTracked: boolean): void {
    if (isTracked) this.#endpoints ??= new EndpointStats(this.#owner.store);
    this.#endpoints?.update(isTracked ? this.directory.hosts : []);
    if (!isTracked) this.#endpoints = undefined;
  }

  /** The cluster has ever had a connection, regardless of counter resets. */
  get hasTraffic(): boolean {
    return this.#owner.store.totalAt(this.scope, ClusterStats.at.upstream_cx_total, Kind.Counter) > 0;
  }

  /** Returns what shows whether a host is used. */
  usageOf({ scope }: HostResources): HostUsage {
    const { at } = HostStats;
    const { store } = this.#owner;
    const active = store.valueAt(scope, at.cx_active, Kind.Gauge) + store.valueAt(scope, at.rq_active, Kind.Gauge);
    return { active, requests: store.totalAt(scope, at.rq_total, Kind.Counter) };
  }

  /** Returns how many connection pools of all threads are in use, if they are limited. */
  pools(priority: Priority): number {
    return this.#owner.words.read(this.block + ClusterWord.Pools + priority);
  }

  /** The requests of all threads that wait for the host that they name. */
  get waiting(): number {
    return this.#owner.words.read(this.block + ClusterWord.Waiting);
  }

  /** The number of requests that all threads have dropped as the assignment demands, modulo 2^32. */
  get droppedByPolicy(): number {
    return this.#owner.words.read(this.block + ClusterWord.DroppedByPolicy) >>> 0;
  }

  /** Returns how many of `kind` all threads hold. */
  held(kind: LimitKind, priority: Priority): number {
    return this.#owner.words.read(limitWord(this.block, kind, priority));
  }

  /**
   * Returns cluster.<name>.ssl. and cluster.<name>.client_ssl_socket_factory., adding them for the first version with TLS. Throws a
   * RangeError when memory is short.
   */
  tlsScopes(): { readonly ssl: ScopeRef; readonly factory: ScopeRef } {
    if (this.#tlsScopes.length === 0) {
      const { prefix } = this.scope;
      this.#tlsScopes = this.#owner.store.addScopes([
        { prefix: `${prefix}ssl.`, layout: TlsStats },
        { prefix: `${prefix}client_ssl_socket_factory.`, layout: TlsFactoryStats },
      ]);
    }
    return { ssl: this.#tlsScopes[0]!, factory: this.#tlsScopes[1]! };
  }

  /** Returns cluster.<name>.internal_upstream., adding it for the first version that has one. Throws a RangeError when memory is short. */
  internalScope(): ScopeRef {
    this.#internal ??= this.#owner.store.addScope(`${this.scope.prefix}internal_upstream.`, InternalUpstreamStats);
    return this.#internal;
  }

  /** Calls `free` when no thread has a snapshot from before this call. */
  whenUnused(free: () => void): void {
    this.#owner.retire({ isRevived: false, isIdle: () => true, free });
  }

  /** Releases one use. With the last use, everything is freed as soon as no thread writes to it. */
  release(): void {
    if (--this.#users > 0) return;
    this.trackEndpoints(false);
    this.directory.retireAll();
    this.#membership.remove(this.stats, this);
    const { store, words } = this.#owner;
    const retired = {
      isRevived: false,
      isIdle: () => this.#isIdle(),
      free: (version: number) => {
        store.removeScope(this.scope);
        store.removeScope(this.#http1);
        const others = [this.#http2, this.#budgets, this.#sizes, this.#internal, ...this.#tlsScopes];
        for (const scope of others) if (scope !== undefined) store.removeScope(scope);
        words.retireCluster(this.block, version);
        this.#freed();
      },
    };
    this.#retired = retired;
    this.#owner.retire(retired);
  }

  /** Returns whether no thread has a connection, or a request that is queued or awaits a retry. */
  #isIdle(): boolean {
    const { store } = this.#owner;
    for (let kind = 0; kind < LIMIT_KINDS; kind++) {
      if (this.held(kind, Priority.Default) + this.held(kind, Priority.High) !== 0) return false;
    }
    const { at } = ClusterStats;
    return [at.upstream_cx_active, at.upstream_rq_active].every(
      (gauge) => store.valueAt(this.scope, gauge, Kind.Gauge) === 0,
    );
  }

  #allocateHost(prefix: string): HostResources {
    const removed = this.#removedHosts?.get(prefix);
    if (removed !== undefined) {
      removed.isRevived = true;
      this.#removedHosts?.delete(prefix);
      return removed;
    }
    const { store, words } = this.#owner;
    const block = words.allocateHost();
    try {
      return { block, scope: store.addScope(prefix, HostStats, { hidden: true }) };
    } catch (error) {
      words.retireHost(block, IN_NO_SNAPSHOT);
      throw error;
    }
  }

  #retireHost({ block, scope }: HostResources): void {
    const removed = new RemovedHost(this.#owner, block, scope, () => this.#removedHosts?.delete(scope.prefix));
    this.#removedHosts ??= new Map();
    this.#removedHosts.set(scope.prefix, removed);
    this.#owner.retire(removed);
  }
}

/** A host that no snapshot contains any more. Its last requests may take long, and count in it until they end. */
export class RemovedHost implements HostResources, Retired {
  readonly block: number;
  readonly scope: ScopeRef;
  isRevived = false;
  readonly #owner: Pick<ResourceOwner, 'store' | 'words'>;
  readonly #freed: () => void;

  constructor(owner: Pick<ResourceOwner, 'store' | 'words'>, block: number, scope: ScopeRef, freed: () => void) {
    this.#owner = owner;
    this.block = block;
    this.scope = scope;
    this.#freed = freed;
  }

  isIdle(): boolean {
    const { at } = HostStats;
    const { store } = this.#owner;
    return (
      store.valueAt(this.scope, at.cx_active, Kind.Gauge) === 0 &&
      store.valueAt(this.scope, at.rq_active, Kind.Gauge) === 0
    );
  }

  free(version: number): void {
    this.#owner.store.removeScope(this.scope);
    this.#owner.words.retireHost(this.block, version);
    this.#freed();
  }
}
