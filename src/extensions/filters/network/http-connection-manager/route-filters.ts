// What routes can say to the HTTP filters of a chain: typed_per_filter_config.

import { ofExtension } from '../../../../common/errors/defects.js';
import { BatonError } from '../../../../common/errors/errors.js';
import type { Any, HttpFilter } from '../../../../config/generated/api.js';
import type { RouteFilter } from '../../../../http/routing/tables/route-table.js';
import type { ExtensionFinder, RouteFilters } from '../../../factories.js';
import type { DiscoveredRouteConfig } from './discovered-filter.js';

/** Those of the chain that do not end it, in its order. */
export function routeFilters(configs: readonly HttpFilter[] = [], extensions: ExtensionFinder): RouteFilters {
  const filters = configs.filter(({ typed_config: own }) => !own || !extensions.httpFilter(own).isTerminal);
  return {
    list: filters.map(({ name, typed_config: own }) => routeFilter(name ?? '', own, extensions)),
    signature: JSON.stringify(filters.map(({ name, typed_config: own }) => [name, own?.['@type']])),
  };
}

/** `own` is the configuration of the filter itself; undefined: it is not known yet. */
function routeFilter(name: string, own: Any | undefined, extensions: ExtensionFinder): RouteFilter {
  return {
    name,
    compileRouteConfig(configs, where, runtime) {
      for (const config of configs) checkKind(name, config, own ?? configs[0]!, extensions, where);
      const extension = extensions.httpFilter(configs[0]!);
      if (extension.isTerminal) return undefined;
      const config = ofExtension('compileRouteConfig', extension.name, () =>
        extension.compileRouteConfig?.(configs, where, runtime),
      );
      return own === undefined ? ({ extension, config } satisfies DiscoveredRouteConfig) : config;
    },
  };
}

function checkKind(name: string, config: Any, like: Any, extensions: ExtensionFinder, where: string): void {
  const filter = extensions.httpFilter(like);
  if (extensions.httpFilter(config) === filter) return;
  const type = config['@type'];
  throw new BatonError('CONFIG_INVALID', `the filter '${name}' is '${filter.name}', and takes no ${type}`, { where });
}
