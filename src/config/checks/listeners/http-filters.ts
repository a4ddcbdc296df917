// HTTP filters and their per-route configurations: each message must be in its place.

import { suggestion } from '../../../common/text/suggest.js';
import type { Extension, ExtensionCatalog } from '../../catalog/extension.js';
import { routeFilterConfig } from '../../fields/filter-config.js';
import { hostRoutes } from '../../fields/host-routes.js';
import { innerFilters } from '../../fields/inner-filters.js';
import { isLeftOut } from '../../fields/optional-filters.js';
import type { Any, HttpConnectionManager, HttpFilter, RouteConfiguration, VirtualHost } from '../../generated/api.js';
import { unpack } from '../../schema/any.js';
import { messageNameOf } from '../../schema/message-name.js';
import type { Path } from '../../text/path.js';
import type { CheckContext } from '../check-context.js';
import { checkUpstreamFilters } from '../upstream-filters.js';
import { checkDiscoveredFilter } from './discovered-filters.js';
import { checkRouteFields } from './route-fields.js';

const ROUTER = 'envoy.extensions.filters.http.router.v3.Router';

/** Checks that a filter has its own message, not a per-route one, and that a terminal filter is not disabled. */
export function checkHttpFilters(manager: HttpConnectionManager, path: Path, context: CheckContext): void {
  const { catalog, problems } = context;
  manager.http_filters?.forEach((filter, index) => {
    if (filter?.config_discovery) {
      const isLast = index === manager.http_filters!.length - 1;
      checkDiscoveredFilter(filter, isLast, [...path, 'http_filters', index], context);
    }
    checkInner(filter?.typed_config, [...path, 'http_filters', index, 'typed_config'], context);
    const found = filter?.typed_config && httpFilter(catalog, filter.typed_config);
    if (filter && index === manager.http_filters!.length - 1 && isMissing(filter, catalog)) {
      const why = 'the last filter is left out, because it is optional: the chain must end with a terminal filter';
      problems.error([...path, 'http_filters', index], why);
    }
    if (!found) return;
    const listAt = [...path, 'http_filters', index, 'typed_config', 'upstream_http_filters'];
    const { upstream_http_filters: upstream } = unpack(filter.typed_config, ROUTER) ?? {};
    checkUpstreamFilters(upstream, listAt, catalog, problems);
    const at = [...path, 'http_filters', index];
    const own = messageNameOf(found.typeUrls[0]!);
    if (messageNameOf(filter.typed_config!['@type']) !== own) {
      problems.error(
        [...at, 'typed_config', '@type'],
        `it is the per-route configuration of '${found.name}'; the filter needs ${own}`,
      );
    }
    if (found.isTerminal && filter.disabled) {
      problems.error([...at, 'disabled'], `'${found.name}' ends the chain and cannot be disabled`);
    }
  });
}

/** Checks the filters inside a filter with this configuration. */
function checkInner(config: Any | undefined, path: Path, context: CheckContext): void {
  const { catalog, problems } = context;
  if (config === undefined || problems.isDamaged(path, problems.errorCount)) return;
  for (const { filter, path: inner } of innerFilters(config)) {
    const at = [...path, ...inner];
    if (filter.config_discovery) checkDiscoveredFilter(filter, false, at, context);
    const own = filter.typed_config;
    const found = own && httpFilter(catalog, own);
    if (!found) continue;
    const message = messageNameOf(found.typeUrls[0]!);
    const isOwn = messageNameOf(own['@type']) === message;
    const typeAt = [...at, 'typed_config', '@type'];
    if (found.isTerminal) problems.error(typeAt, `'${found.name}' ends a chain, and cannot run inside a filter`);
    else if (!isOwn)
      problems.error(typeAt, `it is the per-route configuration of '${found.name}'; the filter needs ${message}`);
    else checkInner(own, [...at, 'typed_config'], context);
  }
}

function isMissing(filter: HttpFilter, catalog: ExtensionCatalog): boolean {
  return isLeftOut(filter, (config) => httpFilter(catalog, config) !== undefined);
}

/**
 * Checks per-route filter configurations. Configurations that no filter reads only cause a warning.
 * @param chain the filters of the connection manager; undefined if unknown
 */
