// What is counted of the scopes of one scoped_rds.

import { ReloadStats, ScopedRoutesStats } from '../../../stats/layouts/xds.js';
import type { StatsStore } from '../../../stats/store.js';
import type { ScopeRef } from '../../../stats/thread-stats.js';

/** `http.<stat_prefix>.scoped_rds.<name>.` */
export class ScopeCounts {
  readonly #store: StatsStore;
  readonly #reloads: ScopeRef;
  readonly #counts: ScopeRef;

  constructor(store: StatsStore, prefix: string) {
    this.#store = store;
    const scopes = store.addScopes([
      { prefix, layout: ReloadStats },
      { prefix, layout: ScopedRoutesStats },
    ]);
    [this.#reloads, this.#counts] = scopes as [ScopeRef, ScopeRef];
  }

  changed(scopes: number): void {
    const reloads = this.#store.scope(this.#reloads);
    reloads.increment(ReloadStats.at.config_reload);
    reloads.set(ReloadStats.at.config_reload_time_ms, Date.now());
    const counts = this.#store.scope(this.#counts);
    counts.set(ScopedRoutesStats.at.all_scopes, scopes);
    counts.set(ScopedRoutesStats.at.active_scopes, scopes);
  }

  close(): void {
    this.#store.removeScope(this.#reloads);
    this.#store.removeScope(this.#counts);
  }
}
