// What a cluster has in shared memory: the stats and words of the cluster and of its hosts. They belong to its name, not to
// a version of its configuration, so that counters go on and limits hold over a change.

import { Priority } from '../../../common/priority.js';
import { Kind } from '../../../stats/layout.js';
import { ClusterStats, HealthCheckStats, HostStats } from '../../../stats/layouts/cluster.js';
import { Http1CodecStats } from '../../../stats/layouts/http.js';
import { scopePrefix } from '../../../stats/scope-prefix.js';
import type { StatsStore } from '../../../stats/store.js';
import type { Scope, ScopeRef } from '../../../stats/thread-stats.js';
import { HostDirectory, type HostResources } from '../../../upstream/hosts/host-directory.js';
import { LIMIT_KINDS, limitWord, type RuntimeThresholds } from '../../../upstream/limits.js';
import type { SharedWordsOwner } from '../../../upstream/shared-words.js';
import type { Retired } from '../../workers/snapshots.js';
import { GrpcLimits } from './grpc-limits.js';
import { MembershipGauges } from './membership-gauges.js';

export interface ResourceOwner {
  readonly store: StatsStore;
  readonly words: SharedWordsOwner;
  /** In no snapshot from the next one that is published. */
  retire(retired: Retired): void;
}

/** The version at which a block is retired that nobody was told of. */
const IN_NO_SNAPSHOT = 0;

/** Those of all clusters. What has left and is still written to is taken back when its cluster or host comes again. */
export class ResourcePool {
  readonly #owner: ResourceOwner;
  readonly #clusters = new Map<string, ClusterResources>();
  /** By the prefix of their stats. */
  readonly #memberships = new Map<string, { readonly gauges: MembershipGauges; users: number }>();
  /** Of the stats of hosts, as they are given out. */
  readonly #hostPrefixes = new Set<string>();

  constructor(owner: ResourceOwner) {
    this.#owner = owner;
  }

  /** One user more. Throws a RangeError when there is no room. */
  acquire(name: string, observabilityName: string): ClusterResources {
    const key = `${name}\0${observabilityName}`;
    let resources = this.#clusters.get(key);
    if (resources === undefined) {
      const prefix = scopePrefix(`cluster.${observabilityName}.`);
      const membership = this.#memberships.get(prefix) ?? { gauges: new MembershipGauges(), users: 0 };
      const hostPrefix = this.#freeHostPrefix(name, observabilityName);
      resources = new ClusterResources(this.#owner, { prefix, hostPrefix }, membership.gauges, () => {
        this.#clusters.delete(key);
        this.#hostPrefixes.delete(hostPrefix);
        if (--membership.users === 0) this.#memberships.delete(prefix);
      });
      this.#clusters.set(key, resources);
      this.#hostPrefixes.add(hostPrefix);
      membership.users++;
      this.#memberships.set(prefix, membership);
    }
    resources.retain();
    return resources;
  }

  /**
   * Clusters may have one name for their stats, and the same hosts, but what is counted for each host is each cluster's own: the
   * first one has the name by which tags are found, the others theirs in addition.
   */
  #freeHostPrefix(name: string, observabilityName: string): string {
    const prefix = scopePrefix(`cluster.${observabilityName}.endpoint.`);
    return this.#hostPrefixes.has(prefix) ? `cluster.${observabilityName}.${name}.endpoint.` : prefix;
  }
}

export class ClusterResources {
  /** Of the cluster in the shared words. */
  readonly block: number;
  /** cluster.<name>. */
  readonly scope: ScopeRef;
  readonly stats: Scope;
  /** The hosts of the version that is in use. */
  readonly directory: HostDirectory;
  readonly #owner: ResourceOwner;
  readonly #http1: ScopeRef;
  readonly #membership: MembershipGauges;
  readonly #freed: () => void;
  readonly #hostScopes = new Map<number, ScopeRef>();
  /** Hosts that have left and are still written to, by the prefix of their stats. */
  readonly #leaving = new Map<string, LeavingHost>();
  #callLimits: GrpcLimits | undefined;
  #healthChecks: ScopeRef | undefined;
  #users = 0;
  #retired: { isRevived: boolean } | undefined;

