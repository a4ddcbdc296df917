// Stats of a DNS cache.

import { defineLayout } from '../layout.js';

/** Scope `dns_cache.<name>.` */
export const DnsCacheStats = defineLayout({
  dns_query_attempt: 'counter',
  dns_query_failure: 'counter',
  dns_query_success: 'counter',
  dns_query_timeout: 'counter',
  dns_rq_pending_overflow: 'counter',
  host_added: 'counter',
  host_address_changed: 'counter',
  host_overflow: 'counter',
  host_removed: 'counter',
  num_hosts: 'gauge',
  'circuit_breakers.rq_pending_open': 'gauge',
  'circuit_breakers.rq_pending_remaining': 'gauge',
  // Key-value stores, and filters of addresses.
  cache_load: 'no_counter',
  dns_address_filter_out: 'no_counter',
});
