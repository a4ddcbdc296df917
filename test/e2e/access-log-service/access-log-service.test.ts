// Access log services receive an entry for each request and TCP connection, as from Envoy.

import t from 'tap';
import { GrpcCode } from '../../../src/grpc/status.js';
import { Authority } from '../harness/certificates.js';
import { besideEnvoy, type ProxyProgram } from '../harness/envoy.js';
import {
  bootstrap,
  type Config,
  HTTP2_CLUSTER,
  httpListener,
  httpRequest,
  rawExchange,
  startBaton,
  startTcpUpstream,
  startUpstream,
  staticCluster,
  type Teardown,
  tcpListener,
  waitFor,
} from '../harness/index.js';
import { httpsGet, serverTls, trustedCa } from '../tls/contexts.js';
import { type LogService, startLogService } from './service.js';

const LOGGERS = 'type.googleapis.com/envoy.extensions.access_loggers.grpc.v3';
const SET_FILTER_STATE: Config = {
  name: 'envoy.filters.http.set_filter_state',
  typed_config: {
    '@type': 'type.googleapis.com/envoy.extensions.filters.http.set_filter_state.v3.Config',
    on_request_headers: [
      {
        object_key: 'my.key',
        factory_key: 'envoy.string',
        format_string: { text_format_source: { inline_string: 'v-%REQ(x-a)%' } },
      },
    ],
  },
};
const SET_METADATA: Config = {
  name: 'envoy.filters.http.set_metadata',
  typed_config: {
    '@type': 'type.googleapis.com/envoy.extensions.filters.http.set_metadata.v3.Config',
    metadata: [{ metadata_namespace: 'my.space', value: { text: 'a', flag: true, list: [null, 'b'] } }],
  },
};
const TLS_INSPECTOR: Config = {
  name: 'envoy.filters.listener.tls_inspector',
  typed_config: {
    '@type': 'type.googleapis.com/envoy.extensions.filters.listener.tls_inspector.v3.TlsInspector',
    enable_ja3_fingerprinting: true,
  },
};
const ROUTER: Config = {
  name: 'envoy.filters.http.router',
  typed_config: { '@type': 'type.googleapis.com/envoy.extensions.filters.http.router.v3.Router' },
};

const common = (name: string, more: Config = {}): Config => ({
  log_name: name,
  transport_api_version: 'V3',
  grpc_service: { envoy_grpc: { cluster_name: 'als' }, initial_metadata: [{ key: 'x-tenant', value: 'blue' }] },
  buffer_flush_interval: '0.05s',
  ...more,
});

const httpLog = (more: Config = {}, fields: Config = {}): Config => ({
  name: 'envoy.access_loggers.http_grpc',
  typed_config: { '@type': `${LOGGERS}.HttpGrpcAccessLogConfig`, common_config: common('web', more), ...fields },
});

const tcpLog = (): Config => ({
  name: 'envoy.access_loggers.tcp_grpc',
  typed_config: { '@type': `${LOGGERS}.TcpGrpcAccessLogConfig`, common_config: common('streams') },
});

const als = ({ port }: Pick<LogService, 'port'>, more: Config = {}) =>
  staticCluster('als', port, { ...HTTP2_CLUSTER, ...more });

/** Routes: /direct is answered, /none leads to a cluster without hosts, others to `host`. */
const manager = (log: Config, more: Config = {}): Config => ({
  access_log: [log],
  route_config: {
    name: 'routes',
    virtual_hosts: [
      {
        name: 'all',
        domains: ['*'],
        routes: [
          { match: { prefix: '/direct' }, direct_response: { status: 204 } },
          { match: { prefix: '/none' }, route: { cluster: 'none' } },
          {
            name: 'main-route',
            match: { prefix: '/' },
            metadata: { filter_metadata: { 'com.x': { foo: 'bar' } } },
            route: { cluster: 'host', prefix_rewrite: '/sent' },
          },
        ],
      },
    ],
  },
  http_filters: [SET_FILTER_STATE, SET_METADATA, ROUTER],
  ...more,
});

