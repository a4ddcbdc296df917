// HTTP filters and what routes say to them: each message where it belongs.

import { didYouMean } from '../../common/suggest.js';
import type { Extension, ExtensionCatalog } from '../extension.js';
import type { Any, HttpConnectionManager } from '../generated/api.js';
import { messageNameOf } from '../schema/decode.js';
import type { Path } from '../text/path.js';
import { checkDiscoveredFilter } from './discovered-filters.js';
import type { Surroundings } from './surroundings.js';

/** A filter has its own message, not one for routes, and one that ends the chain is not disabled. */
export function checkHttpFilters(manager: HttpConnectionManager, path: Path, around: Surroundings): void {
  const { catalog, problems } = around;
  manager.http_filters?.forEach((filter, index) => {
    if (filter?.config_discovery) {
      const isLast = index === manager.http_filters!.length - 1;
      checkDiscoveredFilter(filter, isLast, [...path, 'http_filters', index], around);
    }
    const found = filter?.typed_config && httpFilter(catalog, filter.typed_config);
    if (!found) return;
    const at = [...path, 'http_filters', index];
    const own = messageNameOf(found.typeUrls[0]!);
    if (messageNameOf(filter.typed_config!['@type']) !== own) {
      problems.error(
        [...at, 'typed_config', '@type'],
        `it is what routes say to '${found.name}'; the filter needs ${own}`,
      );
    }
    if (found.isTerminal && filter.disabled) {
      problems.error([...at, 'disabled'], `'${found.name}' ends the chain and cannot be disabled`);
    }
  });
}

/** What routes say to a filter is of its kind; that a filter of the name is missing is only worth a warning. */
export function checkRouteFilters(manager: HttpConnectionManager, path: Path, around: Surroundings): void {
  const filters = new Map<string, Extension | undefined>();
  for (const filter of manager.http_filters ?? []) {
    if (filter?.typed_config) filters.set(filter.name ?? '', httpFilter(around.catalog, filter.typed_config));
  }
  const check = (configs: { readonly [name: string]: Any } | undefined, at: Path): void => {
    for (const [name, config] of Object.entries(configs ?? {})) {
      if (config) checkRouteFilter(name, config, filters, [...at, 'typed_per_filter_config', name], around);
    }
  };
  const routes = manager.route_config;
  const base = [...path, 'route_config'];
  check(routes?.typed_per_filter_config, base);
  routes?.virtual_hosts?.forEach((host, number) => {
    const atHost = [...base, 'virtual_hosts', number];
    check(host?.typed_per_filter_config, atHost);
    host?.routes?.forEach((route, index) => {
      const atRoute = [...atHost, 'routes', index];
      check(route?.typed_per_filter_config, atRoute);
      route?.route?.weighted_clusters?.clusters?.forEach((cluster, place) => {
        check(cluster?.typed_per_filter_config, [...atRoute, 'route', 'weighted_clusters', 'clusters', place]);
      });
    });
  });
}

function checkRouteFilter(
  name: string,
  config: Any,
  filters: ReadonlyMap<string, Extension | undefined>,
  path: Path,
  { catalog, problems }: Surroundings,
): void {
  const given = httpFilter(catalog, config);
  if (!given) return;
  const url = messageNameOf(config['@type']);
  const [own, ...ofRoutes] = given.typeUrls.map(messageNameOf);
  const filter = filters.get(name);
  if (filter && filter !== given) {
    problems.error(
      [...path, '@type'],
      `the filter '${name}' is '${filter.name}', and this message is of '${given.name}'`,
    );
  } else if (url === own) {
    const remedy = ofRoutes.length === 0 ? 'it takes nothing from routes' : `routes give it ${ofRoutes.join(' or ')}`;
    problems.error([...path, '@type'], `it configures the filter '${given.name}' itself; ${remedy}`);
  } else if (!filters.has(name)) {
    problems.warn(
      path,
      `no filter of the chain has the name '${name}'${didYouMean(name, filters.keys())}; it has no effect`,
    );
  }
}

function httpFilter(catalog: ExtensionCatalog, config: Any): Extension | undefined {
  const found = catalog.byTypeUrl(config['@type']);
  return found?.category === 'envoy.filters.http' ? found : undefined;
}
