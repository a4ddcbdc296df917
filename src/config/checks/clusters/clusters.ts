// Clusters: unique names, and endpoints that fit the discovery type.

import { isIP } from 'node:net';
import { durationMs } from '../../../common/time/duration.js';
import { ipAddress } from '../../../io/addresses/address.js';
import type { ExtensionCatalog } from '../../catalog/extension.js';
import { type DnsFields, discoveryType, dnsFields, type HostSource } from '../../fields/discovery.js';
import { shareOf } from '../../fields/fractional-percent.js';
import { HTTP_OPTIONS, httpOptions } from '../../fields/http-options.js';
import { PROXY_ADDRESS, proxyAddressIn } from '../../fields/proxy-address.js';
import type {
  Cluster,
  ClusterLoadAssignment,
  Endpoint,
  Metadata,
  OutlierDetection,
  TcpKeepalive,
} from '../../generated/api.js';
import { formatPath, type Path } from '../../text/path.js';
import type { Problems } from '../../text/problems.js';
import { checkConnected, checkPipe, isPlainIp } from '../addresses.js';
import { checkUnique } from '../names/unique-names.js';
import { checkUpstreamFilters } from '../upstream-filters.js';
import { checkAdditional } from './additional-addresses.js';
import { checkEds } from './eds.js';
import { checkEndpointCheck, checkHealthChecks } from './health-checks.js';
import { checkHostProtocols } from './host-protocols.js';
import { checkLoadBalancing } from './load-balancing.js';
import { checkProvidedHosts } from './provided-hosts.js';
import { checkResolver } from './resolvers.js';

const CLUSTERS = ['static_resources', 'clusters'];
export function checkClusters(clusters: readonly Cluster[], catalog: ExtensionCatalog, problems: Problems): void {
  checkUnique(
    clusters.map((cluster) => cluster?.name),
    (index) => [...CLUSTERS, index, 'name'],
    'cluster',
    problems,
  );
  clusters.forEach((cluster, index) => {
    if (!cluster) return;
    const path = [...CLUSTERS, index];
    problems.checking(path, () => checkCluster(cluster, path, catalog, problems));
  });
}

/** Checks a single cluster. */
export function checkCluster(cluster: Cluster, path: Path, catalog: ExtensionCatalog, problems: Problems): void {
  const source = cluster.upstream_bind_config?.source_address;
  checkConnected(source, [...path, 'upstream_bind_config', 'source_address'], problems);
  checkOptions(cluster, path, catalog, problems);
  const optionsAt = [...path, 'typed_extension_protocol_options', HTTP_OPTIONS];
  checkUpstreamFilters(httpOptions(cluster)?.http_filters, [...optionsAt, 'http_filters'], catalog, problems);
  checkEds(cluster, path, problems);
  checkHealthChecks(cluster, path, problems);
  checkHostProtocols(cluster, path, problems);
  checkProvidedHosts(cluster, path, catalog, problems);
  checkHostThresholds(cluster, path, problems);
  const type = discoveryType(cluster);
  const isTypeWrong = problems.has([...path, 'type']) || problems.has([...path, 'cluster_type']);
  if (!isTypeWrong && !type.endsWith('_DNS')) checkLookups(cluster, type, path, problems);
  const dns = dnsFields(cluster);
  const dnsPath = dns.isExtension ? [...path, 'cluster_type', 'typed_config'] : path;
  // Clusters of other types may have no endpoints; requests to them fail with no healthy upstream.
  if (!cluster.load_assignment && type === 'LOGICAL_DNS') {
    if (!problems.has([...path, 'load_assignment'])) {
      problems.error(path, 'a cluster of type LOGICAL_DNS needs a load_assignment');
    }
    return;
  }
  const assignmentPath = [...path, 'load_assignment'];
  const endpoints = endpointsOf(cluster.load_assignment, assignmentPath);
  for (const { endpoint, at } of endpoints) checkEndpoint(type, isTypeWrong, endpoint, at, problems);
  checkWeights(cluster.load_assignment, assignmentPath, problems);
  checkDrops(cluster.load_assignment, assignmentPath, problems);
  checkProxies(cluster.load_assignment, assignmentPath, problems);
  if (type === 'STATIC') checkSource(cluster, endpoints, path, problems);
  checkRefreshRate(dns, dnsPath, problems);
  checkResolver(dns.resolver, [...dnsPath, 'typed_dns_resolver_config'], problems);
  if (type === 'LOGICAL_DNS' && endpoints.length !== 1) {
    problems.error(
      assignmentPath,
      `LOGICAL_DNS clusters must have a single locality_lb_endpoint and a single lb_endpoint, found ${endpoints.length}`,
    );
  }
}

