// envoy.filters.http.local_ratelimit: lets so many requests through as there are tokens in a bucket, which all workers share.

import type { Any, LocalRateLimit } from '../../../../config/generated/api.js';
import { durationMs, type HttpFilterExtension, refused, reportMistakes } from '../../../sdk.js';
import { LocalRateLimitFilter } from './local-ratelimit-filter.js';
import { compileHeaders, LimitRules } from './rules.js';
import { LocalRateLimitStats, OwnCounters, statsPrefix } from './stats.js';

const MIN_FILL_INTERVAL_MS = 50;
const NO_DESCRIPTORS = refused('requests are not told apart by descriptors: give routes token buckets of their own');

export const localRateLimit: HttpFilterExtension<LocalRateLimit> = {
  category: 'envoy.filters.http',
  name: 'envoy.filters.http.local_ratelimit',
  typeUrls: ['type.googleapis.com/envoy.extensions.filters.http.local_ratelimit.v3.LocalRateLimit'],
  takesOwnMessageFromRoutes: true,
  implemented: {
    'envoy.extensions.filters.http.local_ratelimit.v3.LocalRateLimit': {
      stat_prefix: true,
      status: true,
      token_bucket: true,
      filter_enabled: true,
      filter_enforced: true,
      request_headers_to_add_when_not_enforced: true,
      response_headers_to_add: true,
      local_rate_limit_per_downstream_connection: true,
      enable_x_ratelimit_headers: true,
      rate_limited_as_resource_exhausted: true,
      descriptors: NO_DESCRIPTORS,
      stage: NO_DESCRIPTORS,
      vh_rate_limits: NO_DESCRIPTORS,
      always_consume_default_token_bucket: NO_DESCRIPTORS,
      local_cluster_rate_limit: refused('the limit is of this process: divide it by the number of processes'),
    },
    'envoy.type.v3.TokenBucket': 'all',
  },
  validate(config, report, isOfRoute) {
    const limit = config as LocalRateLimit;
    if (isOfRoute && limit.token_bucket === undefined)
      report('', 'token_bucket must be set: what a route says is a limit of its own');
    const interval = limit.token_bucket?.fill_interval;
    if (interval !== undefined && durationMs(interval) < MIN_FILL_INTERVAL_MS)
      report('token_bucket.fill_interval', `it must be at least ${MIN_FILL_INTERVAL_MS} ms`);
    for (const list of ['request_headers_to_add_when_not_enforced', 'response_headers_to_add'] as const)
      reportMistakes(report, '', () => compileHeaders(limit, list, ''));
  },
  scopes: (config) => [{ prefix: statsPrefix(config.stat_prefix), layout: LocalRateLimitStats }],
  createOnWorker(config, context, chain) {
    const own = new LimitRules(config, context.runtime, '', chain.place);
    const counters = new OwnCounters(context.scope(statsPrefix(config.stat_prefix), LocalRateLimitStats));
    return {
      create(stream, routeConfig) {
        const rules = (routeConfig as LimitRules | undefined) ?? own;
        const counts = rules.statPrefix === own.statPrefix ? counters : rules.countersFor(context);
        return new LocalRateLimitFilter(stream, rules, counts, context);
      },
    };
  },
  /** The most specific place decides, and has a bucket of its own. */
  compileRouteConfig(configs: readonly Any[], where, runtime, place): LimitRules {
    return new LimitRules(configs.at(-1) as LocalRateLimit, runtime, where, place);
  },
};
