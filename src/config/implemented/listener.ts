// Implemented fields of listeners, their filter chains, and TcpProxy.

import { atMost, type ImplementedTable, refused } from './table.js';

export const LISTENER: ImplementedTable = {
  'envoy.config.listener.v3.Listener': {
    name: true,
    address: true,
    stat_prefix: true,
    filter_chains: atMost(1, 'a choice between filter chains is not implemented'),
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
    filter_chain_match: refused('the only filter chain takes every connection'),
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
