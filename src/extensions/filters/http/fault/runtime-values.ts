// Values of runtime that a fault goes by: for all requests, or for those that come from one cluster (fault.http.<cluster>.…). What a
// cluster is called is the client's to say, so that nothing is kept of its keys.

import type { FractionalPercent } from '../../../../config/generated/api.js';
import type { Random, Runtime, RuntimeFraction } from '../../../sdk.js';

/** A share of requests under a key. */
export class FaultShare {
  readonly #runtime: Runtime;
  readonly #key: string;
  /** What the key of a cluster ends with. */
  readonly #suffix: string;
  readonly #configured: FractionalPercent;
  readonly #fraction: RuntimeFraction;

  /** `suffix` as in `delay.fixed_delay_percent`. */
  constructor(runtime: Runtime, key: string | undefined, suffix: string, configured: FractionalPercent | undefined) {
    this.#runtime = runtime;
    this.#key = key || `fault.http.${suffix}`;
    this.#suffix = suffix;
    this.#configured = configured ?? {};
    this.#fraction = runtime.fraction(this.#key, this.#configured);
  }

  /**
   * Whether a request gets the fault. `cluster`: where it comes from, or ''. `wanted`: the numerator that it asks for itself, which counts
   * as far as the configured one goes.
   */
  isHit(random: Random, cluster: string, wanted: number | undefined): boolean {
    const key = cluster === '' ? this.#key : this.#keyFor(cluster);
    if (wanted === undefined && key === this.#key) return this.#fraction.isHit(random);
    const { denominator, numerator = 0 } = this.#configured;
    const fallback = { numerator: Math.min(wanted ?? numerator, numerator), denominator: denominator ?? 'HUNDRED' };
    return this.#runtime.fraction(key, fallback).isHit(random);
  }

  #keyFor(cluster: string): string {
    const key = `fault.http.${cluster}.${this.#suffix}`;
    return this.#runtime.get(key) === undefined ? this.#key : key;
  }
}

/** A whole number under a key. */
export class FaultNumber {
  readonly #runtime: Runtime;
  readonly #key: string;
  readonly #suffix: string;

  /** `suffix` as in `delay.fixed_duration_ms`. */
  constructor(runtime: Runtime, key: string | undefined, suffix: string) {
    this.#runtime = runtime;
    this.#key = key || `fault.http.${suffix}`;
    this.#suffix = suffix;
  }

  /** The number for a request that comes from `cluster`, or ''; `configured` where runtime has none. */
  valueFor(cluster: string, configured: number): number {
    const own = cluster === '' ? undefined : this.#runtime.get(`fault.http.${cluster}.${this.#suffix}`)?.integer;
    return own ?? this.#runtime.get(this.#key)?.integer ?? configured;
  }
}
