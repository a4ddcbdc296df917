// Clusters that a reload has removed but that draining listeners, with their old routes, may still use.

import type { ClusterSet } from '../clusters/cluster-set.js';
import type { DrainingListeners } from '../listeners/changes/draining-listeners.js';

export class DrainingClusters {
  readonly #clusters: Pick<ClusterSet, 'removeStatic'>;
  readonly #draining: Pick<DrainingListeners, 'whenGone'>;
  readonly #removed: (names: readonly string[]) => void;
  /** The latest removal of each name; only that one takes effect. */
  readonly #removals = new Map<string, symbol>();

  /** `removed` is called after clusters are removed. */
  constructor(
    clusters: Pick<ClusterSet, 'removeStatic'>,
    draining: Pick<DrainingListeners, 'whenGone'>,
    removed: (names: readonly string[]) => void,
  ) {
    this.#clusters = clusters;
    this.#draining = draining;
    this.#removed = removed;
  }

  /** Removes static clusters when everything that drains now has ended. */
  remove(names: readonly string[]): void {
    const removal = Symbol();
    for (const name of names) this.#removals.set(name, removal);
    this.#draining.whenGone(() => {
      const removed = names.filter((name) => this.#removals.get(name) === removal);
      for (const name of removed) this.#removals.delete(name);
      if (removed.length === 0) return;
      this.#clusters.removeStatic(removed);
      this.#removed(removed);
    });
  }

  /** Cancels removals. Returns the names of those that were pending. */
  keep(names: readonly string[]): string[] {
    return names.filter((name) => this.#removals.delete(name));
  }
}
