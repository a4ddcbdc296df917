// Stats of UDP listeners and of the UDP proxy.

import { defineLayout } from '../layout.js';

/** Scope `listener.<address or stat_prefix>.udp.` */
export const UdpListenerStats = defineLayout({
  downstream_rx_datagram_dropped: 'counter',
});

/** Scope `udp.<stat_prefix>.` */
export const UdpProxyStats = defineLayout({
  downstream_sess_active: 'gauge',
  downstream_sess_no_route: 'counter',
  downstream_sess_rx_bytes: 'counter',
  downstream_sess_rx_datagrams: 'counter',
  downstream_sess_rx_errors: 'counter',
  downstream_sess_total: 'counter',
  downstream_sess_tx_bytes: 'counter',
  downstream_sess_tx_datagrams: 'counter',
  downstream_sess_tx_errors: 'counter',
  idle_timeout: 'counter',
  // Session filters are not discovered.
  session_filter_config_missing: 'no_counter',
});

/** Scope `cluster.<name>.udp.` */
export const UdpClusterStats = defineLayout({
  sess_rx_datagrams: 'counter',
  sess_rx_datagrams_dropped: 'counter',
  sess_rx_errors: 'counter',
  sess_tx_datagrams: 'counter',
  sess_tx_errors: 'counter',
  // Datagrams are not tunneled.
  sess_tunnel_buffer_overflow: 'no_counter',
  sess_tunnel_failure: 'no_counter',
  sess_tunnel_success: 'no_counter',
});
