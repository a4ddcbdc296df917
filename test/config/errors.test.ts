// Every kind of mistake as the user sees it: file, line, column, path, message, the line and a caret.

import t from 'tap';
import { loadConfiguration, NO_CONFIGURATION } from '../../src/config/load/load.js';
import { BREAKS_A_HEADER, BREAKS_A_LINE } from '../../src/config/schema/line-rules.js';
import { testCatalog } from './catalog.js';
import { bootstrapOf, loadText, problemsOf } from './load-text.js';

const LISTENER = 'static_resources.listeners[0]';
const CLUSTER = 'static_resources.clusters[0]';

/** Returns a listener with this filter, given in flow style. */
function withFilter(filter: string): string {
  return `static_resources:
  clusters: [ { name: known, type: STATIC, load_assignment: { cluster_name: known } } ]
  listeners:
  - name: l
    address: { socket_address: { address: 127.0.0.1, port_value: 80 } }
    filter_chains: [ { filters: [
      ${filter}
      ] } ]
`;
}

const HCM_URL = 'type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager';
const HTTP_OPTIONS = 'envoy.extensions.upstreams.http.v3.HttpProtocolOptions';
const TCP_URL = 'type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy';
const TLS = 'envoy.extensions.transport_sockets.tls.v3';
const POLICIES = 'envoy.extensions.load_balancing_policies';
const MONITORS = 'envoy.extensions.resource_monitors';
const CONNECTIONS = 'envoy.resource_monitors.global_downstream_max_connections';
const ROUTER = '{ name: envoy.filters.http.router }';

/** Returns a connection manager with these virtual hosts and HTTP filters. */
function withRoutes(hosts: string, filters = ROUTER): string {
  return withFilter(`{ name: h, typed_config: { "@type": ${HCM_URL}, stat_prefix: h, http_filters: [ ${filters} ],
        route_config: { virtual_hosts: [
          ${hosts}
        ] } } }`);
}

const BUFFER = 'type.googleapis.com/envoy.extensions.filters.http.buffer.v3.Buffer';
const BUFFERED = `{ name: b, typed_config: { "@type": ${BUFFER}, max_request_bytes: 1 } }`;
const MUTATION = 'type.googleapis.com/envoy.extensions.filters.http.header_mutation.v3.HeaderMutation';
const WRAPPER = '"@type": type.googleapis.com/envoy.config.route.v3.FilterConfig';

/** Returns a virtual host with a per-route configuration of the HTTP filter with that name. */
function routeWithFilter(name: string, fields: string): string {
  return `{ name: v, domains: [ "*" ], typed_per_filter_config: { ${name}: { ${fields} } } }`;
}

