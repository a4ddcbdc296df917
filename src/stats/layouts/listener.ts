// Stats of a listener, of its connections per worker, and of the listener manager.

import { defineLayout } from '../layout.js';

/** Scope `listener.<address or stat_prefix>.` */
export const ListenerStats = defineLayout({
  downstream_cx_total: 'counter',
  downstream_cx_destroy: 'counter',
  downstream_cx_active: 'gauge',
  downstream_cx_length_ms: 'histogram',
  downstream_cx_transport_socket_connect_timeout: 'counter',
  downstream_cx_overflow: 'counter',
  downstream_cx_overload_reject: 'counter',
  downstream_global_cx_overflow: 'counter',
  connections_accepted_per_socket_event: 'histogram_count',
  downstream_pre_cx_timeout: 'counter',
  downstream_pre_cx_active: 'gauge',
  extension_config_missing: 'counter',
  network_extension_config_missing: 'counter',
  no_filter_chain_match: 'counter',
  downstream_listener_filter_remote_close: 'counter',
  downstream_listener_filter_error: 'counter',
});

/** Scope `listener.<address or stat_prefix>.worker_<N>.`; for the admin's listener `listener.admin.main_thread.` */
export const ListenerWorkerStats = defineLayout({
  downstream_cx_total: 'counter',
  downstream_cx_active: 'gauge',
});

/** Scope `listener.admin.`, in addition to ListenerStats. */
export const AdminListenerStats = defineLayout({
  downstream_cx_evicted: 'counter',
});

/** Scope `listener_manager.` */
export const ListenerManagerStats = defineLayout({
  listener_added: 'counter',
  listener_modified: 'counter',
  listener_removed: 'counter',
  listener_stopped: 'counter',
  listener_create_success: 'counter',
  listener_create_failure: 'counter',
  listener_in_place_updated: 'counter',
  total_filter_chains_draining: 'own_gauge',
  total_listeners_warming: 'own_gauge',
  total_listeners_active: 'own_gauge',
  total_listeners_draining: 'own_gauge',
  workers_started: 'own_gauge',
  // Workers are not pinned to CPUs.
  workers_pinned: 'no_gauge',
});
