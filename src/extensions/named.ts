// Extensions without code of their own: a configuration may name them, but Baton does the same without them, or another room
// reads their configuration.

import { AGGREGATE, CLUSTER_TYPES, DNS_CLUSTER, FORWARD_PROXY, REDIS } from '../config/fields/discovery.js';
import type { RouteAction_HashPolicy } from '../config/generated/api.js';
import { REDIS_CHECK } from '../config/implemented/cluster.js';
import { CARES, CEL_FORMATTER, PRESERVE_CASE, RESOLVER, RESOLVERS } from '../config/implemented/common.js';
import {
  accepted,
  byValue,
  type ImplementedTable,
  notImplemented,
  obeyed,
  onlyExtension,
  onlyFalse,
  refused,
} from '../config/implemented/table.js';
import { HashPolicy } from '../http/routing/hashing/hash-policy.js';
import type { NamedExtension } from './factories.js';
import { reportMistakes } from './report-mistakes.js';

const RAW_BUFFER = {
  name: 'envoy.transport_sockets.raw_buffer',
  typeUrls: ['type.googleapis.com/envoy.extensions.transport_sockets.raw_buffer.v3.RawBuffer'],
};

export const NAMED: readonly NamedExtension[] = [
  // Kept in memory by filters/http/cache.
  {
    category: 'envoy.http.cache',
    name: 'envoy.extensions.http.cache.simple',
    typeUrls: ['type.googleapis.com/envoy.extensions.http.cache.simple_http_cache.v3.SimpleHttpCacheConfig'],
    implemented: { 'envoy.extensions.http.cache.simple_http_cache.v3.SimpleHttpCacheConfig': {} },
  },
  // Parts of matchers, which filters/common/matching compiles.
  ...matcherParts(),
  // %METADATA% and %REQ_WITHOUT_QUERY% are available in every format, whether a format names their extensions or not.
  {
    category: 'envoy.formatter',
    name: 'envoy.formatter.metadata',
    typeUrls: ['type.googleapis.com/envoy.extensions.formatter.metadata.v3.Metadata'],
    implemented: { 'envoy.extensions.formatter.metadata.v3.Metadata': {} },
  },
  {
    category: 'envoy.formatter',
    name: CEL_FORMATTER,
    typeUrls: ['type.googleapis.com/envoy.extensions.formatter.cel.v3.Cel'],
    implemented: { 'envoy.extensions.formatter.cel.v3.Cel': obeyed('cel_config') },
  },
  // Compiled by http/log-filters and http/routing/actions.
  {
    category: 'envoy.access_loggers.extension_filters',
    name: 'envoy.access_loggers.extension_filters.cel',
    typeUrls: ['type.googleapis.com/envoy.extensions.access_loggers.filters.cel.v3.ExpressionFilter'],
    implemented: {
      'envoy.extensions.access_loggers.filters.cel.v3.ExpressionFilter': obeyed('expression', 'cel_config'),
    },
  },
  {
    category: 'envoy.rate_limit_descriptors',
    name: 'envoy.rate_limit_descriptors.expr',
    typeUrls: ['type.googleapis.com/envoy.extensions.rate_limit_descriptors.expr.v3.Descriptor'],
    implemented: {
      'envoy.extensions.rate_limit_descriptors.expr.v3.Descriptor': obeyed(
        'descriptor_key',
        'skip_if_error',
        'text',
        'parsed',
      ),
    },
  },
  {
    category: 'envoy.formatter',
    name: 'envoy.formatter.req_without_query',
    typeUrls: ['type.googleapis.com/envoy.extensions.formatter.req_without_query.v3.ReqWithoutQuery'],
    implemented: { 'envoy.extensions.formatter.req_without_query.v3.ReqWithoutQuery': {} },
  },
  // The primary writes the file (server/clusters/health-checks).
  {
    category: 'envoy.health_check.event_sinks',
    name: 'envoy.health_check.event_sink.file',
    typeUrls: ['type.googleapis.com/envoy.extensions.health_check.event_sinks.file.v3.HealthCheckEventFileSink'],
    implemented: {
      'envoy.extensions.health_check.event_sinks.file.v3.HealthCheckEventFileSink': obeyed('event_log_path'),
    },
  },
  // Read by http/headers/early-mutations.ts and http/headers/edge/original-ip.ts.
  {
    category: 'envoy.http.early_header_mutation',
    name: 'envoy.http.early_header_mutation.header_mutation',
    typeUrls: ['type.googleapis.com/envoy.extensions.http.early_header_mutation.header_mutation.v3.HeaderMutation'],
    implemented: {
      'envoy.extensions.http.early_header_mutation.header_mutation.v3.HeaderMutation': obeyed('mutations'),
    },
  },
  {
    category: 'envoy.http.original_ip_detection',
    name: 'envoy.http.original_ip_detection.custom_header',
    typeUrls: ['type.googleapis.com/envoy.extensions.http.original_ip_detection.custom_header.v3.CustomHeaderConfig'],
    implemented: {
      'envoy.extensions.http.original_ip_detection.custom_header.v3.CustomHeaderConfig': obeyed(
        'header_name',
        'allow_extension_to_set_address_as_trusted',
        'reject_with_status',
      ),
    },
  },
  {
    category: 'envoy.http.original_ip_detection',
    name: 'envoy.http.original_ip_detection.xff',
    typeUrls: ['type.googleapis.com/envoy.extensions.http.original_ip_detection.xff.v3.XffConfig'],
    implemented: {
      'envoy.extensions.http.original_ip_detection.xff.v3.XffConfig': obeyed(
        'xff_num_trusted_hops',
        'xff_trusted_cidrs',
        'skip_xff_append',
      ),
      'envoy.extensions.http.original_ip_detection.xff.v3.XffTrustedCidrs': obeyed('cidrs'),
    },
  },
  // Names keep their case with or without it (http/codec/name-case.ts).
  {
    category: 'envoy.http.stateful_header_formatters',
    name: PRESERVE_CASE,
    typeUrls: [
      'type.googleapis.com/envoy.extensions.http.header_formatters.preserve_case.v3.PreserveCaseFormatterConfig',
    ],
    implemented: {
      'envoy.extensions.http.header_formatters.preserve_case.v3.PreserveCaseFormatterConfig': {
        forward_reason_phrase: accepted("the host's reason phrase is forwarded in any case"),
        formatter_type_on_envoy_headers: byValue({ DEFAULT: true, PROPER_CASE: true }),
      },
    },
  },
  // The primary checks hosts (server/clusters/redis).
  {
    category: 'envoy.health_checkers',
    name: REDIS_CHECK,
    typeUrls: ['type.googleapis.com/envoy.extensions.health_checkers.redis.v3.Redis'],
    implemented: {
      'envoy.extensions.health_checkers.redis.v3.Redis': {
        key: true,
        aws_iam: refused(
          'checks begin with the credentials of the cluster: set auth_password in its RedisProtocolOptions',
        ),
      },
    },
  },
  // The same as the values of `type` (config/fields/discovery.ts).
  ...Object.keys(CLUSTER_TYPES).map((name) => ({ category: 'envoy.clusters', name, typeUrls: [] }) as const),
  {
    category: 'envoy.clusters',
    name: AGGREGATE,
    typeUrls: ['type.googleapis.com/envoy.extensions.clusters.aggregate.v3.ClusterConfig'],
    implemented: { 'envoy.extensions.clusters.aggregate.v3.ClusterConfig': { clusters: true } },
  },
  {
    category: 'envoy.clusters',
    name: FORWARD_PROXY,
    typeUrls: ['type.googleapis.com/envoy.extensions.clusters.dynamic_forward_proxy.v3.ClusterConfig'],
    implemented: {
      'envoy.extensions.clusters.dynamic_forward_proxy.v3.ClusterConfig': {
        dns_cache_config: true,
        sub_clusters_config: refused('the addresses of a name are one host: set dns_cache_config'),
        allow_insecure_cluster_options: true,
        allow_coalesced_connections: accepted('it permits to share connections between hosts, which Baton does not do'),
      },
    },
  },
  // The primary asks a node for the others (server/clusters/version/redis-discovery.ts).
  {
    category: 'envoy.clusters',
    name: REDIS,
    typeUrls: ['type.googleapis.com/envoy.extensions.clusters.redis.v3.RedisClusterConfig'],
    implemented: {
      'envoy.extensions.clusters.redis.v3.RedisClusterConfig': {
        ...obeyed(
          'cluster_refresh_rate',
          'cluster_refresh_timeout',
          'redirect_refresh_interval',
          'redirect_refresh_threshold',
          'failure_refresh_threshold',
          'host_degraded_refresh_threshold',
        ),
        enable_zone_discovery: onlyFalse('nodes are not asked for their zones: leave it out'),
      },
    },
  },
  {
    category: 'envoy.clusters',
    name: DNS_CLUSTER,
    typeUrls: ['type.googleapis.com/envoy.extensions.clusters.dns.v3.DnsCluster'],
    implemented: {
      'envoy.extensions.clusters.dns.v3.DnsCluster': {
        dns_refresh_rate: true,
        dns_failure_refresh_rate: true,
        respect_dns_ttl: true,
        dns_jitter: true,
        typed_dns_resolver_config: onlyExtension(RESOLVERS, RESOLVER),
        dns_lookup_family: byValue({
          UNSPECIFIED: true,
          AUTO: true,
          V4_ONLY: true,
          V6_ONLY: true,
          V4_PREFERRED: true,
          ALL: true,
        }),
        all_addresses_in_single_endpoint: true,
        dns_min_refresh_rate: true,
      },
      'envoy.extensions.clusters.dns.v3.DnsCluster.RefreshRate': obeyed('base_interval', 'max_interval'),
    },
  },
  // Names are always resolved by c-ares, but as getaddrinfo() does it.
  {
    category: 'envoy.network.dns_resolver',
    name: 'envoy.network.dns_resolver.getaddrinfo',
    typeUrls: ['type.googleapis.com/envoy.extensions.network.dns_resolver.getaddrinfo.v3.GetAddrInfoDnsResolverConfig'],
    implemented: {
      'envoy.extensions.network.dns_resolver.getaddrinfo.v3.GetAddrInfoDnsResolverConfig': {
        num_retries: refused('dns_failure_refresh_rate of the cluster determines when a failed resolution is repeated'),
        num_resolver_threads: accepted('resolutions do not wait for threads'),
      },
    },
  },
  {
    category: 'envoy.network.dns_resolver',
    name: CARES,
    typeUrls: ['type.googleapis.com/envoy.extensions.network.dns_resolver.cares.v3.CaresDnsResolverConfig'],
    implemented: {
      'envoy.extensions.network.dns_resolver.cares.v3.CaresDnsResolverConfig': {
        resolvers: true,
        use_resolvers_as_fallback: true,
        dns_resolver_options: true,
        query_timeout_seconds: true,
        query_tries: true,
        ...notImplemented(
          'filter_unroutable_families',
          'udp_max_queries',
          'rotate_nameservers',
          'edns0_max_payload_size',
          'max_udp_channel_duration',
          'reinit_channel_on_timeout',
          'qcache_max_ttl',
        ),
      },
    },
  },
  // The engine of all regular expressions, whether it is named or not (common/text/regex.ts).
  {
    category: 'envoy.regex_engines',
    name: 'envoy.regex_engines.google_re2',
    typeUrls: ['type.googleapis.com/envoy.extensions.regex_engines.v3.GoogleRE2'],
  },
  // Connection managers always generate x-request-id as a random UUID, and read this configuration themselves.
  {
    category: 'envoy.request_id',
    name: 'envoy.request_id.uuid',
    typeUrls: ['type.googleapis.com/envoy.extensions.request_id.uuid.v3.UuidRequestIdConfig'],
    implemented: {
      'envoy.extensions.request_id.uuid.v3.UuidRequestIdConfig': {
        pack_trace_reason: true,
        use_request_id_for_trace_sampling: true,
      },
    },
  },
  // The end of a list of upstream HTTP filters: the connection to the host.
  {
    category: 'envoy.filters.http.upstream',
    name: 'envoy.filters.http.upstream_codec',
    isTerminal: true,
    typeUrls: ['type.googleapis.com/envoy.extensions.filters.http.upstream_codec.v3.UpstreamCodec'],
    implemented: { 'envoy.extensions.filters.http.upstream_codec.v3.UpstreamCodec': {} },
  },
  // A connection limit, which listeners read themselves.
  {
    category: 'envoy.resource_monitors',
    name: 'envoy.resource_monitors.global_downstream_max_connections',
    typeUrls: [
      'type.googleapis.com/envoy.extensions.resource_monitors.downstream_connections.v3.DownstreamConnectionsConfig',
    ],
  },
  // Configurations of the overload manager's actions; the other actions have none.
  {
    category: 'envoy.overload_actions',
    name: 'envoy.overload_actions.reduce_timeouts',
    typeUrls: ['type.googleapis.com/envoy.config.overload.v3.ScaleTimersOverloadActionConfig'],
    implemented: {
      'envoy.config.overload.v3.ScaleTimersOverloadActionConfig': obeyed('timer_scale_factors'),
      'envoy.config.overload.v3.ScaleTimersOverloadActionConfig.ScaleTimer': {
        timer: byValue({
          UNSPECIFIED: false,
          HTTP_DOWNSTREAM_CONNECTION_IDLE: true,
          HTTP_DOWNSTREAM_STREAM_IDLE: true,
          TRANSPORT_SOCKET_CONNECT: true,
          HTTP_DOWNSTREAM_CONNECTION_MAX: true,
          HTTP_DOWNSTREAM_STREAM_FLUSH: false,
        }),
        min_timeout: true,
        min_scale: true,
      },
    },
  },
  {
    category: 'envoy.overload_actions',
    name: 'envoy.overload_actions.shrink_heap',
    typeUrls: ['type.googleapis.com/envoy.config.overload.v3.ShrinkHeapConfig'],
    implemented: {
      'envoy.config.overload.v3.ShrinkHeapConfig': {
        timer_interval: true,
        max_unfreed_memory_bytes: refused('what can be freed is known only after a collection: leave it out'),
      },
    },
  },
  // Monitors that the primary's overload manager creates.
  resourceMonitor('cgroup_memory', 'CgroupMemoryConfig', obeyed('max_memory_bytes')),
  resourceMonitor('cpu_utilization', 'CpuUtilizationConfig', { mode: byValue({ HOST: true, CONTAINER: true }) }),
  resourceMonitor('fixed_heap', 'FixedHeapConfig', obeyed('max_heap_size_bytes', 'max_heap_size_bytes_runtime'), {
    'envoy.config.core.v3.RuntimeUInt64': obeyed('default_value', 'runtime_key'),
  }),
  resourceMonitor('injected_resource', 'InjectedResourceConfig', obeyed('filename')),
  // A retry prefers a host that this request has not tried. Retry policies detect that the predicate is present; the router obeys
  // it.
  {
    category: 'envoy.retry_host_predicates',
    name: 'envoy.retry_host_predicates.previous_hosts',
    typeUrls: ['type.googleapis.com/envoy.extensions.retry.host.previous_hosts.v3.PreviousHostsPredicate'],
    implemented: { 'envoy.extensions.retry.host.previous_hosts.v3.PreviousHostsPredicate': {} },
  },
  // Conditions of internal redirects, which http/routing/actions/internal-redirects.ts compiles.
  redirectPredicate('allow_listed_routes', 'AllowListedRoutesConfig', 'allowed_route_names'),
  redirectPredicate('previous_routes', 'PreviousRoutesConfig'),
  redirectPredicate('safe_cross_scheme', 'SafeCrossSchemeConfig'),
  // Plain bytes to clients and hosts, which is also the default.
  { category: 'envoy.transport_sockets.downstream', ...RAW_BUFFER },
  { category: 'envoy.transport_sockets.upstream', ...RAW_BUFFER },
  // HTTP options of a cluster (typed_extension_protocol_options), which clusters read themselves.
  {
    category: 'envoy.upstream_options',
    name: 'envoy.extensions.upstreams.http.v3.HttpProtocolOptions',
    typeUrls: ['type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions'],
    validate(config, report) {
      const { hash_policy: policies } = config as { readonly hash_policy?: readonly RouteAction_HashPolicy[] };
      reportMistakes(report, '', () => HashPolicy.of(policies, 'hash_policy'));
    },
  },
];