async function startProxy(t: Teardown, program: ProxyProgram, service: LogService, log: Config, more: Config = {}) {
  const host = await startUpstream(t, (_request, answer) => {
    answer.setHeader('x-up', ['one', 'two']);
    answer.end('hello');
  });
  const baton = await startBaton(t, {
    ...program,
    config: bootstrap({
      listeners: [httpListener('main', 0, manager(log, more))],
      clusters: [staticCluster('host', host.port), staticCluster('none', []), als(service)],
      extra: { node: { id: 'edge-1', cluster: 'edge' } },
    }),
  });
  return { baton, host, port: await baton.listenerPort('main') };
}

/** A duration or timestamp. */
const TIME = { nanos: Number };
const address = (port: unknown) => ({ socket_address: { address: '127.0.0.1', port_value: port } });

besideEnvoy('an entry describes the whole request', async (t, program) => {
  const service = await startLogService(t);
  const log = httpLog(
    {
      filter_state_objects_to_log: ['my.key', 'absent'],
      custom_tags: [
        { tag: 'literal', literal: { value: 'text' } },
        { tag: 'header', request_header: { name: 'x-a', default_value: 'none' } },
        { tag: 'no-header', request_header: { name: 'x-none', default_value: 'none' } },
        { tag: 'nothing', request_header: { name: 'x-none' } },
        { tag: 'variable', environment: { name: 'NO_SUCH_VARIABLE', default_value: 'unset' } },
        { tag: 'route', metadata: { kind: { route: {} }, metadata_key: { key: 'com.x', path: [{ key: 'foo' }] } } },
      ],
    },
    {
      additional_request_headers_to_log: ['X-A', 'x-none', ':path', ':method'],
      additional_response_headers_to_log: ['x-up', 'x-none'],
    },
  );
  const { host, port } = await startProxy(t, program, service, log);
  await rawExchange(
    port,
    'POST /path?q=1 HTTP/1.1\r\nhost: a.test\r\nuser-agent: me\r\nreferer: there\r\nx-a: 1\r\nx-a: 2\r\nx-latin: \xe4\r\ncontent-length: 4\r\nconnection: close\r\n\r\nbody',
  );
  const [entry] = await service.entries(1);
  t.match(service.heads[0], {
    ':path': '/envoy.service.accesslog.v3.AccessLogService/StreamAccessLogs',
    ':authority': 'als',
    'content-type': 'application/grpc',
    te: 'trailers',
    'x-tenant': 'blue',
    'x-envoy-internal': 'true',
  });
  t.match(service.messages[0]!.identifier, { node: { id: 'edge-1', cluster: 'edge' }, log_name: 'web' });
  t.match(entry, {
    protocol_version: 'HTTP11',
    common_properties: {
      downstream_remote_address: address(Number),
      downstream_direct_remote_address: address(Number),
      downstream_local_address: address(port),
      start_time: { seconds: Number },
      time_to_first_upstream_rx_byte: TIME,
      time_to_last_upstream_rx_byte: TIME,
      duration: TIME,
      upstream_remote_address: address(host.port),
      upstream_local_address: address(Number),
      upstream_cluster: 'host',
      route_name: 'main-route',
      filter_state_objects: { 'my.key': { type_url: 'type.googleapis.com/google.protobuf.StringValue' } },
      custom_tags: { literal: 'text', header: '1', 'no-header': 'none', variable: 'unset', route: 'bar' },
      metadata: {
        filter_metadata: {
          'my.space': {
            fields: {
              text: { stringValue: 'a' },
              flag: { boolValue: true },
              list: { listValue: { values: [{ nullValue: 'NULL_VALUE' }, { stringValue: 'b' }] } },
            },
          },
        },
      },
      upstream_request_attempt_count: 1,
      stream_id: /^[0-9a-f-]{36}$/,
      downstream_wire_bytes_sent: Number,
      downstream_wire_bytes_received: Number,
      upstream_wire_bytes_sent: Number,
      upstream_wire_bytes_received: Number,
      access_log_type: 'DownstreamEnd',
    },
    request: {
      request_method: 'POST',
      scheme: 'http',
      authority: 'a.test',
      path: '/sentpath?q=1',
      original_path: '/path?q=1',
      user_agent: 'me',
      referer: 'there',
      request_id: /^[0-9a-f-]{36}$/,
      request_headers_bytes: Number,
      request_body_bytes: 4,
      request_headers: { 'x-a': '1,2', ':path': '/sentpath?q=1', ':method': 'POST' },
      upstream_header_bytes_sent: Number,
      downstream_header_bytes_received: Number,
    },
    response: {
      response_code: { value: 200 },
      response_code_details: 'via_upstream',
      response_headers_bytes: Number,
      response_body_bytes: 5,
      response_headers: { 'x-up': 'one,two' },
      upstream_header_bytes_received: Number,
      downstream_header_bytes_sent: Number,
    },
  });
  const { common_properties: facts, request } = entry!;
  t.same(Object.keys(facts['custom_tags'] as object).length, 5, 'tags without a value are left out');
  t.same(Object.keys(request!['request_headers'] as object).sort(), [':method', ':path', 'x-a']);
  t.equal(facts['response_flags'], undefined);
  t.equal(facts['tls_properties'], undefined);
});

