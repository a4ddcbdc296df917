// Implemented fields of the DNS caches of dynamic forward proxies.

import { RESOLVER, RESOLVERS } from './common.js';
import { byValue, type ImplementedTable, obeyed, onlyExtension, onlyFalse, refused } from './table.js';

export const DNS_CACHE: ImplementedTable = {
  'envoy.extensions.common.dynamic_forward_proxy.v3.DnsCacheConfig': {
    name: true,
    dns_lookup_family: byValue({ AUTO: true, V4_ONLY: true, V6_ONLY: true, V4_PREFERRED: true, ALL: true }),
    dns_refresh_rate: true,
    dns_min_refresh_rate: true,
    host_ttl: true,
    max_hosts: true,
    disable_dns_refresh_on_failure: true,
    dns_failure_refresh_rate: true,
    dns_cache_circuit_breaker: true,
    use_tcp_for_dns_lookups: onlyFalse('queries are sent by UDP, and repeated by TCP if the answer is truncated'),
    dns_resolution_config: refused(RESOLVER),
    typed_dns_resolver_config: onlyExtension(RESOLVERS, RESOLVER),
    preresolve_hostnames: true,
    dns_query_timeout: true,
    key_value_config: refused('names are resolved again after a start: leave it out'),
    resolved_address_filter: refused('all addresses of a name are used: restrict the network of the process'),
  },
  'envoy.extensions.common.dynamic_forward_proxy.v3.DnsCacheCircuitBreakers': obeyed('max_pending_requests'),
};
