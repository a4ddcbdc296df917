// envoy.filters.network.redis_proxy: distributes the commands of Redis clients to the hosts of clusters.

import type {
  RedisExternalAuthProvider,
  RedisProxy,
  RedisProxy_PrefixRoutes_Route,
} from '../../../../config/generated/api.js';
import {
  byValue,
  checkGrpcService,
  type DownstreamConnection,
  durationMs,
  HostStats,
  type ImplementedTable,
  obeyed,
  ReadFrom,
  type Report,
  readDataSource,
  refused,
  reportMistakes,
  type TerminalNetworkFilter,
  type TerminalNetworkFilterExtension,
  type WorkerContext,
} from '../../../sdk.js';
import { ClientConnection } from './client-connection.js';
import { ClientMemory } from './client-memory.js';
import { CommandKind, commandKinds, disturbsConnections, isCounted } from './commands.js';
import { ClientCredentials } from './credentials.js';
import { ExternalAuth } from './external-auth.js';
import { Faults } from './faults.js';
import type { RedisProxyContext } from './proxy-context.js';
import { Routes } from './routes.js';
import { CommandStats, CommandStatsInMicros, type ProxyStats, RedisStats, SplitterStats } from './stats.js';
import type { HostClientSettings } from './upstream/host-client.js';
import { HostClients } from './upstream/host-clients.js';

const PACKAGE = 'envoy.extensions.filters.network.redis_proxy.v3';
const MESSAGE = `${PACKAGE}.RedisProxy`;
const FLUSH_MS = 3;
const ADDRESSES =
  'redirections are followed to addresses, not to names: set cluster-preferred-endpoint-type of the nodes to ip';
const MAX_UNKNOWN_HOSTS = 100;

const IMPLEMENTED: ImplementedTable = {
  [MESSAGE]: {
    ...obeyed(
      'stat_prefix',
      'settings',
      'latency_in_micros',
      'prefix_routes',
      'downstream_auth_password',
      'downstream_auth_passwords',
      'downstream_auth_username',
      'faults',
      'custom_commands',
    ),
    protocol_version: byValue({ RESP2: true, RESP3: true }),
    external_auth_provider: true,
  },
  [`${PACKAGE}.RedisExternalAuthProvider`]: obeyed('grpc_service', 'enable_auth_expiration'),
  [`${MESSAGE}.ConnPoolSettings`]: {
    ...obeyed(
      'op_timeout',
      'enable_hashtagging',
      'enable_redirection',
      'max_buffer_size_before_flush',
      'buffer_flush_timeout',
      'enable_command_stats',
    ),
    read_policy: byValue({
      MASTER: true,
      PREFER_MASTER: true,
      REPLICA: true,
      PREFER_REPLICA: true,
      ANY: true,
      // The zones of Redis hosts are not known.
      LOCAL_ZONE_AFFINITY: false,
      LOCAL_ZONE_AFFINITY_REPLICAS_AND_PRIMARY: false,
    }),
    dns_cache_config: refused(ADDRESSES),
    max_upstream_unknown_connections: true,
    connection_rate_limit: refused('there is one connection to each host and worker: leave it out'),
  },
  [`${MESSAGE}.PrefixRoutes`]: obeyed('routes', 'case_insensitive', 'catch_all_route'),
  [`${MESSAGE}.PrefixRoutes.Route`]: {
    ...obeyed('prefix', 'remove_prefix', 'cluster', 'request_mirror_policy', 'read_command_policy'),
    key_formatter: refused('keys can lose their prefix: use remove_prefix'),
  },
  [`${MESSAGE}.PrefixRoutes.Route.RequestMirrorPolicy`]: obeyed('cluster', 'runtime_fraction', 'exclude_read_commands'),
  [`${MESSAGE}.PrefixRoutes.Route.ReadCommandPolicy`]: obeyed('cluster'),
  [`${MESSAGE}.RedisFault`]: {
    ...obeyed('fault_enabled', 'delay', 'commands'),
    fault_type: byValue({ DELAY: true, ERROR: true }),
  },
};

