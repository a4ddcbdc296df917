// Runtime values of a fault, for all requests or for one downstream cluster (fault.http.<cluster>.…). Clients choose the cluster
// name, so the keys of clusters are not cached.

import type { FractionalPercent } from '../../../../config/generated/api.js';
import type { Random, Runtime, RuntimeFraction } from '../../../sdk.js';

/** A fraction of requests with a runtime key. */
export class FaultShare {
  readonly #runtime: Runtime;
  readonly #key: string;
  /** The end of a cluster's key. */
  readonly #suffix: string;
  readonly #configured: FractionalPercent;
  readonly #fraction: RuntimeFraction;

  /** `suffix`: for example `delay.fixed_delay_percent`. */
  constructor(runtime: Runtime, key: string | undefined, suffix: string, configured: FractionalPercent | undefined) {
    this.#runtime = runtime;
    this.#key = key || `fault.http.${suffix}`;
    this.#suffix = suffix;
    this.#configured = configured ?? {};
    this.#fraction = runtime.fraction(this.#key, this.#configured);
  }

  /**
   * Returns whether a request gets the fault. `cluster`: its downstream cluster, or ''. `wanted`: the numerator that the request
   * itself asks for, which is limited by the configured one.
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

/** An integer with a runtime key. */
export class FaultNumber {
  readonly #runtime: Runtime;
  readonly #key: string;
  readonly #suffix: string;

  /** `suffix`: for example `delay.fixed_duration_ms`. */
  constructor(runtime: Runtime, key: string | undefined, suffix: string) {
    this.#runtime = runtime;
    this.#key = key || `fault.http.${suffix}`;
    this.#suffix = suffix;
  }

  /** Returns the number for a request from `cluster` (or ''); `configured` if runtime has none. */
  valueFor(cluster: string, configured: number): number {
    const own = cluster === '' ? undefined : this.#runtime.get(`fault.http.${cluster}.${this.#suffix}`)?.integer;
    return own ?? this.#runtime.get(this.#key)?.integer ?? configured;
  }
}
