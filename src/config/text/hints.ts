// Hints for configurations that were written for an older API.

/** Fields of v1 and v2 and their replacements, by message and name. */
export const OLD_FIELDS: { readonly [message: string]: { readonly [field: string]: string } } = {
  'envoy.config.bootstrap.v3.Bootstrap': {
    listeners: 'use static_resources.listeners',
    clusters: 'use static_resources.clusters',
    rate_limit_service: 'use rate_limit_service of the rate limit filter',
    runtime: 'use layered_runtime',
    statsd_udp_ip_address: 'use stats_sinks',
  },
  'envoy.config.bootstrap.v3.Admin': {
    port: 'use address.socket_address',
  },
  'envoy.config.cluster.v3.Cluster': {
    connect_timeout_ms: 'use connect_timeout',
    lb_type: 'use lb_policy',
    service_name: 'use eds_cluster_config.service_name',
    hosts: 'use load_assignment',
    tls_context: 'use transport_socket',
    eds_cluster_config_name: 'use eds_cluster_config',
    extension_protocol_options: 'use typed_extension_protocol_options',
  },
  'envoy.config.listener.v3.Listener': {
    ssl_context: 'use transport_socket of a filter chain',
    use_proxy_proto: 'use the listener filter envoy.filters.listener.proxy_protocol',
    filters: 'put the filters into filter_chains',
  },
  'envoy.config.listener.v3.FilterChain': {
    tls_context: 'use transport_socket',
  },
  'envoy.config.listener.v3.Filter': { config: 'use typed_config' },
  'envoy.config.listener.v3.ListenerFilter': { config: 'use typed_config' },
  'envoy.extensions.filters.network.http_connection_manager.v3.HttpFilter': { config: 'use typed_config' },
  'envoy.config.accesslog.v3.AccessLog': { config: 'use typed_config' },
  'envoy.config.metrics.v3.StatsSink': { config: 'use typed_config' },
  'envoy.config.core.v3.TransportSocket': { config: 'use typed_config' },
  'envoy.config.trace.v3.Tracing.Http': { config: 'use typed_config' },
  'envoy.config.route.v3.RouteMatch': { regex: 'use safe_regex' },
  'envoy.config.route.v3.RouteAction': {
    auto_host_rewrite_header: 'use host_rewrite_header',
    request_mirror_policy: 'use request_mirror_policies',
    use_websocket: 'use upgrade_configs',
  },
  'envoy.config.route.v3.HeaderMatcher': { regex_match: 'use string_match.safe_regex' },
  'envoy.config.route.v3.QueryParameterMatcher': { value: 'use string_match', regex: 'use string_match.safe_regex' },
  'envoy.config.route.v3.Route': { per_filter_config: 'use typed_per_filter_config' },
  'envoy.config.route.v3.VirtualHost': { per_filter_config: 'use typed_per_filter_config' },
  'envoy.config.bootstrap.v3.Bootstrap.DynamicResources': {
    deprecated_v1: 'use lds_config and cds_config',
  },
  'envoy.config.bootstrap.v3.ClusterManager': {
    clusters: 'use static_resources.clusters',
  },
  'envoy.config.route.v3.CorsPolicy': {
    allow_origin: 'use allow_origin_string_match',
    allow_origin_regex: 'use allow_origin_string_match',
    enabled: 'use filter_enabled',
  },
  'envoy.config.route.v3.VirtualCluster': {
    pattern: 'use headers',
    method: 'use headers',
  },
  'envoy.config.core.v3.HealthCheck.HttpHealthCheck': {
    service_name: 'use service_name_matcher',
    use_http2: 'use codec_client_type',
  },
  'envoy.config.core.v3.HealthCheck.CustomHealthCheck': {
    config: 'use typed_config',
  },
  'envoy.config.overload.v3.ResourceMonitor': {
    config: 'use typed_config',
  },
  'envoy.type.matcher.v3.StringMatcher': {
    regex: 'use safe_regex',
  },
  'envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager': {
    idle_timeout: 'use common_http_protocol_options.idle_timeout',
    filters: 'use http_filters',
  },
  'envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager.Tracing': {
    operation_name: 'the traffic_direction of the listener decides',
    request_headers_for_tags: 'use custom_tags',
  },
  'envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy': {
    deprecated_v1: 'use cluster, and filter_chain_match of the filter chain',
    route_config: 'use cluster, and filter_chain_match of the filter chain',
  },
  'envoy.extensions.transport_sockets.tls.v3.CertificateValidationContext': {
    verify_subject_alt_name: 'use match_typed_subject_alt_names',
  },
};

