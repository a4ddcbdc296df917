// envoy.filters.http.bandwidth_limit: limits the rate at which bodies pass, with a token bucket that all workers share.

import type { BandwidthLimit } from '../../../../config/generated/api.js';
import { byValue, type HttpFilterExtension, headerKey, reportMistakes } from '../../../sdk.js';
import { BandwidthLimitFilter } from './bandwidth-limit-filter.js';
import { BandwidthRules } from './rules.js';

const MESSAGE = 'envoy.extensions.filters.http.bandwidth_limit.v3.BandwidthLimit';

export const bandwidthLimit: HttpFilterExtension<BandwidthLimit> = {
  category: 'envoy.filters.http',
  name: 'envoy.filters.http.bandwidth_limit',
  typeUrls: [`type.googleapis.com/${MESSAGE}`],
  takesOwnMessageFromRoutes: true,
  implemented: {
    [MESSAGE]: {
      stat_prefix: true,
      enable_mode: byValue({ DISABLED: true, REQUEST: true, RESPONSE: true, REQUEST_AND_RESPONSE: true }),
      limit_kbps: true,
      fill_interval: true,
      runtime_enabled: true,
      enable_response_trailers: true,
      response_trailer_prefix: true,
    },
  },
  validate(config, report, isOfRoute) {
    const { enable_mode: mode = 'DISABLED', limit_kbps: limit } = config as BandwidthLimit;
    if (limit === undefined && (isOfRoute || mode !== 'DISABLED')) report('', 'limit_kbps must be set');
    const { response_trailer_prefix: prefix } = config as BandwidthLimit;
    if (prefix) reportMistakes(report, 'response_trailer_prefix', () => headerKey(prefix));
  },
  createOnWorker(config, context, chain) {
    const own = new BandwidthRules(config, context.runtime, chain.place);
    // The stats must exist before traffic.
    own.requestStats(context);
    own.responseStats(context);
    return {
      create(stream, routeConfig) {
        const rules = (routeConfig as BandwidthRules | undefined) ?? own;
        return rules.isEnabled ? new BandwidthLimitFilter(stream, rules, context) : undefined;
      },
    };
  },
  /** The most specific configuration applies, and has its own bucket. */
  compileRouteConfig: (configs, _where, runtime, place) =>
    new BandwidthRules(configs.at(-1) as BandwidthLimit, runtime, place),
};
