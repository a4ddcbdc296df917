// The route configuration that a connection manager uses for a request: its own, a discovered one, or that of the request's scope.

import type { HttpConnectionManager, Rds, RouteConfiguration, ScopedRoutes } from '../../../config/generated/api.js';
import type { HeaderBlock } from '../../../http/headers/header-block.js';
import { keyOfRds, keyOfScopedRoutes } from '../../../http/routing/tables/route-keys.js';
import { ScopeKeyBuilder, scopeKey } from '../../../http/routing/tables/scope-key.js';
import type { RunningConfiguration } from '../../running/running-configuration.js';

/** Undefined while the routes have not arrived, and if no scope has the key of the request. */
export function routesOf(
  running: RunningConfiguration,
  { rds, route_config: inline, scoped_routes: scoped }: HttpConnectionManager,
  head: HeaderBlock,
): RouteConfiguration | undefined {
  if (rds !== undefined) return discovered(running, rds);
  return scoped === undefined ? inline : ofScope(running, scoped, head);
}

function discovered({ routes }: RunningConfiguration, rds: Rds): RouteConfiguration | undefined {
  const key = keyOfRds(rds);
  for (const provider of routes.providers) if (provider.key === key) return provider.config;
  return undefined;
}

function ofScope(
  running: RunningConfiguration,
  scoped: ScopedRoutes,
  head: HeaderBlock,
): RouteConfiguration | undefined {
  const key = new ScopeKeyBuilder(scoped.scope_key_builder ?? {}).keyOf(head);
  const source = keyOfScopedRoutes(scoped);
  for (const provider of running.routes.scoped) {
    if (provider.key !== source) continue;
    for (const { message } of provider.resources()) {
      const fragments = (message.key?.fragments ?? []).map(({ string_key = '' }) => string_key);
      if (scopeKey(fragments) !== key) continue;
      if (message.route_configuration !== undefined) return message.route_configuration;
      const { rds_config_source: config_source } = scoped;
      return discovered(running, {
        config_source: config_source!,
        route_config_name: message.route_configuration_name ?? '',
      });
    }
  }
  return undefined;
}
