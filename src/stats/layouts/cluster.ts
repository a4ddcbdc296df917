// Stats of a cluster, of its circuit breakers and hosts, and of the cluster manager.
//
// upstream_rq_<code>, upstream_rq_<class> and upstream_rq_time are not in a layout: traffic creates them
// (ThreadStats.dynamicCounter, dynamicHistogram), also under internal., external., canary. and zone.

import { defineLayout } from '../layout.js';

/** Scope `cluster.<name>.` */
/** Scopes `cluster.<name>.<name of a transport socket match>.` */
export const TransportMatchStats = defineLayout({ total_match_count: 'counter' });

export const ClusterStats = defineLayout({
  upstream_cx_total: 'counter',
  upstream_cx_http1_total: 'counter',
  upstream_cx_http2_total: 'counter',
  upstream_cx_connect_fail: 'counter',
  upstream_cx_connect_timeout: 'counter',
  upstream_cx_idle_timeout: 'counter',
  upstream_cx_max_duration_reached: 'counter',
  upstream_cx_connect_attempts_exceeded: 'counter',
  upstream_cx_overflow: 'counter',
  upstream_cx_destroy: 'counter',
  upstream_cx_destroy_local: 'counter',
  upstream_cx_destroy_remote: 'counter',
  upstream_cx_destroy_with_active_rq: 'counter',
  upstream_cx_destroy_local_with_active_rq: 'counter',
  upstream_cx_destroy_remote_with_active_rq: 'counter',
  upstream_cx_close_notify: 'counter',
  upstream_cx_rx_bytes_total: 'counter',
  upstream_cx_tx_bytes_total: 'counter',
  upstream_cx_pool_overflow: 'counter',
  upstream_cx_protocol_error: 'counter',
  upstream_cx_max_requests: 'counter',
  upstream_cx_none_healthy: 'counter',
  upstream_cx_active: 'gauge',
  upstream_cx_rx_bytes_buffered: 'gauge',
  upstream_cx_tx_bytes_buffered: 'gauge',
  upstream_cx_connect_ms: 'histogram',
  upstream_cx_length_ms: 'histogram',
  upstream_rq_total: 'counter',
  upstream_rq_completed: 'counter',
  upstream_rq_pending_total: 'counter',
  upstream_rq_pending_overflow: 'counter',
  upstream_rq_pending_failure_eject: 'counter',
  upstream_rq_cancelled: 'counter',
  upstream_rq_maintenance_mode: 'counter',
  upstream_rq_timeout: 'counter',
  upstream_rq_max_duration_reached: 'counter',
  upstream_rq_per_try_timeout: 'counter',
  upstream_rq_per_try_idle_timeout: 'counter',
  upstream_rq_rx_reset: 'counter',
  upstream_rq_tx_reset: 'counter',
  upstream_rq_retry: 'counter',
  upstream_rq_retry_backoff_exponential: 'counter',
  upstream_rq_retry_backoff_ratelimited: 'counter',
  upstream_rq_retry_limit_exceeded: 'counter',
  upstream_rq_retry_success: 'counter',
  upstream_rq_retry_overflow: 'counter',
  upstream_rq_active_overflow: 'counter',
  upstream_rq_active: 'gauge',
  upstream_rq_pending_active: 'gauge',
  upstream_rq_per_cx: 'histogram_count',
  upstream_flow_control_paused_reading_total: 'counter',
  upstream_flow_control_resumed_reading_total: 'counter',
  upstream_flow_control_backed_up_total: 'counter',
  upstream_flow_control_drained_total: 'counter',
  upstream_internal_redirect_failed_total: 'counter',
  upstream_internal_redirect_succeeded_total: 'counter',
  membership_change: 'counter',
  membership_total: 'own_gauge',
  membership_healthy: 'own_gauge',
  membership_degraded: 'own_gauge',
  membership_excluded: 'own_gauge',
  retry_or_shadow_abandoned: 'counter',
  update_attempt: 'counter',
  update_success: 'counter',
  update_failure: 'counter',
  update_empty: 'counter',
  update_no_rebuild: 'counter',
  bind_errors: 'counter',
  assignment_timeout_received: 'counter',
  assignment_stale: 'counter',
  version: 'own_gauge',
  max_host_weight: 'own_gauge',
  warming_state: 'own_gauge',
  'default.total_match_count': 'counter',
  lb_healthy_panic: 'counter',
  lb_local_cluster_not_ok: 'counter',
  lb_recalculate_zone_structures: 'counter',
  lb_zone_cluster_too_small: 'counter',
  lb_zone_no_capacity_left: 'counter',
  lb_zone_routing_all_directly: 'counter',
  lb_zone_routing_cross_zone: 'counter',
  lb_zone_routing_sampled: 'counter',
  original_dst_host_invalid: 'counter',
  lb_subsets_active: 'gauge',
  lb_subsets_created: 'counter',
  lb_subsets_fallback: 'counter',
  lb_subsets_fallback_panic: 'counter',
  lb_subsets_removed: 'counter',
  lb_subsets_selected: 'counter',
  upstream_cx_preconnect_skipped: 'counter',
  // HTTP/3.
  assignment_use_cached: 'no_counter',
  upstream_cx_connect_with_0_rtt: 'no_counter',
  upstream_cx_http3_total: 'no_counter',
  upstream_http3_broken: 'no_counter',
  upstream_queue_overloaded: 'no_counter',
  upstream_rq_0rtt: 'no_counter',
  upstream_rq_rx_reset_no_error: 'no_counter',
});

