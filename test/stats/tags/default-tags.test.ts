import t from 'tap';
import { DEFAULT_ROWS } from '../../../src/stats/tags/default-rows.js';
import { TagExtractor } from '../../../src/stats/tags/tag-extractor.js';

/** A name, the extracted name and its tags in order; names of tags without `envoy.`. */
type Case = readonly [name: string, extracted: string, ...tags: (readonly [string, string])[]];

const CASES: readonly Case[] = [
  ['cluster.a.upstream_rq_503', 'cluster.upstream_rq', ['response_code', '503'], ['cluster_name', 'a']],
  ['cluster.a.upstream_rq_5033', 'cluster.upstream_rq_5033', ['cluster_name', 'a']],
  ['cluster.a.upstream_cx_503', 'cluster.upstream_cx_503', ['cluster_name', 'a']],
  [
    'http.in.downstream_rq_2xx',
    'http.downstream_rq_xx',
    ['response_code_class', '2'],
    ['http_conn_manager_prefix', 'in'],
  ],
  ['http.in.downstream_rq_2xy', 'http.downstream_rq_2xy', ['http_conn_manager_prefix', 'in']],
  [
    'http.in.dynamodb.table.t1.capacity.Query.__partition_id=ABC1234',
    'http.dynamodb.table.capacity',
    ['dynamo_partition_id', 'ABC1234'],
    ['dynamo_operation', 'Query'],
    ['dynamo_table', 't1'],
    ['http_conn_manager_prefix', 'in'],
  ],
  [
    'http.in.dynamodb.table.t1.capacity.Query.__partition_id=AB',
    'http.dynamodb.table.capacity.__partition_id=AB',
    ['dynamo_operation', 'Query'],
    ['dynamo_table', 't1'],
    ['http_conn_manager_prefix', 'in'],
  ],
  [
    'http.in.dynamodb.operation.Query.upstream_rq_time',
    'http.dynamodb.operation.upstream_rq_time',
    ['dynamo_operation', 'Query'],
    ['http_conn_manager_prefix', 'in'],
  ],
  ['http.in.dynamodb.multiple_tables', 'http.dynamodb.multiple_tables', ['http_conn_manager_prefix', 'in']],
  [
    'http.in.dynamodb.error.t1.Bad',
    'http.dynamodb.error.Bad',
    ['dynamo_table', 't1'],
    ['http_conn_manager_prefix', 'in'],
  ],
  ['mongo.m.op_query', 'mongo.op_query', ['mongo_prefix', 'm']],
  ['mongo.op_query', 'mongo.op_query'],
  ['mongo.m.cmd.find.total', 'mongo.cmd.total', ['mongo_cmd', 'find'], ['mongo_prefix', 'm']],
  ['mongo.m.cmds.find.total', 'mongo.cmds.find.total', ['mongo_prefix', 'm']],
  [
    'mongo.m.collection.c.query.total',
    'mongo.collection.query.total',
    ['mongo_collection', 'c'],
    ['mongo_prefix', 'm'],
  ],
  ['mongo.m.collection.c.total', 'mongo.collection.c.total', ['mongo_prefix', 'm']],
  [
    'mongo.m.collection.c.callsite.s.query.total',
    'mongo.collection.callsite.query.total',
    ['mongo_callsite', 's'],
    ['mongo_collection', 'c'],
    ['mongo_prefix', 'm'],
  ],
  [
    'cluster.a.grpc.svc.Get.success',
    'cluster.grpc.success',
    ['grpc_bridge_method', 'Get'],
    ['grpc_bridge_service', 'svc'],
    ['cluster_name', 'a'],
  ],
  ['cluster.a.grpc.success', 'cluster.grpc.success', ['cluster_name', 'a']],
  [
    'http.in.user_agent.ios.downstream_cx_total',
    'http.user_agent.downstream_cx_total',
    ['http_user_agent', 'ios'],
    ['http_conn_manager_prefix', 'in'],
  ],
  ['http.in.user_agents.ios.total', 'http.user_agents.ios.total', ['http_conn_manager_prefix', 'in']],
  [
    'vhost.v.vcluster.c.upstream_rq_total',
    'vhost.vcluster.upstream_rq_total',
    ['virtual_cluster', 'c'],
    ['virtual_host', 'v'],
  ],
  ['vhost.v.upstream_rq_total', 'vhost.upstream_rq_total', ['virtual_host', 'v']],
  ['vhost.v.route.r.upstream_rq_total', 'vhost.route.upstream_rq_total', ['virtual_host', 'v'], ['route', 'r']],
  ['vhosts.v.route.r.total', 'vhosts.v.route.r.total'],
  [
    'http.in.fault.c.delays_injected',
    'http.fault.delays_injected',
    ['fault_downstream_cluster', 'c'],
    ['http_conn_manager_prefix', 'in'],
  ],
  ['http.in.fault.delays_injected', 'http.fault.delays_injected', ['http_conn_manager_prefix', 'in']],
  [
    'listener.127.0.0.1_443.ssl.ciphers.ECDHE-RSA-AES128-GCM-SHA256',
    'listener.ssl.ciphers',
    ['ssl_cipher', 'ECDHE-RSA-AES128-GCM-SHA256'],
    ['listener_address', '127.0.0.1_443'],
  ],
  ['listener.l.ssl.cipher.X', 'listener.ssl.cipher.X', ['listener_address', 'l']],
  ['cluster.a.ssl.ciphers.TLS_AES', 'cluster.ssl.ciphers', ['cipher_suite', 'TLS_AES'], ['cluster_name', 'a']],
  ['cluster.a.ssl.handshake', 'cluster.ssl.handshake', ['cluster_name', 'a']],
  ['listener.l.ssl.curves.P-256', 'listener.ssl.curves', ['ssl_curve', 'P-256'], ['listener_address', 'l']],
  ['cluster.a.ssl.sigalgs.rsa_pss', 'cluster.ssl.sigalgs', ['ssl_sigalg', 'rsa_pss'], ['cluster_name', 'a']],
  ['cluster.a.ssl.versions.TLSv1.3', 'cluster.ssl.versions', ['ssl_version', 'TLSv1.3'], ['cluster_name', 'a']],
  ['cluster.a.ssl.versions.TLSv1', 'cluster.ssl.versions.TLSv1', ['cluster_name', 'a']],
  [
    'listener.l.ssl.certificate.c.expiration',
    'listener.ssl.certificate.expiration',
    ['tls_certificate', 'c'],
    ['listener_address', 'l'],
  ],
  ['cluster.a.ssl.certificates.c.x', 'cluster.ssl.certificates.c.x', ['cluster_name', 'a']],
  ['tcp.t.downstream_cx_total', 'tcp.downstream_cx_total', ['tcp_prefix', 't']],
  ['tcp.downstream_cx_total', 'tcp.downstream_cx_total'],
  ['udp.u.idle_timeout', 'udp.idle_timeout', ['udp_prefix', 'u']],
  ['udps.u.idle_timeout', 'udps.u.idle_timeout'],
  ['auth.clientssl.c.update_success', 'auth.clientssl.update_success', ['clientssl_prefix', 'c']],
  ['auth.client.c.update_success', 'auth.client.c.update_success'],
  ['ratelimit.r.ok', 'ratelimit.ok', ['ratelimit_prefix', 'r']],
  ['ratelimit.ok', 'ratelimit.ok'],
  ['cluster.a.b.upstream_cx_total', 'cluster.b.upstream_cx_total', ['cluster_name', 'a']],
  ...[
    ['127.0.0.1_80', '127.0.0.1:80'],
    ['[fe80__1]_80', '[fe80::1]:80'],
    ['/run/a_b.v1.sock', '/run/a_b.v1.sock'],
    ['@abstract_80', '@abstract_80'],
  ].map(
    ([token, address]): Case => [
      `cluster.a.endpoint.${token}.rq_total`,
      'cluster.endpoint.rq_total',
      ['cluster_name', 'a'],
      ['endpoint_address', address!],
    ],
  ),
  ['cluster.a.endpoint.total', 'cluster.endpoint.total', ['cluster_name', 'a']],
  ['clusters.a.upstream_cx_total', 'clusters.a.upstream_cx_total'],
  [
    'listener.0.0.0.0_80.http.in.downstream_rq_5xx',
    'listener.http.downstream_rq_xx',
    ['response_code_class', '5'],
    ['http_conn_manager_prefix', 'in'],
    ['listener_address', '0.0.0.0_80'],
  ],
  [
    'listener.admin.http.admin.downstream_rq_2xx',
    'listener.admin.http.downstream_rq_xx',
    ['response_code_class', '2'],
    ['http_conn_manager_prefix', 'admin'],
  ],
  ['cluster.a.ext_authz.z.ok', 'cluster.ext_authz.ok', ['cluster_name', 'a'], ['ext_authz_prefix', 'z']],
  ['http.in.ext_authz.z.ok', 'http.ext_authz.ok', ['ext_authz_prefix', 'z'], ['http_conn_manager_prefix', 'in']],
  ['http.in.ext_authz.ok', 'http.ext_authz.ok', ['http_conn_manager_prefix', 'in']],
  [
    'listener.127.0.0.1_3012.worker_123.downstream_cx_active',
    'listener.worker_downstream_cx_active',
    ['worker_id', '123'],
    ['listener_address', '127.0.0.1_3012'],
  ],
  ['server.worker_0.watchdog_miss', 'server.worker_watchdog_miss', ['worker_id', '0']],
  [
    'listener_manager.worker_7.dispatcher.loop_duration_us',
    'listener_manager.worker_dispatcher.loop_duration_us',
    ['worker_id', '7'],
  ],
  [
    'thread_local_cluster_manager.worker_1.clusters_inflated',
    'thread_local_cluster_manager.worker_clusters_inflated',
    ['worker_id', '1'],
  ],
  ['server.worker_x.watchdog_miss', 'server.worker_x.watchdog_miss'],
  ['listener.[__1]_10000.downstream_cx_total', 'listener.downstream_cx_total', ['listener_address', '[__1]_10000']],
  ['listener.admin.downstream_cx_total', 'listener.admin.downstream_cx_total'],
  [
    'http.in.rds.routes/of.team-a.update_success',
    'http.rds.update_success',
    ['rds_route_config', 'routes/of.team-a'],
    ['http_conn_manager_prefix', 'in'],
  ],
  ['http.in.rds.config_reload', 'http.rds.config_reload', ['http_conn_manager_prefix', 'in']],
  [
    'http.in.scoped_rds.s.update_success',
    'http.scoped_rds.update_success',
    ['scoped_rds_config', 's'],
    ['http_conn_manager_prefix', 'in'],
  ],
  ['http.in.scoped_rdss.s.update', 'http.scoped_rdss.s.update', ['http_conn_manager_prefix', 'in']],
  ['thrift.p.request', 'thrift.request', ['thrift_prefix', 'p']],
  ['thrift.request', 'thrift.request'],
  ['redis.p.downstream_rq_total', 'redis.downstream_rq_total', ['redis_prefix', 'p']],
  ['redis.downstream_rq_total', 'redis.downstream_rq_total'],
  ['dns_filter.p.tcp_queries', 'dns_filter.tcp_queries', ['dns_filter_prefix', 'p']],
  ['dns_filters.p.tcp_queries', 'dns_filters.p.tcp_queries'],
  ['connection_limit.p.active', 'connection_limit.active', ['connection_limit_prefix', 'p']],
  ['connection_limits.p.active', 'connection_limits.p.active'],
  ['p.http_local_rate_limit.ok', 'http_local_rate_limit.ok', ['local_http_ratelimit_prefix', 'p']],
  ['p.http_local_rate_limit', 'p.http_local_rate_limit'],
  ['local_rate_limit.p.ok', 'local_rate_limit.ok', ['local_network_ratelimit_prefix', 'p']],
  ['local_rate_limit.ok', 'local_rate_limit.ok'],
  ['listener_local_ratelimit.p.ok', 'listener_local_ratelimit.ok', ['local_listener_ratelimit_prefix', 'p']],
  ['listener_local_ratelimit.ok', 'listener_local_ratelimit.ok'],
  [
    'http.in.rbac.policy.p.allowed',
    'http.rbac.policy.allowed',
    ['rbac_policy_name', 'p'],
    ['http_conn_manager_prefix', 'in'],
  ],
  [
    'http.in.rbac.x.policy.p.shadow_denied',
    'http.rbac.policy.shadow_denied',
    ['rbac_policy_name', 'p'],
    ['rbac_http_prefix', 'x'],
    ['http_conn_manager_prefix', 'in'],
  ],
  ['http.in.rbac.policy.p.other', 'http.rbac.policy.p.other', ['http_conn_manager_prefix', 'in']],
  ['p.rbac.allowed', 'rbac.allowed', ['rbac_prefix', 'p']],
  ['http.in.rbac.allowed', 'http.rbac.allowed', ['http_conn_manager_prefix', 'in']],
  ['proxy_proto.p.not_found', 'proxy_proto.not_found', ['proxy_protocol_prefix', 'p']],
  ['proxy_proto.not_found_allowed', 'proxy_proto.not_found_allowed'],
  ['proxy_proto.versions.v1.found', 'proxy_proto.found', ['proxy_protocol_version', '1']],
  [
    'proxy_proto.p.versions.v2.found',
    'proxy_proto.found',
    ['proxy_protocol_prefix', 'p'],
    ['proxy_protocol_version', '2'],
  ],
  ['proxy_proto.versions.vx.found', 'proxy_proto.versions.vx.found'],
  ['grpc.g.streams_total', 'grpc.streams_total', ['google_grpc_client_prefix', 'g']],
  ['grpc.streams_total', 'grpc.streams_total'],
  ['sds.cert.v2.update_success', 'sds.v2.update_success', ['xds_resource_name', 'cert']],
  ['sds.update_success', 'sds.update_success'],
];

