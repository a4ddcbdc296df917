// The settings of a DNS cache, with every default filled in.

import { durationMs } from '../../common/time/duration.js';
import type { Cluster_DnsLookupFamily, DnsCacheConfig } from '../../config/generated/api.js';
import { type ResolverSettings, resolverSettings } from './resolver-settings.js';

export interface DnsCacheSpec {
  readonly name: string;
  readonly family: Cluster_DnsLookupFamily;
  /** Delay of the next query for a name that has no address. */
  readonly refreshMs: number;
  /** The least delay of the next query for a name that has one: otherwise the answer's TTL. */
  readonly minRefreshMs: number;
  /** Names that are not used for this long are removed. */
  readonly hostTtlMs: number;
  readonly maxHosts: number;
  /** Back-off between failed queries; undefined: refreshMs. */
  readonly failureRefresh: { readonly baseMs: number; readonly maxMs: number } | undefined;
  /** A name without address is removed at once, and queried again by the next request. */
  readonly forgetsFailures: boolean;
  /** 0: no limit of its own. */
  readonly queryTimeoutMs: number;
  /** Limit of requests that wait for a name, in the whole process. */
  readonly maxWaiting: number;
  /** Names, with port, that are resolved before any request. */
  readonly preresolved: readonly { readonly host: string; readonly port: number }[];
  /** Undefined: the default resolver. */
  readonly resolver: ResolverSettings | undefined;
}

export function dnsCacheSpec(config: DnsCacheConfig): DnsCacheSpec {
  const { dns_failure_refresh_rate: failure } = config;
  const refreshMs = durationMs(config.dns_refresh_rate, 60_000);
  const baseMs = durationMs(failure?.base_interval, refreshMs);
  return {
    name: config.name ?? '',
    family: config.dns_lookup_family ?? 'AUTO',
    refreshMs,
    minRefreshMs: durationMs(config.dns_min_refresh_rate, 5000),
    hostTtlMs: durationMs(config.host_ttl, 300_000),
    maxHosts: config.max_hosts ?? 1024,
    failureRefresh: failure && { baseMs, maxMs: durationMs(failure.max_interval, 10 * baseMs) },
    forgetsFailures: config.disable_dns_refresh_on_failure ?? false,
    queryTimeoutMs: durationMs(config.dns_query_timeout, 5000),
    maxWaiting: config.dns_cache_circuit_breaker?.max_pending_requests ?? 1024,
    preresolved: (config.preresolve_hostnames ?? []).map(({ address = '', port_value: port = 0 }) => ({
      host: address,
      port,
    })),
    resolver: resolverSettings(config.typed_dns_resolver_config),
  };
}
