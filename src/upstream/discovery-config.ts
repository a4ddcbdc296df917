// Converts what a cluster's configuration says about finding its hosts to the form that the primary, which finds them, uses: every
// default is filled in, every unit is in the name.

import { durationMs } from '../common/time/duration.js';
import {
  type DnsFields,
  discoveryType,
  dnsFields,
  type HostSource,
  redisClusterConfig,
} from '../config/fields/discovery.js';
import type {
  Cluster,
  Cluster_DnsLookupFamily,
  ClusterLoadAssignment,
  ConfigSource,
  Endpoint,
  Endpoint_HealthCheckConfig,
  EnvoyInternalAddress,
  LbEndpoint,
  LocalityLbEndpoints,
} from '../config/generated/api.js';
import { type Address, AddressKind, internalAddress, ipAddress } from '../io/addresses/address.js';
import { type AssignmentPolicy, assignmentPolicy } from './assignment-policy.js';
import { type ResolverSettings, resolverSettings } from './dns/resolver-settings.js';
import { endpointHealthFlags } from './hosts/health-flags.js';
import { type EndpointCheck, type EndpointTraits, type ResolvedEndpoint, traitsOf } from './hosts/host.js';
import { type Locality, localityOf } from './hosts/locality.js';
import { TransportMatches } from './hosts/transport-matches.js';
import { type RedisDiscoverySettings, redisSettings } from './redis-settings.js';

/** A configured endpoint. */
export interface EndpointSpec extends EndpointTraits {
  /** IP address or name; '' for a Unix socket. */
  readonly host: string;
  readonly port: number;
  /** Path of a Unix socket, '@name' for an abstract one. */
  readonly path: string;
  /** The address of an internal listener; undefined for all other endpoints. */
  readonly internal?: Address;
  /** The endpoint's own `hostname`. */
  readonly hostname: string;
  /** Its other addresses; undefined: it has none. */
  readonly additional?: readonly Address[] | undefined;
}

export interface DnsSettings {
  readonly family: Cluster_DnsLookupFamily;
  readonly refreshMs: number;
  readonly respectTtl: boolean;
  /** The least time until the next resolution with respectTtl. */
  readonly minRefreshMs: number;
  /** Successful resolutions are followed by the next one up to this much later. */
  readonly jitterMs: number;
  /** Back-off between failed resolutions; absent: refreshMs. */
  readonly failureRefresh: { readonly baseMs: number; readonly maxMs: number } | undefined;
  /** Undefined: the default resolver. */
  readonly resolver: ResolverSettings | undefined;
}

export interface DiscoverySpec {
  /** The name of the cluster. */
  readonly name: string;
  readonly type: HostSource;
  readonly endpoints: readonly EndpointSpec[];
  /** For endpoints from EDS: those above are matched already. */
  readonly transports: TransportMatches;
  /** Of load_assignment. */
  readonly policy: AssignmentPolicy;
  readonly dns: DnsSettings;
  /** With type EDS: the config source and the name of the assignment. */
  readonly eds: { readonly source: ConfigSource; readonly serviceName: string } | undefined;
  /** The cluster is neither used nor awaited until its names are resolved. */
  readonly waitsForHosts: boolean;
  /** Merge window of updates that add or remove no host; 0: they are applied at once. */
  readonly mergeWindowMs: number;
  /** ORIGINAL_DST: hosts that were not used for this long are removed. */
  readonly cleanupMs: number;
  /** REDIS. */
  readonly redis: RedisDiscoverySettings;
}

/** Returns the primary's part of a checked cluster configuration. */
export function discoverySpec(cluster: Cluster): DiscoverySpec {
  const transports = new TransportMatches(cluster.transport_socket_matches);
  const type = discoveryType(cluster);
  const { eds_config: source, service_name: serviceName } = cluster.eds_cluster_config ?? {};
  if (type === 'EDS' && source === undefined)
    throw new TypeError(`cluster ${cluster.name}: a cluster of type EDS needs an eds_cluster_config.eds_config`);
  return {
    name: cluster.name ?? '',
    type,
    endpoints: endpointSpecs(cluster.load_assignment, transports),
    transports,
    policy: assignmentPolicy(cluster.load_assignment),
    dns: dnsSettings(dnsFields(cluster)),
    eds: type === 'EDS' ? { source: source!, serviceName: serviceName || (cluster.name ?? '') } : undefined,
    waitsForHosts: cluster.wait_for_warm_on_init ?? true,
    mergeWindowMs: durationMs(cluster.common_lb_config?.update_merge_window, 1000),
    cleanupMs: durationMs(cluster.cleanup_interval, 5000),
    redis: redisSettings(redisClusterConfig(cluster) ?? {}),
  };
}