export function checkRouteFilters(
  routes: RouteConfiguration,
  path: Path,
  context: CheckContext,
  chain: readonly HttpFilter[] | undefined,
): void {
  const check = filterConfigsCheck(chain, context);
  check(routes.typed_per_filter_config, path);
  routes.virtual_hosts?.forEach((host, number) => {
    if (host) checkHostFilters(host, [...path, 'virtual_hosts', number], check);
  });
  if (chain) checkRouteFields(routes, path, context, chain);
}

/** Like checkRouteFilters(), for a single virtual host. */
export function checkVirtualHostFilters(host: VirtualHost, path: Path, context: CheckContext): void {
  checkHostFilters(host, path, filterConfigsCheck(undefined, context));
}

type FilterConfigsCheck = (configs: { readonly [name: string]: Any } | undefined, at: Path) => void;

function filterConfigsCheck(chain: readonly HttpFilter[] | undefined, context: CheckContext): FilterConfigsCheck {
  const filters = chain && new Map<string, Extension | undefined>();
  for (const filter of chain ?? []) {
    const own = filter?.typed_config;
    // The kind of a filter with discovered configuration is not known yet.
    if (filter) filters!.set(filter.name ?? '', own && httpFilter(context.catalog, own));
    for (const upstream of unpack(own, ROUTER)?.upstream_http_filters ?? []) {
      const { name = '', typed_config: its } = upstream ?? {};
      if (its && !filters!.has(name)) filters!.set(name, httpFilter(context.catalog, its));
    }
  }
  return (configs, at) => {
    for (const [name, config] of Object.entries(configs ?? {})) {
      if (config) checkRouteFilter(name, config, filters, [...at, 'typed_per_filter_config', name], context);
    }
  };
}

function checkHostFilters(host: VirtualHost, path: Path, check: FilterConfigsCheck): void {
  check(host.typed_per_filter_config, path);
  for (const { path: inner, route } of hostRoutes(host)) {
    const atRoute = [...path, ...inner];
    check(route?.typed_per_filter_config, atRoute);
    route?.route?.weighted_clusters?.clusters?.forEach((cluster, place) => {
      check(cluster?.typed_per_filter_config, [...atRoute, 'route', 'weighted_clusters', 'clusters', place]);
    });
  }
}

function checkRouteFilter(
  name: string,
  entry: Any,
  filters: ReadonlyMap<string, Extension | undefined> | undefined,
  path: Path,
  { catalog, problems }: CheckContext,
): void {
  const { config, isDisabled, path: inner } = routeFilterConfig(entry);
  if (isDisabled && filters?.get(name)?.isTerminal) {
    problems.error([...path, 'disabled'], `'${name}' ends the chain and cannot be disabled`);
  }
  const given = config && httpFilter(catalog, config);
  if (config && !given) return;
  const wrong = given && misplaced(name, given, config!, filters?.get(name));
  if (wrong !== undefined) problems.error([...path, ...inner, '@type'], wrong);
  // The filter may be one of a cluster.
  else if (filters?.has(name) === false && given?.runsUpstream !== true) {
    const similar = given && [...filters].find(([, kind]) => kind === given)?.[0];
    const hint = similar === undefined ? '' : suggestion(similar);
    problems.warn(path, `it has no effect: no filter of the chain has the name '${name}'${hint}`);
  }
}

/**
 * Returns why `config`, a message of the extension `given`, cannot be the per-route configuration of the filter with that name.
 * `filter`: the extension of that filter, if known.
 */
function misplaced(name: string, given: Extension, config: Any, filter: Extension | undefined): string | undefined {
  if (filter && filter !== given) {
    return `the filter '${name}' is '${filter.name}', and this message belongs to '${given.name}'`;
  }
  const [own, ...ofRoutes] = given.typeUrls.map(messageNameOf);
  if (messageNameOf(config['@type']) !== own || given.takesOwnMessageFromRoutes) return undefined;
  const remedy =
    ofRoutes.length === 0
      ? 'it has no per-route configuration'
      : `its per-route configuration is ${ofRoutes.join(' or ')}`;
  return `it configures the filter '${given.name}' itself; ${remedy}`;
}

function httpFilter(catalog: ExtensionCatalog, config: Any): Extension | undefined {
  const found = catalog.byTypeUrl(config['@type']);
  return found?.category === 'envoy.filters.http' ? found : undefined;
}
