// envoy.filters.http.cors: which origins may read responses (https://fetch.spec.whatwg.org/#http-cors-protocol).

import type { Cors, CorsCorsPolicy } from '../../../../config/generated/api.js';
import { type HttpChain, type HttpFilterExtension, obeyed, RouteKind } from '../../../sdk.js';
import { CorsFilter } from './cors-filter.js';
import { type CorsPolicy, compilePolicy } from './policy.js';
import { CorsStats } from './stats.js';

const FILTER = 'envoy.extensions.filters.http.cors.v3.Cors';
const POLICY = 'envoy.extensions.filters.http.cors.v3.CorsPolicy';

export const cors: HttpFilterExtension<Cors> = {
  category: 'envoy.filters.http',
  name: 'envoy.filters.http.cors',
  typeUrls: [`type.googleapis.com/${FILTER}`, `type.googleapis.com/${POLICY}`],
  routeField: 'cors',
  implemented: {
    [FILTER]: {},
    [POLICY]: obeyed(
      'allow_origin_string_match',
      'allow_methods',
      'allow_headers',
      'expose_headers',
      'max_age',
      'allow_credentials',
      'filter_enabled',
      'shadow_enabled',
      'allow_private_network_access',
      'forward_not_matching_preflights',
    ),
  },
  scopes: (_config, chain) => [{ prefix: statsPrefix(chain), layout: CorsStats }],
  createOnWorker(_config, context, chain) {
    const { random } = context;
    const stats = context.scope(statsPrefix(chain), CorsStats);
    return {
      create(stream, policy) {
        // As in Envoy, policies apply only to routes to a cluster, not to redirects and direct responses.
        if (policy === undefined || stream.route()?.kind !== RouteKind.Forward) return undefined;
        return new CorsFilter(stream, policy as CorsPolicy, stats, random);
      },
    };
  },
  compileRouteConfig: (configs, _where, runtime) => compilePolicy(configs as readonly CorsCorsPolicy[], runtime),
};

function statsPrefix({ statPrefix }: HttpChain): string {
  return `${statPrefix}cors.`;
}