/** Returns the replacement of a field that the v3 API no longer has. */
export function oldFieldHint(message: string, field: string): string | undefined {
  const hints = OLD_FIELDS[message];
  return hints && Object.hasOwn(hints, field) ? `it belongs to an older API; ${hints[field]}` : undefined;
}

/** Returns the replacement of a value in an older format, such as the v1 address tcp://127.0.0.1:80. */
export function oldValueHint(message: string, value: unknown): string {
  const [, host, port] = (typeof value === 'string' && /^tcp:\/\/(.*):(\d+)$/.exec(value)) || [];
  if (message !== 'envoy.config.core.v3.Address' || host === undefined) return '';
  return `; it belongs to an older API: write { socket_address: { address: ${host}, port_value: ${port} } }`;
}

/** Pre-v3 names of extensions, which implied a type if there was no typed_config. */
const OLD_NAMES: { readonly [name: string]: string } = {
  'envoy.http_connection_manager': 'envoy.filters.network.http_connection_manager',
  'envoy.tcp_proxy': 'envoy.filters.network.tcp_proxy',
  'envoy.echo': 'envoy.filters.network.echo',
  'envoy.client_ssl_auth': 'envoy.filters.network.client_ssl_auth',
  'envoy.mongo_proxy': 'envoy.filters.network.mongo_proxy',
  'envoy.redis_proxy': 'envoy.filters.network.redis_proxy',
  'envoy.ratelimit': 'envoy.filters.network.ratelimit',
  'envoy.router': 'envoy.filters.http.router',
  'envoy.buffer': 'envoy.filters.http.buffer',
  'envoy.cors': 'envoy.filters.http.cors',
  'envoy.csrf': 'envoy.filters.http.csrf',
  'envoy.ext_authz': 'envoy.filters.http.ext_authz',
  'envoy.fault': 'envoy.filters.http.fault',
  'envoy.grpc_http1_bridge': 'envoy.filters.http.grpc_http1_bridge',
  'envoy.grpc_json_transcoder': 'envoy.filters.http.grpc_json_transcoder',
  'envoy.grpc_web': 'envoy.filters.http.grpc_web',
  'envoy.gzip': 'envoy.filters.http.compressor',
  'envoy.health_check': 'envoy.filters.http.health_check',
  'envoy.ip_tagging': 'envoy.filters.http.ip_tagging',
  'envoy.lua': 'envoy.filters.http.lua',
  'envoy.rate_limit': 'envoy.filters.http.ratelimit',
  'envoy.listener.http_inspector': 'envoy.filters.listener.http_inspector',
  'envoy.listener.original_dst': 'envoy.filters.listener.original_dst',
  'envoy.listener.original_src': 'envoy.filters.listener.original_src',
  'envoy.listener.proxy_protocol': 'envoy.filters.listener.proxy_protocol',
  'envoy.listener.tls_inspector': 'envoy.filters.listener.tls_inspector',
  'envoy.file_access_log': 'envoy.access_loggers.file',
  'envoy.http_grpc_access_log': 'envoy.access_loggers.http_grpc',
  'envoy.tcp_grpc_access_log': 'envoy.access_loggers.tcp_grpc',
  'envoy.statsd': 'envoy.stat_sinks.statsd',
  'envoy.dog_statsd': 'envoy.stat_sinks.dog_statsd',
  'envoy.metrics_service': 'envoy.stat_sinks.metrics_service',
  'envoy.zipkin': 'envoy.tracers.zipkin',
  'envoy.lightstep': 'envoy.tracers.lightstep',
  'envoy.dynamic.ot': 'envoy.tracers.dynamic_ot',
};

/** Returns the current name of an extension with an old name. */
export function newName(name: string): string | undefined {
  return Object.hasOwn(OLD_NAMES, name) ? OLD_NAMES[name] : undefined;
}
