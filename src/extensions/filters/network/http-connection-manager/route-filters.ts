// How routes configure the HTTP filters of a chain: typed_per_filter_config, and older fields of routes.

import { callExtension } from '../../../../common/errors/defects.js';
import { BatonError } from '../../../../common/errors/errors.js';
import { scriptModules } from '../../../../config/fields/scripts.js';
import type { Any, HttpFilter } from '../../../../config/generated/api.js';
import type { RouteField, RouteFilter } from '../../../../http/routing/tables/route-table.js';
import type { ExtensionFinder, RouteFilters } from '../../../factories.js';
import { upstreamRouteConfigs } from '../../http/router/upstream-filters/route-configs.js';
import type { DiscoveredRouteConfig } from './discovered-filter.js';

/** Returns the filters of a chain in order; the terminal one is the last. */
export function routeFilters(filters: readonly HttpFilter[] = [], extensions: ExtensionFinder): RouteFilters {
  const list = filters.map((filter) => routeFilter(filter, extensions));
  const kinds = filters.map(({ name, typed_config: own }, index) => [name, own?.['@type'], list[index]!.routeField]);
  const scripts = scriptsOf(filters);
  return { list, signature: JSON.stringify(kinds), ...(scripts.size > 0 && { scripts }) };
}

function scriptsOf(filters: readonly HttpFilter[]): ReadonlyMap<string, string | undefined> {
  const discovered = filters.flatMap(({ name = '', typed_config: own }) => (own === undefined ? [name] : []));
  return new Map<string, string | undefined>([
    ...scriptModules(filters),
    ...discovered.map((name) => [name, undefined] as const),
  ]);
}

/** A filter without typed_config, whose configuration is discovered, may be of any kind. */
function routeFilter(filter: HttpFilter, extensions: ExtensionFinder): RouteFilter {
  const { name = '', typed_config: own } = filter;
  const isTerminal = own !== undefined && extensions.httpFilter(own).isTerminal === true;
  return {
    name,
    isTerminal,
    ...(isTerminal && { compileUpstream: upstreamRouteConfigs(extensions) }),
    routeField: routeField(filter, extensions),
    compileRouteConfig(configs, where, runtime, place) {
      for (const config of configs) checkKind(name, config, own ?? configs[0]!, extensions, where);
      const extension = extensions.httpFilter(configs[0]!);
      if (extension.isTerminal) return undefined;
      const config = callExtension('compileRouteConfig', extension.name, () =>
        extension.compileRouteConfig?.(configs, where, runtime, place),
      );
      return own === undefined ? ({ extension, config } satisfies DiscoveredRouteConfig) : config;
    },
  };
}

/** Returns the older field. As in Envoy, only typed_per_filter_config enables a filter that is disabled in its chain. */
function routeField(
  { config_discovery: discovery, disabled, typed_config: own }: HttpFilter,
  extensions: ExtensionFinder,
): RouteField | undefined {
  if (disabled) return undefined;
  for (const url of own ? [own['@type']] : (discovery?.type_urls ?? [])) {
    const { routeField: name, typeUrls } = extensions.httpFilter({ '@type': url });
    if (name !== undefined) return { name, type: typeUrls[1]! };
  }
  return undefined;
}

function checkKind(name: string, config: Any, like: Any, extensions: ExtensionFinder, where: string): void {
  const filter = extensions.httpFilter(like);
  if (extensions.httpFilter(config) === filter) return;
  const type = config['@type'];
  throw new BatonError('CONFIG_INVALID', `the filter '${name}' is '${filter.name}' and does not accept ${type}`, {
    where,
  });
}
