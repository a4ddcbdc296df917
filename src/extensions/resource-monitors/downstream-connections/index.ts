// envoy.resource_monitors.global_downstream_max_connections: a limit on connections. Listeners read it themselves.

import type { ResourceMonitorExtension } from '../../sdk.js';

export const downstreamConnections: ResourceMonitorExtension = {
  category: 'envoy.resource_monitors',
  name: 'envoy.resource_monitors.global_downstream_max_connections',
  typeUrls: [
    'type.googleapis.com/envoy.extensions.resource_monitors.downstream_connections.v3.DownstreamConnectionsConfig',
  ],
};