function dnsSettings(fields: DnsFields): DnsSettings {
  const { failureRefreshRate: failure } = fields;
  const refreshMs = durationMs(fields.refreshRate, 5000);
  const baseMs = durationMs(failure?.base_interval, refreshMs);
  return {
    family: fields.family,
    refreshMs,
    respectTtl: fields.respectTtl,
    minRefreshMs: durationMs(fields.minRefreshRate, 0),
    jitterMs: durationMs(fields.jitter, 0),
    failureRefresh: failure && { baseMs, maxMs: durationMs(failure.max_interval, 10 * baseMs) },
    resolver: resolverSettings(fields.resolver),
  };
}

/** Returns the endpoints of a load assignment in its order. */
export function endpointSpecs(assignment: ClusterLoadAssignment | undefined, transports = NO_MATCHES): EndpointSpec[] {
  return (assignment?.endpoints ?? []).flatMap((group) => {
    const locality = localityOf(group.locality);
    return (group.lb_endpoints ?? []).map((endpoint) => endpointSpec(group, locality, endpoint, transports));
  });
}

const NO_MATCHES = new TransportMatches();

/** Returns the host of an endpoint that has an address; undefined when its `host` is a name to resolve. */
export function staticEndpoint(endpoint: EndpointSpec): ResolvedEndpoint | undefined {
  const address = endpoint.internal ?? socketAddress(endpoint);
  if (address === undefined) return undefined;
  const { additional, hostname } = endpoint;
  return { address, additional, hostname, ...traitsOf(endpoint) };
}

/** Returns the other addresses of an endpoint; undefined if it has none. */
function additionalAddresses({ additional_addresses: list = [] }: Endpoint): Address[] | undefined {
  const addresses = list.flatMap(({ address }) => {
    const { envoy_internal_address: internal, pipe, socket_address: socket } = address ?? {};
    if (internal !== undefined) return internalOf(internal);
    return socketAddress({ host: socket?.address ?? '', path: pipe?.path ?? '', port: socket?.port_value ?? 0 }) ?? [];
  });
  return addresses.length === 0 ? undefined : addresses;
}

function socketAddress({ host, path, port }: Pick<EndpointSpec, 'host' | 'path' | 'port'>): Address | undefined {
  return path === '' ? ipAddress(host, port) : unixAddress(path);
}

function internalOf({ endpoint_id: id, server_listener_name: name = '' }: EnvoyInternalAddress): Address {
  return internalAddress(name, id);
}

function unixAddress(path: string): Address {
  return { kind: AddressKind.Unix, ip: '', port: 0, path };
}

function endpointCheck(config: Endpoint_HealthCheckConfig): EndpointCheck {
  const { pipe, socket_address: socket } = config.address ?? {};
  const address =
    pipe === undefined ? ipAddress(socket?.address ?? '', socket?.port_value ?? 0) : unixAddress(pipe.path ?? '');
  return {
    address,
    port: config.port_value ?? 0,
    hostname: config.hostname ?? '',
    isDisabled: config.disable_active_health_check ?? false,
  };
}

function endpointSpec(
  group: LocalityLbEndpoints,
  locality: Locality,
  lb: LbEndpoint,
  transports: TransportMatches,
): EndpointSpec {
  const { endpoint } = lb;
  const { envoy_internal_address: internal, socket_address: socket } = endpoint?.address ?? {};
  return {
    ...(internal && { internal: internalOf(internal) }),
    host: socket?.address ?? '',
    port: socket?.port_value ?? 0,
    path: endpoint?.address?.pipe?.path ?? '',
    additional: endpoint && additionalAddresses(endpoint),
    hostname: endpoint?.hostname ?? '',
    weight: lb.load_balancing_weight ?? 1,
    priority: group.priority ?? 0,
    locality,
    healthFlags: endpointHealthFlags(lb.health_status),
    check: endpoint?.health_check_config && endpointCheck(endpoint.health_check_config),
    isCanary: lb.metadata?.filter_metadata?.['envoy.lb']?.['canary'] === true,
    metadata: lb.metadata,
    // As in Envoy, endpoints without a locality have no weight of one.
    localityMetadata: group.metadata,
    localityWeight: group.locality && group.load_balancing_weight,
    transport: transports.numberOf(lb.metadata, group.metadata),
  };
}
