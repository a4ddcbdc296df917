// envoy.filters.network.ratelimit: asks a rate limit service over gRPC whether a connection is allowed.

import type { NetworkRatelimitRateLimit as FilterConfig } from '../../../../config/generated/api.js';
import { accepted, type NetworkFilterExtension, obeyed, reportMistakes } from '../../../sdk.js';
import { checkLimitService } from '../../common/rate-limit/limit-service.js';
import { ConnectionLimitStats, ConnectionLimits, compileDescriptors } from './connection-limits.js';
import { NetworkRateLimitFilter } from './network-ratelimit-filter.js';

const FILTER = 'envoy.extensions.filters.network.ratelimit.v3.RateLimit';
const UNSENT = 'Envoy does not send it';

export const networkRateLimit: NetworkFilterExtension<FilterConfig> = {
  category: 'envoy.filters.network',
  name: 'envoy.filters.network.ratelimit',
  typeUrls: [`type.googleapis.com/${FILTER}`],
  implemented: {
    [FILTER]: obeyed('stat_prefix', 'domain', 'descriptors', 'timeout', 'failure_mode_deny', 'rate_limit_service'),
    'envoy.extensions.common.ratelimit.v3.RateLimitDescriptor': {
      entries: true,
      limit: accepted(UNSENT),
      hits_addend: accepted(UNSENT),
      is_negative_hits: accepted(UNSENT),
    },
    'envoy.extensions.common.ratelimit.v3.RateLimitDescriptor.RateLimitOverride': {
      requests_per_unit: accepted(UNSENT),
      unit: accepted(UNSENT),
      unit_multiplier: accepted(UNSENT),
    },
    'envoy.extensions.common.ratelimit.v3.RateLimitDescriptor.Entry': obeyed('key', 'value'),
  },
  validate(config, report) {
    checkLimitService(config.rate_limit_service, config.timeout, report);
    reportMistakes(report, '', () => compileDescriptors(config.descriptors));
  },
  clusters(config) {
    const service = config.rate_limit_service?.grpc_service?.envoy_grpc;
    return [['rate_limit_service.grpc_service.envoy_grpc.cluster_name', service?.cluster_name]];
  },
  scopes: (config) => [{ prefix: prefixOf(config), layout: ConnectionLimitStats }],
  createOnWorker(config, _chain, context) {
    const limits = new ConnectionLimits(config, context, context.scope(prefixOf(config), ConnectionLimitStats));
    return {
      create: (client) => (limits.applies() ? new NetworkRateLimitFilter(client, limits) : undefined),
      close: () => limits.service.close(),
    };
  },
};

function prefixOf({ stat_prefix: prefix }: FilterConfig): string {
  return `ratelimit.${prefix}.`;
}
