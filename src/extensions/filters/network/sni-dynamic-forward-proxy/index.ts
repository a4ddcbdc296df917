// envoy.filters.network.sni_dynamic_forward_proxy: the dynamic forward proxy after the TCP proxy connects to the name of the requested
// server (SNI), which a listener filter has detected. The TCP proxy waits until the name is resolved.

import type { SniDynamicForwardProxyFilterConfig } from '../../../../config/generated/api.js';
import {
  type FilteredClient,
  FilterStatus,
  type NetworkFilter,
  type NetworkFilterExtension,
  refused,
} from '../../../sdk.js';

const MESSAGE = 'envoy.extensions.filters.network.sni_dynamic_forward_proxy.v3.FilterConfig';

/** The port if the filter has no port_value. */
const DEFAULT_PORT = 443;

export const sniDynamicForwardProxy: NetworkFilterExtension<SniDynamicForwardProxyFilterConfig> = {
  category: 'envoy.filters.network',
  name: 'envoy.filters.network.sni_dynamic_forward_proxy',
  typeUrls: [`type.googleapis.com/${MESSAGE}`],
  implemented: {
    [MESSAGE]: {
      dns_cache_config: true,
      port_value: true,
      save_upstream_address: refused('access logs have %UPSTREAM_REMOTE_ADDRESS%: leave it out'),
    },
  },
  createOnWorker: ({ port_value: port = DEFAULT_PORT }) => ({
    create: (client) => new SniDynamicForwardProxyFilter(client, port),
  }),
};

/** Objects of the filter state that take precedence. */
const DYNAMIC_HOST = 'envoy.upstream.dynamic_host';
const DYNAMIC_PORT = 'envoy.upstream.dynamic_port';

class SniDynamicForwardProxyFilter implements NetworkFilter {
  readonly #client: FilteredClient;
  readonly #port: number;

  constructor(client: FilteredClient, port: number) {
    this.#client = client;
    this.#port = port;
  }

  onNewConnection(): FilterStatus {
    const { detected, filterState } = this.#client;
    const host = filterState?.get(DYNAMIC_HOST)?.text || (detected?.serverName ?? '');
    const port = Number(filterState?.get(DYNAMIC_PORT)?.text ?? 0);
    if (host !== '') this.#client.setRequestedHost(`${host}:${port > 0 && port <= 65535 ? port : this.#port}`);
    return FilterStatus.Continue;
  }

  onData(): FilterStatus {
    return FilterStatus.Continue;
  }
}
