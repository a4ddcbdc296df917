// Listeners: unique names and addresses, valid filter orders, and existing routes and clusters.

import { addressText, ipAddress } from '../../../io/addresses/address.js';
import { bindsToPort } from '../../fields/binds-to-port.js';
import { isUdp } from '../../fields/udp.js';
import type { Address, Any, Filter, FilterChain, HttpFilter, Listener } from '../../generated/api.js';
import { unpack } from '../../schema/any.js';
import type { Path } from '../../text/path.js';
import type { Problems } from '../../text/problems.js';
import { checkBindable } from '../addresses.js';
import type { CheckContext } from '../check-context.js';
import { checkClusterName } from '../names/cluster-name.js';
import { checkExtensionNames } from '../names/extension-names.js';
import { checkUnique } from '../names/unique-names.js';
import { checkFilterChainMatches } from './filter-chains.js';
import { checkHttpFilters } from './http-filters.js';
import { checkInternalListener } from './internal-listener.js';
import { checkListenerFilters } from './listener-filters.js';
import { checkManagerRoutes } from './manager-routes.js';

const LISTENERS = ['static_resources', 'listeners'];
const HCM = 'envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager';
const TCP_PROXY = 'envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy';

/** `admin`: the address of the admin interface. */
export function checkListeners(
  listeners: readonly Listener[],
  admin: Address | undefined,
  context: CheckContext,
): void {
  const names = listeners.map((listener) => listener?.name);
  checkUnique(names, (index) => [...LISTENERS, index, 'name'], 'listener', context.problems);
  const addresses = listeners.map((listener) => listener && addressOf(listener));
  checkUnique(addresses, (index) => [...LISTENERS, index, 'address'], 'listener address', context.problems);
  const taken = admin && boundAddress(admin);
  listeners.forEach((listener, index) => {
    if (!listener) return;
    const path = [...LISTENERS, index];
    context.problems.checking(path, () => checkListener(listener, path, context));
    if (taken === undefined || addresses[index] !== taken) return;
    context.problems.error([...LISTENERS, index, 'address'], `the admin interface uses '${taken}': see admin.address`);
  });
}

/** Returns the bound address, which must be unique; undefined if the kernel chooses the port. */
function addressOf(listener: Listener): string | undefined {
  return listener.address && bindsToPort(listener) ? boundAddress(listener.address) : undefined;
}

function boundAddress({ pipe, socket_address: socket }: Address): string | undefined {
  if (pipe) return pipe.path;
  if (!socket?.port_value) return undefined;
  const ip = ipAddress(socket.address ?? '', socket.port_value);
  // Invalid addresses are reported by checkBindable(). UDP has its own ports.
  return ip && `${addressText(ip)}${socket.protocol === 'UDP' ? ' (UDP)' : ''}`;
}

/** Checks a single listener. */
export function checkListener(listener: Listener, path: Path, context: CheckContext): void {
  const { problems } = context;
  checkInternalListener(listener, path, context);
  checkBindable(listener.address, [...path, 'address'], problems);
  if ((listener.tcp_backlog_size ?? 0) > MAX_BACKLOG) {
    problems.error([...path, 'tcp_backlog_size'], `it must be at most ${MAX_BACKLOG}`);
  }
  checkListenerFilters(listener, path, context);
  for (const field of ['freebind', 'transparent', 'reuse_port', 'enable_reuse_port', 'tcp_keepalive'] as const) {
    if (!listener.address?.pipe || !listener[field]) continue;
    problems.error(
      [...path, field],
      'it has an effect on IP addresses only, and the listener has a Unix socket',
      'key',
    );
  }
  const isElsewhere = ['address', 'api_listener'].some((field) => problems.has([...path, field]));
  if (!listener.address && listener.internal_listener === undefined && !isElsewhere)
    problems.error(path, 'a listener needs an address');
  if (
    !listener.filter_chains &&
    !listener.default_filter_chain &&
    !isUdp(listener) &&
    !hasProblemAt(CHAINS, path, problems)
  ) {
    problems.error(path, `no filter chains specified`);
  }
  listener.filter_chains?.forEach((chain, index) => {
    checkFilters(chain, [...path, 'filter_chains', index, 'filters'], context);
  });
  checkFilters(listener.default_filter_chain, [...path, 'default_filter_chain', 'filters'], context);
  checkFilterChainMatches(listener, path, problems);
  checkExtensionNames(listener, path, context, !context.mayGrow);
}