/** Title, text, and parts of the expected output. The column verifies the caret's position. */
const CASES: readonly (readonly [title: string, text: string, ...expected: string[]])[] = [
  ...['\\r', '\\n', '\\0'].map(
    (end) =>
      [
        `values that become part of a line and contain a control character (${end})`,
        `node: { id: "n${end}", cluster: "c${end}" }
static_resources:
  listeners:
  - name: "l${end}"
    address: { pipe: { path: "/a${end}" } }
    filter_chains: [ { name: "f${end}", filters: [ { name: h, typed_config: { "@type": ${HCM_URL}, stat_prefix: h, http_filters: [ ${ROUTER} ],
      route_config: { name: "r${end}", virtual_hosts: [ { name: "v${end}", virtual_clusters: [ { name: "c${end}", headers: [ { name: a } ] } ], domains: [ "*" ], cors: { allow_methods: "a${end}", max_age: "m${end}" }, routes: [
        { name: "r${end}", match: { prefix: / }, direct_response: { status: 200 } } ] } ] } } } ] } ]
  clusters:
  - name: "d${end}"
    alt_stat_name: "s${end}"
    load_assignment: { cluster_name: d, endpoints: [ { locality: { region: "r${end}", zone: "z${end}", sub_zone: "s${end}" }, lb_endpoints: [
      { endpoint: { hostname: "e${end}", address: { pipe: { path: "/b${end}" } } } } ] } ] }
  - name: named
    type: STRICT_DNS
    load_assignment: { cluster_name: named, endpoints: [ { lb_endpoints: [
      { endpoint: { address: { socket_address: { address: "h${end}", port_value: 1 } } } } ] } ] }
  - { name: eds, type: EDS, eds_cluster_config: { service_name: "s${end}", eds_config: { path: /endpoints.yaml } } }
`,
        `baton.yaml:1:13: node.id: ${BREAKS_A_HEADER}`,
        `baton.yaml:1:29: node.cluster: ${BREAKS_A_HEADER}`,
        `${LISTENER}.name: ${BREAKS_A_LINE}`,
        `${LISTENER}.address.pipe.path: ${BREAKS_A_HEADER}`,
        `filter_chains[0].name: ${BREAKS_A_HEADER}`,
        `route_config.name: ${BREAKS_A_HEADER}`,
        `virtual_hosts[0].name: ${BREAKS_A_HEADER}`,
        `virtual_hosts[0].virtual_clusters[0].name: ${BREAKS_A_HEADER}`,
        `virtual_hosts[0].cors.allow_methods: ${BREAKS_A_HEADER}`,
        `virtual_hosts[0].cors.max_age: ${BREAKS_A_HEADER}`,
        `virtual_hosts[0].routes[0].name: ${BREAKS_A_HEADER}`,
        `${CLUSTER}.name: ${BREAKS_A_HEADER}`,
        `${CLUSTER}.alt_stat_name: ${BREAKS_A_HEADER}`,
        `locality.region: ${BREAKS_A_LINE}`,
        `locality.zone: ${BREAKS_A_LINE}`,
        `locality.sub_zone: ${BREAKS_A_LINE}`,
        `lb_endpoints[0].endpoint.hostname: ${BREAKS_A_HEADER}`,
        `lb_endpoints[0].endpoint.address.pipe.path: ${BREAKS_A_HEADER}`,
        `static_resources.clusters[1].load_assignment.endpoints[0].lb_endpoints[0].endpoint.address.socket_address.address: 'h`,
        `static_resources.clusters[2].eds_cluster_config.service_name: ${BREAKS_A_LINE}`,
      ] as const,
  ),
  ...['\\e', '\\x7f', '\\u009b', '\\u2028'].map(
    (control) =>
      [
        `names with a control character (${control})`,
        `node: { id: "n${control}", cluster: c }
static_resources:
  listeners:
  - name: "l${control}"
    address: { pipe: { path: /a } }
    filter_chains: [ { filters: [ { name: h, typed_config: { "@type": ${HCM_URL}, stat_prefix: h, server_name: "s${control}", via: "v${control}",
      http_filters: [ ${ROUTER} ], route_config: { virtual_hosts: [ { name: v, domains: [ "*" ], routes: [
        { match: { prefix: / }, redirect: { path_redirect: "/p${control}" } } ] } ] } } } ] } ]
  clusters:
  - name: "d${control}"
`,
        `baton.yaml:1:13: node.id: ${BREAKS_A_HEADER}`,
        `${LISTENER}.name: ${BREAKS_A_LINE}`,
        `typed_config.server_name: ${BREAKS_A_HEADER}`,
        `typed_config.via: ${BREAKS_A_HEADER}`,
        `redirect.path_redirect: ${BREAKS_A_HEADER}`,
        `${CLUSTER}.name: ${BREAKS_A_HEADER}`,
      ] as const,
  ),
  [
    'transport sockets that Baton does not implement',
    `static_resources:
  listeners:
  - address: { pipe: { path: /a } }
    filter_chains:
    - { transport_socket: { name: envoy.transport_sockets.tls } }
    - { transport_socket: { name: envoy.transport_sockets.raw_buffer, typed_config: { "@type": type.googleapis.com/${TLS}.DownstreamTlsContext } } }
    - { transport_socket: { name: plain } }
  clusters:
  - name: c
    load_assignment: { cluster_name: c }
    transport_socket: { name: envoy.transport_sockets.raw_buffer, typed_config: { "@type": type.googleapis.com/${TLS}.UpstreamTlsContext } }
    transport_socket_matches: [ { name: m } ]
`,
    `${CLUSTER}.transport_socket_matches[0]: it needs a transport_socket: a TLS context, or a raw_buffer`,
  ],
  [
    'settings of a transport socket that has none',
    `static_resources:
  clusters:
  - name: c
    load_assignment: { cluster_name: c }
    transport_socket: { name: r, typed_config: { "@type": type.googleapis.com/envoy.extensions.transport_sockets.raw_buffer.v3.RawBuffer, tls: 1 } }
`,
    `${CLUSTER}.transport_socket.typed_config.tls: unknown field 'tls'`,
  ],
  [
    'a gRPC service whose cluster uses HTTP/1.1',
    `static_resources:
  clusters:
  - { name: collector, load_assignment: { cluster_name: collector } }
stats_sinks:
- name: envoy.stat_sinks.metrics_service
  typed_config:
    "@type": type.googleapis.com/envoy.config.metrics.v3.MetricsServiceConfig
    grpc_service: { envoy_grpc: { cluster_name: collector } }
`,
    "baton.yaml:8:49: stats_sinks[0].typed_config.grpc_service.envoy_grpc.cluster_name: gRPC needs HTTP/2: give cluster 'collector' http2_protocol_options",
  ],
  [
    'keepalive settings without an interval',
    `static_resources:
  clusters:
  - name: a
    load_assignment: { cluster_name: a }
    http2_protocol_options: { connection_keepalive: { timeout: 1s } }
  - name: b
    load_assignment: { cluster_name: b }
    http2_protocol_options: { connection_keepalive: { interval: 1s, timeout: 1s } }
    typed_extension_protocol_options:
      ${HTTP_OPTIONS}:
        "@type": type.googleapis.com/${HTTP_OPTIONS}
        explicit_http_config: { http2_protocol_options: { connection_keepalive: { timeout: 1s, interval_jitter: { value: 1 } } } }
`,
    `baton.yaml:5:31: ${CLUSTER}.http2_protocol_options.connection_keepalive: it has no effect without an interval`,
    `baton.yaml:8:31: static_resources.clusters[1].http2_protocol_options.connection_keepalive: the cluster's '${HTTP_OPTIONS}' have http2_protocol_options, which take precedence: set it there`,
    `baton.yaml:12:59: static_resources.clusters[1].typed_extension_protocol_options["${HTTP_OPTIONS}"].explicit_http_config.http2_protocol_options.connection_keepalive: it has no effect without an interval`,
  ],
  [
    'a field of a sink that is not implemented',
    `stats_sinks:
- name: envoy.stat_sinks.open_telemetry
  typed_config:
    "@type": type.googleapis.com/envoy.extensions.stat_sinks.open_telemetry.v3.SinkConfig
    http_service: { http_uri: { uri: http://collector/v1/metrics, cluster: nowhere, timeout: 1s } }
    custom_metric_conversions: {}
`,
    "stats_sinks[0].typed_config.custom_metric_conversions: field 'custom_metric_conversions' of envoy.extensions.stat_sinks.open_telemetry.v3.SinkConfig is not implemented in Baton",
  ],
  [
    'a sink that sends to an unknown cluster',
    `stats_sinks:
- name: envoy.stat_sinks.statsd
  typed_config: { "@type": type.googleapis.com/envoy.config.metrics.v3.StatsdSink, tcp_cluster_name: nowhere }
`,
    "stats_sinks[0].typed_config.tcp_cluster_name: unknown cluster 'nowhere'",
  ],
  [
    'an unknown field with a similar name',
    'admin:\n  adress: {}\n',
    `baton.yaml:2:3: admin.adress: unknown field 'adress' of envoy.config.bootstrap.v3.Admin; did you mean 'address'?
  2 |   adress: {}
    |   ^`,
  ],
  [
    'a field from an older API',
    'static_resources:\n  clusters:\n  - name: a\n    load_assignment: { cluster_name: a }\n    hosts: []\n',
    `baton.yaml:5:5: ${CLUSTER}.hosts: unknown field 'hosts' of envoy.config.cluster.v3.Cluster: it belongs to an older API; use load_assignment
  5 |     hosts: []
    |     ^`,
  ],
  [
    'a field that is not implemented',
    'cluster_manager: { outlier_detection: { event_service: {} } }\n',
    `baton.yaml:1:41: cluster_manager.outlier_detection.event_service: field 'event_service' of envoy.config.bootstrap.v3.ClusterManager.OutlierDetection is not implemented in Baton: events go to a file: event_log_path
  1 | cluster_manager: { outlier_detection: { event_service: {} } }
    |                                         ^`,
  ],
  [
    'mistakes in an overload manager',
    `overload_manager:
  resource_monitors:
  - { name: ${CONNECTIONS}, typed_config: { "@type": type.googleapis.com/${MONITORS}.downstream_connections.v3.DownstreamConnectionsConfig, max_active_downstream_connections: 0 } }
  - { name: connections, typed_config: { "@type": type.googleapis.com/${MONITORS}.downstream_connections.v3.DownstreamConnectionsConfig, max_active_downstream_connections: 1 } }
  - { name: ${CONNECTIONS}, typed_config: { "@type": type.googleapis.com/${MONITORS}.downstream_connections.v3.DownstreamConnectionsConfig, max_active_downstream_connections: 1 } }
  actions:
  - { name: a, triggers: [ { name: b, threshold: { value: 1 } } ] }
  loadshed_points: [ { name: a, triggers: [ { name: b, threshold: { value: 1 } } ] } ]
`,
    'resource_monitors[0].typed_config.max_active_downstream_connections: it must be set',
    `resource_monitors[1].name: the connection monitor must have the name '${CONNECTIONS}'`,
    `resource_monitors[2].name: duplicate resource monitor '${CONNECTIONS}': overload_manager.resource_monitors[0].name is the same`,
    "actions[0].name: unknown overload action 'a'",
    "actions[0].triggers[0].name: unknown trigger resource 'b'",
    "loadshed_points[0].name: load shed point 'a' conflicts with an overload action of the same name",
    "loadshed_points[0].triggers[0].name: unknown trigger resource 'b'",
  ],
  [
    'an overload manager without monitors',
    'overload_manager: {}\n',
    'baton.yaml:1:1: overload_manager.resource_monitors: ',
  ],
  [
    'a value of an enum that is not implemented',
    `static_resources:
  clusters:
  - name: a
    health_checks:
    - { timeout: 1s, interval: 1s, unhealthy_threshold: 1, healthy_threshold: 1, http_health_check: { path: /, codec_client_type: http3 } }
`,
    `baton.yaml:5:131: ${CLUSTER}.health_checks[0].http_health_check.codec_client_type: 'HTTP3' of envoy.config.core.v3.HealthCheck.HttpHealthCheck.codec_client_type is not implemented in Baton: use HTTP1 or HTTP2
  5 | … 1s, unhealthy_threshold: 1, healthy_threshold: 1, http_health_check: { path: /, codec_client_type: http3 } }
    |                                                                                                      ^`,
  ],
  [
    'two filter chains for the same connections',
    'static_resources:\n  listeners:\n  - address: { pipe: { path: /a } }\n    filter_chains: [ { name: one }, { name: two } ]\n',
    `baton.yaml:4:37: ${LISTENER}.filter_chains[1]: filter chain 'two' has the same matching rules defined as 'one': see ${LISTENER}.filter_chains[0]
  4 |     filter_chains: [ { name: one }, { name: two } ]
    |                                     ^`,
  ],
  [
    'two filter chains with overlapping matches',
    `static_resources:
  listeners:
  - address: { pipe: { path: /a } }
    filter_chains:
    - filter_chain_match: { source_ports: [ 1, 2 ], prefix_ranges: [ { address_prefix: 10.1.2.3, prefix_len: 8 } ] }
    - filter_chain_match: { source_ports: [ 2, 3 ], prefix_ranges: [ { address_prefix: 10.0.0.0, prefix_len: 8 } ] }
`,
    `baton.yaml:6:27: ${LISTENER}.filter_chains[1].filter_chain_match: multiple filter chains with overlapping matching rules are defined: see ${LISTENER}.filter_chains[0]
  6 |     - filter_chain_match: { source_ports: [ 2, 3 ], prefix_ranges: [ { address_prefix: 10.0.0.0, prefix_len: 8 } ] }
    |                           ^`,
  ],
  [
    'a partial wildcard of a server name',
    `static_resources:
  listeners:
  - address: { pipe: { path: /a } }
    filter_chains:
    - filter_chain_match: { server_names: [ '*', 'a*.b' ] }
`,
    `baton.yaml:5:45: ${LISTENER}.filter_chains[0].filter_chain_match.server_names[0]: partial wildcards are not supported: write a whole name, or '*.' and a suffix like *.example.com
  5 |     - filter_chain_match: { server_names: [ '*', 'a*.b' ] }
    |                                             ^
baton.yaml:5:50: ${LISTENER}.filter_chains[0].filter_chain_match.server_names[1]: partial wildcards are not supported: write a whole name, or '*.' and a suffix like *.example.com
  5 |     - filter_chain_match: { server_names: [ '*', 'a*.b' ] }
    |                                                  ^`,
  ],
  [
    'a range with an invalid address',
    `static_resources:
  listeners:
  - address: { pipe: { path: /a } }
    filter_chains:
    - filter_chain_match: { source_prefix_ranges: [ { address_prefix: localhost } ] }
`,
    `baton.yaml:5:71: ${LISTENER}.filter_chains[0].filter_chain_match.source_prefix_ranges[0].address_prefix: malformed IP address: localhost
  5 |     - filter_chain_match: { source_prefix_ranges: [ { address_prefix: localhost } ] }
    |                                                                       ^`,
  ],
  [
    'a match of the default filter chain',
    `static_resources:
  listeners:
  - address: { pipe: { path: /a } }
    default_filter_chain: { filter_chain_match: { source_type: external } }
`,
    `baton.yaml:4:49: ${LISTENER}.default_filter_chain.filter_chain_match: the default filter chain accepts all connections that no other chain matches: leave it out
  4 |     default_filter_chain: { filter_chain_match: { source_type: external } }
    |                                                 ^`,
  ],
  [
    'text where a number belongs',
    'admin: { address: { socket_address: { address: 127.0.0.1, port_value: http } } }\n',
    `baton.yaml:1:71: admin.address.socket_address.port_value: expected a whole number, found 'http'
  1 | admin: { address: { socket_address: { address: 127.0.0.1, port_value: http } } }
    |                                                                       ^`,
  ],
  [
    'a number where text belongs',
    'node: { id: 12 }\n',
    `baton.yaml:1:13: node.id: expected text, found the number 12; put it in quotes
  1 | node: { id: 12 }
    |             ^`,
  ],
  [
    'a number out of range',
    'admin: { address: { socket_address: { address: 127.0.0.1, port_value: 70000 } } }\n',
    `baton.yaml:1:71: admin.address.socket_address.port_value: it must be at most 65535, found 70000
  1 | admin: { address: { socket_address: { address: 127.0.0.1, port_value: 70000 } } }
    |                                                                       ^`,
  ],
  [
    'a negative number in an unsigned field',
    'static_resources:\n  listeners: [ { per_connection_buffer_limit_bytes: -1 } ]\n',
    `baton.yaml:2:16: ${LISTENER}: a listener needs an address
  2 |   listeners: [ { per_connection_buffer_limit_bytes: -1 } ]
    |                ^
baton.yaml:2:16: ${LISTENER}: no filter chains specified
  2 |   listeners: [ { per_connection_buffer_limit_bytes: -1 } ]
    |                ^
baton.yaml:2:53: ${LISTENER}.per_connection_buffer_limit_bytes: -1 is out of range: 0 to 4294967295
  2 |   listeners: [ { per_connection_buffer_limit_bytes: -1 } ]
    |                                                     ^`,
  ],
  [
    'a duration without a unit',
    'stats_flush_interval: 5\n',
    `baton.yaml:1:23: stats_flush_interval: expected a duration, found the number 5; write it as '5s'
  1 | stats_flush_interval: 5
    |                       ^`,
  ],
  [
    'a duration in another unit',
    'stats_flush_interval: 250ms\n',
    `baton.yaml:1:23: stats_flush_interval: expected a duration in seconds such as '1.5s', found '250ms'; write it as '0.25s'
  1 | stats_flush_interval: 250ms
    |                       ^`,
  ],
  [
    'separate fields that do not form a duration',
    'stats_flush_interval: { seconds: 5, nanos: 1000000000 }\n',
    `baton.yaml:1:23: stats_flush_interval: a duration has 0 to 315576000000 seconds and 0 to 999999999 nanos
  1 | stats_flush_interval: { seconds: 5, nanos: 1000000000 }
    |                       ^`,
  ],
  [
    'a number that is not a value of the enum',
    'static_resources:\n  clusters:\n  - { name: a, load_assignment: { cluster_name: a }, lb_policy: 301 }\n',
    `baton.yaml:3:65: ${CLUSTER}.lb_policy: 301 is not a value of envoy.config.cluster.v3.Cluster.LbPolicy; it is one of ROUND_ROBIN, LEAST_REQUEST, RING_HASH, RANDOM, MAGLEV, CLUSTER_PROVIDED, LOAD_BALANCING_POLICY_CONFIG
  3 |   - { name: a, load_assignment: { cluster_name: a }, lb_policy: 301 }
    |                                                                 ^`,
  ],
  [
    'a duration that violates the rules of the API',
    'stats_flush_interval: 0.0001s\n',
    `baton.yaml:1:23: stats_flush_interval: it must be at least 0.001s, found 0.000100s
  1 | stats_flush_interval: 0.0001s
    |                       ^`,
  ],
  [
    'an unknown value of an enum',
    'static_resources:\n  clusters:\n  - { name: a, load_assignment: { cluster_name: a }, type: STRICT_DSN }\n',
    `baton.yaml:3:60: ${CLUSTER}.type: unknown value 'STRICT_DSN'; did you mean 'STRICT_DNS'?
  3 |   - { name: a, load_assignment: { cluster_name: a }, type: STRICT_DSN }
    |                                                            ^`,
  ],
  [
    'a mistake in a single value that stands for a list',
    'static_resources:\n  clusters:\n    name: a\n    load_assignment: { cluster_name: a, endpoints: { prority: 1 } }\n',
    `baton.yaml:4:54: ${CLUSTER}.load_assignment.endpoints[0].prority: unknown field 'prority' of envoy.config.endpoint.v3.LocalityLbEndpoints; did you mean 'priority'?
  4 |     load_assignment: { cluster_name: a, endpoints: { prority: 1 } }
    |                                                      ^`,
  ],
  [
    'a scalar where a list of messages belongs',
    'static_resources:\n  clusters: a\n',
    `baton.yaml:2:13: ${CLUSTER}: expected the fields of envoy.config.cluster.v3.Cluster, found 'a'
  2 |   clusters: a
    |             ^`,
  ],
  [
    'a list where a single value belongs',
    'admin:\n- address: {}\n',
    `baton.yaml:2:1: admin: expected the fields of envoy.config.bootstrap.v3.Admin, found a list; remove the '-'
  2 | - address: {}
    | ^`,
  ],
  [
    'two members of a oneof',
    'admin:\n  address:\n    pipe: { path: /a }\n    socket_address: { address: 127.0.0.1, port_value: 1 }\n',
    `baton.yaml:4:5: admin.address.socket_address: only one of socket_address, pipe, envoy_internal_address can be set, and 'pipe' is set as well
  4 |     socket_address: { address: 127.0.0.1, port_value: 1 }
    |     ^`,
  ],
  [
    'a required oneof without a member',
    'admin:\n  address: {}\n',
    `baton.yaml:2:12: admin.address: one of socket_address, pipe, envoy_internal_address must be set
  2 |   address: {}
    |            ^`,
  ],
  [
    'a field that must be set',
    'admin: { address: { pipe: {} } }\n',
    `baton.yaml:1:21: admin.address.pipe.path: it must be set
  1 | admin: { address: { pipe: {} } }
    |                     ^`,
  ],
  [
    'a tab in a map',
    'node: { id: a,\n\tcluster: b }\n',
    `baton.yaml:2:2: Flow map in block collection must be sufficiently indented and end with a }; the line begins with a tab: indent with spaces
  2 |  cluster: b }
    |  ^`,
  ],
  [
    'a line that is indented too little',
    'node:\n  id: a\n cluster: b\n',
    `baton.yaml:3:2: All mapping items must start at the same column; the line is indented more or less than the lines it belongs to
  3 |  cluster: b
    |  ^`,
  ],
  [
    'a line that is indented too far',
    'node:\n  id: a\n   cluster: b\n',
    `baton.yaml:2:7: Nested mappings are not allowed in compact mappings; put a text with ': ' into quotes, or indent the following line less
  2 |   id: a
    |       ^`,
  ],
  [
    'a duplicate key',
    'node: { id: a, id: b }\n',
    `baton.yaml:1:16: 'id' is set twice
  1 | node: { id: a, id: b }
    |                ^`,
  ],
  [
    'a duplicate key among other mistakes: the last value is checked',
    `node: { id: a }
stats_flush_interval: 0
stats_flush_interval: 1
static_resources: { clusters: [ { name: a, name: b, conect_timeout: 1s, load_assignment: { cluster_name: b } } ] }
`,
    `baton.yaml:3:1: 'stats_flush_interval' is set twice
  3 | stats_flush_interval: 1
    | ^
baton.yaml:3:23: stats_flush_interval: expected a duration, found the number 1; write it as '1s'
  3 | stats_flush_interval: 1
    |                       ^
baton.yaml:4:44: 'name' is set twice
  4 | static_resources: { clusters: [ { name: a, name: b, conect_timeout: 1s, load_assignment: { cluster_name: b } } ] }
    |                                            ^
baton.yaml:4:53: ${CLUSTER}.conect_timeout: unknown field 'conect_timeout' of envoy.config.cluster.v3.Cluster; did you mean 'connect_timeout'?
  4 | static_resources: { clusters: [ { name: a, name: b, conect_timeout: 1s, load_assignment: { cluster_name: b } } ] }
    |                                                     ^`,
  ],
  [
    'base64 with an invalid length or invalid padding',
    `static_resources:
  secrets:
  - { name: a, generic_secret: { secret: { inline_bytes: YWJjZ } } }
  - { name: b, generic_secret: { secret: { inline_bytes: YWI== } } }
  - { name: c, generic_secret: { secret: { inline_bytes: YQ= } } }
  - { name: d, generic_secret: { secret: { inline_bytes: YQ } } }
`,
    'secrets[0].generic_secret.secret.inline_bytes: expected bytes in base64',
    'secrets[1].generic_secret.secret.inline_bytes: expected bytes in base64',
    'secrets[2].generic_secret.secret.inline_bytes: expected bytes in base64',
  ],
  [
    'an unclosed quote',
    `node:\n  id: "abc\n  cluster: b\nadmin: {}\nflags_path: x\n`,
    `baton.yaml:2:7: Missing closing "quote
  2 |   id: "abc
    |       ^`,
  ],
  [
    'a name without a colon',
    'node:\n  id a\n  cluster: b\n',
    `baton.yaml:2:3: Implicit keys need to be on a single line; separate a name from its value by a colon and a space
  2 |   id a
    |   ^`,
  ],
  [
    'a field of an item that is indented too little',
    'static_resources:\n  clusters:\n  - name: a\n   type: STATIC\n',
    `baton.yaml:4:4: Sequence item without - indicator; the line is indented less than the item above it
  4 |    type: STATIC
    |    ^`,
  ],
  [
    'a mistake in a text with Windows line ends',
    'node:\r\n  idd: a\r\n',
    `baton.yaml:2:3: node.idd: unknown field 'idd' of envoy.config.core.v3.Node; did you mean 'id'?
  2 |   idd: a
    |   ^`,
  ],
  [
    'a field in both spellings',
    'statsFlushInterval: 1s\nstats_flush_interval: 1s\n',
    `baton.yaml:2:1: stats_flush_interval: 'stats_flush_interval' is set twice, the first time as 'statsFlushInterval'
  2 | stats_flush_interval: 1s
    | ^`,
  ],
  [
    'a field in both spellings, in the other order',
    '{"stats_flush_interval": "1s", "statsFlushInterval": "1s"}\n',
    "baton.yaml:1:2: stats_flush_interval: 'statsFlushInterval' is set twice, the first time as 'stats_flush_interval'",
  ],
  [
    'a regular expression that RE2 rejects',
    withRoutes('{ name: v, domains: [ "*" ], routes: [ { match: { safe_regex: { regex: "(" } }, redirect: {} } ] }'),
    `baton.yaml:9:82: ${LISTENER}.filter_chains[0].filters[0].typed_config.route_config.virtual_hosts[0].routes[0].match.safe_regex.regex: invalid regular expression '(': missing ): (
  9 |           { name: v, domains: [ "*" ], routes: [ { match: { safe_regex: { regex: "(" } }, redirect: {} } ] }
    |                                                                                  ^`,
  ],
  [
    'a host name as address of the admin interface',
    'admin: { address: { socket_address: { address: localhost, port_value: 1 } } }\n',
    'baton.yaml:1:48: admin.address.socket_address.address: malformed IP address: localhost',
  ],
  [
    'a socket path that is too long',
    `admin: { address: { pipe: { path: /${'x'.repeat(120)} } } }\n`,
    'admin.address.pipe.path: the path of a Unix socket has at most 107 bytes, found 121',
  ],
  [
    'a mode of an abstract socket',
    'static_resources: { listeners: [ { address: { pipe: { path: "@a", mode: 0600 } } } ] }\n',
    `baton.yaml:1:73: ${LISTENER}.address.pipe.mode: an abstract Unix socket (@) has no mode: leave it out`,
  ],
  [
    'a host name as source address',
    'static_resources:\n  clusters: [ { name: a, load_assignment: { cluster_name: a }, upstream_bind_config: { source_address: { address: host, port_value: 0 } } } ]\n',
    `${CLUSTER}.upstream_bind_config.source_address.address: malformed IP address: host`,
  ],
  [
    'TCP keepalive settings that the kernel rejects',
    'static_resources:\n  clusters: [ { name: a, load_assignment: { cluster_name: a }, upstream_connection_options: { tcp_keepalive: { keepalive_probes: 0 } } } ]\n',
    `${CLUSTER}.upstream_connection_options.tcp_keepalive.keepalive_probes: it must be between 1 and 127, found 0`,
  ],
  [
    'upstream-only HTTP options in a connection manager',
    `static_resources:
  listeners:
  - address: { socket_address: { address: 127.0.0.1, port_value: 0 } }
    filter_chains:
    - filters:
      - name: manager
        typed_config:
          "@type": ${HCM_URL}
          stat_prefix: a
          route_config: {}
          common_http_protocol_options: { max_response_headers_kb: 80 }
          http_filters: [ { name: router, typed_config: { "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router } } ]
`,
    'common_http_protocol_options.max_response_headers_kb: it is about responses of hosts and has no effect here: set it in the cluster',
  ],
  [
    'intervals in the wrong order',
    'static_resources:\n  clusters: [ { name: a, load_assignment: { cluster_name: a }, dns_failure_refresh_rate: { base_interval: 5s, max_interval: 1s } } ]\n',
    'dns_failure_refresh_rate.max_interval: max_interval must be greater than or equal to base_interval',
  ],
  [
    'an ejection time above its maximum, and unsupported outlier detection',
    `
static_resources:
  clusters:
  - { name: a, outlier_detection: { max_ejection_time: 29s } }
  - { name: b, outlier_detection: { base_ejection_time: 2s, max_ejection_time: 1.5s, monitors: [ { name: m } ] } }
  - { name: c, outlier_detection: { base_ejection_time: 400s } }
`,
    'clusters[0].outlier_detection.max_ejection_time: max_ejection_time must not be smaller than base_ejection_time, which is 30s',
    'clusters[1].outlier_detection.max_ejection_time: max_ejection_time must not be smaller than base_ejection_time, which is 2s',
    'clusters[1].outlier_detection.monitors: ',
  ],
  [
    'a per-route configuration in place of a filter',
    withRoutes('', `{ name: b, typed_config: { "@type": ${BUFFER}PerRoute, disabled: true } }, ${ROUTER}`),
    `http_filters[0].typed_config.@type: it is the per-route configuration of 'envoy.filters.http.buffer'; the filter needs envoy.extensions.filters.http.buffer.v3.Buffer`,
  ],
  [
    'a filter in place of its per-route configuration',
    withRoutes(routeWithFilter('b', `"@type": ${BUFFER}, max_request_bytes: 1`), `${BUFFERED}, ${ROUTER}`),
    `typed_per_filter_config.b.@type: it configures the filter 'envoy.filters.http.buffer' itself; its per-route configuration is envoy.extensions.filters.http.buffer.v3.BufferPerRoute`,
  ],
  [
    'a per-route configuration of another filter',
    withRoutes(routeWithFilter('b', `"@type": ${MUTATION}PerRoute`), `${BUFFERED}, ${ROUTER}`),
    `typed_per_filter_config.b.@type: the filter 'b' is 'envoy.filters.http.buffer', and this message belongs to 'envoy.filters.http.header_mutation'`,
  ],
  [
    'a wrapper without a configuration',
    withRoutes(routeWithFilter('b', WRAPPER), `${BUFFERED}, ${ROUTER}`),
    `typed_per_filter_config.b: config is missing: 'config: {}' switches the filter on, 'disabled: true' switches it off`,
  ],
  [
    'a wrapper with a message of another filter, of no filter, or of a filter itself',
    withRoutes(routeWithFilter('b', `${WRAPPER}, config: { "@type": ${MUTATION}PerRoute }`), `${BUFFERED}, ${ROUTER}`),
    `typed_per_filter_config.b.config.@type: the filter 'b' is 'envoy.filters.http.buffer', and this message belongs to 'envoy.filters.http.header_mutation'`,
  ],
  [
    'a wrapper around an unimplemented filter or another extension',
    withRoutes(
      `{ name: v, domains: [ "*" ], typed_per_filter_config: {
        c: { ${WRAPPER}, config: { "@type": type.googleapis.com/envoy.extensions.filters.http.cors.v3.CorsPolicy } },
        d: { ${WRAPPER}, is_optional: true, config: { "@type": ${TCP_URL} } },
        e: { ${WRAPPER}, is_optional: true, config: { "@type": ${BUFFER}PerRoute, disabled: 3 } },
        f: { ${WRAPPER}, config: { ${WRAPPER}, disabled: true } } } }`,
    ),
    `typed_per_filter_config.c.config.@type: Didn't find a registered implementation for 'c' with type URL: 'type.googleapis.com/envoy.extensions.filters.http.cors.v3.CorsPolicy': Baton does not implement this extension`,
    `typed_per_filter_config.d.config.@type: Didn't find a registered implementation for 'd' with type URL: '${TCP_URL}': an extension of envoy.filters.http is needed here, and 'envoy.filters.network.tcp_proxy' belongs to envoy.filters.network`,
    'typed_per_filter_config.e.config.disabled: ',
    "typed_per_filter_config.f.config.@type: Didn't find a registered implementation for 'f'",
  ],
  [
    'an unimplemented request ID extension',
    withFilter(`{ name: h, typed_config: { "@type": ${HCM_URL}, stat_prefix: h, http_filters: [ ${ROUTER} ], route_config: {},
      request_id_extension: { typed_config: { "@type": type.googleapis.com/acme.RequestIds } } } }`),
    "request_id_extension.typed_config.@type: Didn't find a registered implementation for '' with type URL: 'type.googleapis.com/acme.RequestIds'",
  ],
  [
    'timeouts of gRPC calls that would have no effect',
    withRoutes(`{ name: v, domains: [ "*" ], routes: [
      { match: { prefix: /a }, route: { cluster: known, max_stream_duration: { grpc_timeout_header_offset: 1s } } },
      { match: { prefix: /b }, route: { cluster: known, grpc_timeout_offset: 1s } },
      { match: { prefix: /c }, route: { cluster: known, max_grpc_timeout: 1s, max_stream_duration: {} } } ] }`),
    'routes[0].route.max_stream_duration.grpc_timeout_header_offset: it has an effect with grpc_timeout_header_max only',
    'routes[1].route.grpc_timeout_offset: it has an effect with max_grpc_timeout only',
    'routes[2].route.max_grpc_timeout: it has no effect because max_stream_duration is set: set grpc_timeout_header_max there',
  ],
  [
    'a router that a route disables',
    withRoutes(routeWithFilter('envoy.filters.http.router', `${WRAPPER}, disabled: true`)),
    `typed_per_filter_config["envoy.filters.http.router"].disabled: 'envoy.filters.http.router' ends the chain and cannot be disabled`,
  ],
  [
    'a wrapper around a filter in the chain',
    withRoutes('', `{ name: b, typed_config: { ${WRAPPER}, config: {} } }, ${ROUTER}`),
    `http_filters[0].typed_config.@type: Didn't find a registered implementation for 'b' with type URL: 'type.googleapis.com/envoy.config.route.v3.FilterConfig'`,
  ],
  [
    'a router that is disabled',
    withRoutes('', '{ name: envoy.filters.http.router, disabled: true }'),
    `http_filters[0].disabled: 'envoy.filters.http.router' ends the chain and cannot be disabled`,
  ],
  [
    'an extension by its name in an older API',
    withRoutes('', '{ name: envoy.router, config: {} }'),
    `http_filters[0]: Didn't find a registered implementation for 'envoy.router' with type URL: '': the name belongs to an older API; use 'envoy.filters.http.router'`,
  ],
  [
    'an address from an older API',
    'admin: { address: "tcp://127.0.0.1:8001" }\n',
    `baton.yaml:1:19: admin.address: expected the fields of envoy.config.core.v3.Address, found 'tcp://127.0.0.1:8001'; it belongs to an older API: write { socket_address: { address: 127.0.0.1, port_value: 8001 } }
  1 | admin: { address: "tcp://127.0.0.1:8001" }
    |                   ^`,
  ],
  [
    'a misspelt extension name',
    withRoutes('', '{ name: envoy.filters.http.rooter }'),
    `with type URL: ''; did you mean 'envoy.filters.http.router'?`,
  ],
  [
    'an unimplemented Envoy extension, by name',
    withRoutes('', `{ name: envoy.filters.http.csrf }, ${ROUTER}`),
    `http_filters[0]: Didn't find a registered implementation for 'envoy.filters.http.csrf' with type URL: '': Baton does not implement this extension`,
  ],
  [
    'an extension of the wrong category, by name',
    withFilter(ROUTER),
    `baton.yaml:7:7: ${LISTENER}.filter_chains[0].filters[0]: Didn't find a registered implementation for 'envoy.filters.http.router' with type URL: ''
  7 |       { name: envoy.filters.http.router }
    |       ^`,
  ],
  [
    'an extension by the last part of its name',
    withRoutes('', '{ name: router }'),
    `with type URL: ''; did you mean 'envoy.filters.http.router'?`,
  ],
  [
    'a type URL that shares only the package with a known one',
    withFilter(
      '{ name: p, typed_config: { "@type": type.googleapis.com/envoy.extensions.filters.network.postgres_proxy.v3alpha.PostgresProxy } }',
    ),
    `baton.yaml:7:43: ${LISTENER}.filter_chains[0].filters[0].typed_config.@type: Didn't find a registered implementation for 'p' with type URL: 'type.googleapis.com/envoy.extensions.filters.network.postgres_proxy.v3alpha.PostgresProxy': Baton does not implement this extension
  7 |       { name: p, typed_config: { "@type": type.googleapis.com/envoy.extensions.filters.network.postgres_proxy.v3alpha.PostgresProxy } }
    |                                           ^`,
  ],
  [
    'a type URL with the wrong package',
    withFilter('{ name: p, typed_config: { "@type": type.googleapis.com/envoy.filters.network.tcp.v3.TcpProxy } }'),
    `with type URL: 'type.googleapis.com/envoy.filters.network.tcp.v3.TcpProxy'; did you mean '${TCP_URL}'?`,
  ],
  [
    'config from an older API, which causes no other errors',
    withFilter('{ name: envoy.filters.network.tcp_proxy, config: { stat_prefix: t, cluster: known } }'),
    `baton.yaml:7:48: ${LISTENER}.filter_chains[0].filters[0].config: unknown field 'config' of envoy.config.listener.v3.Filter: it belongs to an older API; use typed_config
  7 |       { name: envoy.filters.network.tcp_proxy, config: { stat_prefix: t, cluster: known } }
    |                                                ^`,
  ],
  [
    'hosts from an older API, which cause no other errors',
    'static_resources: { clusters: [ { name: a, type: LOGICAL_DNS, hosts: [] } ] }\n',
    `baton.yaml:1:63: ${CLUSTER}.hosts: unknown field 'hosts' of envoy.config.cluster.v3.Cluster: it belongs to an older API; use load_assignment
  1 | static_resources: { clusters: [ { name: a, type: LOGICAL_DNS, hosts: [] } ] }
    |                                                               ^`,
  ],
  [
    'a field that belongs one level deeper',
    `static_resources:
  clusters:
  - name: a
    load_assignment:
      cluster_name: a
      endpoints:
      - lb_endpoints:
        - endpoint:
          address: { socket_address: { address: 127.0.0.1, port_value: 1 } }
`,
    `baton.yaml:9:11: ${CLUSTER}.load_assignment.endpoints[0].lb_endpoints[0].address: unknown field 'address' of envoy.config.endpoint.v3.LbEndpoint; it belongs in 'endpoint'
  9 |           address: { socket_address: { address: 127.0.0.1, port_value: 1 } }
    |           ^`,
  ],
  [
    'a field of filter chains next to them',
    `static_resources:
  listeners:
  - address: { pipe: { path: /a } }
    filterChains: [ { filters: [ { name: envoy.filters.network.tcp_proxy, typed_config: { "@type": ${TCP_URL}, stat_prefix: t, cluster: known } } ] } ]
    transport_socket: { name: tls }
  clusters: [ { name: known, load_assignment: { cluster_name: known } } ]
`,
    `baton.yaml:5:5: ${LISTENER}.transport_socket: unknown field 'transport_socket' of envoy.config.listener.v3.Listener; it belongs in 'filter_chains'
  5 |     transport_socket: { name: tls }
    |     ^`,
  ],
  [
    'an internal listener without the bootstrap extension',
    `static_resources:
  listeners:
  - name: inner
    internal_listener: {}
    filter_chains: [ { filters: [ { name: envoy.filters.network.tcp_proxy, typed_config: { "@type": ${TCP_URL}, stat_prefix: t, cluster: known } } ] } ]
  clusters: [ { name: known, load_assignment: { cluster_name: known } } ]
`,
    `baton.yaml:4:5: ${LISTENER}.internal_listener: InternalListener bootstrap extension is mandatory: add envoy.bootstrap.internal_listener to bootstrap_extensions
  4 |     internal_listener: {}
    |     ^`,
  ],
  [
    'misspelt names of required fields',
    withFilter(`{ name: t, typed_config: { "@type": ${TCP_URL}, stat_prefx: t, clustr: known } }`),
    `${LISTENER}.filter_chains[0].filters[0].typed_config.stat_prefx: unknown field 'stat_prefx' of envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy; did you mean 'stat_prefix'?`,
    `${LISTENER}.filter_chains[0].filters[0].typed_config.clustr: unknown field 'clustr' of envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy; did you mean 'cluster'?`,
  ],
  [
    'a misplaced field next to an unimplemented one',
    withRoutes(
      '{ name: v, domains: ["*"], routes: [ { match: { prefix: / }, timeout: 5s, route: { cluster: known, early_data_policy: {} } } ] }',
    ),
    `routes[0].timeout: unknown field 'timeout' of envoy.config.route.v3.Route; it belongs in 'route'`,
    `routes[0].route.early_data_policy: field 'early_data_policy' of envoy.config.route.v3.RouteAction is not implemented in Baton`,
  ],
  [
    'unimplemented and empty hash policies',
    withRoutes(
      '{ name: v, domains: ["*"], routes: [ { match: { prefix: / }, route: { cluster: known, hash_policy: [ { filter_state: { key: k } }, {} ] } } ] }',
    ),
    "routes[0].route.hash_policy[0].filter_state: field 'filter_state' of envoy.config.route.v3.RouteAction.HashPolicy is not implemented in Baton: name a header that a filter sets",
    'routes[0].route.hash_policy[1]: one of header, cookie, connection_properties, query_parameter, filter_state must be set',
  ],
  [
    'a hash policy of connections other than source_ip',
    withFilter(
      `{ name: t, typed_config: { "@type": ${TCP_URL}, stat_prefix: t, cluster: known, hash_policy: [ { filter_state: { key: k } } ] } }`,
    ),
    "hash_policy[0].filter_state: field 'filter_state' of envoy.type.v3.HashPolicy is not implemented in Baton: use source_ip",
  ],
  [
    'a match from an older API, which causes no other errors',
    withRoutes('{ name: v, domains: ["*"], routes: [ { match: { regex: a }, redirect: {} } ] }'),
    `baton.yaml:9:59: ${LISTENER}.filter_chains[0].filters[0].typed_config.route_config.virtual_hosts[0].routes[0].match.regex: unknown field 'regex' of envoy.config.route.v3.RouteMatch: it belongs to an older API; use safe_regex
  9 |           { name: v, domains: ["*"], routes: [ { match: { regex: a }, redirect: {} } ] }
    |                                                           ^`,
  ],
  [
    'an unquoted asterisk',
    withRoutes('{ name: v, domains: [ * ] }'),
    `baton.yaml:9:33: Alias cannot be an empty string; put a text that begins with '*' into quotes`,
  ],
  [
    'a type URL with an unquoted key',
    withFilter('{ name: t, typed_config: { @type: a } }'),
    "Plain value cannot start with reserved character @; put a text that begins with '@' into quotes",
  ],
  [
    'a UDP listener with filter chains',
    'static_resources:\n  listeners:\n  - address: { socket_address: { protocol: UDP, address: 127.0.0.1, port_value: 1 } }\n    filter_chains: [{}]\n',
    `baton.yaml:4:5: ${LISTENER}.filter_chains: 1 filter chain(s) specified for connection-less UDP listener.
  4 |     filter_chains: [{}]
    |     ^`,
  ],
  [
    'an unknown extension',
    withFilter('{ name: mine, typed_config: { "@type": type.googleapis.com/my.Filter } }'),
    `baton.yaml:7:46: ${LISTENER}.filter_chains[0].filters[0].typed_config.@type: Didn't find a registered implementation for 'mine' with type URL: 'type.googleapis.com/my.Filter'
  7 |       { name: mine, typed_config: { "@type": type.googleapis.com/my.Filter } }
    |                                              ^`,
  ],
  [
    'an extension that Baton does not implement',
    withFilter(
      '{ name: e, typed_config: { "@type": type.googleapis.com/envoy.extensions.filters.network.mongo_proxy.v3.MongoProxy } }',
    ),
    `baton.yaml:7:43: ${LISTENER}.filter_chains[0].filters[0].typed_config.@type: Didn't find a registered implementation for 'e' with type URL: 'type.googleapis.com/envoy.extensions.filters.network.mongo_proxy.v3.MongoProxy': Baton does not implement this extension: envoy.filters.network.tcp_proxy forwards its connections without reading them
  7 |       { name: e, typed_config: { "@type": type.googleapis.com/envoy.extensions.filters.network.mongo_proxy.v3.MongoProxy } }
    |                                           ^`,
  ],
  [
    'an extension from an older API',
    withFilter(
      '{ name: t, typed_config: { "@type": type.googleapis.com/envoy.config.filter.network.tcp_proxy.v2.TcpProxy } }',
    ),
    `baton.yaml:7:43: ${LISTENER}.filter_chains[0].filters[0].typed_config.@type: Didn't find a registered implementation for 't' with type URL: 'type.googleapis.com/envoy.config.filter.network.tcp_proxy.v2.TcpProxy': it belongs to an older API; use '${TCP_URL}'
  7 |       { name: t, typed_config: { "@type": type.googleapis.com/envoy.config.filter.network.tcp_proxy.v2.TcpProxy } }
    |                                           ^`,
  ],
  [
    'an extension of the wrong category',
    withFilter(
      '{ name: r, typed_config: { "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router } }',
    ),
    `baton.yaml:7:43: ${LISTENER}.filter_chains[0].filters[0].typed_config.@type: Didn't find a registered implementation for 'r' with type URL: 'type.googleapis.com/envoy.extensions.filters.http.router.v3.Router': an extension of envoy.filters.network is needed here, and 'envoy.filters.http.router' belongs to envoy.filters.http
  7 |       { name: r, typed_config: { "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router } }
    |                                           ^`,
  ],
  [
    'an unknown name without a typed_config',
    withFilter('{ name: envoy.unknown }'),
    `baton.yaml:7:7: ${LISTENER}.filter_chains[0].filters[0]: Didn't find a registered implementation for 'envoy.unknown' with type URL: ''
  7 |       { name: envoy.unknown }
    |       ^`,
  ],
  [
    'a typed_config without a type',
    withFilter('{ name: t, typed_config: { cluster: known } }'),
    `baton.yaml:7:32: ${LISTENER}.filter_chains[0].filters[0].typed_config: '@type' is missing: a type URL such as type.googleapis.com/package.Message
  7 |       { name: t, typed_config: { cluster: known } }
    |                                ^`,
  ],
  [
    "an error of an extension's own check",
    withFilter(`{ name: t, typed_config: { "@type": ${TCP_URL}, stat_prefix: t, cluster: known,
        access_log: [ { name: f, typed_config: {
          "@type": type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog, path: /var/log/ } } ] } }`),
    `baton.yaml:9:101: ${LISTENER}.filter_chains[0].filters[0].typed_config.access_log[0].typed_config.path: a file is needed, not a directory
  9 |           "@type": type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog, path: /var/log/ } } ] } }
    |                                                                                                     ^`,
  ],
  [
    'a route to a cluster that does not exist',
    withRoutes('{ name: v, domains: [ "*" ], routes: [ { match: { prefix: / }, route: { cluster: knwon } } ] }'),
    `baton.yaml:9:92: ${LISTENER}.filter_chains[0].filters[0].typed_config.route_config.virtual_hosts[0].routes[0].route.cluster: unknown cluster 'knwon'; did you mean 'known'?
  9 |           { name: v, domains: [ "*" ], routes: [ { match: { prefix: / }, route: { cluster: knwon } } ] }
    |                                                                                            ^`,
  ],
  [
    'a TCP proxy to a cluster that does not exist',
    withFilter(`{ name: t, typed_config: { "@type": ${TCP_URL}, stat_prefix: t, cluster: gone } }`),
    `baton.yaml:7:144: ${LISTENER}.filter_chains[0].filters[0].typed_config.cluster: unknown cluster 'gone'`,
  ],
  [
    'duplicate domains',
    withRoutes('{ name: v, domains: [ a.b ] }, { name: v, domains: [ A.b ] }'),
    `baton.yaml:9:64: ${LISTENER}.filter_chains[0].filters[0].typed_config.route_config.virtual_hosts[1].domains[0]: duplicate domain 'a.b': ${LISTENER}.filter_chains[0].filters[0].typed_config.route_config.virtual_hosts[0].domains[0] is the same`,
  ],
  [
    'a terminal filter before other filters',
    withRoutes('{ name: v, domains: [ "*" ] }', `${ROUTER}, ${ROUTER}`),
    "terminal HTTP filter 'envoy.filters.http.router' must be the last one, but other filters follow it",
  ],
  [
    'a chain without a terminal filter',
    withRoutes(
      '{ name: v, domains: [ "*" ] }',
      '{ name: b, typed_config: { "@type": type.googleapis.com/envoy.extensions.filters.http.buffer.v3.Buffer, max_request_bytes: 1 } }',
    ),
    "non-terminal HTTP filter 'envoy.filters.http.buffer' is the last one: the chain must end with a terminal filter",
  ],
  [
    'a host name in a STATIC cluster',
    `static_resources:
  clusters:
  - name: a
    load_assignment:
      cluster_name: a
      endpoints:
      - lb_endpoints: [ { endpoint: { address: { socket_address: { address: host, port_value: 1 } } } } ]
`,
    `baton.yaml:7:77: ${CLUSTER}.load_assignment.endpoints[0].lb_endpoints[0].endpoint.address.socket_address.address: malformed IP address: host. Consider setting the cluster's type to 'STRICT_DNS' or 'LOGICAL_DNS'
  7 |       - lb_endpoints: [ { endpoint: { address: { socket_address: { address: host, port_value: 1 } } } } ]
    |                                                                             ^`,
  ],
  [
    'two clusters with one name',
    `static_resources:
  clusters:
  - { name: a, load_assignment: { cluster_name: a } }
  - { name: a, load_assignment: { cluster_name: a } }
`,
    `baton.yaml:4:13: static_resources.clusters[1].name: duplicate cluster 'a': ${CLUSTER}.name is the same
  4 |   - { name: a, load_assignment: { cluster_name: a } }
    |             ^`,
  ],
  [
    'runtime layers with one name, and a second admin layer',
    `layered_runtime:
  layers:
  - { name: a, admin_layer: {} }
  - { name: a, admin_layer: {} }
`,
    `baton.yaml:4:13: layered_runtime.layers[1].name: duplicate runtime layer 'a': layered_runtime.layers[0].name is the same
  4 |   - { name: a, admin_layer: {} }
    |             ^
baton.yaml:4:29: layered_runtime.layers[1].admin_layer: too many admin layers: there may be one at most
  4 |   - { name: a, admin_layer: {} }
    |                             ^`,
  ],
  [
    'a static runtime layer with invalid values',
    `layered_runtime:
  layers:
  - { name: a, static_layer: { fine: { numerator: 5 }, b: { c: [ 1 ] } } }
`,
    `baton.yaml:3:64: layered_runtime.layers[0].static_layer.b.c: invalid runtime value for 'b.c': a list
  3 |   - { name: a, static_layer: { fine: { numerator: 5 }, b: { c: [ 1 ] } } }
    |                                                                ^`,
  ],
  [
    'an rtds_layer without a resource name',
    `layered_runtime: { layers: [ { name: a, rtds_layer: { name: r } } ] }
`,
    'layered_runtime.layers[0].rtds_layer.rtds_config: the source of the resource is missing',
  ],
  [
    'discovered filter configurations of unusable types',
    withRoutes(
      '{ name: v, domains: [ "*" ] }',
      '{ name: f, config_discovery: { type_urls: [ a/b.C ], apply_default_config_without_warming: true } }',
    ),
    'http_filters[0].config_discovery: a filter whose configuration is discovered cannot end the chain',
    'config_discovery.config_source: the source of the configuration is missing',
    'config_discovery.type_urls[0]: no factory found for a required type URL a/b.C',
    'filter config f applied without warming but has no default config',
  ],
  [
    'a runtime layer without a layer',
    `layered_runtime: { layers: [ { name: a } ] }
`,
    'baton.yaml:1:30: layered_runtime.layers[0]: ',
  ],
  [
    'protocol options under an unknown name',
    `static_resources:
  clusters:
  - name: a
    load_assignment: { cluster_name: a }
    typed_extension_protocol_options:
      envoy.upstreams.http: { "@type": type.googleapis.com/${HTTP_OPTIONS}, explicit_http_config: { http_protocol_options: {} } }
`,
    `baton.yaml:6:7: ${CLUSTER}.typed_extension_protocol_options["envoy.upstreams.http"]: no extension of this build has protocol options with the name 'envoy.upstreams.http'; the supported names are: '${HTTP_OPTIONS}'`,
  ],
  [
    'rds without a source',
    withFilter(`{ name: h, typed_config: { "@type": ${HCM_URL}, stat_prefix: h, http_filters: [ ${ROUTER} ],
        rds: { route_config_name: a } } }`),
    `baton.yaml:8:14: ${LISTENER}.filter_chains[0].filters[0].typed_config.rds: it needs config_source: where the routes come from`,
  ],
  [
    'a cluster with an xdstp name without the name of its endpoints',
    `static_resources:
  clusters:
  - name: xdstp://a/envoy.config.cluster.v3.Cluster/b
    type: EDS
    eds_cluster_config: { eds_config: { path_config_source: { path: /tmp/a.yaml } } }
`,
    `baton.yaml:5:25: ${CLUSTER}.eds_cluster_config: a cluster with an xdstp name needs service_name, the name of its endpoints`,
  ],
  [
    'a file with two kinds of watching',
    `dynamic_resources:
  cds_config:
    resource_api_version: V3
    path_config_source:
      path: /tmp/a.yaml
      watched_directory: { path: /tmp }
      poll_interval: 1s
`,
    'baton.yaml:7:7: dynamic_resources.cds_config.path_config_source.poll_interval: it cannot be combined with watched_directory',
  ],
  [
    'options of another or an unimplemented load balancer',
    `static_resources:
  clusters:
  - { name: a, load_assignment: { cluster_name: a }, least_request_lb_config: { choice_count: 4 } }
  - name: b
    load_assignment: { cluster_name: b }
    lb_policy: LEAST_REQUEST
    least_request_lb_config: { active_request_bias: { default_value: -1, runtime_key: k } }
  - name: c
    load_assignment: { cluster_name: c }
    lb_policy: LEAST_REQUEST
    least_request_lb_config: { active_request_bias: { default_value: NaN, runtime_key: k } }
`,
    `baton.yaml:3:54: ${CLUSTER}.least_request_lb_config: it has an effect with 'lb_policy: LEAST_REQUEST' only: set that, or leave it out`,
    'clusters[1].least_request_lb_config.active_request_bias.default_value: it must be a number of at least 0, found -1',
    'clusters[2].least_request_lb_config.active_request_bias.default_value: it must be a number of at least 0, found NaN',
  ],
  [
    'missing and unimplemented load-balancing policies',
    `static_resources:
  clusters:
  - name: a
    load_assignment: { cluster_name: a }
    load_balancing_policy: { policies: [ { typed_extension_config: { name: mine, typed_config: { "@type": a/b.C } } }, { typed_extension_config: { name: subset, typed_config: { "@type": type.googleapis.com/${POLICIES}.subset.v3.Subset } } }, {} ] }
  - { name: b, load_assignment: { cluster_name: b }, load_balancing_policy: {} }
  - name: c
    load_assignment: { cluster_name: c }
    lb_policy: LEAST_REQUEST
    least_request_lb_config: { choice_count: 4 }
    load_balancing_policy:
      policies:
      - typed_extension_config:
          name: l
          typed_config:
            "@type": type.googleapis.com/${POLICIES}.least_request.v3.LeastRequest
            choice_count: 1
            active_request_bias: { default_value: -1, runtime_key: k }
  - name: d
    load_assignment: { cluster_name: d }
    load_balancing_policy:
      policies: { typed_extension_config: { name: r, typed_config: { "@type": type.googleapis.com/${POLICIES}.round_robin.v3.RoundRobin, slow_start_config: { min_weight_percent: { value: 101 } } } } }
`,
    `${CLUSTER}.load_balancing_policy: none of the policies 'mine', 'subset', '' is implemented in Baton: use envoy.load_balancing_policies.least_request, envoy.load_balancing_policies.maglev, envoy.load_balancing_policies.random, envoy.load_balancing_policies.ring_hash or envoy.load_balancing_policies.round_robin`,
    'clusters[1].load_balancing_policy: it has no policies: use envoy.load_balancing_policies.least_request, ',
    'clusters[2].least_request_lb_config: it has no effect because load_balancing_policy is set: set it there, or leave it out',
    'policies[0].typed_extension_config.typed_config.choice_count: it must be at least 2, found 1',
    'policies[0].typed_extension_config.typed_config.active_request_bias.default_value: it must be a number of at least 0, found -1',
    'typed_config.slow_start_config.min_weight_percent.value: ',
  ],
  [
    'invalid rings and tables, and their options with other policies',
    `static_resources:
  clusters:
  - name: a
    load_assignment: { cluster_name: a }
    lb_policy: RING_HASH
    ring_hash_lb_config: { minimum_ring_size: 20, maximum_ring_size: 10 }
    common_lb_config: { consistent_hashing_lb_config: { hash_balance_factor: 150 } }
  - { name: b, load_assignment: { cluster_name: b }, lb_policy: RING_HASH, ring_hash_lb_config: { minimum_ring_size: 0 } }
  - { name: c, load_assignment: { cluster_name: c }, lb_policy: RING_HASH, maglev_lb_config: { table_size: 7 } }
  - { name: d, load_assignment: { cluster_name: d }, lb_policy: MAGLEV, maglev_lb_config: { table_size: 65536 } }
  - { name: e, load_assignment: { cluster_name: e }, common_lb_config: { consistent_hashing_lb_config: {} } }
  - name: f
    load_assignment: { cluster_name: f }
    common_lb_config: { consistent_hashing_lb_config: { use_hostname_for_hashing: true } }
    load_balancing_policy:
      policies:
      - typed_extension_config:
          name: r
          typed_config: { "@type": type.googleapis.com/${POLICIES}.ring_hash.v3.RingHash, minimum_ring_size: 2000, maximum_ring_size: 1000, hash_balance_factor: 100 }
  - name: g
    load_assignment: { cluster_name: g }
    load_balancing_policy:
      policies:
      - typed_extension_config:
          name: m
          typed_config: { "@type": type.googleapis.com/${POLICIES}.maglev.v3.Maglev, table_size: 1, consistent_hashing_lb_config: { hash_balance_factor: 200 } }
`,
    'clusters[0].ring_hash_lb_config.maximum_ring_size: minimum_ring_size (20) > maximum_ring_size (10)',
    "clusters[0].common_lb_config.consistent_hashing_lb_config.hash_balance_factor: field 'hash_balance_factor' of envoy.config.cluster.v3.Cluster.CommonLbConfig.ConsistentHashingLbConfig is not implemented in Baton: all requests with the same hash go to the same host",
    'clusters[1].ring_hash_lb_config.minimum_ring_size: it must be at least 1, found 0',
    "clusters[2].maglev_lb_config: it has an effect with 'lb_policy: MAGLEV' only: set that, or leave it out",
    'clusters[3].maglev_lb_config.table_size: it must be a prime number, found 65536',
    "clusters[4].common_lb_config.consistent_hashing_lb_config: it has an effect with 'lb_policy: RING_HASH' or 'lb_policy: MAGLEV' only: set that, or leave it out",
    'clusters[5].common_lb_config.consistent_hashing_lb_config: it has no effect because load_balancing_policy is set: set it there, or leave it out',
    'clusters[5].load_balancing_policy.policies[0].typed_extension_config.typed_config.maximum_ring_size: minimum_ring_size (2000) > maximum_ring_size (1000)',
    "typed_config.hash_balance_factor: field 'hash_balance_factor' of",
    'clusters[6].load_balancing_policy.policies[0].typed_extension_config.typed_config.table_size: it must be a prime number, found 1',
    "typed_config.consistent_hashing_lb_config.hash_balance_factor: field 'hash_balance_factor' of",
  ],
  [
    'a policy that is said to be elsewhere',
    'static_resources: { clusters: [{ name: a, load_assignment: { cluster_name: a }, lb_policy: LOAD_BALANCING_POLICY_CONFIG }] }\n',
    'clusters[0].lb_policy: it needs load_balancing_policy: set that, or another lb_policy',
  ],
  [
    'localities that are configured twice',
    `static_resources:
  clusters:
  - name: a
    load_assignment: { cluster_name: a }
    common_lb_config: { locality_weighted_lb_config: {}, zone_aware_lb_config: {} }
  - name: b
    load_assignment: { cluster_name: b }
    common_lb_config: { locality_weighted_lb_config: {} }
    load_balancing_policy:
      policies:
      - typed_extension_config:
          name: r
          typed_config: { "@type": type.googleapis.com/${POLICIES}.round_robin.v3.RoundRobin, locality_lb_config: {} }
`,
    'clusters[0].common_lb_config',
    'clusters[1].common_lb_config.locality_weighted_lb_config: it has no effect because load_balancing_policy is set: set it there, or leave it out',
    'typed_config.locality_lb_config: ',
  ],
  [
    'a local cluster that is not defined',
    'cluster_manager: { local_cluster_name: peers }\nstatic_resources: { clusters: [{ name: a, load_assignment: { cluster_name: a } }] }\n',
    `baton.yaml:1:40: cluster_manager.local_cluster_name: local cluster 'peers' must be defined in static_resources.clusters
  1 | cluster_manager: { local_cluster_name: peers }
    |                                        ^`,
  ],
  [
    'a local cluster with several priorities',
    `cluster_manager: { local_cluster_name: peers }
static_resources:
  clusters:
  - name: peers
    load_assignment: { cluster_name: peers, endpoints: [{ priority: 0 }, { priority: 1 }] }
`,
    "clusters[0].load_assignment.endpoints[1].priority: unexpected non-zero priority for local cluster 'peers': all of its hosts need priority 0",
  ],
  [
    'a source address of another family than a host',
    `static_resources:
  clusters:
  - name: a
    load_assignment: { cluster_name: a, endpoints: [ { lb_endpoints: [ { endpoint: { address: { pipe: { path: /a } } } } ] } ] }
    upstream_bind_config: { source_address: { address: 10.0.0.1, port_value: 0 } }
  - name: b
    load_assignment:
      cluster_name: b
      endpoints: [ { lb_endpoints: [ { endpoint: { address: { socket_address: { address: 10.0.0.2, port_value: 1 } } } } ] } ]
    upstream_bind_config: { source_address: { address: '::1', port_value: 0 } }
`,
    `baton.yaml:5:56: ${CLUSTER}.upstream_bind_config.source_address.address: connections can be made from 10.0.0.1 to IPv4 addresses, not to a Unix socket`,
    'clusters[1].upstream_bind_config.source_address.address: connections can be made from ::1 to IPv6 addresses, not to 10.0.0.2',
  ],
  [
    'two listeners with one address in different notations',
    `static_resources:
  listeners:
  - { name: a, address: { socket_address: { address: '::', port_value: 80 } }, filter_chains: [ {} ] }
  - { name: b, address: { socket_address: { address: '0::0', port_value: 80 } }, filter_chains: [ {} ] }
`,
    "baton.yaml:4:25: static_resources.listeners[1].address: duplicate listener address '[::]:80': static_resources.listeners[0].address is the same",
  ],
  [
    'a cluster with two protocols',
    `static_resources:
  clusters:
  - name: a
    load_assignment: { cluster_name: a }
    http2_protocol_options: {}
    typed_extension_protocol_options:
      ${HTTP_OPTIONS}:
        "@type": type.googleapis.com/${HTTP_OPTIONS}
        explicit_http_config: { http_protocol_options: {} }
`,
    `baton.yaml:5:5: ${CLUSTER}.http2_protocol_options: the cluster's '${HTTP_OPTIONS}' take precedence: leave it out`,
  ],
  [
    'the downstream protocol for hosts, with options of other protocols',
    `static_resources:
  clusters:
  - name: a
    load_assignment: { cluster_name: a }
    typed_extension_protocol_options:
      ${HTTP_OPTIONS}:
        "@type": type.googleapis.com/${HTTP_OPTIONS}
        use_downstream_protocol_config: { http2_protocol_options: {}, http3_protocol_options: {} }
  - name: b
    load_assignment: { cluster_name: b }
    http2_protocol_options: {}
    typed_extension_protocol_options:
      ${HTTP_OPTIONS}:
        "@type": type.googleapis.com/${HTTP_OPTIONS}
        use_downstream_protocol_config: {}
  - name: c
    load_assignment: { cluster_name: c }
    protocol_selection: USE_DOWNSTREAM_PROTOCOL
    typed_extension_protocol_options:
      ${HTTP_OPTIONS}:
        "@type": type.googleapis.com/${HTTP_OPTIONS}
        explicit_http_config: { http2_protocol_options: {} }
        upstream_http_protocol_options: { auto_san_validation: true, override_auto_sni_header: ':scheme' }
    transport_socket:
      name: tls
      typed_config:
        "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext
        auto_sni_san_validation: true
  - name: d
    load_assignment: { cluster_name: d }
    common_http_protocol_options: { idle_timeout: 3s }
    http_protocol_options: {}
    typed_extension_protocol_options:
      ${HTTP_OPTIONS}:
        "@type": type.googleapis.com/${HTTP_OPTIONS}
        auto_config: {}
`,
    'use_downstream_protocol_config.http3_protocol_options: field',
    `clusters[1].http2_protocol_options: the cluster's '${HTTP_OPTIONS}' take precedence: leave it out`,
    `clusters[2].protocol_selection: the cluster's '${HTTP_OPTIONS}' take precedence: leave it out`,
    "override_auto_sni_header: requests have no ':scheme' here: name a header",
    'auto_san_validation: no host would be accepted without a validation_context in the TLS context: set its trusted_ca',
    "auto_sni_san_validation: 'auto_sni_san_validation' was configured without a validation context",
    `clusters[3].common_http_protocol_options: the cluster's '${HTTP_OPTIONS}' take precedence: leave it out`,
    `clusters[3].http_protocol_options: the cluster's '${HTTP_OPTIONS}' take precedence: leave it out`,
    'auto_config: ALPN configured for cluster d which has a non-ALPN transport socket: give it a TLS context',
  ],
  [
    'a listener with the address of the admin interface',
    `admin: { address: { socket_address: { address: 127.0.0.1, port_value: 80 } } }
static_resources:
  listeners:
  - { name: a, address: { socket_address: { address: 127.0.0.1, port_value: 80 } }, filter_chains: [ {} ] }
  - { name: b, address: { socket_address: { address: 127.0.0.1, port_value: 81 } }, filter_chains: [ {} ] }
`,
    `baton.yaml:4:25: ${LISTENER}.address: the admin interface uses '127.0.0.1:80': see admin.address
  4 |   - { name: a, address: { socket_address: { address: 127.0.0.1, port_value: 80 } }, filter_chains: [ {} ] }
    |                         ^`,
  ],
  [
    'listening options of other addresses',
    `static_resources:
  clusters:
  - name: b
    upstream_bind_config: { source_address: { address: '::', port_value: 0, ipv4_compat: true } }
    load_assignment:
      cluster_name: a
      endpoints:
      - lb_endpoints:
        - { endpoint: { address: { socket_address: { address: '::1', port_value: 1, ipv4_compat: true } } } }
        - { endpoint: { address: { socket_address: { address: '::2', port_value: 1, ipv4_compat: false } } } }
`,
    'clusters[0].upstream_bind_config.source_address.ipv4_compat: it has an effect only on',
    'clusters[0].load_assignment.endpoints[0].lb_endpoints[0].endpoint.address.socket_address.ipv4_compat: it has an effect only on',
  ],
  [
    'a watchdog with a timeout of 0',
    'watchdogs: { worker_watchdog: { miss_timeout: 0s, megamiss_timeout: 0.001s } }\n',
    `baton.yaml:1:47: watchdogs.worker_watchdog.miss_timeout: it must be above 0s: with 0s every check would count as a miss, and 0s does not disable the watchdog
  1 | watchdogs: { worker_watchdog: { miss_timeout: 0s, megamiss_timeout: 0.001s } }
    |                                               ^`,
  ],
  [
    'a watchdog for all threads with a timeout of 0',
    'watchdog: { megamiss_timeout: 0s }\n',
    'baton.yaml:1:31: watchdog.megamiss_timeout: it must be above 0s',
  ],
  [
    'a watchdog for all threads, and one for each kind',
    'watchdog: {}\nwatchdogs: {}\n',
    `baton.yaml:1:1: watchdog: only one of watchdog and watchdogs can be set
  1 | watchdog: {}
    | ^`,
  ],
  [
    'names that cannot be resolved',
    `static_resources:
  clusters:
  - name: a
    type: STRICT_DNS
    load_assignment:
      cluster_name: a
      endpoints:
      - lb_endpoints:
        - { endpoint: { address: { socket_address: { address: 'example.com:80', port_value: 80 } } } }
        - { endpoint: { address: { socket_address: { address: 'http://example.com', port_value: 80 } } } }
        - { endpoint: { address: { socket_address: { address: '_sip.example.com.', port_value: 80 } } } }
        - { endpoint: { address: { socket_address: { address: '::1', port_value: 80 } } } }
`,
    `baton.yaml:9:63: ${CLUSTER}.load_assignment.endpoints[0].lb_endpoints[0].endpoint.address.socket_address.address: 'example.com:80' is neither an IP address nor a valid DNS name; the port belongs in port_value`,
    "lb_endpoints[1].endpoint.address.socket_address.address: 'http://example.com' is neither",
  ],
  [
    'DNS fields in a cluster without DNS',
    `static_resources:
  clusters:
  - name: a
    type: STATIC
    dns_refresh_rate: 5s
    dns_failure_refresh_rate: { base_interval: 1s }
    respect_dns_ttl: true
`,
    `baton.yaml:5:5: ${CLUSTER}.dns_refresh_rate: it has an effect in clusters of type STRICT_DNS and LOGICAL_DNS only, this one is STATIC: leave it out`,
    `baton.yaml:6:5: ${CLUSTER}.dns_failure_refresh_rate: it has an effect in clusters of type STRICT_DNS`,
    `baton.yaml:7:5: ${CLUSTER}.respect_dns_ttl: it has an effect in clusters of type STRICT_DNS`,
  ],
  [
    'duplicate circuit breaker thresholds of a priority',
    `static_resources:
  clusters:
  - name: a
    circuit_breakers:
      thresholds:
      - { max_connections: 1 }
      - { priority: HIGH, max_connections: 1 }
      - { priority: DEFAULT, max_requests: 1 }
      - { priority: HIGH }
`,
    `baton.yaml:8:9: ${CLUSTER}.circuit_breakers.thresholds[2]: priority DEFAULT already has thresholds at ${CLUSTER}.circuit_breakers.thresholds[0]: merge them`,
    `baton.yaml:9:9: ${CLUSTER}.circuit_breakers.thresholds[3]: priority HIGH already has thresholds at`,
  ],
  [
    'invalid health checks',
    `static_resources:
  clusters:
  - name: a
    health_checks:
    - timeout: 1s
      interval: 1s
      unhealthy_threshold: 0
      healthy_threshold: 1
      http_health_check:
        path: health z
        expected_statuses: [ { start: 200, end: 200 } ]
        retriable_statuses: [ { start: 500, end: 601 } ]
        request_headers_to_add:
        - { header: { key: host, value: h } }
        - { header: { key: x-from, value: "%DOWNSTREAM_REMOTE_ADDRESS%" } }
        - { header: { key: content-length, value: "1" } }
        request_headers_to_remove: [ host ]
        codec_client_type: HTTP3
        receive: [ { text: "4F" } ]
    - { timeout: 1s, interval: 1s, unhealthy_threshold: 1, healthy_threshold: 1, tcp_health_check: { send: { text: 4F4 } } }
    - { timeout: 1s, interval: 1s, unhealthy_threshold: 1, healthy_threshold: 1, http_health_check: { path: "/a#b" } }
  - name: b
    health_checks: [ { timeout: 1s, interval: 1s, unhealthy_threshold: 1, healthy_threshold: 1, grpc_health_check: {} } ]
  - name: c
    common_lb_config: { ignore_new_hosts_until_first_hc: true }
    load_assignment: { endpoints: [ { lb_endpoints: [
      { endpoint: { address: { socket_address: { address: 10.0.0.1, port_value: 1 } }, health_check_config: { address: { socket_address: { address: name, port_value: 1 } } } } },
      { endpoint: { address: { pipe: { path: /a } }, health_check_config: { port_value: 1 } } } ] } ] }
`,
    `baton.yaml:7:28: ${CLUSTER}.health_checks[0].unhealthy_threshold: it must be at least 1`,
    "health_checks[0].http_health_check.path: 'health z' is not a valid path: it must begin with '/'",
    "health_checks[2].http_health_check.path: '/a#b' is not a valid path: it must begin with '/' and contain no space, control character or '#'",
    'health_checks[0].http_health_check.expected_statuses[0]: a range of statuses must start at 100 or above and end above its start and at 600 or below, found 200 to 200',
    'health_checks[0].http_health_check.retriable_statuses[0]: a range of statuses',
    "request_headers_to_add[0].header.key: set the host of a check in the field 'host' of http_health_check, or 'authority' of grpc_health_check",
    'request_headers_to_add[1].header.value: operators are not supported, since health checks have no client request',
    "request_headers_to_add[2].header.key: 'content-length' is set by the check itself",
    "request_headers_to_remove[0]: 'host' cannot be removed",
    "http_health_check.codec_client_type: 'HTTP3' of envoy.config.core.v3.HealthCheck.HttpHealthCheck.codec_client_type is not implemented",
    `baton.yaml:20:7: ${CLUSTER}.health_checks[1]: multiple health checks are not supported`,
    'health_checks[1].tcp_health_check.send.text: it must be bytes in hexadecimal digits',
    'clusters[1].health_checks[0].grpc_health_check: b cluster must support HTTP/2 for gRPC healthchecking',
    'ignore_new_hosts_until_first_hc: it has no effect without health_checks',
    'health_check_config.address.socket_address.address: malformed IP address: name',
    'health_check_config.port_value: a Unix socket has no port',
  ],
  [
    'options of IP addresses for a Unix socket',
    `static_resources:
  listeners:
  - { address: { pipe: { path: /a } }, filter_chains: [ {} ], freebind: true, transparent: false }
  - { address: { pipe: { path: /b } }, filter_chains: [ {} ], transparent: true }
  - { address: { pipe: { path: /c } }, filter_chains: [ {} ], enable_reuse_port: true }
  - { address: { pipe: { path: /d } }, filter_chains: [ {} ], enable_reuse_port: false }
`,
    `baton.yaml:3:63: ${LISTENER}.freebind: it has an effect on IP addresses only, and the listener has a Unix socket`,
    'static_resources.listeners[1].transparent: it has an effect on IP addresses only',
    'static_resources.listeners[2].enable_reuse_port: it has an effect on IP addresses only',
  ],
  [
    'ipv4_compat for addresses on which it has no effect',
    `admin: { address: { socket_address: { address: 127.0.0.1, port_value: 0, ipv4_compat: true } } }
static_resources:
  listeners:
  - { address: { socket_address: { address: '::1', port_value: 1, ipv4_compat: true } }, filter_chains: [ {} ] }
  - { address: { socket_address: { address: '::', port_value: 2, ipv4_compat: true } }, filter_chains: [ {} ] }
  - { address: { socket_address: { address: '::ffff:127.0.0.1', port_value: 3, ipv4_compat: true } }, filter_chains: [ {} ] }
  - { address: { socket_address: { address: '0.0.0.0', port_value: 4, ipv4_compat: false } }, filter_chains: [ {} ] }
`,
    "baton.yaml:1:74: admin.address.socket_address.ipv4_compat: it has an effect on '::' and IPv4-mapped addresses only: leave it out",
    `${LISTENER}.address.socket_address.ipv4_compat: it has an effect on '::' and IPv4-mapped addresses only`,
  ],
  [
    'an empty endpoint',
    `static_resources:
  clusters:
  - name: a
    load_assignment:
      cluster_name: a
      endpoints: [ { lb_endpoints: [ { load_balancing_weight: 2 }, { endpoint: { hostname: b } }, { endpoint_name: c } ] } ]
`,
    `baton.yaml:6:38: ${CLUSTER}.load_assignment.endpoints[0].lb_endpoints[0]: an endpoint needs an address`,
    `${CLUSTER}.load_assignment.endpoints[0].lb_endpoints[1].endpoint: an endpoint needs an address`,
    `lb_endpoints[2].endpoint_name: field 'endpoint_name' of envoy.config.endpoint.v3.LbEndpoint is not implemented in Baton`,
  ],
  [
    'endpoints whose weights exceed the maximum',
    `static_resources:
  clusters:
  - name: a
    load_assignment:
      cluster_name: a
      endpoints:
      - lb_endpoints:
        - { endpoint: { address: { pipe: { path: /a } } }, load_balancing_weight: 4294967295 }
        - { endpoint: { address: { pipe: { path: /b } } } }
`,
    `baton.yaml:7:9: ${CLUSTER}.load_assignment.endpoints[0]: the weights of all endpoints of a locality must not exceed 4294967295 together, found 4294967296`,
  ],
  [
    'broken YAML',
    'node:\n\tid: x\n',
    `baton.yaml:2:1: Tabs are not allowed as indentation
  2 |  id: x
    | ^`,
  ],
  [
    'an unfilled placeholder',
    'node: { id: {{ name }} }\n',
    `baton.yaml:1:14: a key must be a plain name; if '{{' begins a placeholder, it has to be filled in before
  1 | node: { id: {{ name }} }
    |              ^`,
  ],
  [
    'a quote that ends many lines below',
    `node: {}]\n  '\n    ${'id: a, '.repeat(30)}'\n`,
    `baton.yaml:1:9: Unexpected flow-seq-end token in YAML stream: "]"
  1 | node: {}]
    |         ^
baton.yaml:2:3: Unexpected single-quoted-scalar token in YAML stream: "'\\n    id: a, id: a, id: a, id: a, id: a…"
  2 |   '
    |   ^`,
  ],
  [
    'a second document',
    'node: {}\n---\nnode: {}\n',
    `baton.yaml:2:1: a configuration is one YAML document, and another one begins here
  2 | ---
    | ^`,
  ],
  [
    'an alias that contains itself',
    'node: &a { metadata: *a }\n',
    `baton.yaml:1:22: alias '*a' contains itself
  1 | node: &a { metadata: *a }
    |                      ^`,
  ],
];

