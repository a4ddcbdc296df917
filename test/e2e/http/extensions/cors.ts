// Policies and requests for the tests of the CORS filter.

import type { Config, HttpRequestOptions } from '../../harness/index.js';

const PACKAGE = 'type.googleapis.com/envoy.extensions.filters.http.cors.v3';
const ROUTER = 'type.googleapis.com/envoy.extensions.filters.http.router.v3.Router';

export const CORS_FILTER: Config = { name: 'cors', typed_config: { '@type': `${PACKAGE}.Cors` } };

/** For connection managers. */
export const CORS_CHAIN: Config = {
  http_filters: [CORS_FILTER, { name: 'router', typed_config: { '@type': ROUTER } }],
};

/** Returns the per-route configuration of the filter `cors`, for any level of a route configuration. */
export function corsPolicy(policy: Config): Config {
  return { typed_per_filter_config: { cors: { '@type': `${PACKAGE}.CorsPolicy`, ...policy } } };
}

/** Returns an allow_origin_string_match of exact origins. */
export function allowing(...origins: string[]): Config {
  return { allow_origin_string_match: origins.map((exact) => ({ exact })) };
}

/** Returns a constant fraction. */
export function share(numerator: number, runtime_key?: string): Config {
  return { default_value: { numerator }, ...(runtime_key === undefined ? {} : { runtime_key }) };
}

/** Returns the preflight for a request of a page at `origin`. */
export function preflight(origin: string, headers: Record<string, string | string[]> = {}): HttpRequestOptions {
  return { method: 'OPTIONS', headers: { origin, 'access-control-request-method': 'PUT', ...headers } };
}

/** Returns the CORS headers of a response, in order. */
export function corsHeaders({ rawHeaders }: { rawHeaders: readonly string[] }): [name: string, value: string][] {
  const pairs: [string, string][] = [];
  for (let at = 0; at < rawHeaders.length; at += 2) pairs.push([rawHeaders[at]!, rawHeaders[at + 1]!]);
  return pairs.filter(([name]) => /^(access-control-|vary$)/i.test(name));
}