/** Fields that contain filter chains. */
const CHAINS = ['filter_chains', 'default_filter_chain'];

function hasProblemAt(fields: readonly string[], path: Path, problems: Problems): boolean {
  return fields.some((field) => problems.has([...path, field]));
}

function checkFilters(chain: FilterChain | undefined, path: Path, context: CheckContext): void {
  checkOrder(chain?.filters, path, 'network filter', context);
  chain?.filters?.forEach((filter, index) => {
    if (filter?.typed_config) checkFilter(filter.typed_config, [...path, index, 'typed_config'], context);
  });
}

function checkFilter(config: Any, path: Path, context: CheckContext): void {
  const manager = unpack(config, HCM);
  if (manager) {
    const filtersAt = [...path, 'http_filters'];
    if (!manager.http_filters?.length && !context.problems.has(filtersAt)) {
      context.problems.warn(path, 'http_filters is empty: every request is answered with 500');
    }
    checkOrder(manager.http_filters, filtersAt, 'HTTP filter', context);
    if (manager.http_protocol_options?.allow_absolute_url === false) {
      context.problems.error(
        [...path, 'http_protocol_options', 'allow_absolute_url'],
        'requests with absolute URLs are always served: leave it out',
      );
    }
    // Envoy refuses it too.
    if (manager.common_http_protocol_options?.max_response_headers_kb !== undefined) {
      context.problems.error(
        [...path, 'common_http_protocol_options', 'max_response_headers_kb'],
        'it is about responses of hosts and has no effect here: set it in the cluster, or leave it out',
      );
    }
    if (manager.strip_any_host_port === true && manager.strip_matching_host_port === true) {
      context.problems.error(
        [...path, 'strip_matching_host_port'],
        'strip_any_host_port already strips every port: leave out one of the two',
      );
    }
    checkHttpFilters(manager, path, context);
    checkManagerRoutes(manager, path, context);
  }
  const proxy = unpack(config, TCP_PROXY);
  if (proxy?.cluster === '') context.problems.error([...path, 'cluster'], 'it must not be empty');
  // The cluster may be added later.
  const mustExist = !context.mayGrow && proxy?.on_demand === undefined;
  if (proxy?.on_demand !== undefined && proxy.on_demand.odcds_config === undefined)
    context.problems.error([...path, 'on_demand'], 'it needs odcds_config: where the clusters come from');
  if (proxy?.cluster !== undefined) checkClusterName(proxy.cluster, [...path, 'cluster'], context, mustExist);
  proxy?.weighted_clusters?.clusters?.forEach((cluster, index) => {
    checkClusterName(cluster?.name, [...path, 'weighted_clusters', 'clusters', index, 'name'], context, mustExist);
  });
}

/** The kernel takes a signed integer. */
const MAX_BACKLOG = 2 ** 31 - 1;

/** Checks that the terminal filter is the last one and the only terminal one. */
function checkOrder(
  filters: readonly (Filter | HttpFilter)[] | undefined,
  path: Path,
  what: string,
  { catalog, problems }: CheckContext,
): void {
  filters?.forEach((filter, index) => {
    const found = filter?.typed_config && catalog.byTypeUrl(filter.typed_config['@type']);
    if (!found) return;
    const isLast = index === filters.length - 1;
    if (found.isTerminal && !isLast) {
      problems.error(
        [...path, index],
        `terminal ${what} '${found.name}' must be the last one, but other filters follow it`,
      );
    } else if (!found.isTerminal && isLast) {
      problems.error(
        [...path, index],
        `non-terminal ${what} '${found.name}' is the last one: the chain must end with a terminal filter`,
      );
    }
  });
}
