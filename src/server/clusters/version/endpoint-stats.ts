// track_cluster_stats.per_endpoint_stats: shows the stats of a cluster's hosts, which are hidden otherwise, and adds a gauge of
// their health.

import { EndpointHealthStats } from '../../../stats/layouts/cluster.js';
import type { StatsStore } from '../../../stats/store.js';
import type { ScopeRef } from '../../../stats/thread-stats.js';
import { DEGRADED_FLAGS, UNHEALTHY_FLAGS } from '../../../upstream/hosts/health-flags.js';
import type { KnownHost } from '../../../upstream/hosts/host-directory.js';

export class EndpointStats {
  readonly #store: StatsStore;
  /** The scopes of the shown hosts with those of their health. */
  #shown = new Map<ScopeRef, ScopeRef>();

  constructor(store: StatsStore) {
    this.#store = store;
  }

  /** Shows the stats of exactly these hosts. Hosts for whose health there is no memory are left out. */
  update(hosts: readonly KnownHost[]): void {
    const before = this.#shown;
    this.#shown = new Map();
    for (const { healthFlags, scope } of hosts) {
      const health = before.get(scope) ?? this.#show(scope);
      before.delete(scope);
      if (health === undefined) continue;
      this.#shown.set(scope, health);
      const isHealthy = (healthFlags & (UNHEALTHY_FLAGS | DEGRADED_FLAGS)) === 0;
      this.#store.scope(health).set(EndpointHealthStats.at.healthy, isHealthy ? 1 : 0);
    }
    for (const [scope, health] of before) this.#hide(scope, health);
  }

  #show(scope: ScopeRef): ScopeRef | undefined {
    let health: ScopeRef;
    try {
      health = this.#store.addScope(scope.prefix, EndpointHealthStats);
    } catch (error) {
      if (error instanceof RangeError) return undefined;
      throw error;
    }
    try {
      this.#store.show(scope);
    } catch (error) {
      this.#store.removeScope(health);
      if (error instanceof RangeError) return undefined;
      throw error;
    }
    return health;
  }

  #hide(scope: ScopeRef, health: ScopeRef): void {
    this.#store.removeScope(health);
    this.#store.hide(scope);
  }
}
