// The resources of one version of a cluster: a use of those of the cluster's name, and stats that only some versions have.

import type { Layout, LayoutDefinition } from '../../../stats/layout.js';
import { statScopeKey } from '../../../stats/scope-prefix.js';
import type { ScopeRequest, StatsStore } from '../../../stats/store.js';
import type { Scope, ScopeRef } from '../../../stats/thread-stats.js';
import type { ClusterResources } from './cluster-resources.js';
import { GaugeShare } from './gauge-share.js';

export class VersionResources {
  readonly shared: ClusterResources;
  readonly #store: StatsStore;
  readonly #scopes: ScopeRef[] = [];
  readonly #gauges: GaugeShare[] = [];
  readonly #unused: (() => void)[] = [];

  constructor(shared: ClusterResources, store: StatsStore) {
    this.shared = shared;
    this.#store = store;
    shared.retain();
  }

  /** Adds `cluster.<name>.<part>`, which lasts while any version uses it. Throws a RangeError when memory is short. */
  addScope(part: string, layout: Layout<LayoutDefinition>): Scope {
    const ref = this.#store.addScope(`${this.shared.scope.prefix}${part}`, layout);
    this.#scopes.push(ref);
    return this.#store.scope(ref);
  }

  /** Adds scopes that workers count in, which last until no thread uses the version. Returns them by statScopeKey(). */
  addWorkerScopes(requests: readonly ScopeRequest[]): Readonly<Record<string, ScopeRef>> {
    const refs = this.#store.addScopes(requests);
    this.whenUnused(() => {
      for (const ref of refs) this.#store.removeScope(ref);
    });
    return Object.fromEntries(refs.map((ref, at) => [statScopeKey(requests[at]!.prefix, requests[at]!.layout), ref]));
  }

  /** Returns the primary's part of a scope of the cluster. */
  statsOf(ref: ScopeRef): Scope {
    return this.#store.scope(ref);
  }

  /** Returns this version's share in the gauges of a scope that it has added. */
  share(scope: Scope): GaugeShare {
    const share = new GaugeShare(scope);
    this.#gauges.push(share);
    return share;
  }

  /** Calls `free` after release(), when no thread uses the version any more. */
  whenUnused(free: () => void): void {
    this.#unused.push(free);
  }

  /** Releases everything. Its stats are removed at once: only the primary writes them. */
  release(): void {
    for (const share of this.#gauges) share.withdraw();
    for (const ref of this.#scopes) this.#store.removeScope(ref);
    for (const free of this.#unused) this.shared.whenUnused(free);
    this.shared.release();
  }
}
