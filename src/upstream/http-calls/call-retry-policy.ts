// envoy.config.core.v3.RetryPolicy, compiled: when and how often the calls that extensions make are retried.

import { durationMs } from '../../common/time/duration.js';
import type { CoreRetryPolicy } from '../../config/generated/api.js';
import { RetryPolicy } from '../../http/routing/retries/retry-policy.js';

const DEFAULT_BASE_MS = 1000;

/**
 * Compiles a policy; undefined: calls are not retried. As in Envoy, the longest back-off interval also limits each try.
 * @param retryOn conditions of a caller that has its own, in place of those of the policy
 * @throws BatonError when the policy is invalid; `where` is its path in the configuration.
 */
export function compileCallRetries(
  config: CoreRetryPolicy | undefined,
  where: string,
  retryOn?: string,
): RetryPolicy | undefined {
  if (config === undefined) return undefined;
  const { retry_back_off: backOff, retry_on = '', ...shared } = config;
  const baseMs = durationMs(backOff?.base_interval, DEFAULT_BASE_MS);
  const base_interval = `${baseMs / 1000}s`;
  const max_interval = backOff?.max_interval ?? `${(10 * baseMs) / 1000}s`;
  return new RetryPolicy(
    {
      ...shared,
      retry_on: retryOn ?? retry_on,
      retry_back_off: { base_interval, max_interval },
      per_try_timeout: max_interval,
    },
    where,
  );
}