t.test('every default tag is extracted from the names that have it, and only from those', async (t) => {
  const extractor = new TagExtractor(true, []);
  for (const [name, extracted, ...tags] of CASES) {
    const wanted = { name: extracted, tags: tags.map(([tag, value]) => ({ name: `envoy.${tag}`, value })) };
    t.same(extractor.extract(name), wanted, name);
  }
});

t.test('the cases cover every default tag', async (t) => {
  const found = new Set(CASES.flatMap(([, , ...tags]) => tags.map(([tag]) => `envoy.${tag}`)));
  for (const { tag } of DEFAULT_ROWS) t.ok(found.has(tag), tag);
});

t.test('without use_all_default_tags only the default tags requested by name are extracted', async (t) => {
  const none = new TagExtractor(false, []);
  t.same(none.extract('cluster.a.upstream_rq_503'), { name: 'cluster.a.upstream_rq_503', tags: [] });
  const one = new TagExtractor(false, [{ name: 'envoy.response_code' }]);
  t.same(one.extract('cluster.a.upstream_rq_503'), {
    name: 'cluster.a.upstream_rq',
    tags: [{ name: 'envoy.response_code', value: '503' }],
  });
});

t.test('configured tags follow the general tags and precede those of a first token', async (t) => {
  const extractor = new TagExtractor(true, [{ name: 'site', fixedValue: 'berlin' }]);
  const names = extractor.extract('listener.l.worker_0.upstream_rq_5xx').tags.map(({ name }) => name);
  t.same(names, ['envoy.response_code_class', 'envoy.worker_id', 'site', 'envoy.listener_address']);
});

t.test('an expression removes its first group, and its second group is the value', async (t) => {
  const extractor = new TagExtractor(false, [
    { name: 'version', regex: String.raw`^cluster\.\w+?(_v(\d+))\.` },
    { name: 'whole', regex: String.raw`\.(upstream_\w+)$` },
    { name: 'nothing', regex: 'cluster' },
    { name: 'site', fixedValue: 'berlin' },
  ]);
  t.same(extractor.extract('cluster.shop_v12.upstream_cx'), {
    name: 'cluster.shop.',
    tags: [
      { name: 'whole', value: 'upstream_cx' },
      { name: 'site', value: 'berlin' },
      { name: 'version', value: '12' },
    ],
  });
  t.same(extractor.extract('server.live'), { name: 'server.live', tags: [{ name: 'site', value: 'berlin' }] });
});

t.test('a stat has each tag once: the first match counts, and the rest stays in the name', async (t) => {
  const extractor = new TagExtractor(true, [
    { name: 'envoy.cluster_name', regex: String.raw`^cluster\.\w+\.((\w+)\.)` },
  ]);
  t.same(extractor.extract('cluster.a.b.total'), {
    name: 'cluster.b.total',
    tags: [{ name: 'envoy.cluster_name', value: 'a' }],
  });
});
