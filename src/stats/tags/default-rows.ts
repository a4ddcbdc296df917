// The default tags, which are extracted from every stat name unless the configuration disables them (FACTS §4).
//
// A row specifies which part of a name is the value, token by token (tokens are separated by dots):
//
//   *         any token               a|b    one of these tokens
//   +         one token or more       @      an address (127.0.0.1_10000, four tokens) or any token
//   **        one token or more, the rest of the name
//   $         the value; removed with the dot after it, or before it at the end of the name
//   v$digits  the value is the rest of a token with this beginning; here with a format (see VALUES)
//   -$        as $, but always removed with the dot before it
//   ~         before a token: the removed part begins here

/** The formats of values that a row can require, where not every token is allowed. */
export const VALUES = {
  '': undefined,
  digits: /^\d+$/,
  digit: /^\d$/,
  partition: /^\w{7}$/,
  cipher: /^[\w-]+$/,
  /** TLSv1.3: two tokens. */
  tls: /^TLSv\d\.\d$/,
  /** As @. */
  address: undefined,
  /** All tokens except as many as the row has after it. */
  path: /^[\w\-./]+$/,
  /** The same, and the value is the original address from which the name was made. */
  endpoint: undefined,
} as const;

export interface TagRow {
  readonly tag: string;
  readonly pattern: string;
  /** A text that is not a value. */
  readonly except?: string;
}

/** `*_rq(_ddd)` and `*_rq_(d)xx` at the end of a name. */
export const RESPONSE_CODE = 'envoy.response_code';
export const RESPONSE_CODE_CLASS = 'envoy.response_code_class';

/** Tried before all others, and before the tags of the configuration. */
export const GENERAL_ROWS: readonly TagRow[] = [
  ...rows('envoy.ssl_curve', 'listener|cluster.+.ssl.curves.$cipher'),
  ...rows('envoy.ssl_sigalg', 'listener|cluster.+.ssl.sigalgs.$cipher'),
  ...rows('envoy.ssl_version', 'listener|cluster.+.ssl.versions.$tls'),
  ...rows(
    'envoy.worker_id',
    'listener.@.worker_$digits.**',
    'server|listener_manager|thread_local_cluster_manager.worker_$digits.**',
  ),
  ...rows('envoy.tls_certificate', 'listener|cluster.+.ssl.certificate.$.**'),
  ...rows('envoy.local_http_ratelimit_prefix', '$.http_local_rate_limit.**'),
  ...rows('envoy.rbac_prefix', '$.rbac.**'),
];

/** Tried for names that begin with their first token. */
const FIRST_TOKEN_ROWS: readonly TagRow[] = [
  ...rows('envoy.dynamo_partition_id', 'http.*.dynamodb.table.*.capacity.*.__partition_id=$partition'),
  ...rows(
    'envoy.dynamo_operation',
    'http.*.dynamodb.operation.-$',
    'http.*.dynamodb.operation.-$.**',
    'http.*.dynamodb.table.*.capacity.-$',
    'http.*.dynamodb.table.*.capacity.-$.**',
  ),
  ...rows('envoy.dynamo_table', 'http.*.dynamodb.table|error.$.**'),
  ...rows('envoy.ssl_cipher', 'listener.+.ssl.ciphers.$cipher'),
  ...rows('envoy.cipher_suite', 'cluster.*.ssl.ciphers.$cipher'),
  ...rows('envoy.http_conn_manager_prefix', 'listener.+.http.$.**'),
  { tag: 'envoy.listener_address', pattern: 'listener.$address.**', except: 'admin' },
  ...rows('envoy.rds_route_config', 'http.*.rds.$path.*'),
  ...rows('envoy.scoped_rds_config', 'http.*.scoped_rds.$path.*'),
  ...rows(
    'envoy.rbac_policy_name',
    'http.*.rbac.policy.$.allowed|denied|shadow_allowed|shadow_denied',
    'http.*.rbac.*.policy.$.allowed|denied|shadow_allowed|shadow_denied',
  ),
  { tag: 'envoy.rbac_http_prefix', pattern: 'http.*.rbac.$.**', except: 'policy' },
  { tag: 'envoy.proxy_protocol_prefix', pattern: 'proxy_proto.$.**', except: 'versions' },
  ...rows('envoy.proxy_protocol_version', 'proxy_proto.~versions.v$digit.*', 'proxy_proto.~*.versions.v$digit.*'),
  ...rows('envoy.xds_resource_name', 'sds.$.**'),

  ...rows('envoy.mongo_callsite', 'mongo.*.collection.*.callsite.$.query.**'),
  ...rows('envoy.mongo_collection', 'mongo.*.collection.$.query.*', 'mongo.*.collection.$.+.query.*'),
  ...rows('envoy.mongo_cmd', 'mongo.*.cmd.$.**'),
  ...rows('envoy.grpc_bridge_method', 'cluster.*.grpc.*.$.**'),
  ...rows('envoy.http_user_agent', 'http.*.user_agent.$.**'),
  ...rows('envoy.virtual_cluster', 'vhost.*.vcluster.$.**'),
  ...rows('envoy.fault_downstream_cluster', 'http.*.fault.$.**'),
  ...rows('envoy.grpc_bridge_service', 'cluster.*.grpc.$.**'),
  ...rows('envoy.tcp_prefix', 'tcp.$.**'),
  ...rows('envoy.udp_prefix', 'udp.$.**'),
  ...rows('envoy.clientssl_prefix', 'auth.clientssl.$.**'),
  ...rows('envoy.ratelimit_prefix', 'ratelimit.$.**'),
  ...rows('envoy.cluster_name', 'cluster.$.**'),
  ...rows('envoy.endpoint_address', 'cluster.*.endpoint.$endpoint.*'),
  ...rows('envoy.ext_authz_prefix', 'cluster.*.ext_authz.$.**', 'http.*.ext_authz.$.**'),
  ...rows('envoy.http_conn_manager_prefix', 'http.$.**'),
  ...rows('envoy.virtual_host', 'vhost.$.**'),
  ...rows('envoy.mongo_prefix', 'mongo.$.**'),
  ...rows('envoy.route', 'vhost.*.route.$.**'),
  ...rows('envoy.thrift_prefix', 'thrift.$.**'),
  ...rows('envoy.redis_prefix', 'redis.$.**'),
  ...rows('envoy.local_network_ratelimit_prefix', 'local_rate_limit.$.**'),
  ...rows('envoy.local_listener_ratelimit_prefix', 'listener_local_ratelimit.$.**'),
  ...rows('envoy.dns_filter_prefix', 'dns_filter.$.**'),
  ...rows('envoy.connection_limit_prefix', 'connection_limit.$.**'),
  ...rows('envoy.google_grpc_client_prefix', 'grpc.$.**'),
];

/** All rows, in the order in which they are tried. */
export const DEFAULT_ROWS: readonly TagRow[] = [...GENERAL_ROWS, ...FIRST_TOKEN_ROWS];

/** Returns whether there is a default tag of this name. */
export function isDefaultTag(tag: string): boolean {
  return tag === RESPONSE_CODE || tag === RESPONSE_CODE_CLASS || DEFAULT_ROWS.some((row) => row.tag === tag);
}

function rows(tag: string, ...patterns: readonly string[]): TagRow[] {
  return patterns.map((pattern) => ({ tag, pattern }));
}
