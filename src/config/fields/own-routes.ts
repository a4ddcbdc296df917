// Connection managers among network filters, and their inline routes.

import type { Any, HttpConnectionManager, RouteConfiguration } from '../generated/api.js';
import { unpack } from '../schema/any.js';

const MANAGER = 'envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager' as const;

/** Returns the configuration of a network filter that is a connection manager. */
export function ownManager(filter: Any | undefined): HttpConnectionManager | undefined {
  return unpack(filter, MANAGER);
}

/** Returns the inline routes of a network filter; undefined if it has none or is not a connection manager. */
export function ownRoutes(filter: Any | undefined): RouteConfiguration | undefined {
  return ownManager(filter)?.route_config;
}
