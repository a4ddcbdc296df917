// envoy.filters.http.cors: which pages of other origins may read responses (https://fetch.spec.whatwg.org/#http-cors-protocol).

import type { Cors, CorsCorsPolicy } from '../../../../config/generated/api.js';
import { type HttpChain, type HttpFilterExtension, RouteKind } from '../../../sdk.js';
import { CorsFilter } from './cors-filter.js';
import { type CorsPolicy, compilePolicy } from './policy.js';
import { CorsStats } from './stats.js';

const PACKAGE = 'envoy.extensions.filters.http.cors.v3';

export const cors: HttpFilterExtension<Cors> = {
  category: 'envoy.filters.http',
  name: 'envoy.filters.http.cors',
  typeUrls: [`type.googleapis.com/${PACKAGE}.Cors`, `type.googleapis.com/${PACKAGE}.CorsPolicy`],
  routeField: 'cors',
  implemented: { [`${PACKAGE}.Cors`]: 'all', [`${PACKAGE}.CorsPolicy`]: 'all' },
  scopes: (_config, chain) => [{ prefix: statsPrefix(chain), layout: CorsStats }],
  createOnWorker(_config, context, chain) {
    const { random } = context;
    const stats = context.scope(statsPrefix(chain), CorsStats);
    return {
      create(stream, policy) {
        // As in Envoy policies are of routes that lead to a cluster; redirects and direct responses are given without.
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
