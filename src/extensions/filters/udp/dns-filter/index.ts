// envoy.filters.udp.dns_filter: answers DNS queries.

import type { DnsFilterConfig, DnsTable } from '../../../../config/generated/api.js';
import {
  accessLogScopes,
  createAccessLoggers,
  DnsFilterStats,
  durationMs,
  getLogger,
  messageOf,
  notImplemented,
  obeyed,
  parseIp,
  type Report,
  readDataSource,
  refused,
  reportLogFilters,
  resolverSettings,
  type UdpListenerFilterExtension,
  type WorkerContext,
} from '../../../sdk.js';
import { DnsFilter } from './dns-filter.js';
import { ExternalNames } from './external-names.js';
import { readTable } from './external-table.js';
import { QueryLog } from './query-log.js';
import { DomainTable } from './table.js';

const FILTER = 'envoy.extensions.filters.udp.dns_filter.v3.DnsFilterConfig';
const TABLE = 'envoy.data.dns.v3.DnsTable';
/** Envoy's default. */
const RESOLVER_TIMEOUT_MS = 500;

const logger = getLogger('dns');

export const dnsFilter: UdpListenerFilterExtension<DnsFilterConfig> = {
  category: 'envoy.filters.udp_listener',
  name: 'envoy.filters.udp.dns_filter',
  typeUrls: [`type.googleapis.com/${FILTER}`],
  implemented: {
    [FILTER]: obeyed('stat_prefix', 'server_config', 'client_config', 'access_log', 'case_insensitive'),
    [`${FILTER}.ServerContextConfig`]: obeyed('inline_dns_table', 'external_dns_table'),
    [`${FILTER}.ClientContextConfig`]: {
      ...obeyed('resolver_timeout', 'typed_dns_resolver_config', 'max_pending_lookups'),
      upstream_resolvers: refused('use resolvers of typed_dns_resolver_config'),
      ...notImplemented('dns_resolution_config'),
    },
    [TABLE]: {
      ...obeyed('external_retry_count', 'virtual_domains'),
      known_suffixes: refused('as in Envoy, suffixes are those of virtual_domains: leave it out'),
    },
    [`${TABLE}.AddressList`]: obeyed('address'),
    [`${TABLE}.DnsEndpoint`]: obeyed('address_list', 'cluster_name', 'service_list'),
    [`${TABLE}.DnsVirtualDomain`]: obeyed('name', 'endpoint', 'answer_ttl'),
    [`${TABLE}.DnsServiceList`]: obeyed('services'),
    [`${TABLE}.DnsService`]: obeyed('service_name', 'protocol', 'ttl', 'targets'),
    [`${TABLE}.DnsServiceProtocol`]: obeyed('number', 'name'),
    [`${TABLE}.DnsServiceTarget`]: obeyed('host_name', 'cluster_name', 'priority', 'weight', 'port'),
  },
  validate(config, report) {
    reportLogFilters(config.access_log, 'access_log', report);
    checkTable(config.server_config?.inline_dns_table, 'server_config.inline_dns_table', report);
  },
  scopes: ({ access_log: logs, stat_prefix: prefix }, _listener, extensions) => [
    { prefix: `dns_filter.${prefix}.`, layout: DnsFilterStats },
    ...accessLogScopes(logs, extensions),
  ],
  createOnWorker(config, _listener, context) {
    const { clock, clusters, datagrams, random } = context;
    const table = new DomainTable(tableOf(config), config.case_insensitive ?? false);
    return new DnsFilter({
      table,
      clusters,
      clock,
      random,
      sockets: datagrams.open(),
      stats: context.scope(`dns_filter.${config.stat_prefix}.`, DnsFilterStats),
      external: externalNames(config, table.retries, context),
      log: new QueryLog(createAccessLoggers(config.access_log, 'NotSet', context), clock),
    });
  },
};

function externalNames({ client_config: config }: DnsFilterConfig, retries: number, { transport }: WorkerContext) {
  if (config === undefined) return undefined;
  return new ExternalNames({
    settings: resolverSettings(config.typed_dns_resolver_config),
    timeoutMs: durationMs(config.resolver_timeout, RESOLVER_TIMEOUT_MS),
    retries,
    maxPending: Math.min(Number(config.max_pending_lookups ?? 1), Number.MAX_SAFE_INTEGER),
    beginTurn: () => transport.beginTurn(),
    failed: (error) => transport.report(error, 'a DNS query was lost after an internal error'),
  });
}

/** As in Envoy, a table that cannot be read is empty. */
function tableOf({ server_config: config }: DnsFilterConfig): DnsTable {
  if (config?.external_dns_table === undefined) return config?.inline_dns_table ?? {};
  try {
    return readTable(readDataSource(config.external_dns_table));
  } catch (error) {
    logger.error(`external_dns_table cannot be used, and no name is known: ${messageOf(error)}`);
    return {};
  }
}

function checkTable(table: DnsTable | undefined, path: string, report: Report): void {
  for (const [index, { endpoint }] of (table?.virtual_domains ?? []).entries()) {
    for (const [place, address] of (endpoint?.address_list?.address ?? []).entries()) {
      if (parseIp(address) !== undefined) continue;
      const at = `${path}.virtual_domains[${index}].endpoint.address_list.address[${place}]`;
      report(at, `malformed IP address: ${address}`);
    }
  }
}