export const redisProxy: TerminalNetworkFilterExtension<RedisProxy> = {
  category: 'envoy.filters.network',
  name: 'envoy.filters.network.redis_proxy',
  typeUrls: [`type.googleapis.com/${MESSAGE}`],
  isTerminal: true,
  implemented: IMPLEMENTED,
  validate,
  *clusters(config) {
    const { external_auth_provider: provider } = config;
    yield [
      'external_auth_provider.grpc_service.envoy_grpc.cluster_name',
      provider?.grpc_service?.envoy_grpc?.cluster_name,
    ];
    for (const [path, route] of routesOf(config)) {
      yield [`${path}.cluster`, route.cluster];
      yield [`${path}.read_command_policy.cluster`, route.read_command_policy?.cluster];
      for (const [index, mirror] of (route.request_mirror_policy ?? []).entries()) {
        yield [`${path}.request_mirror_policy[${index}].cluster`, mirror.cluster];
      }
    }
  },
  scopes: (config) => [
    { prefix: prefixOf(config), layout: RedisStats },
    { prefix: `${prefixOf(config)}splitter.`, layout: SplitterStats },
    { prefix: unknownPrefix(config), layout: HostStats },
    ...countedCommands(config).map((name) => ({ prefix: commandPrefix(config, name), layout: commandLayout(config) })),
  ],
  createOnWorker: (config, _chain, context) => new RedisProxyFilter(config, context),
};

class RedisProxyFilter implements TerminalNetworkFilter {
  readonly #context: RedisProxyContext;

  constructor(config: RedisProxy, context: WorkerContext) {
    const { settings = {} } = config;
    const routes = new Routes(config.prefix_routes ?? {}, context);
    const { clock, clusters, memory, random, wheel } = context;
    const hosts = new HostClients(
      wheel,
      hostSettings(config),
      settings.enable_hashtagging ?? false,
      context.scope(unknownPrefix(config), HostStats),
      (name) => clusters.find(name)?.current,
    );
    const faults = config.faults ?? [];
    this.#context = {
      memory,
      clientMemory: new ClientMemory(memory),
      clock,
      wheel,
      random,
      kinds: commandKinds(config.custom_commands ?? []),
      routes,
      hosts,
      credentials: new ClientCredentials(config),
      externalAuth: config.external_auth_provider && new ExternalAuth(config.external_auth_provider, context),
      faults: faults.length === 0 ? undefined : new Faults(faults, context.runtime),
      stats: statsOf(config, context),
      countsMicros: config.latency_in_micros ?? false,
      usesResp3: config.protocol_version === 'RESP3',
      followsRedirections: settings.enable_redirection ?? false,
    };
  }

  accept(downstream: DownstreamConnection): ClientConnection {
    return new ClientConnection(this.#context, downstream);
  }

  close(): void {
    this.#context.hosts.close();
    this.#context.externalAuth?.close();
  }
}

const READ_FROM: Readonly<Record<string, ReadFrom>> = {
  MASTER: ReadFrom.Primary,
  PREFER_MASTER: ReadFrom.PreferPrimary,
  REPLICA: ReadFrom.Replica,
  PREFER_REPLICA: ReadFrom.PreferReplica,
  ANY: ReadFrom.Any,
};

function hostSettings({ protocol_version: protocol, settings = {} }: RedisProxy): HostClientSettings {
  return {
    usesResp3: protocol === 'RESP3',
    timeoutMs: durationMs(settings.op_timeout, 0),
    flushBytes: settings.max_buffer_size_before_flush ?? 0,
    flushMs: durationMs(settings.buffer_flush_timeout, FLUSH_MS),
    readFrom: READ_FROM[settings.read_policy ?? 'MASTER'] ?? ReadFrom.Primary,
    countsCommands: settings.enable_command_stats ?? false,
    maxUnknownHosts: settings.max_upstream_unknown_connections ?? MAX_UNKNOWN_HOSTS,
  };
}