besideEnvoy('entries of local replies have flags, and only what is known', async (t, program) => {
  const service = await startLogService(t);
  const { port } = await startProxy(t, program, service, httpLog({ custom_tags: [] }));
  await httpRequest(port, '/direct');
  await httpRequest(port, '/none');
  await rawExchange(port, 'GET / HTTP/1.1\r\nhost: a\r\nbad header\r\n\r\n');
  const [direct, none, invalid] = await service.entries(3);
  t.match(direct, {
    request: { request_method: 'GET', path: '/direct' },
    response: { response_code: { value: 204 }, response_code_details: 'direct_response' },
  });
  t.equal(direct!.common_properties['upstream_cluster'], undefined);
  t.match(none, {
    common_properties: { response_flags: { no_healthy_upstream: true } },
    response: { response_code: { value: 503 }, response_code_details: 'no_healthy_upstream', response_body_bytes: 19 },
  });
  t.equal(none!.common_properties['upstream_cluster'], undefined, 'the cluster is that of the host');
  t.match(invalid, {
    common_properties: { response_flags: { downstream_protocol_error: true } },
    response: { response_code: { value: 400 } },
  });
});

besideEnvoy('TCP connections have entries too', async (t, program) => {
  const service = await startLogService(t);
  const host = await startTcpUpstream(t, (socket) => {
    socket.end('hello');
  });
  const baton = await startBaton(t, {
    ...program,
    config: bootstrap({
      listeners: [tcpListener('main', 0, { cluster: 'host', access_log: [tcpLog()] })],
      clusters: [staticCluster('host', host.port), als(service)],
    }),
  });
  await rawExchange(await baton.listenerPort('main'), 'question');
  const [entry] = await service.entries(1);
  t.match(service.messages[0]!.identifier, { log_name: 'streams' });
  t.match(entry, {
    common_properties: {
      downstream_remote_address: address(Number),
      upstream_remote_address: address(host.port),
      upstream_local_address: address(Number),
      upstream_cluster: 'host',
      duration: TIME,
      stream_id: /^[0-9a-f-]{36}$/,
      downstream_wire_bytes_sent: 5,
      downstream_wire_bytes_received: 8,
      upstream_wire_bytes_sent: 8,
      upstream_wire_bytes_received: 5,
      access_log_type: 'TcpConnectionEnd',
    },
    connection_properties: { received_bytes: 8, sent_bytes: 5 },
  });
  t.equal(entry!.common_properties['time_to_first_upstream_rx_byte'], undefined);
  await baton.waitForStats({
    'access_logs.grpc_access_log.grpc_entries_flushed': 1,
    'access_logs.grpc_access_log.logs_written': 0,
  });
});

