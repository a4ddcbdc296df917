// envoy.filters.http.api_key_auth: passes requests with a known key, which is read from a header, a query parameter or a cookie.

import type { Any, ApiKeyAuth, ApiKeyAuthPerRoute } from '../../../../config/generated/api.js';
import { type HttpChain, type HttpFilterExtension, obeyed, reportMistakes, unpack } from '../../../sdk.js';
import { ApiKeyAuthFilter, ApiKeyAuthStats } from './api-key-auth-filter.js';
import { compilePlace, type PlaceRules } from './rules.js';

const PACKAGE = 'envoy.extensions.filters.http.api_key_auth.v3';
const FILTER = `${PACKAGE}.ApiKeyAuth`;
const PER_ROUTE = `${PACKAGE}.ApiKeyAuthPerRoute`;

export const apiKeyAuth: HttpFilterExtension<ApiKeyAuth> = {
  category: 'envoy.filters.http',
  name: 'envoy.filters.http.api_key_auth',
  typeUrls: [`type.googleapis.com/${FILTER}`, `type.googleapis.com/${PER_ROUTE}`],
  implemented: {
    'envoy.extensions.filters.http.api_key_auth.v3.ApiKeyAuth': obeyed('credentials', 'key_sources', 'forwarding'),
    'envoy.extensions.filters.http.api_key_auth.v3.ApiKeyAuthPerRoute': obeyed(
      'credentials',
      'key_sources',
      'allowed_clients',
      'forwarding',
    ),
    'envoy.extensions.filters.http.api_key_auth.v3.Credential': obeyed('key', 'client'),
    'envoy.extensions.filters.http.api_key_auth.v3.KeySource': obeyed('header', 'query', 'cookie'),
    'envoy.extensions.filters.http.api_key_auth.v3.Forwarding': obeyed('header', 'hide_credentials'),
  },
  validate(config, report) {
    const place = unpack(config as Any, FILTER) ?? unpack(config as Any, PER_ROUTE) ?? {};
    reportMistakes(report, '', () => compilePlace(place, ''));
  },
  scopes: (_config, chain) => [{ prefix: statsPrefix(chain), layout: ApiKeyAuthStats }],
  createOnWorker(config, context, chain) {
    const own = compilePlace(config, '');
    const stats = context.scope(statsPrefix(chain), ApiKeyAuthStats);
    return {
      create: (stream, ofRoute) => new ApiKeyAuthFilter(stream, own, ofRoute as PlaceRules | undefined, stats),
    };
  },
  /** The most specific configuration applies, and the filter's for what that lacks. */
  compileRouteConfig: (configs, where) => compilePlace(configs.at(-1) as ApiKeyAuthPerRoute, where),
};

function statsPrefix({ statPrefix }: HttpChain): string {
  return `${statPrefix}api_key_auth.`;
}
