// The routes of a virtual host: a list, or those that its matcher selects.

import type { Any, Route, VirtualHost } from '../generated/api.js';
import { unpack } from '../schema/any.js';
import type { Path } from '../text/path.js';

/** A route, and its path within the virtual host. */
export interface HostRoute {
  readonly route: Route;
  readonly path: Path;
}

/** Returns all routes of a virtual host. Absent ones of a configuration that has not been checked are left out. */
export function hostRoutes({ matcher, routes }: VirtualHost): HostRoute[] {
  const found = listed(routes, ['routes']);
  walk(matcher, ['matcher'], found);
  return found;
}

/** Returns the routes of an action of a matcher, with their paths within the action; undefined for another action. */
export function routesOfAction(action: Any): HostRoute[] | undefined {
  const route: Route | undefined = unpack(action, 'envoy.config.route.v3.Route');
  if (route !== undefined) return [{ route, path: [] }];
  const list = unpack(action, 'envoy.config.route.v3.RouteList');
  return list && listed(list.routes, ['routes']);
}

function listed(routes: readonly (Route | null)[] | undefined, path: Path): HostRoute[] {
  return (routes ?? []).flatMap((route, index) => (route ? [{ route, path: [...path, index] }] : []));
}

function walk(value: unknown, path: Path, found: HostRoute[]): void {
  if (typeof value !== 'object' || value === null) return;
  const { '@type': type } = value as { readonly '@type'?: unknown };
  const routes = typeof type === 'string' ? routesOfAction(value as Any) : undefined;
  if (routes !== undefined) {
    for (const { path: inner, route } of routes) found.push({ route, path: [...path, ...inner] });
    return;
  }
  for (const [name, inner] of Object.entries(value))
    walk(inner, [...path, Array.isArray(value) ? Number(name) : name], found);
}
