// A configuration with most implemented features, which tests modify.

export const GOOD = `
node: { id: one, cluster: front, locality: { region: r, zone: z } }
stats_flush_interval: 5s
admin:
  address: { socket_address: { address: 127.0.0.1, port_value: 0 } }
static_resources:
  listeners:
  - name: web
    address: { socket_address: { protocol: TCP, address: 0.0.0.0, port_value: 10000 } }
    traffic_direction: INBOUND
    per_connection_buffer_limit_bytes: 32768
    enable_reuse_port: yes
    filter_chains:
    - filters:
      - name: http
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: ingress
          codec_type: auto
          use_remote_address: true
          common_http_protocol_options: { idle_timeout: 3600s, max_headers_count: 100 }
          upgrade_configs: [ { upgrade_type: websocket } ]
          access_log:
          - name: file
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog
              path: /dev/stdout
              log_format: { json_format: { path: "%REQ(:PATH)%", code: "%RESPONSE_CODE%" } }
          route_config:
            name: local
            virtual_hosts:
            - name: shop
              domains: [ shop.example.com, "*.shop.example.com" ]
              typed_per_filter_config:
                envoy.filters.http.buffer:
                  "@type": type.googleapis.com/envoy.extensions.filters.http.buffer.v3.BufferPerRoute
                  disabled: true
              routes:
              - match: { safe_regex: { regex: "/v[0-9]+/.*" }, headers: [ { name: x-a, string_match: { prefix: b } } ] }
                route:
                  weighted_clusters: { clusters: [ { name: blue, weight: 90 }, { name: green, weight: 10 } ] }
                  retry_policy: { retry_on: "5xx,reset", num_retries: 2, per_try_timeout: 0.5s }
              - match: { path: /old }
                redirect: { path_redirect: /new, response_code: found }
              - match: { prefix: / }
                route: { cluster: blue, timeout: 0s }
            - name: rest
              domains: [ "*" ]
              routes:
              - match: { prefix: / }
                direct_response: { status: 404, body: { inline_string: nothing here } }
          http_filters:
          - name: envoy.filters.http.buffer
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.buffer.v3.Buffer
              max_request_bytes: 1024
          - name: envoy.filters.http.router
            typed_config: { "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router }
  - name: raw
    address: { pipe: { path: "@baton", mode: 0 } }
    filter_chains:
    - filters:
      - name: tcp
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy
          stat_prefix: raw
          cluster: green
          idle_timeout: 30s
  clusters:
  - name: blue
    connect_timeout: 0.25s
    type: strict_dns
    dns_lookup_family: v4_only
    load_assignment:
      cluster_name: blue
      endpoints:
      - locality: { zone: a }
        lb_endpoints:
        - endpoint: { address: { socket_address: { address: blue.example.com, port_value: 80 } } }
          load_balancing_weight: 3
    circuit_breakers:
      thresholds: [ { max_connections: 100 }, { priority: high, max_connections: 200 } ]
    typed_extension_protocol_options:
      envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
        "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
        explicit_http_config: { http_protocol_options: {} }
  - name: green
    type: STATIC
    lb_policy: LEAST_REQUEST
    least_request_lb_config: { choice_count: 3 }
    load_assignment:
      cluster_name: green
      endpoints:
      - lb_endpoints:
        - endpoint: { address: { socket_address: { address: 10.0.0.1, port_value: 80 } } }
          metadata: { filter_metadata: { envoy.lb: { canary: true, big: 12345678901234567890 } } }
`;
