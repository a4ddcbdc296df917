// envoy.filters.http.ratelimit: asks a rate limit service over gRPC whether a request is allowed.

import type { Any, RatelimitRateLimit as FilterConfig, RateLimitPerRoute } from '../../../../config/generated/api.js';
import {
  accepted,
  byValue,
  compileFilterLimits,
  type HttpFilterExtension,
  obeyed,
  reportMistakes,
  unpack,
} from '../../../sdk.js';
import { checkLimitService } from '../../common/rate-limit/limit-service.js';
import { RateLimitFilter } from './ratelimit-filter.js';
import { compileLimitedHeaders, compileRouteRules, LimitFilterRules, type RouteRules } from './rules.js';

const PACKAGE = 'envoy.extensions.filters.http.ratelimit.v3';
const FILTER = `${PACKAGE}.RateLimit`;
const PER_ROUTE = `${PACKAGE}.RateLimitPerRoute`;

export const rateLimit: HttpFilterExtension<FilterConfig> = {
  category: 'envoy.filters.http',
  name: 'envoy.filters.http.ratelimit',
  typeUrls: [`type.googleapis.com/${FILTER}`, `type.googleapis.com/${PER_ROUTE}`],
  implemented: {
    'envoy.extensions.filters.http.ratelimit.v3.RateLimit': {
      ...obeyed(
        'domain',
        'stage',
        'request_type',
        'timeout',
        'failure_mode_deny',
        'rate_limited_as_resource_exhausted',
        'rate_limit_service',
        'disable_x_envoy_ratelimited_header',
        'rate_limited_status',
        'response_headers_to_add',
        'status_on_error',
        'stat_prefix',
        'filter_enabled',
        'filter_enforced',
        'failure_mode_deny_percent',
        'rate_limits',
        'metadata_namespace',
        'enable_retry_after_header',
      ),
      enable_x_ratelimit_headers: byValue({ OFF: true, DRAFT_VERSION_03: true }),
    },
    'envoy.extensions.filters.http.ratelimit.v3.RateLimitPerRoute': {
      vh_rate_limits: byValue({ OVERRIDE: true, INCLUDE: true, IGNORE: true }),
      override_option: accepted('Envoy does not apply it: vh_rate_limits decides'),
      rate_limits: true,
      domain: true,
    },
    'envoy.config.ratelimit.v3.RateLimitServiceConfig': {
      grpc_service: true,
      transport_api_version: byValue({ AUTO: true, V2: false, V3: true }),
    },
  },
  validate(config, report) {
    const filter = unpack(config as Any, FILTER);
    reportMistakes(report, '', () => {
      const { rate_limits: limits } = filter ?? unpack(config as Any, PER_ROUTE) ?? {};
      compileFilterLimits(limits, 'rate_limits');
    });
    if (filter === undefined) return;
    checkLimitService(filter.rate_limit_service, filter.timeout, report);
    reportMistakes(report, '', () => compileLimitedHeaders(filter.response_headers_to_add));
  },
  clusters(config) {
    const service = unpack(config, FILTER)?.rate_limit_service?.grpc_service?.envoy_grpc;
    return [['rate_limit_service.grpc_service.envoy_grpc.cluster_name', service?.cluster_name]];
  },
  createOnWorker(config, context) {
    const { random } = context;
    const rules = new LimitFilterRules(config, context);
    return {
      create(stream, routeConfig) {
        if (!rules.enabled.isHit(random)) return undefined;
        return new RateLimitFilter(stream, rules, routeConfig as RouteRules | undefined);
      },
      close: () => rules.service.close(),
    };
  },
  /** The most specific configuration applies. */
  compileRouteConfig: (configs, where) => compileRouteRules(configs.at(-1) as RateLimitPerRoute, where),
};
