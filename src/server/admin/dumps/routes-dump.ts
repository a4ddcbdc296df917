// The routes of connection managers (envoy.admin.v3.RoutesConfigDump, ScopedRoutesConfigDump): the inline ones and those from
// configuration sources.

import type { DumpResource } from '../../../admin/config-dump/config-dump.js';
import type { RouteConfiguration, VirtualHost } from '../../../config/generated/api.js';
import { shownPart } from '../../../config/schema/sensitive.js';
import { shown } from '../../../xds/dynamic-state.js';
import { RESOURCE_MESSAGES, type Resource } from '../../../xds/resource.js';
import type { PrimaryRouteSet } from '../../routes/primary-route-set.js';
import type { RouteProvider } from '../../routes/providers/route-provider.js';
import type { ScopedRoutesProvider } from '../../routes/scopes/scoped-routes.js';
import { any, type Dump, mapped } from './dump.js';
import { statusFields, versionFields } from './state-fields.js';

const { route: ROUTES, 'scoped-route': SCOPE } = RESOURCE_MESSAGES;

export function routesDump(routes: PrimaryRouteSet): Dump {
  const static_route_configs = mapped(
    () => routes.inline,
    ({ config, since }) => ({
      name: config.name ?? '',
      message: { route_config: any(ROUTES, shownPart(config)), last_updated: since.toISOString() },
    }),
  );
  // As in Envoy, requested routes are left out until they have been received or refused.
  const known = () => Array.from(routes.providers).filter(isKnown);
  const dynamic_route_configs = mapped(known, dynamicRoutes);
  const isDynamic = !isEmpty(routes.providers);
  return {
    message: 'RoutesConfigDump',
    lists: { static_route_configs, ...(isDynamic && { dynamic_route_configs }) },
  };
}

export function scopedRoutesDump(routes: PrimaryRouteSet): Dump {
  const all = [...routes.scoped];
  const inline = all.filter(({ config }) => config.scoped_rds === undefined);
  const dynamic = all.filter(({ config }) => config.scoped_rds !== undefined);
  return {
    message: 'ScopedRoutesConfigDump',
    lists: {
      ...(inline.length > 0 && { inline_scoped_route_configs: mapped(() => inline, inlineScopes) }),
      ...(dynamic.length > 0 && { dynamic_scoped_route_configs: mapped(() => dynamic, dynamicScopes) }),
    },
  };
}

function isKnown({ resource, state }: RouteProvider): boolean {
  return resource !== undefined || state.clientStatus !== 'REQUESTED';
}

function dynamicRoutes(provider: RouteProvider): DumpResource {
  const { name, resource, state } = provider;
  const route_config = resource && any(ROUTES, allRoutes(provider, resource));
  return { name, message: { ...versionFields(state), route_config, ...statusFields(ROUTES, state) } };
}

/** Returns a route configuration with its own and its discovered virtual hosts. */
function allRoutes({ virtualHosts }: RouteProvider, { message, sensitive }: Resource<RouteConfiguration>): object {
  const config: RouteConfiguration = shown(message, sensitive);
  const discovered = Array.from(virtualHosts, (host) => shown(host.message, host.sensitive) as VirtualHost);
  return discovered.length === 0
    ? config
    : { ...config, virtual_hosts: [...(config.virtual_hosts ?? []), ...discovered] };
}

function inlineScopes(provider: ScopedRoutesProvider): DumpResource {
  const { name = '' } = provider.config;
  const fields = { scoped_route_configs: scopesOf(provider), last_updated: provider.since.toISOString() };
  return { name, message: { name, ...fields } };
}

function dynamicScopes(provider: ScopedRoutesProvider): DumpResource {
  const { name = '' } = provider.config;
  const { state } = provider;
  const fields = { ...versionFields(state), scoped_route_configs: scopesOf(provider), ...statusFields(SCOPE, state) };
  return { name, message: { name, ...fields } };
}

function scopesOf(provider: ScopedRoutesProvider) {
  return Array.from(provider.resources(), ({ message, sensitive }) => any(SCOPE, shown(message, sensitive)));
}

function isEmpty(items: Iterable<unknown>): boolean {
  for (const _ of items) return false;
  return true;
}
