// Upstream HTTP filters: those of clusters (HttpProtocolOptions.http_filters) and of routers (Router.upstream_http_filters).

import type { HttpConnectionManager, HttpFilter } from '../generated/api.js';
import { unpack } from '../schema/any.js';
import { messageNameOf } from '../schema/message-name.js';

/** The message of the filter that must be the last one. */
export const UPSTREAM_CODEC = 'envoy.extensions.filters.http.upstream_codec.v3.UpstreamCodec';
const ROUTER = 'envoy.extensions.filters.http.router.v3.Router';

/** Returns the filters before the codec; undefined: none are configured, and another list may apply. */
export function beforeCodec(filters: readonly HttpFilter[] | undefined): readonly HttpFilter[] | undefined {
  if (filters === undefined || filters.length === 0) return undefined;
  return filters.filter(({ typed_config: config }) => config && messageNameOf(config['@type']) !== UPSTREAM_CODEC);
}

/** Returns the filters before the codec of the router that ends the chain of a connection manager. */
export function routerFilters({ http_filters: chain = [] }: HttpConnectionManager): readonly HttpFilter[] {
  const router = unpack(chain.at(-1)?.typed_config, ROUTER);
  return beforeCodec(router?.upstream_http_filters) ?? [];
}