besideEnvoy('entries contain what TLS has established', async (t, program) => {
  const root = await Authority.create();
  const server = await root.issue({ names: ['server.test', { type: 'url', value: 'spiffe://a/server' }] });
  const client = await root.issue({
    commonName: 'someone',
    names: ['client.test', { type: 'url', value: 'spiffe://a/client' }],
  });
  const service = await startLogService(t);
  const listener = httpListener('main', 0, manager(httpLog()));
  const [chain] = listener['filter_chains'] as Config[];
  const tls = serverTls([server], { validation_context: trustedCa(root) });
  const baton = await startBaton(t, {
    ...program,
    config: bootstrap({
      listeners: [
        { ...listener, listener_filters: [TLS_INSPECTOR], filter_chains: [{ ...chain, transport_socket: tls }] },
      ],
      clusters: [staticCluster('host', []), staticCluster('none', []), als(service)],
    }),
  });
  const port = await baton.listenerPort('main');
  const suite = { maxVersion: 'TLSv1.2', ciphers: 'ECDHE-ECDSA-AES128-GCM-SHA256' } as const;
  await httpsGet(port, { ca: root.certificate, cert: client.chain, key: client.key, ...suite }, '/direct');
  await httpsGet(port, { ca: root.certificate, minVersion: 'TLSv1.3' }, '/direct');
  const [old, current] = (await service.entries(2)).map(({ common_properties: facts }) => facts['tls_properties']);
  t.match(old, {
    tls_version: 'TLSv1_2',
    tls_cipher_suite: { value: 0xc02b },
    tls_sni_hostname: 'server.test',
    ja3_fingerprint: /^[0-9a-f]{32}$/,
    local_certificate_properties: { subject_alt_name: [{ uri: 'spiffe://a/server' }], subject: 'CN=server.test' },
    peer_certificate_properties: {
      subject_alt_name: [{ uri: 'spiffe://a/client' }],
      subject: 'CN=someone',
      issuer: 'CN=Test Root',
    },
  });
  t.match(current, { tls_version: 'TLSv1_3', tls_cipher_suite: { value: Number } });
  t.same((current as Record<string, unknown>)['peer_certificate_properties'], {});
});

besideEnvoy('a stream that the service ends is opened again, and says again who sends', async (t, program) => {
  const service = await startLogService(t);
  const { baton, port } = await startProxy(t, program, service, httpLog());
  await httpRequest(port, '/direct');
  await service.entries(1);
  service.endStreams(GrpcCode.Unavailable);
  await baton.waitForStats({ 'cluster.als.upstream_rq_active': 0 });
  await httpRequest(port, '/direct');
  await service.entries(2);
  t.equal(service.streams.length, 2);
  for (const [first] of service.streams) t.match(first!.identifier, { log_name: 'web' });
  await httpRequest(port, '/direct');
  await service.entries(3);
  t.equal(service.messages[2]!.identifier, undefined);
  await baton.waitForStats({
    'access_logs.grpc_access_log.logs_written': 3,
    'access_logs.grpc_access_log.grpc_entries_flushed': 3,
    'access_logs.grpc_access_log.logs_dropped': 0,
    'cluster.als.upstream_rq_200': 2,
  });
});

besideEnvoy('entries that no service takes stay until the buffer is full, and are dropped then', async (t, program) => {
  const baton = await startBaton(t, {
    ...program,
    config: bootstrap({
      listeners: [httpListener('main', 0, manager(httpLog({ buffer_size_bytes: 2000 })))],
      clusters: [staticCluster('host', []), staticCluster('none', []), staticCluster('als', [], HTTP2_CLUSTER)],
    }),
  });
  const port = await baton.listenerPort('main');
  for (let count = 0; count < 30; count++) await httpRequest(port, '/direct');
  const stat = async (name: string) => (await baton.stat(`access_logs.grpc_access_log.${name}`))!;
  await waitFor(async () => (await stat('logs_written')) + (await stat('logs_dropped')) === 30, { what: '30 entries' });
  t.ok((await stat('logs_dropped')) > 15);
  t.ok((await stat('grpc_entries_flush_failed')) > 0);
  t.equal(await stat('grpc_entries_flushed'), 0);
});

