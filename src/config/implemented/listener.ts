// Implemented fields of listeners, their filter chains, and TcpProxy.

import { type ImplementedTable, onlyExtension, refused } from './table.js';

export const LISTENER: ImplementedTable = {
  'envoy.config.listener.v3.Listener': {
    name: true,
    address: true,
    stat_prefix: true,
    filter_chains: true,
    default_filter_chain: true,
    per_connection_buffer_limit_bytes: true,
    traffic_direction: true,
    enable_reuse_port: true,
    reuse_port: true,
    tcp_backlog_size: true,
    freebind: true,
    transparent: true,
    bind_to_port: true,
    drain_type: true,
    ignore_global_conn_limit: true,
    metadata: true,
  },
  'envoy.config.listener.v3.FilterChain': {
    name: true,
    filters: true,
    metadata: true,
    filter_chain_match: true,
    transport_socket: onlyExtension('envoy.transport_sockets.raw_buffer', 'terminate TLS in front of Baton'),
  },
  'envoy.config.listener.v3.FilterChainMatch': {
    destination_port: true,
    prefix_ranges: true,
    direct_source_prefix_ranges: true,
    source_type: true,
    source_prefix_ranges: true,
    source_ports: true,
    transport_protocol: true,
    server_names: refused('it needs the TLS inspector, which is not implemented'),
    application_protocols: refused('it needs the TLS inspector, which is not implemented'),
  },
  'envoy.config.listener.v3.Filter': { name: true, typed_config: true },
  'envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy': {
    stat_prefix: true,
    cluster: true,
    weighted_clusters: true,
    idle_timeout: true,
    access_log: true,
    max_connect_attempts: true,
    max_downstream_connection_duration: true,
  },
  'envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy.WeightedCluster': { clusters: true },
  'envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy.WeightedCluster.ClusterWeight': {
    name: true,
    weight: true,
  },
};
