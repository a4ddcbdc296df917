// The inline routes of a connection manager.

import type { Any, RouteConfiguration } from '../generated/api.js';
import { unpack } from '../schema/any.js';

const MANAGER = 'envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager' as const;

/** Returns the inline routes of a network filter; undefined if it has none or is not a connection manager. */
export function ownRoutes(filter: Any | undefined): RouteConfiguration | undefined {
  return unpack(filter, MANAGER)?.route_config;
}
