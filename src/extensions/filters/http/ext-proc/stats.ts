// Scope `http.<stat_prefix>.ext_proc.`, followed by the filter's stat_prefix if it has one.

import { defineLayout } from '../../../sdk.js';

export const ExtProcStats = defineLayout({
  streams_started: 'counter',
  stream_msgs_sent: 'counter',
  stream_msgs_received: 'counter',
  /** Messages that do not answer what the processor was asked. */
  spurious_msgs_received: 'counter',
  streams_closed: 'counter',
  streams_failed: 'counter',
  failure_mode_allowed: 'counter',
  message_timeouts: 'counter',
  rejected_header_mutations: 'counter',
  override_message_timeout_received: 'counter',
  override_message_timeout_ignored: 'counter',
  clear_route_cache_ignored: 'counter',
  clear_route_cache_disabled: 'counter',
  /** Of filters of clusters, which Baton does not have. */
  clear_route_cache_upstream_ignored: 'counter',
  send_immediate_resp_upstream_ignored: 'counter',
  http_not_ok_resp_received: 'counter',
  immediate_responses_sent: 'counter',
  server_half_closed: 'counter',
});
