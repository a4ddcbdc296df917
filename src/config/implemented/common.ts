// Implemented fields of the small messages that many others hold.

import { ALL, accepted, type ImplementedTable } from './table.js';

/** Why neither the bootstrap nor a cluster can name a resolver. */
export const RESOLVER = 'the name servers in /etc/resolv.conf are asked: leave it out';

export const COMMON: ImplementedTable = {
  'envoy.config.core.v3.Address': { socket_address: true, pipe: true },
  'envoy.config.core.v3.SocketAddress': {
    protocol: ['TCP', 'UDP'],
    address: true,
    port_value: true,
    ipv4_compat: true,
  },
  'envoy.config.core.v3.Pipe': ALL,
  'envoy.config.core.v3.Locality': ALL,
  'envoy.config.core.v3.Metadata': {
    filter_metadata: accepted(
      'of an endpoint, `canary` in `envoy.lb` is obeyed; no filter or load balancer of this build reads the rest',
    ),
  },
  'envoy.config.core.v3.DataSource': {
    filename: true,
    inline_bytes: true,
    inline_string: true,
    environment_variable: true,
  },
  'envoy.config.core.v3.TransportSocket': { name: true, typed_config: true },
  'envoy.config.core.v3.HeaderValue': { key: true, value: true, raw_value: true },
  'envoy.config.core.v3.HeaderValueOption': ALL,
  'envoy.config.core.v3.RuntimeFractionalPercent': ALL,
  'envoy.config.core.v3.RuntimeDouble': ALL,
  'envoy.config.core.v3.RuntimeUInt32': ALL,
  'envoy.type.v3.FractionalPercent': ALL,
  'envoy.config.core.v3.HttpService': ALL,
  'envoy.config.core.v3.HttpUri': ALL,
  'envoy.config.core.v3.GrpcService': { envoy_grpc: true, google_grpc: true, timeout: true, initial_metadata: true },
  'envoy.config.core.v3.GrpcService.EnvoyGrpc': {
    cluster_name: true,
    authority: true,
    max_receive_message_length: true,
    retry_policy: true,
  },
  'envoy.config.core.v3.RetryPolicy': { retry_back_off: true },
  'envoy.config.core.v3.BackoffStrategy': ALL,
  'envoy.config.core.v3.GrpcService.GoogleGrpc': {
    target_uri: true,
    stat_prefix: accepted('calls to gRPC services have no stats of their own'),
  },
  'envoy.type.v3.Percent': ALL,
  'envoy.type.v3.Int64Range': ALL,
  'envoy.type.matcher.v3.StringMatcher': {
    exact: true,
    prefix: true,
    suffix: true,
    safe_regex: true,
    contains: true,
    ignore_case: true,
  },
  'envoy.type.matcher.v3.RegexMatcher': { regex: true, google_re2: accepted('RE2 is the only engine') },
  'envoy.type.matcher.v3.RegexMatcher.GoogleRE2': {
    max_program_size: accepted('RE2 has a limit of its own'),
  },
  'envoy.type.matcher.v3.RegexMatchAndSubstitute': ALL,
};
