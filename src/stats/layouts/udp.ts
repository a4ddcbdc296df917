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

/** Scope `dns_filter.<stat_prefix>.` */
export const DnsFilterStats = defineLayout({
  a_record_queries: 'counter',
  aaaa_record_queries: 'counter',
  cluster_a_record_answers: 'counter',
  cluster_aaaa_record_answers: 'counter',
  cluster_srv_record_answers: 'counter',
  cluster_unsupported_answers: 'counter',
  downstream_rx_errors: 'counter',
  downstream_rx_invalid_queries: 'counter',
  downstream_rx_queries: 'counter',
  downstream_tx_responses: 'counter',
  external_a_record_answers: 'counter',
  external_a_record_queries: 'counter',
  external_aaaa_record_answers: 'counter',
  external_aaaa_record_queries: 'counter',
  external_unsupported_answers: 'counter',
  external_unsupported_queries: 'counter',
  externally_resolved_queries: 'counter',
  known_domain_queries: 'counter',
  local_a_record_answers: 'counter',
  local_aaaa_record_answers: 'counter',
  local_srv_record_answers: 'counter',
  local_unsupported_answers: 'counter',
  queries_with_additional_rrs: 'counter',
  queries_with_ans_or_authority_rrs: 'counter',
  query_buffer_underflow: 'counter',
  query_parsing_failure: 'counter',
  record_name_overflow: 'counter',
  srv_record_queries: 'counter',
  unanswered_queries: 'counter',
  unsupported_queries: 'counter',
  downstream_rx_bytes: 'histogram_bytes',
  downstream_rx_query_latency: 'histogram',
  downstream_tx_bytes: 'histogram_bytes',
});
