// Listeners: unique names and addresses, filters in an order that works, routes and proxies that lead somewhere.

import { addressText, ipAddress } from '../../../io/addresses/address.js';
import type { Address, Any, Filter, FilterChain, HttpFilter, Listener } from '../../generated/api.js';
import { unpack } from '../../schema/any.js';
import type { Path } from '../../text/path.js';
import type { Problems } from '../../text/problems.js';
import { checkBindable, checkStream } from '../addresses.js';
import { checkClusterName } from '../names/cluster-name.js';
import { checkNamedClusters } from '../names/named-clusters.js';
import { checkUnique } from '../names/unique-names.js';
import type { Surroundings } from '../surroundings.js';
import { checkFilterChainMatches } from './filter-chains.js';
import { checkHttpFilters } from './http-filters.js';
import { checkManagerRoutes } from './manager-routes.js';

const LISTENERS = ['static_resources', 'listeners'];
const HCM = 'envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager';
const TCP_PROXY = 'envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy';

/** `admin` is the address of the admin interface. */
export function checkListeners(listeners: readonly Listener[], admin: Address | undefined, around: Surroundings): void {
  const names = listeners.map((listener) => listener?.name);
  checkUnique(names, (index) => [...LISTENERS, index, 'name'], 'listener', around.problems);
  const addresses = listeners.map((listener) => listener && addressOf(listener));
  checkUnique(addresses, (index) => [...LISTENERS, index, 'address'], 'listener address', around.problems);
  const taken = admin && boundAddress(admin);
  listeners.forEach((listener, index) => {
    if (!listener) return;
    const path = [...LISTENERS, index];
    around.problems.checking(path, () => checkListener(listener, path, around));
    if (taken === undefined || addresses[index] !== taken) return;
    around.problems.error([...LISTENERS, index, 'address'], `the admin interface has '${taken}': see admin.address`);
  });
}

/** What two listeners cannot both be bound to; undefined where the kernel chooses the port. */
function addressOf({ address, bind_to_port: binds = true }: Listener): string | undefined {
  return address && binds ? boundAddress(address) : undefined;
}

function boundAddress({ pipe, socket_address: socket }: Address): string | undefined {
  if (pipe) return pipe.path;
  if (!socket?.port_value) return undefined;
  const ip = ipAddress(socket.address ?? '', socket.port_value);
  // What is no address is told as such.
  return ip && addressText(ip);
}

/** A listener by itself. */
export function checkListener(listener: Listener, path: Path, around: Surroundings): void {
  const { problems } = around;
  checkBindable(listener.address, [...path, 'address'], problems);
  if ((listener.tcp_backlog_size ?? 0) > MAX_BACKLOG) {
    problems.error([...path, 'tcp_backlog_size'], `it must be at most ${MAX_BACKLOG}`);
  }
  checkStream(listener.address?.socket_address, [...path, 'address', 'socket_address'], problems);
  for (const field of ['freebind', 'transparent', 'reuse_port', 'enable_reuse_port'] as const) {
    if (!listener.address?.pipe || !listener[field]) continue;
    problems.error(
      [...path, field],
      'it has an effect on IP addresses only, and the listener has a Unix socket',
      'key',
    );
  }
  const isElsewhere = ['address', 'internal_listener', 'api_listener'].some((field) => problems.has([...path, field]));
  if (!listener.address && !isElsewhere) problems.error(path, 'a listener needs an address');
  const isUdp = listener.address?.socket_address?.protocol === 'UDP';
  if (!listener.filter_chains && !listener.default_filter_chain && !isUdp && !hasProblemAt(CHAINS, path, problems)) {
    problems.error(path, `no filter chains specified`);
  }
  listener.filter_chains?.forEach((chain, index) => {
    checkFilters(chain, [...path, 'filter_chains', index, 'filters'], around);
  });
  checkFilters(listener.default_filter_chain, [...path, 'default_filter_chain', 'filters'], around);
  checkFilterChainMatches(listener, path, problems);
  checkNamedClusters(listener, path, around, !around.mayGrow);
}

/** Fields that hold filter chains. */
const CHAINS = ['filter_chains', 'default_filter_chain'];

function hasProblemAt(fields: readonly string[], path: Path, problems: Problems): boolean {
  return fields.some((field) => problems.has([...path, field]));
}

function checkFilters(chain: FilterChain | undefined, path: Path, around: Surroundings): void {
  checkOrder(chain?.filters, path, 'network filter', around);
  chain?.filters?.forEach((filter, index) => {
    if (filter?.typed_config) checkFilter(filter.typed_config, [...path, index, 'typed_config'], around);
  });
}

function checkFilter(config: Any, path: Path, around: Surroundings): void {
  const manager = unpack(config, HCM);
  if (manager) {
    if (!manager.http_filters) {
      if (!around.problems.has([...path, 'http_filters'])) {
        around.problems.error(
          path,
          "http_filters is empty: it must end with a filter such as 'envoy.filters.http.router'",
        );
      }
    } else checkOrder(manager.http_filters, [...path, 'http_filters'], 'HTTP filter', around);
    if (manager.http_protocol_options?.allow_absolute_url === false) {
      around.problems.error(
        [...path, 'http_protocol_options', 'allow_absolute_url'],
        'requests with absolute URLs are always served: leave it out',
      );
    }
    if (manager.strip_any_host_port === true && manager.strip_matching_host_port === true) {
      around.problems.error(
        [...path, 'strip_matching_host_port'],
        'strip_any_host_port takes every port already: leave one of the two out',
      );
    }
    checkHttpFilters(manager, path, around);
    checkManagerRoutes(manager, path, around);
  }
  const proxy = unpack(config, TCP_PROXY);
  if (proxy?.cluster === '') around.problems.error([...path, 'cluster'], 'it must not be empty');
  // The cluster that connections go to may come later.
  const mustExist = !around.mayGrow;
  if (proxy?.cluster !== undefined) checkClusterName(proxy.cluster, [...path, 'cluster'], around, mustExist);
  proxy?.weighted_clusters?.clusters?.forEach((cluster, index) => {
    checkClusterName(cluster?.name, [...path, 'weighted_clusters', 'clusters', index, 'name'], around, mustExist);
  });
}

/** The kernel takes a signed number. */
const MAX_BACKLOG = 2 ** 31 - 1;

/** A terminal filter stands last, and only there. */
function checkOrder(
  filters: readonly (Filter | HttpFilter)[] | undefined,
  path: Path,
  what: string,
  { catalog, problems }: Surroundings,
): void {
  filters?.forEach((filter, index) => {
    const found = filter?.typed_config && catalog.byTypeUrl(filter.typed_config['@type']);
    if (!found) return;
    const isLast = index === filters.length - 1;
    if (found.isTerminal && !isLast) {
      problems.error([...path, index], `terminal ${what} '${found.name}' must be the last one, and others follow it`);
    } else if (!found.isTerminal && isLast) {
      problems.error(
        [...path, index],
        `non-terminal ${what} '${found.name}' is the last one: the chain must end with a terminal filter`,
      );
    }
  });
}