for (const [title, text, ...expected] of CASES) {
  t.test(title, async (t) => {
    const found = problemsOf(text);
    for (const each of expected) {
      if (each.includes('\n')) t.equal(found, each);
      else t.ok(found.includes(each), `${found}\nshould include\n${each}`);
    }
  });
}

t.test('broken JSON is shown where it breaks', async (t) => {
  const cases: readonly (readonly [text: string, expected: string])[] = [
    ['{\n  "node": { "id": "x",, }\n}', '2:23: invalid JSON: expected a name in double quotes, found ","'],
    ['{ "a": [ 1,\n, ] }', '2:1: invalid JSON: expected a value, found ","'],
    ['{ "a": [ , ] }', '1:10: invalid JSON: expected a value, found ","'],
    ['{ , }', '1:3: invalid JSON: expected a name in double quotes, found ","'],
    ['{ "a": [ 1, } }', '1:13: invalid JSON: expected a value, found "}"'],
    ['{ "node": {}, },', '1:16: invalid JSON: expected the end of the text, found ","'],
    ['{ "a": ] }', '1:8: invalid JSON: expected a value, found "]"'],
    ['\nnode: {}\n', '2:1: invalid JSON: expected a value, found "n"; a .json file contains JSON; use .yaml for YAML'],
    ['{ "node": { "id": NaN } }', '1:19: invalid JSON: expected a value, found "N"'],
    ['{ "node": { "id": "x" "cluster": "y" } }', `1:23: invalid JSON: expected ',' or '}', found "\\""`],
    ['{ "node": {} } }', '1:16: invalid JSON: expected the end of the text, found "}"'],
    ['// mine\n{}', '1:1: invalid JSON: expected a value, found "/"; JSON has no comments'],
    ['{ "node": { "id": "x\n" } }', '1:21: invalid JSON: line end in a string'],
    ['{ "node": { "id": "\\x" } }', '1:20: invalid JSON: unknown escape sequence'],
    ['{ "node": [', '1:12: invalid JSON: expected a value, found the end of the text'],
    ['{ "node": "', '1:11: invalid JSON: unterminated string'],
  ];
  for (const [text, expected] of cases)
    t.equal(problemsOf(text, { file: 'a.json' }).split('\n')[0], `a.json:${expected}`);
});