/** Reports limits that a host cannot have. */
function checkHostThresholds({ circuit_breakers: breakers }: Cluster, path: Path, problems: Problems): void {
  breakers?.per_host_thresholds?.forEach((thresholds, index) => {
    for (const field of Object.keys(thresholds ?? {})) {
      if (field === 'priority' || field === 'max_connections') continue;
      // As in Envoy, hosts have no gauges of what remains.
      if (field === 'track_remaining') continue;
      const at = [...path, 'circuit_breakers', 'per_host_thresholds', index, field];
      problems.error(at, 'Unsupported field in per_host_thresholds: set max_connections', 'key');
    }
  });
}

/**
 * Reports DNS fields of a cluster that does not resolve names, except dns_lookup_family, which control planes set for every
 * cluster.
 */
function checkLookups(cluster: Cluster, type: string, path: Path, problems: Problems): void {
  for (const field of ['dns_refresh_rate', 'dns_failure_refresh_rate', 'respect_dns_ttl'] as const) {
    if (!cluster[field]) continue;
    const text = `it has an effect in clusters of type STRICT_DNS and LOGICAL_DNS only, this one is ${type}: leave it out`;
    problems.error([...path, field], text, 'key');
  }
}

/** Reports a source address that cannot reach one of the endpoints because of its address family. */
function checkSource(cluster: Cluster, endpoints: readonly EndpointAt[], path: Path, problems: Problems): void {
  const source = cluster.upstream_bind_config?.source_address?.address ?? '';
  const at = [...path, 'upstream_bind_config', 'source_address', 'address'];
  if (!isPlainIp(source) || problems.has(at)) return;
  for (const { endpoint } of endpoints) {
    const { pipe, socket_address: socket } = endpoint?.address ?? {};
    const host = socket?.address ?? '';
    if (pipe === undefined && (isIP(host) === 0 || isIP(host) === isIP(source))) continue;
    const why = pipe === undefined ? `not to ${host}` : 'not to a Unix socket';
    problems.error(at, `connections can be made from ${source} to IPv${isIP(source)} addresses, ${why}`);
    return;
  }
}

/** Checks the endpoints of an EDS assignment: each has an address. */
export function checkEndpoints(assignment: ClusterLoadAssignment, path: Path, problems: Problems): void {
  for (const { endpoint, at } of endpointsOf(assignment, path)) checkEndpoint('EDS', false, endpoint, at, problems);
  checkWeights(assignment, path, problems);
  checkDrops(assignment, path, problems);
  checkProxies(assignment, path, problems);
}

interface EndpointAt {
  readonly endpoint: Endpoint | undefined;
  /** Path of the enclosing LbEndpoint. */
  readonly at: Path;
}

function endpointsOf(assignment: ClusterLoadAssignment | undefined, path: Path): EndpointAt[] {
  return (assignment?.endpoints ?? []).flatMap((locality, group) =>
    (locality?.lb_endpoints ?? []).flatMap((lb, index) => {
      const at = [...path, 'endpoints', group, 'lb_endpoints', index];
      return lb ? [{ endpoint: lb.endpoint, at }] : [];
    }),
  );
}

/** Reports addresses of HTTP proxies, in the metadata of endpoints and localities, that cannot be connected to. */
function checkProxies(assignment: ClusterLoadAssignment | undefined, path: Path, problems: Problems): void {
  assignment?.endpoints?.forEach((locality, group) => {
    const at = [...path, 'endpoints', group];
    checkProxy(locality?.metadata, [...at, 'metadata'], problems);
    locality?.lb_endpoints?.forEach((lb, index) => {
      checkProxy(lb?.metadata, [...at, 'lb_endpoints', index, 'metadata'], problems);
    });
  });
}

