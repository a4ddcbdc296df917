// What one version of a cluster holds: a share in what belongs to the cluster's name, and stats that not every version has.

import type { Layout, LayoutDefinition } from '../../../stats/layout.js';
import type { StatsStore } from '../../../stats/store.js';
import type { Scope, ScopeRef } from '../../../stats/thread-stats.js';
import type { ClusterResources } from './cluster-resources.js';
import { GaugeShare } from './gauge-share.js';

export class VersionResources {
  readonly shared: ClusterResources;
  readonly #store: StatsStore;
  readonly #scopes: ScopeRef[] = [];
  readonly #gauges: GaugeShare[] = [];

  constructor(shared: ClusterResources, store: StatsStore) {
    this.shared = shared;
    this.#store = store;
    shared.retain();
  }

  /** `cluster.<name>.<part>`: it is there while any version has it. Throws a RangeError when there is no room. */
  addScope(part: string, layout: Layout<LayoutDefinition>): Scope {
    const ref = this.#store.addScope(`${this.shared.scope.prefix}${part}`, layout);
    this.#scopes.push(ref);
    return this.#store.scope(ref);
  }

  /** Its part of the gauges of a scope that it has added. */
  share(scope: Scope): GaugeShare {
    const share = new GaugeShare(scope);
    this.#gauges.push(share);
    return share;
  }

  /** Gives everything back. For its stats nobody is waited for: the primary alone writes them. */
  release(): void {
    for (const share of this.#gauges) share.withdraw();
    for (const ref of this.#scopes) this.#store.removeScope(ref);
    this.shared.release();
  }
}
