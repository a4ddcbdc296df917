// Counts the outcomes of a filter by the cluster of the request, in `cluster.<name>.<filter>.`, followed by the filter's
// stat_prefix if any.

import type { Cluster, DynamicCounter } from '../../sdk.js';

export class ClusterOutcomes<Outcome extends string> {
  readonly #prefix: string;
  readonly #counters = new WeakMap<Cluster, Partial<Record<Outcome, DynamicCounter>>>();

  /** `own`: the filter's stat_prefix, or ''. */
  constructor(filter: string, own: string) {
    this.#prefix = own === '' ? `${filter}.` : `${filter}.${own}.`;
  }

  count(cluster: Cluster, outcome: Outcome): void {
    let counters = this.#counters.get(cluster);
    if (counters === undefined) this.#counters.set(cluster, (counters = {}));
    (counters[outcome] ??= cluster.counter(this.#prefix + outcome)).increment();
  }
}
