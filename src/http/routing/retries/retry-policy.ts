// envoy.config.route.v3.RetryPolicy, compiled: when and how often a request is retried.

import { BatonError } from '../../../common/errors/errors.js';
import { durationMs } from '../../../common/time/duration.js';
import { parseRetryOn } from '../../../config/fields/retry-on.js';
import type { RouteAction } from '../../../config/generated/api.js';
import { Runtime, type RuntimeInteger } from '../../../runtime/runtime.js';
import { compileHeaderRules, type HeaderRule } from '../matching/header-rule.js';
import { RateLimitReset } from './rate-limit-reset.js';

type RetryPolicyConfig = NonNullable<RouteAction['retry_policy']>;

export class RetryPolicy {
  /** Bits of RetryOn. */
  readonly conditions: number;
  readonly maxRetries: number;
  /** In milliseconds; 0: limited only by the timeout of the whole request. */
  readonly perTryTimeoutMs: number;
  /** Longest time without progress in the response of one try, in milliseconds; 0: no limit. */
  readonly perTryIdleTimeoutMs: number;
  readonly statusCodes: readonly number[];
  readonly headers: readonly HeaderRule[] | undefined;
  /** If set, only requests that match one of these rules are retried. */
  readonly requestHeaders: readonly HeaderRule[] | undefined;
  /** Retries prefer hosts that the request has not tried yet (retry_host_predicate, of which Baton has one kind). */
  readonly avoidsPreviousHosts: boolean;
  /** How many further picks may be made to find such a host. */
  readonly furtherPicks: number;
  /** Response headers that set the delay before a retry. */
  readonly reset: RateLimitReset | undefined;
  readonly #baseInterval: RuntimeInteger;
  readonly #maxIntervalMs: number | undefined;

  /** @throws BatonError when the policy is invalid; `where` is its path in the configuration. */
  constructor(config: RetryPolicyConfig, where: string, runtime: Runtime = new Runtime()) {
    this.conditions = parseRetryOn(config.retry_on ?? '').conditions;
    this.maxRetries = config.num_retries ?? 1;
    this.perTryTimeoutMs = durationMs(config.per_try_timeout, 0);
    this.perTryIdleTimeoutMs = durationMs(config.per_try_idle_timeout, 0);
    this.statusCodes = config.retriable_status_codes ?? [];
    this.headers = compileHeaderRules(config.retriable_headers, `${where}.retriable_headers`);
    this.requestHeaders = compileHeaderRules(config.retriable_request_headers, `${where}.retriable_request_headers`);
    this.avoidsPreviousHosts = (config.retry_host_predicate?.length ?? 0) > 0;
    if (config.host_selection_retry_max_attempts !== undefined && !this.avoidsPreviousHosts) {
      throw new BatonError('CONFIG_INVALID', 'it has no effect without retry_host_predicate', {
        where: `${where}.host_selection_retry_max_attempts`,
      });
    }
    // As in Envoy, 0 means not set.
    this.furtherPicks = Number(config.host_selection_retry_max_attempts ?? 0) || 1;
    const limited = config.rate_limited_retry_back_off;
    this.reset = limited && new RateLimitReset(limited, `${where}.rate_limited_retry_back_off`);
    const backOff = config.retry_back_off;
    this.#baseInterval =
      backOff?.base_interval === undefined
        ? runtime.integer('upstream.base_retry_backoff_ms', DEFAULT_BASE_MS)
        : runtime.integer(undefined, wholeMs(backOff.base_interval));
    this.#maxIntervalMs = backOff?.max_interval === undefined ? undefined : wholeMs(backOff.max_interval);
    if (this.#maxIntervalMs !== undefined && this.#maxIntervalMs < this.baseIntervalMs) {
      const message = 'max_interval must be greater than or equal to base_interval';
      throw new BatonError('CONFIG_INVALID', message, { where: `${where}.retry_back_off.max_interval` });
    }
  }

  /** From the configuration, otherwise from runtime. */
  get baseIntervalMs(): number {
    return Math.max(1, this.#baseInterval.value);
  }

  get maxIntervalMs(): number {
    return this.#maxIntervalMs ?? this.baseIntervalMs * 10;
  }
}

const DEFAULT_BASE_MS = 25;

/** Retries nothing. For requests that enable retries by their headers on a route without a policy. */
export const NO_RETRIES = new RetryPolicy({}, '');

/** Returns whole milliseconds, at least 1. */
function wholeMs(duration: string): number {
  return Math.max(1, Math.floor(durationMs(duration)));
}