t.test('trailing commas of lists and maps are accepted, and later places are correct', async (t) => {
  const file = 'a.json';
  const text =
    '{ "node": { "id": "a,]", "cluster": "b,}", }, "stats_sinks": [ ], "static_resources": { "clusters": [ {\n';
  t.match(bootstrapOf(`${text}"name": "c", }, ], }, }\n`, { file }), {
    node: { id: 'a,]', cluster: 'b,}' },
    static_resources: { clusters: [{ name: 'c' }] },
  });
  t.match(
    problemsOf(`${text}"type": "STATIC", "nmae": "c", }, ], }, }`, { file }),
    /^a\.json:2:19: static_resources\.clusters\[0\]\.nmae: unknown field 'nmae'/,
  );
});

t.test('duplicate keys in JSON are refused, even if they are escaped differently', async (t) => {
  t.equal(
    problemsOf('{ "node": { "id": "a", "i\\u0064": "b" },\n  "node": {} }', { file: 'a.json' }),
    `a.json:1:24: 'id' is set twice
  1 | { "node": { "id": "a", "i\\u0064": "b" },
    |                        ^
a.json:2:3: 'node' is set twice
  2 |   "node": {} }
    |   ^`,
  );
  const found = problemsOf('{ "node": { "id": "a" },\n  "node": { "id": 1, "nam": "" } }', { file: 'a.json' });
  const places = found.match(/^a\.json:\d+:\d+: \S+/gm);
  t.same(places, ["a.json:2:3: 'node'", 'a.json:2:19: node.id:', 'a.json:2:22: node.nam:'], found);
});

