// What to say to people whose configuration was written for an older API.

/** Fields of v1 and v2 by message and name, and what stands in their place. */
const OLD_FIELDS: { readonly [message: string]: { readonly [field: string]: string } } = {
  'envoy.config.bootstrap.v3.Bootstrap': {
    runtime: 'use layered_runtime',
    statsd_udp_ip_address: 'use stats_sinks',
  },
  'envoy.config.bootstrap.v3.Admin': {
    port: 'use address.socket_address',
  },
  'envoy.config.cluster.v3.Cluster': {
    hosts: 'use load_assignment',
    tls_context: 'use transport_socket',
    eds_cluster_config_name: 'use eds_cluster_config',
    extension_protocol_options: 'use typed_extension_protocol_options',
  },
  'envoy.config.listener.v3.Listener': {
    use_proxy_proto: 'use the listener filter envoy.filters.listener.proxy_protocol',
    filters: 'put the filters into filter_chains',
    deprecated_v1: 'use bind_to_port',
  },
  'envoy.config.listener.v3.FilterChain': {
    tls_context: 'use transport_socket',
    use_proxy_proto: 'use the listener filter envoy.filters.listener.proxy_protocol',
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
    request_mirror_policy: 'use request_mirror_policies',
    use_websocket: 'use upgrade_configs',
  },
  'envoy.config.route.v3.HeaderMatcher': { regex_match: 'use string_match.safe_regex' },
  'envoy.config.route.v3.QueryParameterMatcher': { value: 'use string_match', regex: 'use string_match.safe_regex' },
  'envoy.config.route.v3.Route': { per_filter_config: 'use typed_per_filter_config' },
  'envoy.config.route.v3.VirtualHost': { per_filter_config: 'use typed_per_filter_config' },
  'envoy.config.core.v3.ApiConfigSource': { cluster_names: 'use grpc_services' },
};

/** What replaced a field that the v3 API no longer has. */
export function oldFieldHint(message: string, field: string): string | undefined {
  const hints = OLD_FIELDS[message];
  return hints && Object.hasOwn(hints, field) ? `it is of an older API; ${hints[field]}` : undefined;
}
