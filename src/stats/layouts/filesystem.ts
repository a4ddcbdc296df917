// Stats of written files and of name resolution.

import { defineLayout } from '../layout.js';

/** Scope `filesystem.` */
export const FilesystemStats = defineLayout({
  write_buffered: 'counter',
  write_completed: 'counter',
  write_failed: 'counter',
  /** Not in Envoy: dropped access log lines. */
  write_dropped: 'counter',
  flushed_by_timer: 'counter',
  reopen_failed: 'counter',
  write_total_buffered: 'gauge',
});

/** Scope `dns.cares.` */
export const DnsStats = defineLayout({
  get_addr_failure: 'counter',
  not_found: 'counter',
  resolve_total: 'counter',
  timeouts: 'counter',
  pending_resolutions: 'own_gauge',
});
