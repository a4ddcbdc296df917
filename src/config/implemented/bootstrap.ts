// Implemented fields of the bootstrap itself.

import { ALL, type ImplementedTable, refused } from './table.js';

export const BOOTSTRAP: ImplementedTable = {
  'envoy.config.bootstrap.v3.Bootstrap': {
    node: true,
    static_resources: true,
    dynamic_resources: true,
    flags_path: true,
    watchdogs: true,
    stats_config: true,
    stats_flush_interval: true,
    stats_flush_on_admin: true,
    stats_sinks: true,
    admin: true,
    application_log_config: true,
    layered_runtime: true,
  },
  'envoy.config.bootstrap.v3.Bootstrap.ApplicationLogConfig': ALL,
  'envoy.config.bootstrap.v3.Bootstrap.ApplicationLogConfig.LogFormat': ALL,
  'envoy.config.bootstrap.v3.Bootstrap.StaticResources': { listeners: true, clusters: true },
  'envoy.config.bootstrap.v3.Watchdogs': ALL,
  'envoy.config.bootstrap.v3.Watchdog': { miss_timeout: true, megamiss_timeout: true },
  'envoy.config.bootstrap.v3.Admin': {
    address: true,
    allow_paths: true,
    access_log: true,
    access_log_path: true,
    profile_path: true,
    ignore_global_conn_limit: true,
    socket_options: refused('the admin interface listens without socket options'),
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
