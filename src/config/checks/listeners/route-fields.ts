// The field `cors` of virtual hosts and route actions: it causes a warning if no filter reads it.

import type { ExtensionCatalog } from '../../catalog/extension.js';
import { routeFilterConfig } from '../../fields/filter-config.js';
import { hostRoutes } from '../../fields/host-routes.js';
import type { Any, HttpFilter, RouteConfiguration } from '../../generated/api.js';
import type { Path } from '../../text/path.js';
import type { CheckContext } from '../check-context.js';

/** Messages with typed_per_filter_config. */
type Level = { readonly typed_per_filter_config?: { readonly [name: string]: Any } } | undefined;

/** @param chain the filters of the connection manager of the routes */
export function checkRouteFields(
  routes: RouteConfiguration,
  path: Path,
  { catalog, problems }: CheckContext,
  chain: readonly HttpFilter[],
): void {
  const readers = chain.filter((filter) => filter && readsField(filter, catalog)).map(({ name = '' }) => name);
  const check = (at: Path, levels: readonly Level[]): void => {
    const filter = (names: readonly string[]) => `filter '${names.join("', '")}'`;
    if (readers.length === 0) {
      const names = catalog.list().flatMap(({ name, routeField }) => (routeField === undefined ? [] : [name]));
      problems.warn(at, `it has no effect: the chain has no ${filter(names)}, or has it disabled`);
    } else if (readers.every((name) => levels.some((level) => isConfigured(level, name)))) {
      problems.warn(at, `it has no effect: typed_per_filter_config configures the ${filter(readers)} instead`);
    }
  };
  routes.virtual_hosts?.forEach((host, number) => {
    const atHost = [...path, 'virtual_hosts', number];
    if (host?.cors) check([...atHost, 'cors'], [routes, host]);
    for (const { path: inner, route } of host ? hostRoutes(host) : [])
      if (route.route?.cors) check([...atHost, ...inner, 'route', 'cors'], [routes, host, route]);
  });
}

/** As in Envoy, only typed_per_filter_config can enable a filter that is disabled in its chain. */
function readsField(filter: HttpFilter, catalog: ExtensionCatalog): boolean {
  const { config_discovery: discovery, disabled, typed_config: own } = filter;
  if (disabled) return false;
  const urls = own ? [own['@type']] : (discovery?.type_urls ?? []);
  return urls.some((url) => catalog.byTypeUrl(url)?.routeField !== undefined);
}

/** Returns whether the level configures the filter. An entry that only enables the filter leaves the field in effect. */
function isConfigured(level: Level, name: string): boolean {
  const entry = level?.typed_per_filter_config?.[name];
  return entry !== undefined && routeFilterConfig(entry).config !== undefined;
}