function statsOf(config: RedisProxy, context: WorkerContext): ProxyStats {
  const layout = commandLayout(config);
  return {
    proxy: context.scope(prefixOf(config), RedisStats),
    splitter: context.scope(`${prefixOf(config)}splitter.`, SplitterStats),
    commands: new Map(
      countedCommands(config).map((name) => [name, context.scope(commandPrefix(config, name), layout)] as const),
    ),
  };
}

function prefixOf(config: RedisProxy): string {
  return `redis.${config.stat_prefix}.`;
}

function unknownPrefix(config: RedisProxy): string {
  return `${prefixOf(config)}unknown_hosts.`;
}

function commandPrefix(config: RedisProxy, name: string): string {
  return `${prefixOf(config)}command.${name}.`;
}

function commandLayout({ latency_in_micros: inMicros }: RedisProxy): typeof CommandStats {
  return inMicros ? (CommandStatsInMicros as unknown as typeof CommandStats) : CommandStats;
}

function countedCommands(config: RedisProxy): string[] {
  return [...commandKinds(config.custom_commands ?? []).keys()].filter(isCounted);
}

function* routesOf({
  prefix_routes: routes = {},
}: RedisProxy): Generator<[path: string, RedisProxy_PrefixRoutes_Route]> {
  for (const [index, route] of (routes.routes ?? []).entries()) yield [`prefix_routes.routes[${index}]`, route];
  if (routes.catch_all_route !== undefined) yield ['prefix_routes.catch_all_route', routes.catch_all_route];
}

function validate(config: RedisProxy, report: Report): void {
  if (config.external_auth_provider !== undefined) validateProvider(config.external_auth_provider, report);
  const { downstream_auth_username: username, prefix_routes: routes = {} } = config;
  if (routes.catch_all_route === undefined && (routes.routes ?? []).length === 0) {
    report('prefix_routes', 'it needs a catch_all_route, or routes');
  }
  const seen = new Set<string>();
  for (const [index, { prefix = '' }] of (routes.routes ?? []).entries()) {
    const key = routes.case_insensitive ? prefix.toLowerCase() : prefix;
    if (seen.has(key)) report(`prefix_routes.routes[${index}].prefix`, `prefix '${prefix}' already exists`);
    seen.add(key);
  }
  const kinds = commandKinds([]);
  for (const [index, name] of (config.custom_commands ?? []).entries()) {
    if (disturbsConnections(name.toLowerCase()))
      report(
        `custom_commands[${index}]`,
        `'${name}' would disturb the other clients, which share the connections to hosts`,
      );
    else if ((kinds.get(name.toLowerCase()) ?? CommandKind.Key) !== CommandKind.Key || name === '')
      report(`custom_commands[${index}]`, `'${name}' is a command that the proxy treats in its own way`);
  }
  const sources = [...(config.downstream_auth_passwords ?? []).entries()];
  for (const [index, source] of sources) {
    reportMistakes(report, '', () => readDataSource(source, `downstream_auth_passwords[${index}]`));
  }
  if (username !== undefined) reportMistakes(report, '', () => readDataSource(username, 'downstream_auth_username'));
}

function validateProvider({ grpc_service: service }: RedisExternalAuthProvider, report: Report): void {
  const at = 'external_auth_provider.grpc_service';
  if (service === undefined) return report('external_auth_provider', 'grpc_service must be set');
  checkGrpcService(service, at, report);
  if (service.google_grpc !== undefined) {
    report(
      `${at}.google_grpc`,
      'workers call the hosts of clusters: define one with http2_protocol_options for target_uri, and name it in envoy_grpc',
    );
  }
  if (service.timeout !== undefined && durationMs(service.timeout) === 0) {
    report(`${at}.timeout`, 'must be above 0: without a timeout a client could wait forever');
  }
}
