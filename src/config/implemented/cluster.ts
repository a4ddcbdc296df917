// Implemented fields of clusters, their endpoints and protocol options.

import { ALL, accepted, type ImplementedTable, onlyExtension, refused } from './table.js';

const RETRY = 'retry past hosts that are down: retry_on, with the retry_host_predicate previous_hosts';
const AS_CLIENTS = 'clients are served with HTTP/1.1, and so are hosts: leave it out';

export const CLUSTER: ImplementedTable = {
  'envoy.config.cluster.v3.Cluster': {
    name: true,
    alt_stat_name: true,
    type: ['STATIC', 'STRICT_DNS', 'LOGICAL_DNS', 'EDS'],
    eds_cluster_config: true,
    connect_timeout: true,
    per_connection_buffer_limit_bytes: true,
    lb_policy: ['ROUND_ROBIN', 'LEAST_REQUEST', 'RANDOM'],
    load_balancing_policy: true,
    load_assignment: true,
    max_requests_per_connection: true,
    circuit_breakers: true,
    typed_extension_protocol_options: true,
    dns_refresh_rate: true,
    dns_failure_refresh_rate: true,
    respect_dns_ttl: true,
    dns_lookup_family: true,
    wait_for_warm_on_init: true,
    upstream_bind_config: true,
    upstream_connection_options: true,
    least_request_lb_config: true,
    round_robin_lb_config: accepted('its fields are for slow start, which is not implemented'),
    common_lb_config: true,
    metadata: true,
    http2_protocol_options: true,
    protocol_selection: ['USE_CONFIGURED_PROTOCOL', 'USE_DOWNSTREAM_PROTOCOL'],
    ignore_health_on_host_removal: accepted(
      'there are no active health checks, for whose verdict a host that is removed could wait',
    ),
    health_checks: refused(RETRY),
    outlier_detection: refused(RETRY),
    transport_socket: onlyExtension(
      'envoy.transport_sockets.raw_buffer',
      'put a proxy that speaks TLS between Baton and the hosts',
    ),
  },
  'envoy.config.cluster.v3.LoadBalancingPolicy': ALL,
  'envoy.config.cluster.v3.LoadBalancingPolicy.Policy': ALL,
  'envoy.extensions.load_balancing_policies.round_robin.v3.RoundRobin': {},
  'envoy.extensions.load_balancing_policies.least_request.v3.LeastRequest': {
    choice_count: true,
    active_request_bias: true,
    selection_method: ['N_CHOICES'],
  },
  'envoy.extensions.load_balancing_policies.random.v3.Random': {},
  'envoy.config.cluster.v3.Cluster.EdsClusterConfig': { eds_config: true, service_name: true },
  'envoy.config.cluster.v3.Cluster.RefreshRate': ALL,
  'envoy.config.cluster.v3.Cluster.LeastRequestLbConfig': { choice_count: true, active_request_bias: true },
  'envoy.config.cluster.v3.Cluster.RoundRobinLbConfig': {},
  'envoy.config.cluster.v3.Cluster.CommonLbConfig': {
    healthy_panic_threshold: true,
    update_merge_window: true,
    close_connections_on_host_set_change: true,
  },
  'envoy.config.cluster.v3.CircuitBreakers': { thresholds: true },
  'envoy.config.cluster.v3.CircuitBreakers.Thresholds': {
    priority: true,
    max_connections: true,
    max_pending_requests: true,
    max_requests: true,
    max_retries: true,
    track_remaining: true,
    retry_budget: true,
  },
  'envoy.config.cluster.v3.CircuitBreakers.Thresholds.RetryBudget': ALL,
  'envoy.config.core.v3.BindConfig': { source_address: true },
  'envoy.config.cluster.v3.UpstreamConnectionOptions': { tcp_keepalive: true },
  'envoy.config.core.v3.TcpKeepalive': ALL,
  'envoy.config.endpoint.v3.ClusterLoadAssignment': {
    cluster_name: accepted(
      'the cluster that holds it has a name of its own; from EDS it is the name that was asked for',
    ),
    endpoints: true,
    policy: true,
  },
  'envoy.config.endpoint.v3.ClusterLoadAssignment.Policy': {
    overprovisioning_factor: true,
    endpoint_stale_after: true,
  },
  'envoy.config.endpoint.v3.LocalityLbEndpoints': {
    locality: true,
    lb_endpoints: true,
    load_balancing_weight: accepted(
      'it counts with locality_weighted_lb_config only, which is not implemented: each endpoint has its own weight',
    ),
    priority: true,
    metadata: true,
  },
  'envoy.config.endpoint.v3.LbEndpoint': {
    endpoint: true,
    health_status: true,
    metadata: true,
    load_balancing_weight: true,
  },
  'envoy.config.endpoint.v3.Endpoint': { address: true, hostname: true },
  'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': {
    common_http_protocol_options: true,
    explicit_http_config: true,
    use_downstream_protocol_config: true,
    auto_config: refused('it needs ALPN, a part of TLS: use explicit_http_config or use_downstream_protocol_config'),
  },
  'envoy.extensions.upstreams.http.v3.HttpProtocolOptions.UseDownstreamHttpConfig': {
    http_protocol_options: true,
    http2_protocol_options: refused(AS_CLIENTS),
    http3_protocol_options: refused(AS_CLIENTS),
  },
  'envoy.extensions.upstreams.http.v3.HttpProtocolOptions.ExplicitHttpConfig': {
    http_protocol_options: true,
    http2_protocol_options: true,
  },
  'envoy.config.core.v3.Http2ProtocolOptions': { connection_keepalive: true },
  'envoy.config.core.v3.KeepaliveSettings': { interval: true, timeout: true },
};