function checkProxy(metadata: Metadata | undefined, path: Path, problems: Problems): void {
  const address = proxyAddressIn(metadata);
  if (address === undefined) return;
  const { address: ip = '', port_value: port = 0 } = address.socket_address ?? {};
  if (ipAddress(ip, port) !== undefined) return;
  const field = [...path, 'typed_filter_metadata', PROXY_ADDRESS];
  problems.error(field, 'the address of a proxy must be an IP address with a port_value');
}

/** Default of base_ejection_time. */
const DEFAULT_EJECTION_MS = 30_000;

/** Maximum sum of the weights of a locality's endpoints. */
const MAX_WEIGHTS = 2 ** 32 - 1;

function checkWeights(assignment: ClusterLoadAssignment | undefined, path: Path, problems: Problems): void {
  assignment?.endpoints?.forEach((locality, group) => {
    const weights = (locality?.lb_endpoints ?? []).map((lb) => lb?.load_balancing_weight ?? 1);
    const sum = weights.reduce((total, weight) => total + weight, 0);
    if (sum <= MAX_WEIGHTS) return;
    problems.error(
      [...path, 'endpoints', group],
      `the weights of all endpoints of a locality must not exceed ${MAX_WEIGHTS} together, found ${sum}`,
    );
  });
}

/** Reports what Envoy refuses in drop_overloads. */
function checkDrops(assignment: ClusterLoadAssignment | undefined, path: Path, problems: Problems): void {
  const [drop, ...others] = assignment?.policy?.drop_overloads ?? [];
  const at = [...path, 'policy', 'drop_overloads'];
  if (others.length > 0) problems.error(at, `drop_overloads may have one category only, found ${others.length + 1}`);
  if (shareOf(drop?.drop_percentage) <= 1) return;
  problems.error([...at, 0, 'drop_percentage'], 'more than all requests cannot be dropped', 'key');
}

/** Checks a cluster's own fields beyond the schema. */
function checkOptions(cluster: Cluster, path: Path, catalog: ExtensionCatalog, problems: Problems): void {
  const source = cluster.upstream_bind_config?.source_address?.address;
  if (source !== undefined && !isPlainIp(source)) {
    problems.error([...path, 'upstream_bind_config', 'source_address', 'address'], `malformed IP address: ${source}`);
  }
  checkThresholds(cluster, path, problems);
  checkLoadBalancing(cluster, path, catalog, problems);
  checkKeepalive(cluster.upstream_connection_options?.tcp_keepalive, path, problems);
  checkProtocolOptions(cluster, path, catalog, problems);
  checkOutlierDetection(cluster.outlier_detection, [...path, 'outlier_detection'], problems);
}

function checkRefreshRate({ failureRefreshRate }: DnsFields, path: Path, problems: Problems): void {
  const { base_interval: base, max_interval: max } = failureRefreshRate ?? {};
  if (base === undefined || max === undefined || durationMs(max) >= durationMs(base)) return;
  problems.error(
    [...path, 'dns_failure_refresh_rate', 'max_interval'],
    'max_interval must be greater than or equal to base_interval',
  );
}

/** Reports a maximum ejection time that is shorter than the base ejection time. */
function checkOutlierDetection(config: OutlierDetection | undefined, path: Path, problems: Problems): void {
  const { base_ejection_time: base, max_ejection_time: max } = config ?? {};
  if (
    max === undefined ||
    problems.has([...path, 'max_ejection_time']) ||
    problems.has([...path, 'base_ejection_time'])
  )
    return;
  const baseMs = durationMs(base, DEFAULT_EJECTION_MS);
  if (durationMs(max) >= baseMs) return;
  problems.error(
    [...path, 'max_ejection_time'],
    `max_ejection_time must not be smaller than base_ejection_time, which is ${baseMs / 1000}s`,
  );
}

