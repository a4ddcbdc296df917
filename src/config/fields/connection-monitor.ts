// The monitor of the overload manager that limits the connections of all listeners together.

import type { Bootstrap } from '../generated/api.js';
import { unpack } from '../schema/any.js';

/** The name that it has to have, which is also that of its stats. */
export const CONNECTION_MONITOR = 'envoy.resource_monitors.global_downstream_max_connections';

const CONFIG = 'envoy.extensions.resource_monitors.downstream_connections.v3.DownstreamConnectionsConfig';

/** The most connections; undefined: there is no such monitor. */
export function monitoredConnections({ overload_manager: manager }: Bootstrap): number | undefined {
  for (const { typed_config: config } of manager?.resource_monitors ?? []) {
    const found = unpack(config, CONFIG);
    if (found !== undefined) return Number(found.max_active_downstream_connections);
  }
  return undefined;
}
