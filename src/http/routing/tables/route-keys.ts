// Keys of the sources of routes. They are equal on the primary and on the workers for connection managers that can share a source.

import type { ConfigSource, Rds, ScopedRoutes } from '../../../config/generated/api.js';

/** Returns the key of the route configuration `name` from `source`. */
export function rdsKey(source: ConfigSource, name: string): string {
  return JSON.stringify([name, source]);
}

export function keyOfRds({ config_source, route_config_name }: Rds): string {
  return rdsKey(config_source!, route_config_name ?? '');
}

export function keyOfScopedRoutes(scoped: ScopedRoutes): string {
  return JSON.stringify(scoped);
}
