// Implemented fields of small messages that many others contain.

import {
  accepted,
  byValue,
  dataOf,
  everyValue,
  type ImplementedTable,
  notImplemented,
  obeyed,
  onlyExtension,
  onlyFalse,
  onlyWithin,
  refused,
} from './table.js';

/** For the older fields of DNS resolvers, and for other extensions. */
export const RESOLVER = 'set typed_dns_resolver_config with envoy.network.dns_resolver.cares';

/** The extensions of `formatters`: their operators are built-in ones. */
export const FORMATTERS = ['envoy.formatter.metadata', 'envoy.formatter.req_without_query'];
/** The one with settings. Where formats are single texts, its operators have the functions that are always available. */
export const CEL_FORMATTER = 'envoy.formatter.cel';
export const ONLY_FORMATTERS =
  'the built-in operators of formats, %METADATA%, %REQ_WITHOUT_QUERY% and %CEL% are available; settings of %CEL% in a log_format or body_format only';

/** The only extension of `stateful_formatter`. */
export const PRESERVE_CASE = 'envoy.http.stateful_header_formatters.preserve_case';

/** The extension of DNS resolvers. */
export const CARES = 'envoy.network.dns_resolver.cares';
/** Resolvers: names are resolved in the same way with both. */
export const RESOLVERS = [CARES, 'envoy.network.dns_resolver.getaddrinfo'];

const NO_CREDENTIALS = 'calls use neither TLS nor credentials: leave it out';

/** The messages whose data sources are read again when their files change. */
const WATCHED = [
  'TlsCertificate',
  'CertificateValidationContext',
  'TlsSessionTicketKeys',
  'SPIFFECertValidatorConfig',
  'SPIFFECertValidatorConfig.TrustDomain',
].map((name) => `envoy.extensions.transport_sockets.tls.v3.${name}`);

