// Where a connection manager has its routes from: written down, delivered, or chosen by the scope of a request.

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
import { checkUnique } from '../names/unique-names.js';
import { checkRoutes } from '../routes.js';
import type { Surroundings } from '../surroundings.js';
import { checkRouteFilters } from './http-filters.js';

export function checkManagerRoutes(manager: HttpConnectionManager, path: Path, around: Surroundings): void {
  const { http_filters: chain = [], rds, route_config: inline, scoped_routes: scoped } = manager;
  if (inline) checkInline(inline, [...path, 'route_config'], around, chain);
  if (rds) checkDelivered(rds, [...path, 'rds'], around.problems);
  if (scoped) checkScoped(scoped, [...path, 'scoped_routes'], around, chain);
}

function checkDelivered(rds: Rds, path: Path, problems: Problems): void {
  if (!rds.route_config_name && !problems.has([...path, 'route_config_name'])) {
    problems.error(path, 'it needs route_config_name: the routes that the source is asked for');
  }
  if (rds.config_source || problems.has([...path, 'config_source'])) return;
  // The name of an authority would say where the routes come from.
  const isOfAuthority = rds.route_config_name?.startsWith('xdstp:');
  if (isOfAuthority) problems.error([...path, 'route_config_name'], 'xdstp names are not implemented');
  else problems.error(path, 'it needs config_source: where the routes come from');
}

/** A scope by itself. `chain`: the filters of its connection manager; undefined where they are not known. */
export function checkScope(
  scope: ScopedRouteConfiguration,
  path: Path,
  around: Surroundings,
  chain: readonly HttpFilter[] | undefined,
): void {
  const { route_configuration: inline, route_configuration_name: name = '' } = scope;
  if (inline) checkInline(inline, [...path, 'route_configuration'], around, chain);
  if (inline && name !== '') {
    around.problems.error([...path, 'route_configuration_name'], 'it excludes route_configuration, which is set');
  } else if (!inline && name === '' && !around.problems.has([...path, 'route_configuration'])) {
    around.problems.error(path, 'a scope needs route_configuration_name or route_configuration');
  }
}

function checkScoped(scoped: ScopedRoutes, path: Path, around: Surroundings, chain: readonly HttpFilter[]): void {
  const { rds_config_source: source, scoped_rds: delivered, scoped_route_configurations_list: list } = scoped;
  const at = [...path, 'scoped_route_configurations_list', 'scoped_route_configurations'];
  const scopes = list?.scoped_route_configurations ?? [];
  scopes.forEach((scope, index) => {
    if (!scope) return;
    checkScope(scope, [...at, index], around, chain);
    if (!scope.route_configuration_name || source) return;
    const problem = 'the routes of that name have no source: scoped_routes needs rds_config_source';
    around.problems.error([...at, index, 'route_configuration_name'], problem);
  });
  const names = scopes.map((scope) => scope?.name);
  checkUnique(names, (index) => [...at, index, 'name'], 'scope', around.problems);
  if (delivered && !delivered.scoped_rds_config_source) {
    const place = [...path, 'scoped_rds'];
    if (!around.problems.has([...place, 'scoped_rds_config_source'])) {
      around.problems.error(place, 'it needs scoped_rds_config_source');
    }
  }
}

function checkInline(
  routes: RouteConfiguration,
  path: Path,
  around: Surroundings,
  chain: readonly HttpFilter[] | undefined,
): void {
  checkRouteFilters(routes, path, around, chain);
  checkRoutes(routes, path, around, true);
  if (routes.vhds) {
    around.problems.error([...path, 'vhds'], 'virtual hosts join only routes that a source delivers: rds', 'key');
  }
}