t.test('errors in binary protos have a field path', async (t) => {
  t.equal(
    problemsOf('admin { address { pipe { } } }', { file: 'a.pb_text' }),
    'a.pb_text: admin.address.pipe.path: it must be set',
  );
});

t.test('errors in unreadable protos have a field path, if it is known, and no secrets', async (t) => {
  const reason = (text: string) => problemsOf(text, { file: 'a.pb_text' });
  const unable = (form: string) =>
    `unable to read the file as a ${form} protobuf of envoy.config.bootstrap.v3.Bootstrap:`;
  const cluster = (fields: string) => `static_resources { clusters { name: "a" } clusters { ${fields} } }`;
  t.equal(
    reason(cluster('connect_timeout { seconds: 1 nanos: -5 }')),
    `a.pb_text: static_resources.clusters[1].connect_timeout: ${unable('text')} google.protobuf.Duration nanos invalid`,
  );
  t.match(
    reason('node { metadata { fields { key: "a" value { number_value: nan } } } }'),
    /^a\.pb_text: node\.metadata\.fields\.a: .* cannot hold a non-finite number$/,
  );
  for (const text of [
    'private_key { inline_string: HUSH',
    'private_key { inline_string: "HUSH',
    'private_key { inline_string: 4711HUSH }',
  ]) {
    t.notMatch(reason(`static_resources { secrets { tls_certificate { ${text} } } }`), /HUSH|4711/);
  }
  const field = (number: number, bytes: Uint8Array) =>
    Buffer.concat([Buffer.from([number * 8 + 2, bytes.length]), bytes]);
  const any = Buffer.concat([
    field(1, Buffer.from('type.googleapis.com/envoy.config.metrics.v3.StatsdSink')),
    field(2, Buffer.from([0xff])),
  ]);
  t.match(
    problemsOf(Buffer.concat([field(6, Buffer.alloc(0)), field(6, field(3, any))]), { file: 'a.pb' }),
    /^a\.pb: stats_sinks\[1\]\.typed_config: unable to read the file as a binary protobuf of /,
  );
});