export const COMMON: ImplementedTable = {
  'envoy.config.core.v3.Address': { socket_address: true, pipe: true, envoy_internal_address: true },
  'envoy.config.core.v3.EnvoyInternalAddress': { server_listener_name: true, endpoint_id: true },
  'envoy.config.core.v3.SocketAddress': {
    protocol: byValue({ TCP: true, UDP: true }),
    address: true,
    port_value: true,
    ipv4_compat: true,
    ...notImplemented('named_port', 'resolver_name'),
    network_namespace_filepath: refused('sockets are opened in the network namespace of the process'),
  },
  'envoy.config.core.v3.DnsResolverOptions': {
    no_default_search_domain: true,
    use_tcp_for_dns_lookups: onlyFalse('queries are sent by UDP, and repeated by TCP if the answer is truncated'),
  },
  'envoy.config.core.v3.SocketOption': {
    ...obeyed('description', 'level', 'name', 'int_value', 'buf_value', 'type'),
    state: byValue({ STATE_PREBIND: true, STATE_BOUND: true, STATE_LISTENING: true }),
    ip_version: byValue({
      SOCKET_IP_VERSION_UNSPECIFIED: true,
      SOCKET_IP_VERSION_IPV4: true,
      SOCKET_IP_VERSION_IPV6: true,
    }),
  },
  'envoy.config.core.v3.SocketOption.SocketType': obeyed('stream', 'datagram'),
  'envoy.config.core.v3.SocketOption.SocketType.Stream': {},
  'envoy.config.core.v3.SocketOption.SocketType.Datagram': {},
  'envoy.config.core.v3.Pipe': obeyed('path', 'mode'),
  'envoy.config.core.v3.Locality': obeyed('region', 'zone', 'sub_zone'),
  'envoy.config.core.v3.Metadata': {
    filter_metadata: true,
    typed_filter_metadata: dataOf('envoy.config.core.v3.Address'),
  },
  'envoy.config.core.v3.DataSource': {
    filename: true,
    inline_bytes: true,
    inline_string: true,
    environment_variable: true,
    watched_directory: onlyWithin(WATCHED, 'the file is read once, with the configuration: leave it out'),
  },
  'envoy.config.core.v3.TransportSocket': { name: true, typed_config: true },
  'envoy.config.core.v3.HeaderValue': { key: true, value: true, raw_value: true },
  'envoy.config.core.v3.HeaderValueOption': {
    header: true,
    append: true,
    keep_empty_value: true,
    append_action: byValue({
      APPEND_IF_EXISTS_OR_ADD: true,
      ADD_IF_ABSENT: true,
      OVERWRITE_IF_EXISTS_OR_ADD: true,
      OVERWRITE_IF_EXISTS: true,
    }),
  },
  'envoy.config.core.v3.RuntimeFeatureFlag': { default_value: true, runtime_key: true },
  'envoy.config.core.v3.RuntimeFractionalPercent': obeyed('default_value', 'runtime_key'),
  'envoy.config.core.v3.RuntimeDouble': obeyed('default_value', 'runtime_key'),
  'envoy.config.core.v3.CelExpressionConfig': obeyed(
    'enable_string_conversion',
    'enable_string_concat',
    'enable_string_functions',
  ),
  'envoy.config.core.v3.RuntimePercent': obeyed('default_value', 'runtime_key'),
  'envoy.config.core.v3.RuntimeUInt32': obeyed('default_value', 'runtime_key'),
  'envoy.type.v3.FractionalPercent': {
    numerator: true,
    denominator: byValue({ HUNDRED: true, TEN_THOUSAND: true, MILLION: true }),
  },
  'envoy.config.core.v3.HttpService': {
    http_uri: true,
    request_headers_to_add: true,
    formatters: onlyExtension(FORMATTERS, ONLY_FORMATTERS),
  },
  'envoy.config.core.v3.HttpUri': obeyed('uri', 'cluster', 'timeout'),
  'envoy.config.core.v3.GrpcService': {
    envoy_grpc: true,
    google_grpc: true,
    timeout: true,
    initial_metadata: true,
    retry_policy: true,
  },
  'envoy.config.core.v3.GrpcService.EnvoyGrpc': {
    cluster_name: true,
    authority: true,
    max_receive_message_length: true,
    retry_policy: true,
    skip_envoy_headers: true,
  },
  'envoy.config.core.v3.RetryPolicy': {
    ...obeyed('retry_back_off', 'num_retries', 'retry_on', 'retry_host_predicate', 'host_selection_retry_max_attempts'),
    ...notImplemented('retry_priority'),
  },
  'envoy.config.core.v3.RetryPolicy.RetryHostPredicate': obeyed('name', 'typed_config'),
  'envoy.config.core.v3.BackoffStrategy': obeyed('base_interval', 'max_interval'),
  'envoy.config.core.v3.GrpcService.GoogleGrpc': {
    target_uri: true,
    stat_prefix: accepted('calls to gRPC services have no separate stats'),
    ...notImplemented(
      'channel_credentials',
      'call_credentials',
      'credentials_factory_name',
      'config',
      'per_stream_buffer_limit_bytes',
      'channel_args',
    ),
    channel_credentials_plugin: refused(NO_CREDENTIALS),
    call_credentials_plugin: refused(NO_CREDENTIALS),
  },
  'envoy.type.v3.HttpStatus': { code: everyValue('the value is the status code that is sent') },
  'envoy.type.v3.Percent': obeyed('value'),
  'envoy.type.v3.Int64Range': obeyed('start', 'end'),
  'envoy.type.matcher.v3.StringMatcher': {
    exact: true,
    prefix: true,
    suffix: true,
    safe_regex: true,
    contains: true,
    ignore_case: true,
    ...notImplemented('custom'),
  },
  'envoy.type.matcher.v3.MetadataMatcher': obeyed('filter', 'path', 'value', 'invert'),
  'envoy.type.matcher.v3.MetadataMatcher.PathSegment': obeyed('key'),
  'envoy.type.matcher.v3.ValueMatcher': obeyed(
    'null_match',
    'double_match',
    'string_match',
    'bool_match',
    'present_match',
    'list_match',
    'or_match',
  ),
  'envoy.type.matcher.v3.DoubleMatcher': obeyed('range', 'exact'),
  'envoy.type.v3.DoubleRange': obeyed('start', 'end'),
  'envoy.type.matcher.v3.ListMatcher': obeyed('one_of'),
  'envoy.type.matcher.v3.OrMatcher': obeyed('value_matchers'),
  'envoy.type.matcher.v3.RegexMatcher': obeyed('google_re2', 'regex'),
  'envoy.type.matcher.v3.RegexMatcher.GoogleRE2': obeyed('max_program_size'),
  'envoy.type.matcher.v3.RegexMatchAndSubstitute': obeyed('pattern', 'substitution'),
};