function redirectPredicate(name: string, message: string, ...fields: readonly string[]): NamedExtension {
  const type = `envoy.extensions.internal_redirect.${name}.v3.${message}`;
  return {
    category: 'envoy.internal_redirect_predicates',
    name: `envoy.internal_redirect_predicates.${name}`,
    typeUrls: [`type.googleapis.com/${type}`],
    implemented: { [type]: obeyed(...fields) } as ImplementedTable,
  };
}

function resourceMonitor(name: string, message: string, fields: object, others: ImplementedTable = {}): NamedExtension {
  const type = `envoy.extensions.resource_monitors.${name}.v3.${message}`;
  return {
    category: 'envoy.resource_monitors',
    name: `envoy.resource_monitors.${name}`,
    typeUrls: [`type.googleapis.com/${type}`],
    implemented: { [type]: fields, ...others } as ImplementedTable,
  };
}

/** Inputs, matchers and actions of xds.type.matcher.v3.Matcher, and of RBAC policies. */
function matcherParts(): NamedExtension[] {
  const part = (
    category: NamedExtension['category'],
    name: string,
    type: string,
    implemented: ImplementedTable = {},
  ): NamedExtension => ({ category, name, typeUrls: [`type.googleapis.com/${type}`], implemented });
  const network = 'envoy.extensions.matching.common_inputs.network.v3';
  const ssl = 'envoy.extensions.matching.common_inputs.ssl.v3';
  const http = 'envoy.matching.http.input';
  return [
    part(http, 'envoy.matching.inputs.request_headers', 'envoy.type.matcher.v3.HttpRequestHeaderMatchInput', {
      'envoy.type.matcher.v3.HttpRequestHeaderMatchInput': obeyed('header_name'),
    }),
    part(http, 'envoy.matching.inputs.destination_ip', `${network}.DestinationIPInput`),
    part(http, 'envoy.matching.inputs.destination_port', `${network}.DestinationPortInput`),
    part(http, 'envoy.matching.inputs.source_ip', `${network}.SourceIPInput`),
    part(http, 'envoy.matching.inputs.source_port', `${network}.SourcePortInput`),
    part(http, 'envoy.matching.inputs.direct_source_ip', `${network}.DirectSourceIPInput`),
    part(http, 'envoy.matching.inputs.server_name', `${network}.ServerNameInput`),
    part(http, 'envoy.matching.inputs.dynamic_metadata', `${network}.DynamicMetadataInput`, {
      'envoy.extensions.matching.common_inputs.network.v3.DynamicMetadataInput': obeyed('filter', 'path'),
      'envoy.extensions.matching.common_inputs.network.v3.DynamicMetadataInput.PathSegment': obeyed('key'),
    }),
    part(http, 'envoy.matching.inputs.filter_state', `${network}.FilterStateInput`, {
      'envoy.extensions.matching.common_inputs.network.v3.FilterStateInput': obeyed('key', 'field'),
    }),
    part(http, 'envoy.matching.inputs.cel_data_input', 'xds.type.matcher.v3.HttpAttributesCelMatchInput'),
    part('envoy.matching.input_matchers', 'envoy.matching.matchers.cel_matcher', 'xds.type.matcher.v3.CelMatcher'),
    part(http, 'envoy.matching.inputs.response_headers', 'envoy.type.matcher.v3.HttpResponseHeaderMatchInput', {
      'envoy.type.matcher.v3.HttpResponseHeaderMatchInput': obeyed('header_name'),
    }),
    part(http, 'envoy.matching.inputs.status_code_input', 'envoy.type.matcher.v3.HttpResponseStatusCodeMatchInput'),
    part(
      http,
      'envoy.matching.inputs.status_code_class_input',
      'envoy.type.matcher.v3.HttpResponseStatusCodeClassMatchInput',
    ),
    part(http, 'envoy.matching.inputs.local_reply', 'envoy.type.matcher.v3.HttpResponseLocalReplyMatchInput'),
    part(
      'envoy.http.custom_response',
      'envoy.extensions.http.custom_response.local_response_policy',
      'envoy.extensions.http.custom_response.local_response_policy.v3.LocalResponsePolicy',
      {
        'envoy.extensions.http.custom_response.local_response_policy.v3.LocalResponsePolicy': obeyed(
          'body',
          'body_format',
          'status_code',
          'response_headers_to_add',
          'preserve_response_code_details',
          'response_code_details',
        ),
      },
    ),
    part(http, 'envoy.matching.inputs.uri_san', `${ssl}.UriSanInput`),
    part(http, 'envoy.matching.inputs.dns_san', `${ssl}.DnsSanInput`),
    part(http, 'envoy.matching.inputs.subject', `${ssl}.SubjectInput`),
    part(
      'envoy.matching.input_matchers',
      'envoy.matching.matchers.ip',
      'envoy.extensions.matching.input_matchers.ip.v3.Ip',
      {
        'envoy.extensions.matching.input_matchers.ip.v3.Ip': obeyed('cidr_ranges', 'stat_prefix'),
      },
    ),
    part(
      'envoy.matching.input_matchers',
      'envoy.matching.matchers.metadata_matcher',
      'envoy.extensions.matching.input_matchers.metadata.v3.Metadata',
      { 'envoy.extensions.matching.input_matchers.metadata.v3.Metadata': obeyed('value', 'invert') },
    ),
    part(
      'envoy.matching.http.custom_matchers',
      'envoy.matching.custom_matchers.ip_range_matcher',
      'xds.type.matcher.v3.IPMatcher',
      {
        'xds.type.matcher.v3.IPMatcher': obeyed('range_matchers'),
        'xds.type.matcher.v3.IPMatcher.IPRangeMatcher': obeyed('ranges', 'on_match', 'exclusive'),
      },
    ),
    part(
      'envoy.matching.action',
      'envoy.filters.udp_listener.udp_proxy.route',
      'envoy.extensions.filters.udp.udp_proxy.v3.Route',
      {
        'envoy.extensions.filters.udp.udp_proxy.v3.Route': obeyed('cluster'),
      },
    ),
    part('envoy.matching.action', 'envoy.filters.rbac.action', 'envoy.config.rbac.v3.Action'),
    part('envoy.matching.action', 'route', 'envoy.config.route.v3.Route'),
    part('envoy.matching.action', 'route_match_action', 'envoy.config.route.v3.RouteList'),
    part('envoy.matching.action', 'skip', 'envoy.extensions.filters.common.matcher.action.v3.SkipFilter'),
    part(
      'envoy.matching.action',
      'composite-action',
      'envoy.extensions.filters.http.composite.v3.ExecuteFilterAction',
      {
        'envoy.extensions.filters.http.composite.v3.ExecuteFilterAction': obeyed(
          'typed_config',
          'dynamic_config',
          'filter_chain',
          'filter_chain_name',
          'sample_percent',
        ),
      },
    ),
    part('envoy.matching.action', 'cluster', 'envoy.extensions.router.cluster_specifiers.matcher.v3.ClusterAction', {
      'envoy.extensions.router.cluster_specifiers.matcher.v3.ClusterAction': obeyed('cluster'),
    }),
    part(
      'envoy.path.match',
      'envoy.path.match.uri_template.uri_template_matcher',
      'envoy.extensions.path.match.uri_template.v3.UriTemplateMatchConfig',
      { 'envoy.extensions.path.match.uri_template.v3.UriTemplateMatchConfig': obeyed('path_template') },
    ),
    part(
      'envoy.path.rewrite',
      'envoy.path.rewrite.uri_template.uri_template_rewriter',
      'envoy.extensions.path.rewrite.uri_template.v3.UriTemplateRewriteConfig',
      { 'envoy.extensions.path.rewrite.uri_template.v3.UriTemplateRewriteConfig': obeyed('path_template_rewrite') },
    ),
  ];
}