for (const buffer_size_bytes of [16_384, 0])
  t.test(
    `a service that reads nothing blocks nothing, and entries are bounded, with a buffer of ${buffer_size_bytes} bytes`,
    async (t) => {
      const service = await startLogService(t, { isDeaf: true });
      const log = httpLog({ buffer_size_bytes }, { additional_request_headers_to_log: ['x-long'] });
      const { baton, port } = await startProxy(t, { command: undefined }, service, log);
      const headers = { 'x-long': 'x'.repeat(16_000) };
      for (let count = 0; count < 200; count++) t.equal((await httpRequest(port, '/direct', { headers })).status, 204);
      const stat = async (name: string) => (await baton.stat(`access_logs.grpc_access_log.${name}`))!;
      await waitFor(async () => (await stat('logs_dropped')) > 50, { what: 'dropped entries' });
      await baton.stop();
    },
  );

t.test('loggers with the same configuration share a stream', async (t) => {
  const service = await startLogService(t);
  const baton = await startBaton(t, {
    config: bootstrap({
      listeners: ['one', 'two'].map((name) => httpListener(name, 0, manager(httpLog()))),
      clusters: [staticCluster('host', []), staticCluster('none', []), als(service)],
    }),
  });
  for (const name of ['one', 'two']) await httpRequest(await baton.listenerPort(name), '/direct');
  await service.entries(2);
  t.equal(service.heads.length, 1);
  await baton.stop();
});

t.test('text that is not UTF-8 is logged with its bad bytes replaced', async (t) => {
  const service = await startLogService(t);
  const log = httpLog({}, { additional_request_headers_to_log: ['x-text'] });
  const { baton, port } = await startProxy(t, { command: undefined }, service, log);
  const text = Buffer.concat([Buffer.from('aä€😀'), Buffer.from([0xff, 0x62, 0xc3])]);
  const head = Buffer.from('GET /direct HTTP/1.1\r\nhost: a\r\nconnection: close\r\nx-text: ');
  await rawExchange(port, Buffer.concat([head, text, Buffer.from('\r\n\r\n')]));
  const [entry] = await service.entries(1);
  t.same(entry!.request!['request_headers'], { 'x-text': 'aä€😀!b!' });
  await baton.stop();
});

for (const [field, changes, text] of [
  [
    'common_config.grpc_service.google_grpc',
    { grpc_service: { google_grpc: { target_uri: 'a:1', stat_prefix: 'a' } } },
    'workers call the hosts of clusters: define one with http2_protocol_options for target_uri, and name it in envoy_grpc',
  ],
  [
    'common_config.grpc_service.envoy_grpc.cluster_name',
    { grpc_service: { envoy_grpc: { cluster_name: 'unknown' } } },
    "unknown cluster 'unknown'",
  ],
  [
    'common_config.grpc_stream_retry_policy.retry_back_off.max_interval',
    { grpc_stream_retry_policy: { retry_back_off: { base_interval: '2s', max_interval: '1s' } } },
    'max_interval must be greater than or equal to base_interval',
  ],
  [
    'common_config.grpc_service.initial_metadata[0]',
    { grpc_service: { envoy_grpc: { cluster_name: 'als' }, initial_metadata: [{ key: 'x', value: '%NO%' }] } },
    'unknown operator %NO%',
  ],
] as const) {
  t.test(`refused: ${field}`, async (t) => {
    const config = bootstrap({
      listeners: [httpListener('main', 0, manager(httpLog(changes)))],
      clusters: [staticCluster('host', []), staticCluster('none', []), staticCluster('als', [], HTTP2_CLUSTER)],
    });
    const baton = await startBaton(t, { config, wait: 'spawned' });
    await baton.exited;
    t.match(baton.stderr, `typed_config.${field}`);
    t.match(baton.stderr, text);
  });
}
