// Outlier detection settings of a cluster, as configured and as overridden by runtime.

import { durationMs } from '../../common/time/duration.js';
import type { OutlierDetection } from '../../config/generated/api.js';
import type { Runtime } from '../../runtime/runtime.js';

/** Defaults of unset fields. Fields and runtime keys have these names. */
const DEFAULTS = {
  consecutive_5xx: 5,
  consecutive_gateway_failure: 5,
  consecutive_local_origin_failure: 5,
  enforcing_consecutive_5xx: 100,
  enforcing_consecutive_gateway_failure: 0,
  enforcing_consecutive_local_origin_failure: 100,
  enforcing_success_rate: 100,
  enforcing_local_origin_success_rate: 100,
  enforcing_failure_percentage: 0,
  enforcing_failure_percentage_local_origin: 0,
  max_ejection_percent: 10,
  success_rate_minimum_hosts: 5,
  success_rate_request_volume: 100,
  success_rate_stdev_factor: 1900,
  failure_percentage_threshold: 85,
  failure_percentage_minimum_hosts: 5,
  failure_percentage_request_volume: 50,
} as const;

const DEFAULT_INTERVAL_MS = 10_000;
const DEFAULT_BASE_MS = 30_000;
const DEFAULT_MAX_MS = 300_000;

/** The numbers that runtime can override: `outlier_detection.<name>`. */
export type OutlierNumber =
  | keyof typeof DEFAULTS
  | 'interval_ms'
  | 'base_ejection_time_ms'
  | 'max_ejection_time_ms'
  | 'max_ejection_time_jitter_ms';

/** Plain data, also for workers. */
export interface OutlierSpec {
  /** Responses and local-origin failures are judged separately. */
  readonly splitsLocalOrigin: boolean;
  /** One host may be ejected regardless of max_ejection_percent. */
  readonly alwaysEjectsOne: boolean;
  /** A host that passes an active health check returns at once. */
  readonly returnsWhenChecked: boolean;
  readonly numbers: Readonly<Record<OutlierNumber, number>>;
}

export function outlierSpec(config: OutlierDetection): OutlierSpec {
  const baseMs = durationMs(config.base_ejection_time, DEFAULT_BASE_MS);
  const numbers: Record<OutlierNumber, number> = {
    ...DEFAULTS,
    interval_ms: durationMs(config.interval, DEFAULT_INTERVAL_MS),
    base_ejection_time_ms: baseMs,
    max_ejection_time_ms: durationMs(config.max_ejection_time, Math.max(DEFAULT_MAX_MS, baseMs)),
    max_ejection_time_jitter_ms: durationMs(config.max_ejection_time_jitter, 0),
  };
  for (const name of Object.keys(DEFAULTS) as (keyof typeof DEFAULTS)[]) numbers[name] = config[name] ?? DEFAULTS[name];
  return {
    splitsLocalOrigin: config.split_external_local_origin_errors ?? false,
    alwaysEjectsOne: config.always_eject_one_host ?? false,
    returnsWhenChecked: config.successful_active_health_check_uneject_host ?? true,
    numbers,
  };
}

/** The current numbers. Each read is a look-up; request paths read handles instead. */
export class OutlierSettings {
  readonly spec: OutlierSpec;
  readonly #runtime: Runtime;

  constructor(spec: OutlierSpec, runtime: Runtime) {
    this.spec = spec;
    this.#runtime = runtime;
  }

  get(name: OutlierNumber): number {
    return this.#runtime.get(runtimeKey(name))?.integer ?? this.spec.numbers[name];
  }
}

export function runtimeKey(name: OutlierNumber): string {
  return `outlier_detection.${name}`;
}
