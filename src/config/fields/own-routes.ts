// The routes that stand in the configuration of a connection manager itself, and do not come from a source.

import type { Any, RouteConfiguration } from '../generated/api.js';
import { unpack } from '../schema/any.js';

const MANAGER = 'envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager' as const;

/** Those of a network filter; undefined when it has none, or is no connection manager. */
export function ownRoutes(filter: Any | undefined): RouteConfiguration | undefined {
  return unpack(filter, MANAGER)?.route_config;
}