t.test('all mistakes in a text proto are reported at once, with their lines', async (t) => {
  const lines = [
    '# comment: "{',
    'admin { address { socket_address { address: "127.0.0.1" port_value: "x" port_valu: 3 } } }',
    `node { id: 5 cluster: 'a' cluster: "b" metadata { fields { key: "k" value { number_value: true } } } }`,
    'static_resources <',
    '  clusters: [{ name: "a" type: STATC connect_timeout { seconds: 1.5 } }, { name: "b"; foo: [1, {a: "b"}] }]',
    '  clusters { load_assignment: 7 typed_extension_protocol_options { key: 1 value {',
    '    [type.googleapis.com/envoy.config.core.v3.Http2ProtocolOptions] { max_concurrent_streams { value: -1 } }',
    '  } } typed_extension_protocol_options { value { [type.googleapis.com/no.Such] {} } }',
    '    outlier_detection { consecutive_5xx {} } lrs_server { ads {} self {} } }',
    '>',
    'enable_dispatcher_stats: yes',
  ];
  const problems = problemsOf(lines.join('\n'), { file: 'a.pb_text' });
  t.strictSame(
    problems.split('\n').filter((line) => line.startsWith('a.pb_text:')),
    [
      'a.pb_text:2:69: admin.address.socket_address.port_value: expected a whole number',
      "a.pb_text:2:73: admin.address.socket_address.port_valu: unknown field 'port_valu' of envoy.config.core.v3.SocketAddress; did you mean 'port_value'?",
      'a.pb_text:3:12: node.id: expected a quoted string',
      "a.pb_text:3:27: node.cluster: 'cluster' is set twice",
      'a.pb_text:3:91: node.metadata.fields.numberValue: expected a number',
      "a.pb_text:5:32: static_resources.clusters[0].type: unknown value; did you mean 'STATIC'?",
      'a.pb_text:5:65: static_resources.clusters[0].connect_timeout.seconds: expected a whole number',
      "a.pb_text:5:87: static_resources.clusters[1].foo: unknown field 'foo' of envoy.config.cluster.v3.Cluster",
      'a.pb_text:6:31: static_resources.clusters[2].load_assignment: expected the fields of envoy.config.endpoint.v3.ClusterLoadAssignment in braces',
      'a.pb_text:6:73: static_resources.clusters[2].typed_extension_protocol_options: expected a quoted string',
      'a.pb_text:7:103: static_resources.clusters[2].typed_extension_protocol_options.max_concurrent_streams.value: it cannot be negative',
      "a.pb_text:8:51: static_resources.clusters[2].typed_extension_protocol_options: unknown type 'type.googleapis.com/no.Such'",
      "a.pb_text:9:66: static_resources.clusters[2].lrs_server.self: only one of path, path_config_source, api_config_source, ads, self can be set, and 'ads' is set as well",
      'a.pb_text:11:26: enable_dispatcher_stats: expected true or false',
    ],
  );
  t.match(problems, '  11 | enable_dispatcher_stats: yes\n     |                          ^');

  const unfinished = (text: string) => problemsOf(text, { file: 'a.pb_text' }).split('\n')[0];
  t.equal(unfinished('node { id: "a"'), "a.pb_text:1:15: expected a field or '}'");
  t.equal(unfinished('node { id: "a }'), 'a.pb_text:1:12: an unterminated string or an unexpected character');
  t.equal(unfinished('node { client_features: ["a" "b" }'), "a.pb_text:1:34: expected ',' or ']'");
  for (const name of ['__proto__', 'constructor']) {
    t.equal(
      unfinished(`node { locality ${name} region: "a" }`),
      'a.pb_text:1:17: node.locality: expected the fields of envoy.config.core.v3.Locality in braces',
    );
  }
  t.equal(
    unfinished('static_resources { clusters { hosts {} } }'),
    "a.pb_text:1:31: static_resources.clusters[0].hosts: unknown field 'hosts' of envoy.config.cluster.v3.Cluster: it belongs to an older API; use load_assignment",
  );
  t.equal(unfinished('enable_dispatcher_stats:'), 'a.pb_text:1:25: enable_dispatcher_stats: expected true or false');
});

