// envoy.filters.network.sni_cluster: the TCP proxy after it uses the cluster that has the name of the requested server (SNI),
// instead of its own. A listener filter has detected the name; without one, the TCP proxy uses its own cluster.

import type { SniCluster } from '../../../../config/generated/api.js';
import { type FilteredClient, FilterStatus, type NetworkFilter, type NetworkFilterExtension } from '../../../sdk.js';

export const sniCluster: NetworkFilterExtension<SniCluster> = {
  category: 'envoy.filters.network',
  name: 'envoy.filters.network.sni_cluster',
  typeUrls: ['type.googleapis.com/envoy.extensions.filters.network.sni_cluster.v3.SniCluster'],
  implemented: { 'envoy.extensions.filters.network.sni_cluster.v3.SniCluster': {} },
  createOnWorker: () => ({ create: (client) => new SniClusterFilter(client) }),
};

class SniClusterFilter implements NetworkFilter {
  readonly #client: FilteredClient;

  constructor(client: FilteredClient) {
    this.#client = client;
  }

  onNewConnection(): FilterStatus {
    const serverName = this.#client.detected?.serverName ?? '';
    if (serverName !== '') this.#client.setCluster(serverName);
    return FilterStatus.Continue;
  }

  onData(): FilterStatus {
    return FilterStatus.Continue;
  }
}
