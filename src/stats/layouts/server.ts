// Stats of the process.

import { defineLayout } from '../layout.js';

/** Scope `server.` */
export const ServerStats = defineLayout({
  uptime: 'gauge',
  concurrency: 'own_gauge',
  memory_allocated: 'gauge',
  memory_heap_size: 'gauge',
  memory_physical_size: 'gauge',
  live: 'own_gauge',
  state: 'own_gauge',
  parent_connections: 'gauge',
  total_connections: 'gauge',
  version: 'own_gauge',
  days_until_first_cert_expiring: 'own_gauge',
  seconds_until_first_ocsp_response_expiring: 'own_gauge',
  hot_restart_epoch: 'own_gauge',
  hot_restart_generation: 'gauge',
  initialization_time_ms: 'histogram',
  debug_assertion_failures: 'counter',
  envoy_bug_failures: 'counter',
  uncaught_exceptions: 'counter',
  static_unknown_fields: 'counter',
  dynamic_unknown_fields: 'counter',
  wip_protos: 'counter',
  optional_filters_left_out: 'counter',
  dropped_stat_flushes: 'counter',
  stats_recent_lookups: 'own_gauge',
  'compilation_settings.fips_mode': 'own_gauge',
});

/** Scopes `main_thread.`, `workers.`, `server.main_thread.` and `server.worker_<N>.`: how often the thread was blocked. */
export const WatchdogStats = defineLayout({
  watchdog_miss: 'counter',
  watchdog_mega_miss: 'counter',
});

/** Scopes `server.dispatcher.` and dispatcherPrefix(), only with enable_dispatcher_stats. */
export const DispatcherStats = defineLayout({
  loop_duration_us: 'histogram_us',
  poll_delay_us: 'histogram_us',
});

/** Returns the prefix of a worker's DispatcherStats. */
export function dispatcherPrefix(worker: number): string {
  return `listener_manager.worker_${worker}.dispatcher.`;
}
