// The route configurations that a bootstrap has: those in its listeners, and those in files that these name.

import { runSync } from '../../common/time/next-turn.js';
import { fileOfSource } from '../../config/fields/file-of-source.js';
import { ownManager } from '../../config/fields/own-routes.js';
import type { Bootstrap, HttpConnectionManager, Listener, RouteConfiguration } from '../../config/generated/api.js';
import { EXTENSIONS } from '../../extensions/index.js';
import { MessageReader } from '../../xds/reading/message-reader.js';
import { unpack as unpackParcel } from '../../xds/reading/parcel.js';
import { type DynamicOptions, readingSettings } from '../../xds/reading/settings.js';
import { RESOURCE_MESSAGES } from '../../xds/resource.js';

/** The routes of one connection manager. */
export interface ListenerRoutes {
  readonly listener: string;
  /** The address of the listener, with its port. */
  readonly local: string;
  readonly manager: HttpConnectionManager;
  readonly routes: RouteConfiguration;
}

/** Unusable files are left out: validation has reported them. */
export function routeConfigurations(bootstrap: Bootstrap, options: DynamicOptions): ListenerRoutes[] {
  const reader = new MessageReader(readingSettings(bootstrap, options), EXTENSIONS);
  const source = bootstrap.dynamic_resources?.lds_config;
  const path = source && fileOfSource(source)?.path;
  const discovered = path === undefined ? [] : (messagesIn(reader, RESOURCE_MESSAGES.listener, path) as Listener[]);
  return [...(bootstrap.static_resources?.listeners ?? []), ...discovered].flatMap((listener) =>
    managersOf(listener).flatMap((manager) =>
      routesOf(manager, reader).map((routes) => ({
        listener: listener.name ?? '',
        local: addressOf(listener),
        manager,
        routes,
      })),
    ),
  );
}

function managersOf({ default_filter_chain, filter_chains = [] }: Listener): HttpConnectionManager[] {
  const chains = default_filter_chain === undefined ? filter_chains : [...filter_chains, default_filter_chain];
  return chains.flatMap(({ filters = [] }) => filters.flatMap(({ typed_config }) => ownManager(typed_config) ?? []));
}

function addressOf({ address }: Listener): string {
  const { address: host = '', port_value: port = 0 } = address?.socket_address ?? {};
  return `${host}:${port}`;
}

function routesOf(manager: HttpConnectionManager, reader: MessageReader): RouteConfiguration[] {
  if (manager.route_config !== undefined) return [manager.route_config];
  const scopes = manager.scoped_routes?.scoped_route_configurations_list?.scoped_route_configurations ?? [];
  if (scopes.length > 0) return scopes.flatMap((scope) => scope.route_configuration ?? []);
  const { config_source: source, route_config_name: name = '' } = manager.rds ?? {};
  const path = source && fileOfSource(source)?.path;
  if (path === undefined) return [];
  const found = messagesIn(reader, RESOURCE_MESSAGES.route, path) as RouteConfiguration[];
  return found.filter((routes) => (routes.name ?? '') === name);
}

function messagesIn(reader: MessageReader, message: string, path: string): unknown[] {
  const result = reader.answer({ kind: 'file', message, path });
  if (!('items' in result)) return [];
  return result.items.flatMap((item) => (item.kind === 'usable' ? [runSync(unpackParcel(item.message))] : []));
}