t.test('unknown fields and extensions are detected in binary protos', async (t) => {
  const field = (number: number, bytes: Uint8Array) =>
    Buffer.concat([Buffer.from([number * 8 + 2, bytes.length]), bytes]);
  const text = (number: number, value: string) => field(number, Buffer.from(value));
  const unknown = Buffer.from([0xc0, 0x3e, 5]); // number 1000
  const node = field(1, Buffer.concat([text(1, 'x'), unknown]));
  const sink = (type: string, value: Uint8Array) =>
    field(
      6,
      Buffer.concat([text(1, 'a'), field(3, Buffer.concat([text(1, `type.googleapis.com/${type}`), field(2, value)]))]),
    );
  const statsd = Buffer.concat([text(2, 'statsd'), unknown]);
  const bytes = Buffer.concat([node, sink('envoy.config.metrics.v3.StatsdSink', statsd), sink('shop.Sink', unknown)]);
  t.equal(
    problemsOf(bytes, { file: 'a.pb' }),
    [
      "a.pb: node: unknown field '1000' of envoy.config.core.v3.Node",
      "a.pb: stats_sinks[0].typed_config: unknown field '1000' of envoy.config.metrics.v3.StatsdSink",
      "a.pb: stats_sinks[1].typed_config.@type: Didn't find a registered implementation for 'a' with type URL: 'type.googleapis.com/shop.Sink'",
      "a.pb: stats_sinks[0].typed_config.tcp_cluster_name: unknown cluster 'statsd'",
    ].join('\n'),
  );
  const accepted = loadText(node, { file: 'a.pb', unknownStaticFields: 'warn' });
  t.match(accepted, { ok: true, counts: { unknownFields: 1 }, warnings: [{ path: 'node' }] });
});

