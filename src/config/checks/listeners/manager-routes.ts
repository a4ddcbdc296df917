// The routes of a connection manager: inline, discovered, or selected by scope.

import type {
  HttpConnectionManager,
  HttpFilter,
  Rds,
  RouteConfiguration,
  ScopedRouteConfiguration,
  ScopedRoutes,
} from '../../generated/api.js';
import type { Path } from '../../text/path.js';
import type { Problems } from '../../text/problems.js';
import type { CheckContext } from '../check-context.js';
import { checkUnique } from '../names/unique-names.js';
import { checkRoutes } from '../routes.js';
import { checkRouteFilters } from './http-filters.js';

export function checkManagerRoutes(manager: HttpConnectionManager, path: Path, context: CheckContext): void {
  const { http_filters: chain = [], rds, route_config: inline, scoped_routes: scoped } = manager;
  if (inline) checkInline(inline, [...path, 'route_config'], context, chain);
  if (rds) checkDelivered(rds, [...path, 'rds'], context.problems);
  if (scoped) checkScoped(scoped, [...path, 'scoped_routes'], context, chain);
}

function checkDelivered(rds: Rds, path: Path, problems: Problems): void {
  if (!rds.route_config_name && !problems.has([...path, 'route_config_name'])) {
    problems.error(path, 'it needs route_config_name: the name of the routes to request');
  }
  if (rds.config_source || problems.has([...path, 'config_source'])) return;
  // The authority of an xdstp name would determine the source.
  const isOfAuthority = rds.route_config_name?.startsWith('xdstp:');
  if (isOfAuthority) problems.error([...path, 'route_config_name'], 'xdstp names are not implemented');
  else problems.error(path, 'it needs config_source: where the routes come from');
}

/** Checks a single scope. `chain`: the filters of its connection manager; undefined if unknown. */
export function checkScope(
  scope: ScopedRouteConfiguration,
  path: Path,
  context: CheckContext,
  chain: readonly HttpFilter[] | undefined,
): void {
  const { route_configuration: inline, route_configuration_name: name = '' } = scope;
  if (inline) checkInline(inline, [...path, 'route_configuration'], context, chain);
  if (inline && name !== '') {
    context.problems.error([...path, 'route_configuration_name'], 'it cannot be combined with route_configuration');
  } else if (!inline && name === '' && !context.problems.has([...path, 'route_configuration'])) {
    context.problems.error(path, 'a scope needs route_configuration_name or route_configuration');
  }
}

function checkScoped(scoped: ScopedRoutes, path: Path, context: CheckContext, chain: readonly HttpFilter[]): void {
  const { rds_config_source: source, scoped_rds: delivered, scoped_route_configurations_list: list } = scoped;
  const at = [...path, 'scoped_route_configurations_list', 'scoped_route_configurations'];
  const scopes = list?.scoped_route_configurations ?? [];
  scopes.forEach((scope, index) => {
    if (!scope) return;
    checkScope(scope, [...at, index], context, chain);
    if (!scope.route_configuration_name || source) return;
    const problem = 'the routes of that name have no source: scoped_routes needs rds_config_source';
    context.problems.error([...at, index, 'route_configuration_name'], problem);
  });
  const names = scopes.map((scope) => scope?.name);
  checkUnique(names, (index) => [...at, index, 'name'], 'scope', context.problems);
  if (delivered && !delivered.scoped_rds_config_source) {
    const place = [...path, 'scoped_rds'];
    if (!context.problems.has([...place, 'scoped_rds_config_source'])) {
      context.problems.error(place, 'it needs scoped_rds_config_source');
    }
  }
}

function checkInline(
  routes: RouteConfiguration,
  path: Path,
  context: CheckContext,
  chain: readonly HttpFilter[] | undefined,
): void {
  checkRouteFilters(routes, path, context, chain);
  checkRoutes(routes, path, context, true);
  if (routes.vhds) {
    context.problems.error(
      [...path, 'vhds'],
      'virtual hosts can be discovered only for routes from a source: use rds',
      'key',
    );
  }
}
