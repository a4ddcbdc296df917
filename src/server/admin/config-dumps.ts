// The dumps of /config_dump, from the configuration that the server runs with.

import type { ConfigDump, DumpResource } from '../../admin/config-dump/config-dump.js';
import type { JsonObject } from '../../admin/json.js';
import { filterChainsOf } from '../../config/filter-chains.js';
import type { Bootstrap, HttpConnectionManager, Listener, Secret } from '../../config/generated/api.js';
import { unpack } from '../../config/schema/any.js';
import type { Server } from '../server.js';
import { clustersDump } from './clusters-dump.js';
import { any, type Dump, mapped } from './dump.js';
import { endpointsDump } from './endpoints-dump.js';
import { filterConfigsDump } from './filter-configs-dump.js';
import { listenersDump } from './listeners-dump.js';

export interface DumpedConfiguration {
  /** What the server runs with of its bootstrap, without what is secret. Its node is the whole one. */
  readonly bootstrap: Bootstrap;
  /** When it was loaded. */
  readonly loadedAt: Date;
}

const HTTP_CONNECTION_MANAGER =
  'envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager' as const;

/** In the order in which /config_dump shows them. */
export function configDumps(server: Server, config: DumpedConfiguration, includeEds: boolean): ConfigDump[] {
  const { bootstrap } = config;
  const { clusters = [], listeners = [], secrets = [] } = bootstrap.static_resources ?? {};
  const last_updated = config.loadedAt.toISOString();
  const managers = listeners.flatMap(connectionManagers);
  const dumps: Dump[] = [
    { message: 'BootstrapConfigDump', fields: { bootstrap: bootstrap as JsonObject, last_updated } },
    clustersDump(server, clusters, config.loadedAt),
    ...(server.filterConfigs.isUsed ? [filterConfigsDump(server)] : []),
    ...(includeEds ? [endpointsDump(server)] : []),
    listenersDump(server, listeners, last_updated),
    // They belong to connection managers.
    ...(managers.length > 0
      ? [{ message: 'ScopedRoutesConfigDump' }, { message: 'RoutesConfigDump', lists: routes(managers, last_updated) }]
      : []),
    { message: 'SecretsConfigDump', lists: { static_secrets: staticSecrets(secrets, last_updated) } },
  ];
  return dumps.map(complete);
}

/** Types of resources by the field that holds one. */
const TYPES = {
  route_config: 'envoy.config.route.v3.RouteConfiguration',
} as const;

function complete({ message, fields = {}, lists = {} }: Dump): ConfigDump {
  return {
    message: `envoy.admin.v3.${message}`,
    fields,
    lists: Object.entries(lists).map(([field, resources]) => ({ field, resources })),
  };
}

function resources(
  field: keyof typeof TYPES,
  configs: readonly { readonly name?: string }[],
  last_updated: string,
): Iterable<DumpResource> {
  return mapped(
    () => configs,
    (config) => ({
      name: config.name ?? '',
      message: { [field]: any(TYPES[field], config), last_updated },
    }),
  );
}

function routes(managers: readonly HttpConnectionManager[], last_updated: string): NonNullable<Dump['lists']> {
  const configs = managers.flatMap((manager) => manager.route_config ?? []);
  return { static_route_configs: resources('route_config', configs, last_updated) };
}

function staticSecrets(secrets: readonly Secret[], last_updated: string): Iterable<DumpResource> {
  return mapped(
    () => secrets,
    (secret) => {
      const { name } = secret;
      const held = any('envoy.extensions.transport_sockets.tls.v3.Secret', secret);
      return { name: name ?? '', message: { ...(name !== undefined && { name }), last_updated, secret: held } };
    },
  );
}

function connectionManagers(listener: Listener): HttpConnectionManager[] {
  return filterChainsOf(listener).flatMap(({ filters = [] }) =>
    filters.flatMap(({ typed_config }) => unpack(typed_config, HTTP_CONNECTION_MANAGER) ?? []),
  );
}
