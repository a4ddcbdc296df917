// Stats of an HTTP connection manager, of its requests per listener, and of the codecs.

import { defineLayout } from '../layout.js';

const MANAGER = {
  downstream_cx_total: 'counter',
  downstream_cx_ssl_total: 'counter',
  downstream_cx_http1_total: 'counter',
  downstream_cx_http2_total: 'counter',
  downstream_cx_upgrades_total: 'counter',
  downstream_cx_destroy: 'counter',
  downstream_cx_destroy_remote: 'counter',
  downstream_cx_destroy_local: 'counter',
  downstream_cx_destroy_active_rq: 'counter',
  downstream_cx_destroy_local_active_rq: 'counter',
  downstream_cx_destroy_remote_active_rq: 'counter',
  downstream_cx_protocol_error: 'counter',
  downstream_cx_rx_bytes_total: 'counter',
  downstream_cx_tx_bytes_total: 'counter',
  downstream_cx_drain_close: 'counter',
  downstream_cx_delayed_close_timeout: 'counter',
  downstream_cx_idle_timeout: 'counter',
  downstream_cx_max_duration_reached: 'counter',
  downstream_cx_max_requests_reached: 'counter',
  downstream_cx_overload_disable_keepalive: 'counter',
  downstream_cx_active: 'gauge',
  downstream_cx_ssl_active: 'gauge',
  downstream_cx_http1_active: 'gauge',
  downstream_cx_http2_active: 'gauge',
  downstream_cx_upgrades_active: 'gauge',
  downstream_cx_rx_bytes_buffered: 'gauge',
  downstream_cx_tx_bytes_buffered: 'gauge',
  downstream_cx_length_ms: 'histogram',
  downstream_flow_control_paused_reading_total: 'counter',
  downstream_flow_control_resumed_reading_total: 'counter',
  downstream_rq_total: 'counter',
  downstream_rq_http1_total: 'counter',
  downstream_rq_http2_total: 'counter',
  downstream_rq_rejected_via_ip_detection: 'counter',
  downstream_rq_response_before_rq_complete: 'counter',
  downstream_rq_rx_reset: 'counter',
  downstream_rq_tx_reset: 'counter',
  downstream_rq_non_relative_path: 'counter',
  downstream_rq_too_large: 'counter',
  downstream_rq_completed: 'counter',
  downstream_rq_failed_path_normalization: 'counter',
  // The five classes are adjacent: a status class is an offset from the first.
  downstream_rq_1xx: 'counter',
  downstream_rq_2xx: 'counter',
  downstream_rq_3xx: 'counter',
  downstream_rq_4xx: 'counter',
  downstream_rq_5xx: 'counter',
  downstream_rq_ws_on_non_ws_route: 'counter',
  downstream_rq_idle_timeout: 'counter',
  downstream_rq_header_timeout: 'counter',
  downstream_rq_max_duration_reached: 'counter',
  downstream_rq_timeout: 'counter',
  downstream_rq_overload_close: 'counter',
  downstream_rq_redirected_with_normalized_path: 'counter',
  downstream_rq_too_many_premature_resets: 'counter',
  downstream_rq_active: 'gauge',
  downstream_rq_time: 'histogram',
  rs_too_large: 'counter',
  'tracing.random_sampling': 'counter',
  'tracing.service_forced': 'counter',
  'tracing.client_enabled': 'counter',
  'tracing.not_traceable': 'counter',
  'tracing.health_check': 'counter',
  // HTTP/3, and ends of HTTP/1 connections that are announced by time.
  downstream_cx_http1_soft_drain: 'no_counter',
  downstream_cx_http3_active: 'no_gauge',
  downstream_cx_http3_total: 'no_counter',
  downstream_rq_http3_total: 'no_counter',
} as const;

/** Scope `http.admin.`: the admin interface has no routes. */
export const AdminHttpStats = defineLayout(MANAGER);

/** Scope `http.<stat_prefix>.`: connections, requests, tracing and the router. The slots of AdminHttpStats are the same. */
export const HttpStats = defineLayout({
  ...MANAGER,
  rq_total: 'counter',
  rq_redirect: 'counter',
  rq_direct_response: 'counter',
  no_route: 'counter',
  no_cluster: 'counter',
  rq_reset_after_downstream_response_started: 'counter',
  passthrough_internal_redirect_bad_location: 'counter',
  passthrough_internal_redirect_no_route: 'counter',
  passthrough_internal_redirect_predicate: 'counter',
  passthrough_internal_redirect_too_many_redirects: 'counter',
  passthrough_internal_redirect_unsafe_scheme: 'counter',
  rq_overload_local_reply: 'counter',
});

/** Scope `listener.<address or stat_prefix>.http.<stat_prefix>.` */
export const ListenerHttpStats = defineLayout({
  downstream_rq_completed: 'counter',
  // Adjacent, as in HttpStats.
  downstream_rq_1xx: 'counter',
  downstream_rq_2xx: 'counter',
  downstream_rq_3xx: 'counter',
  downstream_rq_4xx: 'counter',
  downstream_rq_5xx: 'counter',
});

/** Scope `http1.` for downstream codecs, `cluster.<name>.http1.` for upstream ones. */
export const Http1CodecStats = defineLayout({
  dropped_headers_with_underscores: 'counter',
  metadata_not_supported_error: 'counter',
  requests_rejected_with_underscores_in_headers: 'counter',
  response_flood: 'counter',
});

/** Scope `http2.` for downstream codecs, `cluster.<name>.http2.` for upstream ones. */
export const Http2Stats = defineLayout({
  deferred_stream_close: 'counter',
  dropped_headers_with_underscores: 'counter',
  goaway_sent: 'counter',
  header_list_size_too_large: 'counter',
  header_overflow: 'counter',
  headers_cb_no_stream: 'counter',
  inbound_empty_frames_flood: 'counter',
  inbound_priority_frames_flood: 'counter',
  inbound_window_update_frames_flood: 'counter',
  keepalive_timeout: 'counter',
  metadata_empty_frames: 'counter',
  outbound_control_flood: 'counter',
  outbound_flood: 'counter',
  requests_rejected_with_underscores_in_headers: 'counter',
  rx_messaging_error: 'counter',
  rx_reset: 'counter',
  stream_refused_errors: 'counter',
  trailers: 'counter',
  tx_flush_timeout: 'counter',
  tx_reset: 'counter',
  streams_active: 'gauge',
});
