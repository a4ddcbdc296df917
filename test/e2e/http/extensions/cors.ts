// Policies and requests of the CORS filter's tests.

import type { Config, HttpRequestOptions } from '../../harness/index.js';

const PACKAGE = 'type.googleapis.com/envoy.extensions.filters.http.cors.v3';
const ROUTER = 'type.googleapis.com/envoy.extensions.filters.http.router.v3.Router';

export const CORS_FILTER: Config = { name: 'cors', typed_config: { '@type': `${PACKAGE}.Cors` } };

/** For connection managers. */
export const CORS_CHAIN: Config = {
  http_filters: [CORS_FILTER, { name: 'router', typed_config: { '@type': ROUTER } }],
};

/** What any level of a route configuration says to the filter `cors`. */
export function corsPolicy(policy: Config): Config {
  return { typed_per_filter_config: { cors: { '@type': `${PACKAGE}.CorsPolicy`, ...policy } } };
}

/** allow_origin_string_match. */
export function allowing(...origins: string[]): Config {
  return { allow_origin_string_match: origins.map((exact) => ({ exact })) };
}

/** A share that is always the same. */
export function share(numerator: number, runtime_key?: string): Config {
  return { default_value: { numerator }, ...(runtime_key === undefined ? {} : { runtime_key }) };
}

/** What a browser asks before a request of a page at `origin`. */
export function preflight(origin: string, headers: Record<string, string | string[]> = {}): HttpRequestOptions {
  return { method: 'OPTIONS', headers: { origin, 'access-control-request-method': 'PUT', ...headers } };
}

/** The headers of an answer that are about CORS, in their order. */
export function corsHeaders({ rawHeaders }: { rawHeaders: readonly string[] }): [name: string, value: string][] {
  const pairs: [string, string][] = [];
  for (let at = 0; at < rawHeaders.length; at += 2) pairs.push([rawHeaders[at]!, rawHeaders[at + 1]!]);
  return pairs.filter(([name]) => /^(access-control-|vary$)/i.test(name));
}
