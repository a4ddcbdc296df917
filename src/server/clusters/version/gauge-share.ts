// The share of one version of a cluster in gauges that it has in common with a parent process and with other versions of the
// cluster.

import type { GaugeSlot } from '../../../stats/layout.js';
import type { Scope } from '../../../stats/thread-stats.js';

/** A share in the gauges of one scope. */
export class GaugeShare {
  readonly #scope: Scope;
  /** Undefined while all values are 0, to save memory: there may be very many clusters. */
  #values: Map<GaugeSlot, number> | undefined;

  constructor(scope: Scope) {
    this.#scope = scope;
  }

  /** Sets this share. A gauge whose share stays 0 is not touched. */
  set(at: GaugeSlot, value: number): void {
    const change = value - (this.#values?.get(at) ?? 0);
    if (change === 0) return;
    this.#values ??= new Map();
    this.#values.set(at, value);
    if (change > 0) this.#scope.add(at, change);
    else this.#scope.subtract(at, -change);
  }

  /** Makes the gauge a used one without changing its value. */
  touch(at: GaugeSlot): void {
    this.#scope.add(at, 1);
    this.#scope.subtract(at, 1);
  }

  /** Sets all shares to 0. */
  withdraw(): void {
    for (const at of this.#values?.keys() ?? []) this.set(at, 0);
  }
}