t.test('files that cannot contain a configuration are refused with one line', async (t) => {
  t.match(problemsOf('node {', { file: 'a.pb_text' }), /^a\.pb_text:1:7: expected a field or '\}'/);
  t.match(problemsOf(new Uint8Array([0xff, 1, 2]), { file: 'a.pb' }), /^a\.pb: unable to read the file as a binary/);
  t.equal(problemsOf(new Uint8Array([0xff, 0xfe, 0])), 'baton.yaml: the file is not UTF-8 text');
  t.match(
    problemsOf('node: {}', { file: 'a.txt' }),
    /^a\.txt:1:1: .*; a file that ends in '\.txt' is read as JSON; the extensions of other formats are \.yaml/,
  );
  t.match(problemsOf('node: {}', { file: 'a' }), /a file without an extension is read as JSON/);
  for (const nothing of ['', '\n', '# nothing yet\n', '---\n', 'null\n']) {
    t.match(
      problemsOf(nothing),
      /^baton\.yaml:\d:\d: expected the fields of envoy\.config\.bootstrap\.v3\.Bootstrap, found nothing/,
      `a file that holds ${JSON.stringify(nothing)}, as one that is being written does, stops no listeners`,
    );
  }
  t.match(problemsOf('node: { id: x }', { yaml: '# nothing' }), /^--config-yaml:1:1: expected .* found nothing/);
  t.equal(problemsOf('{}'), '', 'an empty configuration is valid');
  t.match(loadConfiguration({ path: '/nowhere/a.yaml' }, testCatalog()), {
    errors: [{ source: '/nowhere/a.yaml', message: 'unable to read file: no such file or directory' }],
  });
  t.match(loadConfiguration({}, testCatalog()), { ok: false, errors: [{ message: NO_CONFIGURATION }] });
});

t.test('user input in messages cannot contain line ends and control characters', async (t) => {
  const text = 'a\nerror\u001b[31m\u009b\u202e\u2028';
  const escaped = 'a\\nerror\\u001b[31m\\u009b\\u202e\\u2028';
  const shown = problemsOf(JSON.stringify({ stats_flush_interval: text, [text]: 1 }), { file: 'a.json' });
  t.match(shown, `found '${escaped}'`);
  t.match(shown, `unknown field '${escaped}'`);
  t.notMatch(shown, /[^ -~\n]/);
  t.equal(shown.split('\n').filter((line) => line.startsWith('a.json:1:')).length, 2);
  t.equal(shown.split('\n').length, 6, 'each mistake with its line and a caret');
});

t.test('mistakes within a TypedStruct are located, and mistakes of the TypedStruct are detected', async (t) => {
  t.equal(
    problemsOf(`stats_sinks:
- name: a
  typed_config:
    "@type": type.googleapis.com/xds.type.v3.TypedStruct
    typeUrl: type.googleapis.com/envoy.config.metrics.v3.StatsdSink
    values: {}
    value:
      prefiks: x
      address: { socket_address: { address: 127.0.0.1, port_value: 99999 } }
- name: b
  typed_config:
    "@type": type.googleapis.com/udpa.type.v1.TypedStruct
    type_url: type.googleapis.com/shop.Sink
`),
    `baton.yaml:6:5: stats_sinks[0].typed_config.values: unknown field 'values' of xds.type.v3.TypedStruct; did you mean 'value'?
  6 |     values: {}
    |     ^
baton.yaml:8:7: stats_sinks[0].typed_config.prefiks: unknown field 'prefiks' of envoy.config.metrics.v3.StatsdSink; did you mean 'prefix'?
  8 |       prefiks: x
    |       ^
baton.yaml:9:68: stats_sinks[0].typed_config.address.socket_address.port_value: it must be at most 65535, found 99999
  9 |       address: { socket_address: { address: 127.0.0.1, port_value: 99999 } }
    |                                                                    ^
baton.yaml:13:15: stats_sinks[1].typed_config.@type: Didn't find a registered implementation for 'b' with type URL: 'type.googleapis.com/shop.Sink'
  13 |     type_url: type.googleapis.com/shop.Sink
     |               ^`,
  );
});

t.test('tags for values that no field accepts are refused', async (t) => {
  t.match(problemsOf('node: !!binary aGFsbG8='), /^baton\.yaml:1:16: unknown tag 'tag:yaml\.org,2002:binary'\n/);
  t.match(problemsOf('node: { id: !!timestamp 2001-01-01 }'), /unknown tag 'tag:yaml\.org,2002:timestamp'/);
  t.equal(problemsOf('node: { id: !!str 3 }'), '');
});

t.test('all mistakes are counted, and the first hundred are shown', async (t) => {
  const text = `node: {${Array.from({ length: 250 }, (_all, index) => ` x${index}: 1`).join(',')} }`;
  const lines = problemsOf(text).split('\n');
  t.equal(lines.filter((line) => line.startsWith('baton.yaml:1:')).length, 100);
  t.ok(lines.some((line) => line.endsWith('and 150 further errors')));
});

t.test('for a misspelt required field, only the misspelling is reported', async (t) => {
  const result = loadText(
    'admin: { addres: { pipe: { path: /a } } }\nnode: { id: a, cluster: b }\nstatic_resources: { listeners: [ { addres: {}, filter_chains: [ { filters: [ { nam: x } ] } ] } ] }',
  );
  t.same(result.ok ? [] : result.errors.map(({ path }) => path), [
    'admin.addres',
    `${LISTENER}.addres`,
    `${LISTENER}.filter_chains[0].filters[0].nam`,
  ]);
});

t.test('an optional per-route configuration that cannot be used is ignored with a warning', (t) => {
  const cors = 'type.googleapis.com/envoy.extensions.filters.http.cors.v3.CorsPolicy';
  const loaded = loadText(
    withRoutes(
      `{ name: v, domains: [ "*" ], typed_per_filter_config: {
        b: { ${WRAPPER}, is_optional: true, config: { "@type": ${cors}, allow_methods: GET } },
        c: { ${WRAPPER}, disabled: true } } }`,
      `${BUFFERED}, ${ROUTER}`,
    ),
  );
  t.match(loaded, {
    ok: true,
    warnings: [
      {
        path: /typed_per_filter_config\.b\.config\.@type$/,
        message: `Didn't find a registered implementation for 'b' with type URL: '${cors}': Baton does not implement this extension; it is optional and ignored`,
      },
      {
        path: /typed_per_filter_config\.c$/,
        message: "it has no effect: no filter of the chain has the name 'c'",
      },
    ],
  });
  t.match(JSON.stringify(loaded), /"b":\{"@type":"[^"]*FilterConfig","is_optional":true,"config":\{\}\}/);
  t.end();
});

t.test('an extension of several categories is disabled in the given category only', (t) => {
  const socket =
    '{ name: envoy.transport_sockets.raw_buffer, typed_config: { "@type": type.googleapis.com/envoy.extensions.transport_sockets.raw_buffer.v3.RawBuffer } }';
  const text = `static_resources:
  listeners: [ { address: { pipe: { path: /a } }, filter_chains: [ { transport_socket: ${socket} } ] } ]
  clusters: [ { name: c, load_assignment: { cluster_name: c }, transport_socket: ${socket} } ]
`;
  const category = 'envoy.transport_sockets.upstream';
  const catalog = testCatalog([`${category}/envoy.transport_sockets.raw_buffer`]);
  const result = loadText(text, { catalog });
  t.match(result.ok ? [] : result.errors, [
    {
      path: `${CLUSTER}.transport_socket.typed_config.@type`,
      message: `: '${category}/envoy.transport_sockets.raw_buffer' is disabled by --disable-extensions`,
    },
  ]);
  t.equal(result.ok ? 0 : result.errors.length, 1);
  t.equal(problemsOf(text), '');
  t.end();
});

t.test('a mistake in one size of a ring causes no errors about the other', (t) => {
  const ring = (sizes: string) => `static_resources:
  clusters: [ { name: c, load_assignment: { cluster_name: c }, lb_policy: RING_HASH, ring_hash_lb_config: { ${sizes} } } ]
`;
  for (const [sizes, ...fields] of [
    ['minimum_ring_size: many, maximum_ring_size: 10', 'minimum_ring_size'],
    ['minimum_ring_size: 9000000', 'minimum_ring_size'],
    ['maximum_ring_size: 10', 'maximum_ring_size'],
  ] as const) {
    const result = loadText(ring(sizes));
    const paths = result.ok ? [] : result.errors.map(({ path }) => path);
    t.same(
      paths,
      fields.map((field) => `${CLUSTER}.ring_hash_lb_config.${field}`),
    );
  }
  t.end();
});
