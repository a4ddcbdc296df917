// How a cluster finds its hosts: by type, or by an extension in cluster_type, of which some are the same.

import type {
  Address,
  CaresDnsResolverConfig,
  Cluster,
  Cluster_DiscoveryType,
  Cluster_DnsLookupFamily,
  Cluster_RefreshRate,
  Duration,
  DynamicForwardProxyClusterConfig,
  RedisClusterConfig,
  TypedExtensionConfig,
} from '../generated/api.js';
import { unpack } from '../schema/any.js';

/** The types of the API, and those of the extensions FORWARD_PROXY, AGGREGATE and REDIS. */
export type HostSource = Cluster_DiscoveryType | 'DYNAMIC_FORWARD_PROXY' | 'AGGREGATE' | 'REDIS';

/** The extension whose hosts are the names that requests ask for. */
export const FORWARD_PROXY = 'envoy.clusters.dynamic_forward_proxy';

const FORWARD_PROXY_CONFIG = 'envoy.extensions.clusters.dynamic_forward_proxy.v3.ClusterConfig';

/** Returns the message of the extension; undefined for other clusters. */
export function forwardProxyConfig({ cluster_type: custom }: Cluster): DynamicForwardProxyClusterConfig | undefined {
  const config = unpack(custom?.typed_config, FORWARD_PROXY_CONFIG);
  return config ?? (custom?.name === FORWARD_PROXY ? {} : undefined);
}

/** The extension whose hosts are those of other clusters. */
export const AGGREGATE = 'envoy.clusters.aggregate';

const AGGREGATE_CONFIG = 'envoy.extensions.clusters.aggregate.v3.ClusterConfig';

/** Returns the names of the clusters of an aggregate; undefined for other clusters. */
export function aggregatedClusters({ cluster_type: custom }: Cluster): readonly string[] | undefined {
  const config = unpack(custom?.typed_config, AGGREGATE_CONFIG);
  return config?.clusters ?? (custom?.name === AGGREGATE ? [] : undefined);
}

/** The extension whose hosts are the nodes of a Redis cluster. */
export const REDIS = 'envoy.clusters.redis';

const REDIS_CONFIG = 'envoy.extensions.clusters.redis.v3.RedisClusterConfig';

/** Returns the message of the extension; undefined for other clusters. */
export function redisClusterConfig({ cluster_type: custom }: Cluster): RedisClusterConfig | undefined {
  const config = unpack(custom?.typed_config, REDIS_CONFIG);
  return config ?? (custom?.name === REDIS ? {} : undefined);
}

/** Returns whether the hosts of a cluster are those that requests name. */
export function hasRequestedHosts(cluster: Cluster): boolean {
  const type = discoveryType(cluster);
  return type === 'ORIGINAL_DST' || type === 'DYNAMIC_FORWARD_PROXY';
}

/** Extensions that mean the same as a `type`. */
export const CLUSTER_TYPES: { readonly [name: string]: Cluster_DiscoveryType } = {
  'envoy.cluster.static': 'STATIC',
  'envoy.cluster.strict_dns': 'STRICT_DNS',
  'envoy.cluster.logical_dns': 'LOGICAL_DNS',
  'envoy.cluster.eds': 'EDS',
  'envoy.cluster.original_dst': 'ORIGINAL_DST',
};

/** The extension that resolves names. Its message overrides the DNS fields of the cluster. */
export const DNS_CLUSTER = 'envoy.cluster.dns';

const DNS_CONFIG = 'envoy.extensions.clusters.dns.v3.DnsCluster';

/** The DNS settings of a cluster. */
export interface DnsFields {
  /** The fields are in the message of the extension, and not in the cluster. */
  readonly isExtension: boolean;
  readonly refreshRate?: Duration | undefined;
  readonly failureRefreshRate?: Cluster_RefreshRate | undefined;
  readonly respectTtl: boolean;
  readonly jitter?: Duration | undefined;
  /** The least time between resolutions that a TTL causes. */
  readonly minRefreshRate?: Duration | undefined;
  readonly family: Cluster_DnsLookupFamily;
  readonly resolver?: TypedExtensionConfig | undefined;
}

/** Returns the type. As in Envoy, the message in cluster_type decides, or else its name. */
export function discoveryType(cluster: Cluster): HostSource {
  const { cluster_type: custom, type = 'STATIC' } = cluster;
  if (custom === undefined) return type;
  if (aggregatedClusters(cluster) !== undefined) return 'AGGREGATE';
  if (forwardProxyConfig(cluster) !== undefined) return 'DYNAMIC_FORWARD_PROXY';
  if (redisClusterConfig(cluster) !== undefined) return 'REDIS';
  const dns = unpack(custom.typed_config, DNS_CONFIG);
  if (dns !== undefined || custom.name === DNS_CLUSTER) {
    return dns?.all_addresses_in_single_endpoint ? 'LOGICAL_DNS' : 'STRICT_DNS';
  }
  return CLUSTER_TYPES[custom.name ?? ''] ?? 'STATIC';
}

export function dnsFields(cluster: Cluster): DnsFields {
  const { cluster_type: custom } = cluster;
  const dns = unpack(custom?.typed_config, DNS_CONFIG);
  if (dns === undefined && custom?.name !== DNS_CLUSTER) {
    return {
      isExtension: false,
      refreshRate: cluster.dns_refresh_rate,
      failureRefreshRate: cluster.dns_failure_refresh_rate,
      respectTtl: cluster.respect_dns_ttl ?? false,
      jitter: cluster.dns_jitter,
      family: cluster.dns_lookup_family ?? 'AUTO',
      resolver: cluster.typed_dns_resolver_config,
    };
  }
  const { dns_lookup_family: family = 'UNSPECIFIED' } = dns ?? {};
  return {
    isExtension: true,
    refreshRate: dns?.dns_refresh_rate,
    failureRefreshRate: dns?.dns_failure_refresh_rate,
    respectTtl: dns?.respect_dns_ttl ?? false,
    jitter: dns?.dns_jitter,
    minRefreshRate: dns?.dns_min_refresh_rate,
    family: family === 'UNSPECIFIED' ? 'AUTO' : family,
    resolver: dns?.typed_dns_resolver_config,
  };
}

/** Returns the options of a resolver; undefined: the name servers of the machine. */
export function caresOptions(resolver: TypedExtensionConfig | undefined): CaresDnsResolverConfig | undefined {
  return unpack(resolver?.typed_config, 'envoy.extensions.network.dns_resolver.cares.v3.CaresDnsResolverConfig');
}

/** Returns name servers as `ip:port`, with IPv6 addresses in brackets. */
export function nameServers(resolvers: readonly Address[] = []): string[] {
  return resolvers.flatMap(({ socket_address: socket }) => {
    const { address = '' } = socket ?? {};
    const port = socket?.port_value || 53;
    if (address === '') return [];
    return [address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`];
  });
}
