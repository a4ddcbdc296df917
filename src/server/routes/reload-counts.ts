// Stats of routes and scopes whose versions are replaced while in use.

import type { Layout } from '../../stats/layout.js';
import { ReloadStats } from '../../stats/layouts/xds.js';
import type { StatsStore } from '../../stats/store.js';
import type { Scope, ScopeRef } from '../../stats/thread-stats.js';

export class ReloadCounts {
  /** The scope of the additional layout. */
  readonly extra: Scope;
  readonly #store: StatsStore;
  readonly #refs: readonly ScopeRef[];
  readonly #reloads: Scope;

  /** `prefix`: `http.<stat_prefix>.rds.<name>.`; `layout`: of `extra`. */
  constructor(store: StatsStore, prefix: string, layout: Layout) {
    this.#store = store;
    this.#refs = store.addScopes([
      { prefix, layout: ReloadStats },
      { prefix, layout },
    ]);
    [this.#reloads, this.extra] = this.#refs.map((ref) => store.scope(ref)) as [Scope, Scope];
  }

  /** Called when another version is in use. */
  reloaded(): void {
    this.#reloads.increment(ReloadStats.at.config_reload);
    this.#reloads.set(ReloadStats.at.config_reload_time_ms, Date.now());
  }

  close(): void {
    for (const ref of this.#refs) this.#store.removeScope(ref);
  }
}
