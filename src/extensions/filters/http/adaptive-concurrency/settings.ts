// A compiled GradientControllerConfig. Runtime may override its values.

import type { GradientControllerConfig } from '../../../../config/generated/api.js';
import { durationMs, type Runtime } from '../../../sdk.js';

const RUNTIME = 'adaptive_concurrency.gradient_controller.';
const DEFAULT_MAX = 1000;
const DEFAULT_MIN = 3;
const DEFAULT_REQUESTS = 50;
const DEFAULT_JITTER = 15;
const DEFAULT_BUFFER = 25;
const DEFAULT_PERCENTILE = 50;
const MAX_LIMIT = 2 ** 31 - 1;

export class GradientSettings {
  /** Round trip under ideal conditions; 0: it is measured. */
  readonly fixedMs: number;
  readonly #minRttMs: Value;
  readonly #updateMs: Value;
  readonly #max: Value;
  readonly #min: Value;
  readonly #measuringLimit: Value;
  readonly #requests: Value;
  readonly #percentile: Value;
  readonly #jitter: Value;
  readonly #buffer: Value;

  constructor(config: GradientControllerConfig, runtime: Runtime) {
    const { concurrency_limit_params: limit, min_rtt_calc_params: rtt } = config;
    const integer = (key: string, value: number) => runtime.integer(`${RUNTIME}${key}`, value);
    const percent = (key: string, field: { value?: number | string } | undefined, otherwise: number) =>
      runtime.double(`${RUNTIME}${key}`, field === undefined ? otherwise : Number(field.value ?? 0));
    const measuring = rtt?.min_concurrency ?? DEFAULT_MIN;
    this.fixedMs = Math.floor(durationMs(rtt?.fixed_value, 0));
    this.#minRttMs = integer('min_rtt_calc_interval_ms', Math.floor(durationMs(rtt?.interval, 0)));
    this.#updateMs = integer(
      'sample_rtt_calc_interval_ms',
      Math.floor(durationMs(limit?.concurrency_update_interval, 0)),
    );
    this.#max = integer('max_concurrency_limit', limit?.max_concurrency_limit ?? DEFAULT_MAX);
    this.#measuringLimit = integer('min_concurrency', measuring);
    this.#min = integer('min_concurrency_limit', limit?.min_concurrency_limit ?? measuring);
    this.#requests = integer('min_rtt_aggregate_request_count', rtt?.request_count ?? DEFAULT_REQUESTS);
    this.#percentile = percent('sample_aggregate_percentile', config.sample_aggregate_percentile, DEFAULT_PERCENTILE);
    this.#jitter = percent('jitter', rtt?.jitter, DEFAULT_JITTER);
    this.#buffer = percent('min_rtt_buffer', rtt?.buffer, DEFAULT_BUFFER);
  }

  /** How long a measured round trip is used, without jitter. */
  get minRttMs(): number {
    return Math.max(1, this.#minRttMs.value);
  }
  /** How often the limit is calculated. */
  get updateMs(): number {
    return Math.max(1, this.#updateMs.value);
  }
  get maxLimit(): number {
    return limitOf(this.#max);
  }
  get minLimit(): number {
    return limitOf(this.#min);
  }
  /** The limit while the round trip is measured. */
  get measuringLimit(): number {
    return limitOf(this.#measuringLimit);
  }
  /** How many requests measure the round trip. */
  get requestCount(): number {
    return Math.max(1, this.#requests.value);
  }
  /** The share of the samples that are faster than their aggregate: 0 to 1. */
  get quantile(): number {
    return shareOf(this.#percentile);
  }
  get jitter(): number {
    return shareOf(this.#jitter);
  }
  /** What is added to the round trip, as a share of it. */
  get buffer(): number {
    return shareOf(this.#buffer);
  }
}

interface Value {
  readonly value: number;
}

function limitOf({ value }: Value): number {
  return Math.min(Math.max(1, value), MAX_LIMIT);
}

function shareOf({ value }: Value): number {
  return Math.min(Math.max(value, 0), 100) / 100;
}
