// Clusters that a reload has removed, and that connections may still need: listeners that drain have the routes of before.

import type { ClusterSet } from '../clusters/cluster-set.js';
import type { FormerListeners } from '../listeners/changes/former-listeners.js';

export class DepartingClusters {
  readonly #clusters: Pick<ClusterSet, 'removeStatic'>;
  readonly #formers: Pick<FormerListeners, 'whenGone'>;
  readonly #removed: (names: readonly string[]) => void;
  /** For each name the removal that counts. */
  readonly #removals = new Map<string, symbol>();

  /** `removed` is told when they have gone. */
  constructor(
    clusters: Pick<ClusterSet, 'removeStatic'>,
    formers: Pick<FormerListeners, 'whenGone'>,
    removed: (names: readonly string[]) => void,
  ) {
    this.#clusters = clusters;
    this.#formers = formers;
    this.#removed = removed;
  }

  /** Removes static clusters: now, or when what drains now has ended. */
  remove(names: readonly string[]): void {
    const removal = Symbol();
    for (const name of names) this.#removals.set(name, removal);
    this.#formers.whenGone(() => {
      const removed = names.filter((name) => this.#removals.get(name) === removal);
      for (const name of removed) this.#removals.delete(name);
      if (removed.length === 0) return;
      this.#clusters.removeStatic(removed);
      this.#removed(removed);
    });
  }

  /** They are wanted again. Returns those that were about to be removed. */
  keep(names: readonly string[]): string[] {
    return names.filter((name) => this.#removals.delete(name));
  }
}