/** Reports a second entry for a priority, which would have no effect. */
function checkThresholds(cluster: Cluster, path: Path, problems: Problems): void {
  const first = new Map<string, Path>();
  cluster.circuit_breakers?.thresholds?.forEach((thresholds, index) => {
    const at = [...path, 'circuit_breakers', 'thresholds', index];
    if (!thresholds || problems.has([...at, 'priority'])) return;
    const priority = thresholds.priority ?? 'DEFAULT';
    const earlier = first.get(priority);
    if (earlier === undefined) first.set(priority, at);
    else problems.error(at, `priority ${priority} already has thresholds at ${formatPath(earlier)}: merge them`);
  });
}

/** Reports options under a key that no extension of this build reads. */
function checkProtocolOptions(cluster: Cluster, path: Path, catalog: ExtensionCatalog, problems: Problems): void {
  const names = catalog.list().flatMap(({ category, name }) => (category === 'envoy.upstream_options' ? [name] : []));
  for (const key of Object.keys(cluster.typed_extension_protocol_options ?? {})) {
    const at = [...path, 'typed_extension_protocol_options', key];
    if (names.includes(key) || problems.has([...at, '@type'])) continue;
    const what = `no extension of this build has protocol options with the name '${key}'`;
    problems.error(at, `${what}; the supported names are: '${names.join("', '")}'`, 'key');
  }
}

/** The limits of Linux. */
const KEEPALIVE_LIMITS = { keepalive_probes: 127, keepalive_time: 32_767, keepalive_interval: 32_767 } as const;

function checkKeepalive(keepalive: TcpKeepalive | undefined, path: Path, problems: Problems): void {
  for (const field of ['keepalive_probes', 'keepalive_time', 'keepalive_interval'] as const) {
    const value = keepalive?.[field];
    if (value === undefined || (value >= 1 && value <= KEEPALIVE_LIMITS[field])) continue;
    const message = `it must be between 1 and ${KEEPALIVE_LIMITS[field]}, found ${value}`;
    problems.error([...path, 'upstream_connection_options', 'tcp_keepalive', field], message);
  }
}

/** Characters that no DNS name has: from URLs, ports and typing errors. */
const NO_NAME = /[\s\0:/]/;

/** `lbPath`: the path of the enclosing LbEndpoint. */
function checkEndpoint(
  type: HostSource,
  isTypeWrong: boolean,
  endpoint: Endpoint | undefined,
  lbPath: Path,
  problems: Problems,
): void {
  const path = [...lbPath, 'endpoint'];
  const address = endpoint?.address;
  if (!address) {
    const causes = [path, [...path, 'address'], [...lbPath, 'endpoint_name']];
    if (!causes.some((cause) => problems.has(cause))) {
      problems.error(endpoint ? path : lbPath, 'an endpoint needs an address');
    }
    return;
  }
  checkConnected(address.socket_address, [...path, 'address', 'socket_address'], problems);
  checkPipe(address.pipe, [...path, 'address', 'pipe'], problems);
  checkEndpointCheck(endpoint, path, problems);
  if (!isTypeWrong) checkAdditional(type, endpoint, path, problems);
  const { endpoint_id: id, server_listener_name: name } = address.envoy_internal_address ?? {};
  if (id?.includes('/'))
    problems.error(
      [...path, 'address', 'envoy_internal_address', 'endpoint_id'],
      `'/' separates it from the name of the listener: use another character`,
    );
  if (type === 'STATIC' || type === 'EDS') {
    const host = address.socket_address?.address;
    if (host === undefined || isPlainIp(host) || isTypeWrong) return;
    problems.error(
      [...path, 'address', 'socket_address', 'address'],
      `malformed IP address: ${host}. Consider setting the cluster's type to 'STRICT_DNS' or 'LOGICAL_DNS'`,
    );
  } else if (name !== undefined) {
    problems.error(
      [...path, 'address', 'envoy_internal_address'],
      `a ${type} cluster resolves names; an internal address needs type STATIC`,
      'key',
    );
  } else if (address.pipe) {
    problems.error([...path, 'address', 'pipe'], `a ${type} cluster resolves names; a pipe needs type STATIC`, 'key');
  } else {
    const name = address.socket_address?.address ?? '';
    if (ipAddress(name, 0) !== undefined || !NO_NAME.test(name)) return;
    problems.error(
      [...path, 'address', 'socket_address', 'address'],
      `'${name}' is neither an IP address nor a valid DNS name; the port belongs in port_value`,
    );
  }
}
