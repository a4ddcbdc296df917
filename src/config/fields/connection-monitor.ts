// The overload manager's monitor that limits the total connections of all listeners.

import type { Bootstrap } from '../generated/api.js';
import { unpack } from '../schema/any.js';

/** The required name of the monitor, which its stats have too. */
export const CONNECTION_MONITOR = 'envoy.resource_monitors.global_downstream_max_connections';

const CONFIG = 'envoy.extensions.resource_monitors.downstream_connections.v3.DownstreamConnectionsConfig';

/** Returns the maximum number of connections; undefined without the monitor. */
export function monitoredConnections({ overload_manager: manager }: Bootstrap): number | undefined {
  for (const { typed_config: config } of manager?.resource_monitors ?? []) {
    const found = unpack(config, CONFIG);
    if (found !== undefined) return Number(found.max_active_downstream_connections);
  }
  return undefined;
}
