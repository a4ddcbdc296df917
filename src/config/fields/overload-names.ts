// The names of the overload manager's actions and load shed points that this build implements.

export const Action = {
  StopAcceptingRequests: 'envoy.overload_actions.stop_accepting_requests',
  DisableKeepAlive: 'envoy.overload_actions.disable_http_keepalive',
  StopAcceptingConnections: 'envoy.overload_actions.stop_accepting_connections',
  RejectConnections: 'envoy.overload_actions.reject_incoming_connections',
  ShrinkHeap: 'envoy.overload_actions.shrink_heap',
  ReduceTimeouts: 'envoy.overload_actions.reduce_timeouts',
} as const;

/** Actions that are refused, with the reasons. */
export const REFUSED_ACTIONS: Readonly<Record<string, string>> = {
  'envoy.overload_actions.close_idle_http_connections':
    'use disable_http_keepalive, or reduce_timeouts for idle connections',
  'envoy.overload_actions.reset_high_memory_stream':
    'the memory of each worker is limited by --worker-buffer-memory-mb, which cuts off streams that hold much of it',
};

export const ShedPoint = {
  AcceptConnection: 'envoy.load_shed_points.tcp_listener_accept',
  CreateCodec: 'envoy.load_shed_points.hcm_ondata_creating_codec',
  DecodeHeaders: 'envoy.load_shed_points.http_connection_manager_decode_headers',
  FilterCheck: 'envoy.load_shed_points.http_downstream_filter_check',
  Http1Dispatch: 'envoy.load_shed_points.http1_server_abort_dispatch',
  GoAway: 'envoy.load_shed_points.http2_server_go_away_on_dispatch',
  GoAwayAndClose: 'envoy.load_shed_points.http2_server_go_away_and_close_on_dispatch',
  NewUpstreamConnection: 'envoy.load_shed_points.connection_pool_new_connection',
  TcpProxyConnect: 'envoy.load_shed_points.tcp_proxy_upstream_connect',
  TcpProxyData: 'envoy.load_shed_points.tcp_proxy_on_data',
} as const;
