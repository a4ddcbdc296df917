// envoy.filters.http.dynamic_forward_proxy: holds a request until the name of its host is resolved, and answers it if that fails.
// Requests whose route leads to another kind of cluster pass.

import type {
  Any,
  DynamicForwardProxyFilterConfig,
  DynamicForwardProxyPerRouteConfig,
} from '../../../../config/generated/api.js';
import { type HttpFilterExtension, headerKey, refused } from '../../../sdk.js';
import { DynamicForwardProxyFilter, type HostRewrite } from './dynamic-forward-proxy-filter.js';

const FILTER = 'envoy.extensions.filters.http.dynamic_forward_proxy.v3.FilterConfig';
const ROUTE = 'envoy.extensions.filters.http.dynamic_forward_proxy.v3.PerRouteConfig';

export const dynamicForwardProxy: HttpFilterExtension<DynamicForwardProxyFilterConfig> = {
  category: 'envoy.filters.http',
  name: 'envoy.filters.http.dynamic_forward_proxy',
  typeUrls: [`type.googleapis.com/${FILTER}`, `type.googleapis.com/${ROUTE}`],
  implemented: {
    [FILTER]: {
      dns_cache_config: true,
      sub_cluster_config: refused('the addresses of a name are one host: set dns_cache_config'),
      save_upstream_address: refused('access logs have %UPSTREAM_REMOTE_ADDRESS%: leave it out'),
      allow_dynamic_host_from_filter_state: true,
    },
    [ROUTE]: { host_rewrite_literal: true, host_rewrite_header: true },
  },
  validate(config, report, isOfRoute) {
    if (isOfRoute) return;
    // Which cache that is, the cluster decides: as in Envoy, both have the same.
    if ((config as DynamicForwardProxyFilterConfig).dns_cache_config === undefined)
      report('', 'it must have a dns_cache_config', 'sub_cluster_config');
  },
  createOnWorker: ({ allow_dynamic_host_from_filter_state: readsFilterState = false }) => ({
    create: (stream, rewrite) =>
      new DynamicForwardProxyFilter(stream, rewrite as HostRewrite | undefined, readsFilterState),
  }),
  compileRouteConfig(configs): HostRewrite {
    const config = configs.at(-1) as Any & DynamicForwardProxyPerRouteConfig;
    const { host_rewrite_header: header = '', host_rewrite_literal: literal = '' } = config;
    return { literal, header: header === '' ? undefined : headerKey(header) };
  },
};
