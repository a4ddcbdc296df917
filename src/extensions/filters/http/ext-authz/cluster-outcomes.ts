// Counts authorization outcomes by the cluster of the request, in `cluster.<name>.ext_authz.`, followed by the filter's
// stat_prefix if any.

import type { Cluster, DynamicCounter } from '../../../sdk.js';

export type Outcome = 'ok' | 'denied' | 'error' | 'failure_mode_allowed' | 'invalid';

export class ClusterOutcomes {
  readonly #prefix: string;
  readonly #counters = new WeakMap<Cluster, Partial<Record<Outcome, DynamicCounter>>>();

  /** `own`: the filter's stat_prefix, or ''. */
  constructor(own: string) {
    this.#prefix = own === '' ? 'ext_authz.' : `ext_authz.${own}.`;
  }

  count(cluster: Cluster, outcome: Outcome): void {
    let counters = this.#counters.get(cluster);
    if (counters === undefined) this.#counters.set(cluster, (counters = {}));
    (counters[outcome] ??= cluster.counter(this.#prefix + outcome)).increment();
  }
}
