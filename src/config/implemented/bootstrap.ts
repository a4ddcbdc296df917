// Implemented fields of the bootstrap itself.

import { ALL, accepted, type ImplementedTable, refused } from './table.js';

/** Why neither the bootstrap nor a cluster can name a resolver. */
export const RESOLVER = 'the name servers in /etc/resolv.conf are asked: leave it out';

export const BOOTSTRAP: ImplementedTable = {
  'envoy.config.bootstrap.v3.Bootstrap': {
    node: true,
    static_resources: true,
    dynamic_resources: true,
    flags_path: true,
    cluster_manager: true,
    watchdog: true,
    watchdogs: true,
    stats_config: true,
    stats_flush_interval: true,
    stats_flush_on_admin: true,
    stats_sinks: true,
    stats_server_version_override: true,
    admin: true,
    application_log_config: true,
    layered_runtime: true,
    default_regex_engine: true,
    overload_manager: true,
    dns_resolution_config: refused(RESOLVER),
    typed_dns_resolver_config: refused(RESOLVER),
  },
  'envoy.config.bootstrap.v3.Bootstrap.ApplicationLogConfig': ALL,
  'envoy.config.bootstrap.v3.Bootstrap.ApplicationLogConfig.LogFormat': ALL,
  'envoy.config.bootstrap.v3.Bootstrap.StaticResources': {
    listeners: true,
    clusters: true,
    secrets: refused('TLS is not implemented: leave it out'),
  },
  'envoy.config.bootstrap.v3.ClusterManager': {
    local_cluster_name: refused('zone-aware routing is not implemented'),
    outlier_detection: true,
    load_stats_config: refused('load reporting is not implemented'),
  },
  'envoy.config.bootstrap.v3.ClusterManager.OutlierDetection': {
    event_log_path: true,
    event_service: refused('events go to a file: event_log_path'),
  },
  'envoy.config.overload.v3.OverloadManager': {
    resource_monitors: true,
    refresh_interval: accepted('the monitor that there is counts each connection as it comes'),
    actions: refused('the limit of connections acts by itself, and there are no others: leave it out'),
    buffer_factory_config: refused('buffers have limits of their own: per_connection_buffer_limit_bytes'),
  },
  'envoy.config.overload.v3.ResourceMonitor': ALL,
  'envoy.extensions.resource_monitors.downstream_connections.v3.DownstreamConnectionsConfig': ALL,
  'envoy.config.bootstrap.v3.Watchdogs': ALL,
  'envoy.config.bootstrap.v3.Watchdog': { miss_timeout: true, megamiss_timeout: true },
  'envoy.config.bootstrap.v3.Admin': {
    address: true,
    allow_paths: true,
    access_log: true,
    access_log_path: true,
    profile_path: true,
    ignore_global_conn_limit: true,
    socket_options: refused('socket options of the admin interface are not implemented'),
  },
  'envoy.config.bootstrap.v3.LayeredRuntime': ALL,
  'envoy.config.bootstrap.v3.RuntimeLayer': {
    name: true,
    static_layer: true,
    disk_layer: true,
    admin_layer: true,
    rtds_layer: true,
  },
  'envoy.config.bootstrap.v3.RuntimeLayer.DiskLayer': ALL,
  'envoy.config.bootstrap.v3.RuntimeLayer.AdminLayer': ALL,
  'envoy.config.bootstrap.v3.RuntimeLayer.RtdsLayer': ALL,
  'envoy.service.runtime.v3.Runtime': ALL,
  'envoy.config.core.v3.Node': {
    id: true,
    cluster: true,
    metadata: true,
    locality: true,
    dynamic_parameters: true,
  },
  'xds.core.v3.ContextParams': ALL,
};