/** In the scope of ClusterStats, only for clusters with subsets. */
export const SubsetStats = defineLayout({
  lb_subsets_single_host_per_subset_duplicate: 'own_gauge',
  /** Hosts that are not in all of their subsets, because these are too many. Not in Envoy. */
  lb_subsets_overflow: 'own_gauge',
});

/** Scope `cluster.<name>.circuit_breakers.default.` and `.high.`: 1 while the limit is reached. */
export const CircuitBreakerStats = defineLayout({
  cx_open: 'gauge',
  cx_pool_open: 'gauge',
  rq_pending_open: 'gauge',
  rq_open: 'gauge',
  rq_retry_open: 'gauge',
});

/** In the scope of CircuitBreakerStats, only for thresholds with track_remaining. */
export const CircuitBreakerRemainingStats = defineLayout({
  remaining_cx: 'gauge',
  remaining_cx_pools: 'gauge',
  remaining_pending: 'gauge',
  remaining_rq: 'gauge',
  remaining_retries: 'gauge',
});

/** Scope `cluster.<name>.health_check.`, only for clusters with health checks. */
export const HealthCheckStats = defineLayout({
  attempt: 'counter',
  success: 'counter',
  failure: 'counter',
  passive_failure: 'counter',
  network_failure: 'counter',
  verify_cluster: 'counter',
  healthy: 'own_gauge',
  degraded: 'own_gauge',
});

/** In the scope of ClusterStats, only with track_cluster_stats.timeout_budgets: used percents of timeouts. */
export const TimeoutBudgetStats = defineLayout({
  upstream_rq_timeout_budget_percent_used: 'histogram_count',
  upstream_rq_timeout_budget_per_try_percent_used: 'histogram_count',
});

/** In the scope of ClusterStats, only with track_cluster_stats.request_response_sizes. */
export const MessageSizeStats = defineLayout({
  upstream_rq_headers_size: 'histogram_bytes',
  upstream_rq_headers_count: 'histogram_count',
  upstream_rq_body_size: 'histogram_bytes',
  upstream_rs_headers_size: 'histogram_bytes',
  upstream_rs_headers_count: 'histogram_count',
  upstream_rs_body_size: 'histogram_bytes',
});

/** Scope `cluster.<name>.upstream.proxyprotocol.`, only for clusters that send the PROXY protocol. It stays 0: longer TLVs are refused. */
export const ProxyProtocolStats = defineLayout({ v2_tlvs_exceed_max_length: 'counter' });

/** Scope `cluster.<name>.internal_upstream.`, only for clusters with that transport socket. */
export const InternalUpstreamStats = defineLayout({ no_metadata: 'counter' });

/** Scope `cluster.<name>.outlier_detection.`, only for clusters with outlier detection. */
export const OutlierDetectionStats = defineLayout({
  ejections_enforced_total: 'counter',
  ejections_active: 'gauge',
  ejections_overflow: 'counter',
  ejections_enforced_consecutive_5xx: 'counter',
  ejections_detected_consecutive_5xx: 'counter',
  ejections_enforced_consecutive_gateway_failure: 'counter',
  ejections_detected_consecutive_gateway_failure: 'counter',
  ejections_enforced_success_rate: 'counter',
  ejections_detected_success_rate: 'counter',
  ejections_enforced_consecutive_local_origin_failure: 'counter',
  ejections_detected_consecutive_local_origin_failure: 'counter',
  ejections_enforced_local_origin_success_rate: 'counter',
  ejections_detected_local_origin_success_rate: 'counter',
  ejections_enforced_failure_percentage: 'counter',
  ejections_detected_failure_percentage: 'counter',
  ejections_enforced_local_origin_failure_percentage: 'counter',
  ejections_detected_local_origin_failure_percentage: 'counter',
  // Envoy's deprecated names, which dashboards still have.
  ejections_total: 'counter',
  ejections_consecutive_5xx: 'counter',
  ejections_success_rate: 'counter',
  // Of a kind of outliers that needs a field which Baton refuses.
  ejections_detected_degradation: 'counter',
});

/** Scope of one host. Hidden without track_cluster_stats.per_endpoint_stats: /clusters shows these stats, /stats does not. */
export const HostStats = defineLayout({
  cx_active: 'gauge',
  cx_connect_fail: 'counter',
  cx_total: 'counter',
  rq_active: 'gauge',
  rq_error: 'counter',
  rq_pending_active: 'gauge',
  rq_success: 'counter',
  rq_timeout: 'counter',
  rq_total: 'counter',
});

/** In the scope of HostStats, only with track_cluster_stats.per_endpoint_stats. */
export const EndpointHealthStats = defineLayout({ healthy: 'own_gauge' });

/** Scope `cluster_manager.` */
export const ClusterManagerStats = defineLayout({
  cluster_added: 'counter',
  cluster_modified: 'counter',
  cluster_removed: 'counter',
  cluster_updated: 'counter',
  cluster_updated_via_merge: 'counter',
  update_merge_cancelled: 'counter',
  update_out_of_merge_window: 'counter',
  active_clusters: 'own_gauge',
  warming_clusters: 'own_gauge',
});

/** Scope `thread_local_cluster_manager.main_thread.` and `.worker_<N>.` */
export const ThreadLocalClusterManagerStats = defineLayout({
  /** Clusters of the thread. */
  clusters_inflated: 'own_gauge',
});
