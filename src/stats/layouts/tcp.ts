// Stats of a TCP proxy.

import { defineLayout } from '../layout.js';

/** Scope `tcp.<stat_prefix>.` */
export const TcpStats = defineLayout({
  downstream_cx_total: 'counter',
  downstream_cx_no_route: 'counter',
  downstream_cx_rx_bytes_total: 'counter',
  downstream_cx_tx_bytes_total: 'counter',
  downstream_cx_rx_bytes_buffered: 'gauge',
  downstream_cx_tx_bytes_buffered: 'gauge',
  downstream_flow_control_paused_reading_total: 'counter',
  downstream_flow_control_resumed_reading_total: 'counter',
  downstream_cx_drain_close: 'counter',
  idle_timeout: 'counter',
  max_downstream_connection_duration: 'counter',
  upstream_flush_total: 'counter',
  upstream_flush_active: 'gauge',
  downstream_cx_overload_close: 'counter',
  // TLS early data, and routes that are found later.
  early_data_received_count_total: 'no_counter',
  route_delayed_total: 'no_counter',
});

/** In addition, with on_demand. */
export const TcpOnDemandStats = defineLayout({
  on_demand_cluster_attempt: 'counter',
  on_demand_cluster_missing: 'counter',
  on_demand_cluster_success: 'counter',
  on_demand_cluster_timeout: 'counter',
});
