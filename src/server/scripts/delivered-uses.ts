// The places in resources that give configurations to modules, for the check before a resource is accepted.

import { shownName } from '../../common/text/shown.js';
import { namedScripts, type ScriptModules, scriptModules, scriptsOfRoutes } from '../../config/fields/scripts.js';
import type {
  Listener,
  RouteConfiguration,
  ScopedRouteConfiguration,
  VirtualHost,
} from '../../config/generated/api.js';
import { unpack } from '../../config/schema/any.js';
import { formatPath } from '../../config/text/path.js';
import type { RouteFilters } from '../../extensions/factories.js';
import type { ScriptUse } from '../../scripts/image.js';
import type { Resource, ResourceType } from '../../xds/resource.js';
import type { ScriptConfig } from './script-verdicts.js';

const MANAGER = 'envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager';

/** The part of the running configuration that decides which modules get the configurations of routes. */
export interface RoutedScripts {
  /** Returns the filters of all chains. */
  chains(): Iterable<RouteFilters>;
  /** Returns the delivered routes in use. */
  routes(): Iterable<RouteConfiguration>;
  /** Returns all routes in use, each with the filters of its chains. */
  routed(): Iterable<{ readonly routes: RouteConfiguration; readonly filters: Iterable<RouteFilters> }>;
  /** Returns the modules of the discovered filters with that name. */
  discovered(filter: string): Iterable<string>;
}

/**
 * Yields the uses in a resource, in groups. Those of routes are for the filters of all chains: the chains that have the routes may
 * change before they are checked.
 */
export function* usesInResource(
  type: ResourceType,
  { message }: Resource,
  routed: RoutedScripts,
): Generator<readonly ScriptConfig[], void> {
  switch (type) {
    case 'listener':
      yield namedScripts(message);
      // Routes that have arrived before must suit its filters.
      for (const modules of modulesOfChains(message as Listener)) {
        for (const routes of routed.routes()) yield* usesInRoutes(routes, modules);
      }
      break;
    case 'extension-config':
      yield namedScripts(message);
      break;
    case 'route':
      for (const modules of modulesInUse(routed)) yield* usesInRoutes(message as RouteConfiguration, modules);
      break;
    case 'scoped-route': {
      const { route_configuration: routes } = message as ScopedRouteConfiguration;
      if (routes === undefined) break;
      for (const modules of modulesInUse(routed)) yield* usesInRoutes(routes, modules);
      break;
    }
    case 'virtual-host':
      for (const modules of modulesInUse(routed)) yield scriptsOfRoutes(message as VirtualHost, modules);
  }
}

/** Yields the configurations that routes in use give to the module. */
export function* usesOfRoutes(module: string, { discovered, routed }: RoutedScripts): Generator<ScriptUse, void> {
  for (const { filters, routes } of routed()) {
    const names = new Set<string>();
    for (const { scripts } of filters) {
      for (const [filter, own] of scripts ?? []) {
        // Of several discovered modules, another one may be meant.
        if (own === undefined ? isOnly(module, discovered(filter)) : own === module) names.add(filter);
      }
    }
    if (names.size === 0) continue;
    const modules = new Map(Array.from(names, (name) => [name, module]));
    const place = `the routes '${shownName(routes.name ?? '')}'`;
    for (const { config, kind, path } of scriptsOfRoutes(routes, modules))
      yield { module, kind, config, path: `${place}: ${formatPath(path)}` };
  }
}

function isOnly(module: string, modules: Iterable<string>): boolean {
  const all = [...modules];
  return all.length > 0 && all.every((each) => each === module);
}

/** Yields the uses in routes, those of each virtual host together. */
export function* usesInRoutes(
  routes: RouteConfiguration,
  modules: ScriptModules,
): Generator<readonly ScriptConfig[], void> {
  const { virtual_hosts: hosts = [], ...rest } = routes;
  yield scriptsOfRoutes(rest, modules);
  for (const host of hosts) yield scriptsOfRoutes(host, modules);
}

function* modulesOfChains({
  default_filter_chain: byDefault,
  filter_chains: chains = [],
}: Listener): Generator<ScriptModules> {
  for (const chain of byDefault === undefined ? chains : [...chains, byDefault]) {
    for (const { typed_config: config } of chain.filters ?? []) {
      const modules = scriptModules(unpack(config, MANAGER)?.http_filters ?? []);
      if (modules.size > 0) yield modules;
    }
  }
}

/** Yields each module under the names of the filters that have it. */
function* modulesInUse({ chains, discovered }: RoutedScripts): Generator<ScriptModules> {
  const yielded = new Set<string>();
  for (const { scripts } of chains()) {
    for (const [filter, own] of scripts ?? []) {
      for (const module of own === undefined ? discovered(filter) : [own]) {
        const key = JSON.stringify([filter, module]);
        if (yielded.has(key)) continue;
        yielded.add(key);
        yield new Map([[filter, module]]);
      }
    }
  }
}
