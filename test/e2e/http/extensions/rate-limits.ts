// Connection managers with a local rate limit, for tests.

import { type Config, ROUTER_FILTER } from '../../harness/index.js';
import { managerOf } from '../proxy.js';

export const ALWAYS: Config = { default_value: { numerator: 100 } };

/** Returns a bucket that is not refilled during a test. */
export function bucketOf(max_tokens: number): Config {
  return { max_tokens, fill_interval: '3600s' };
}

/** Returns an enforced limit. */
export function limitOf(stat_prefix: string, max_tokens: number, more: Config = {}): Config {
  return {
    ...TYPE,
    stat_prefix,
    token_bucket: bucketOf(max_tokens),
    filter_enabled: ALWAYS,
    filter_enforced: ALWAYS,
    ...more,
  };
}

/** Returns a manager with this limit as its filter `limit`. */
export function limiting(limit: Config, routes: Config[], more: Config = {}): Config {
  return managerOf(routes, {
    http_filters: [{ name: 'limit', typed_config: { ...TYPE, ...limit } }, ROUTER_FILTER],
    ...more,
  });
}

const TYPE = { '@type': 'type.googleapis.com/envoy.extensions.filters.http.local_ratelimit.v3.LocalRateLimit' };
