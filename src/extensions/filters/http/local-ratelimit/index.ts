// envoy.filters.http.local_ratelimit: limits requests with token buckets that all workers share.

import type { Any, LocalRateLimit, TokenBucket } from '../../../../config/generated/api.js';
import {
  BatonError,
  byValue,
  compileFilterLimits,
  durationMs,
  type HttpFilterExtension,
  obeyed,
  type Report,
  refused,
  reportMistakes,
} from '../../../sdk.js';
import { descriptorText } from './descriptors.js';
import { LocalRateLimitFilter } from './local-ratelimit-filter.js';
import { compileHeaders, LimitRules } from './rules.js';

const MIN_FILL_INTERVAL_MS = 50;

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
      enable_x_ratelimit_headers: byValue({ OFF: true, DRAFT_VERSION_03: true }),
      rate_limited_as_resource_exhausted: true,
      descriptors: true,
      stage: true,
      vh_rate_limits: byValue({ OVERRIDE: true, INCLUDE: true, IGNORE: true }),
      always_consume_default_token_bucket: true,
      local_cluster_rate_limit: refused('the limit applies to this process: divide it by the number of processes'),
      rate_limits: true,
      max_dynamic_descriptors: true,
      enable_retry_after_header: true,
    },
    'envoy.extensions.common.ratelimit.v3.LocalRateLimitDescriptor': obeyed('entries', 'token_bucket', 'shadow_mode'),
    'envoy.extensions.common.ratelimit.v3.RateLimitDescriptor.Entry': obeyed('key', 'value'),
    'envoy.type.v3.TokenBucket': obeyed('max_tokens', 'tokens_per_fill', 'fill_interval'),
  },
  validate(config, report, isOfRoute) {
    const limit = config as LocalRateLimit;
    if (isOfRoute && limit.token_bucket === undefined)
      report('', 'token_bucket must be set: a route has its own limit');
    checkInterval(limit.token_bucket, '', report);
    const seen = new Set<string>();
    limit.descriptors?.forEach((descriptor, index) => {
      const text = descriptorText(descriptor);
      if (seen.has(text)) report(`descriptors[${index}]`, 'another descriptor has the same entries');
      seen.add(text);
      checkInterval(descriptor.token_bucket, `descriptors[${index}].`, report);
    });
    reportMistakes(report, '', () => compileHeaders(limit, ''));
    reportMistakes(report, '', () => checkLimits(limit.rate_limits));
  },
  createOnWorker(config, context, chain) {
    const own = new LimitRules(config, context.runtime, '', chain.place);
    // The counters must exist before traffic.
    own.countersFor(context);
    return {
      create(stream, routeConfig) {
        const rules = (routeConfig as LimitRules | undefined) ?? own;
        return new LocalRateLimitFilter(stream, rules, context);
      },
    };
  },
  /** The most specific configuration applies, and has its own buckets. */
  compileRouteConfig(configs: readonly Any[], where, runtime, place): LimitRules {
    return new LimitRules(configs.at(-1) as LocalRateLimit, runtime, where, place);
  },
};

/** Throws a BatonError for invalid rate limits. As in Envoy, they replace no limits. */
function checkLimits(limits: LocalRateLimit['rate_limits']): void {
  compileFilterLimits(limits, 'rate_limits');
  limits?.forEach(({ limit }, index) => {
    if (limit === undefined) return;
    const where = `rate_limits[${index}].limit`;
    throw new BatonError('CONFIG_INVALID', 'the limits of descriptors apply: leave it out', { where });
  });
}

function checkInterval(bucket: TokenBucket | undefined, path: string, report: Report): void {
  if (bucket?.fill_interval === undefined || durationMs(bucket.fill_interval) >= MIN_FILL_INTERVAL_MS) return;
  report(`${path}token_bucket.fill_interval`, `it must be at least ${MIN_FILL_INTERVAL_MS} ms`);
}