  /** `names` are those of its stats and of its hosts' stats. Throws a RangeError, with nothing left, when there is no room. */
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

  retain(): void {
    this.#users++;
    if (this.#retired === undefined) return;
    this.#retired.isRevived = true;
    this.#retired = undefined;
  }

  /** The directory has other hosts, or their health is another. */
  countHosts(): void {
    this.#membership.set(this.stats, this, this.directory.hosts);
  }

  /** The thresholds of gRPC calls from now on. */
  limitCalls(thresholds: RuntimeThresholds): void {
    if (this.#callLimits !== undefined) return this.#callLimits.setThresholds(thresholds);
    this.#callLimits = new GrpcLimits(this.#owner.words, this.block, thresholds, this.stats);
  }

  /** Undefined before there are any. */
  get callLimits(): GrpcLimits | undefined {
    return this.#callLimits;
  }

  /** Of HealthCheckStats: they are there from the first version with health checks on. Throws a RangeError when there is no room. */
  get healthCheckStats(): Scope {
    const { store } = this.#owner;
    this.#healthChecks ??= store.addScope(`${this.scope.prefix}health_check.`, HealthCheckStats);
    return store.scope(this.#healthChecks);
  }

  /** With the last user everything is given back, as soon as nobody writes to it any more. */
  release(): void {
    if (--this.#users > 0) return;
    this.directory.retireAll();
    this.#membership.remove(this.stats, this);
    const { store, words } = this.#owner;
    const retired = {
      isRevived: false,
      isIdle: () => this.#isIdle(),
      free: (version: number) => {
        this.#callLimits?.end();
        store.removeScope(this.scope);
        store.removeScope(this.#http1);
        if (this.#healthChecks !== undefined) store.removeScope(this.#healthChecks);
        words.retireCluster(this.block, version);
        this.#freed();
      },
    };
    this.#retired = retired;
    this.#owner.retire(retired);
  }

  /** Nobody has a connection, or a request that waits for one or is to be tried again. */
  #isIdle(): boolean {
    const { store, words } = this.#owner;
    for (let kind = 0; kind < LIMIT_KINDS; kind++) {
      if (words.read(limitWord(this.block, kind, Priority.Default)) !== 0) return false;
      if (words.read(limitWord(this.block, kind, Priority.High)) !== 0) return false;
    }
    const { at } = ClusterStats;
    return [at.upstream_cx_active, at.upstream_rq_active].every(
      (gauge) => store.valueAt(this.scope, gauge, Kind.Gauge) === 0,
    );
  }

  #allocateHost(prefix: string): HostResources {
    // Every host is matched with the one transport socket that there is.
    this.stats.increment(ClusterStats.at['default.total_match_count']);
    const leaving = this.#leaving.get(prefix);
    let scope: ScopeRef;
    let block: number;
    if (leaving !== undefined) {
      leaving.isRevived = true;
      this.#leaving.delete(prefix);
      ({ scope, block } = leaving);
    } else {
      const { store, words } = this.#owner;
      block = words.allocateHost();
      try {
        scope = store.addScope(prefix, HostStats, { hidden: true });
      } catch (error) {
        words.retireHost(block, IN_NO_SNAPSHOT);
        throw error;
      }
    }
    this.#hostScopes.set(block, scope);
    return { block, statsChunk: scope.chunk, statsBase: scope.base };
  }

  #retireHost({ block }: HostResources): void {
    const scope = this.#hostScopes.get(block)!;
    this.#hostScopes.delete(block);
    const leaving = new LeavingHost(this.#owner, block, scope, () => this.#leaving.delete(scope.prefix));
    this.#leaving.set(scope.prefix, leaving);
    this.#owner.retire(leaving);
  }
}

/** A host that no snapshot has any more. Its last requests may take long: they count in it until they end. */
export class LeavingHost implements Retired {
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
