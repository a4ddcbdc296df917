// What one version of a cluster has of gauges that others have beside it: a parent process, and another version of the cluster.

import type { GaugeSlot } from '../../../stats/layout.js';
import type { Scope } from '../../../stats/thread-stats.js';

/** Of the gauges of a scope. */
export class GaugeShare {
  readonly #scope: Scope;
  /** Undefined while all are 0: there may be very many clusters. */
  #values: Map<GaugeSlot, number> | undefined;

  constructor(scope: Scope) {
    this.#scope = scope;
  }

  /** A gauge that was never changed stays unused. */
  set(at: GaugeSlot, value: number): void {
    const change = value - (this.#values?.get(at) ?? 0);
    if (change === 0) return;
    this.#values ??= new Map();
    this.#values.set(at, value);
    if (change > 0) this.#scope.add(at, change);
    else this.#scope.subtract(at, -change);
  }

  /** All are 0 for this version. */
  withdraw(): void {
    for (const at of this.#values?.keys() ?? []) this.set(at, 0);
  }
}
