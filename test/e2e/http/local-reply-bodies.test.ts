// Bodies of local replies disclose no more than Envoy's. The details are in the access log.

import { join } from 'node:path';
import { besideEnvoy } from '../harness/envoy.js';
import {
  type Config,
  clusterHttpOptions,
  connectRaw,
  fileAccessLog,
  freePort,
  logLines,
  loopback,
  ROUTER_FILTER,
  startBlackHole,
  staticCluster,
  tempDir,
  waitFor,
} from '../harness/index.js';
import { managerOf, routeTo, startProxy } from './proxy.js';
import { response, startRawUpstream } from './raw-upstream.js';

const HTTP = 'type.googleapis.com/envoy.extensions.filters.http';
const RESET = 'upstream connect error or disconnect/reset before headers. reset reason:';
const RETRIED = 'upstream connect error or disconnect/reset before headers. retried and the latest reset reason:';
const BEFORE = 'upstream_reset_before_response_started';
const REFUSED = 'delayed_connect_error:_Connection_refused';

const get = (path: string, ...lines: string[]) => [`GET ${path} HTTP/1.1`, 'host: a', ...lines, '', ''].join('\r\n');

/** A request; status and body of its response; details and transport failure in the access log. */
const CASES: readonly (readonly [request: string, status: number, body: string, details: string, transport: string])[] =
  [
    [
      get('/refused'),
      503,
      `${RESET} remote connection failure`,
      `${BEFORE}{remote_connection_failure|${REFUSED}}`,
      REFUSED,
    ],
    [
      get('/retried'),
      503,
      `${RETRIED} remote connection failure`,
      `${BEFORE}{remote_connection_failure|${REFUSED}}`,
      REFUSED,
    ],
    [get('/silent'), 503, `${RESET} connection timeout`, `${BEFORE}{connection_timeout}`, '-'],
    [
      get('/nowhere'),
      503,
      `${RESET} local connection failure`,
      `${BEFORE}{local_connection_failure|failed_to_bind_to_203.0.113.9:0:_Cannot_assign_requested_address}`,
      'failed_to_bind_to_203.0.113.9:0:_Cannot_assign_requested_address',
    ],
    [get('/full'), 503, `${RESET} overflow`, `${BEFORE}{overflow}`, '-'],
    [get('/empty'), 503, 'no healthy upstream', 'no_healthy_upstream', '-'],
    [get('/stopped'), 503, 'maintenance mode', 'maintenance_mode', '-'],
    [get('/by-header', 'x-cluster: secret'), 503, '', 'cluster_not_found', '-'],
    [get('/unknown'), 404, '', 'route_not_found', '-'],
    [get('/host/end'), 503, `${RESET} connection termination`, `${BEFORE}{connection_termination}`, '-'],
    [get('/host/reset'), 503, `${RESET} connection termination`, `${BEFORE}{connection_termination}`, '-'],
    [get('/host/garbage'), 502, `${RESET} protocol error`, `${BEFORE}{protocol_error}`, '-'],
    [get('/host/lengths'), 502, `${RESET} protocol error`, `${BEFORE}{protocol_error}`, '-'],
    [get('/host/fields'), 502, `${RESET} protocol error`, `${BEFORE}{protocol_error}`, '-'],
    [get('/timeout'), 504, 'upstream request timeout', 'response_timeout', '-'],
    [get('/try'), 504, 'upstream request timeout', 'upstream_per_try_timeout', '-'],
    [get('/idle'), 504, 'stream timeout', 'stream_idle_timeout', '-'],
    [get('/duration'), 504, 'downstream duration timeout', 'max_duration_timeout', '-'],
    [get('/stream'), 504, 'upstream max stream duration reached', 'upstream_max_stream_duration_reached', '-'],
    [get('/denied'), 403, 'RBAC: access denied', 'rbac_access_denied_matched_policy[a_secret]', '-'],
    [get('/authorized'), 403, '', 'ext_authz_error', '-'],
    [get('/host/%2f'), 400, '', 'path_normalization_failed', '-'],
    [get('/host/%00'), 400, '', 'path_normalization_failed', '-'],
    [get('/host', 'connection: upgrade', 'upgrade: a'), 403, '', 'upgrade_failed', '-'],
    [get('/host', 'a_b: 1'), 400, 'Bad Request', 'http1.unexpected_underscore', '-'],
    [get('/host', `a: ${'a'.repeat(9000)}`), 431, 'Request Header Fields Too Large', 'http1.headers_too_large', '-'],
    [
      get('/host', ...new Array<string>(101).fill('a: b')),
      431,
      'Request Header Fields Too Large',
      'http1.too_many_headers',
      '-',
    ],
    [get('/host', 'content-length: x'), 400, 'Bad Request', 'http1.codec_error', '-'],
    ['garbage\r\n\r\n', 400, 'Bad Request', 'http1.codec_error', '-'],
    ['GET / HTTP/1.1\r\nhos', 408, 'request header timeout', 'request_header_timeout', '-'],
    [
      'POST /buffered HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\nabcde',
      413,
      'Payload Too Large',
      'request_payload_too_large',
      '-',
    ],
  ];

besideEnvoy('a local reply in place of a response discloses nothing internal', async (t, program) => {
  const directory = tempDir(t);
  const log = join(directory, 'log');
  const host = await startRawUpstream(t, ({ path, socket }) => {
    if (path === '/end') socket.end();
    else if (path === '/reset') socket.resetAndDestroy();
    else if (path === '/garbage') socket.write('secret\r\n\r\n');
    else if (path === '/lengths') socket.write('HTTP/1.1 200 OK\r\ncontent-length: secret\r\n\r\n');
    else if (path === '/fields') socket.write('HTTP/1.1 200 OK\r\nse cret: 1\r\n\r\n');
    else if (path !== '/hang') socket.write(response(200));
  });
  const silent = await startBlackHole(t);
  const closed = await freePort();
  const back_off = { base_interval: '0.001s', max_interval: '0.001s' };
  const hang: Config = { prefix_rewrite: '/hang', timeout: '10s' };
  const forRoute = (type: string, config: Config): Config => ({
    typed_per_filter_config: { [type]: { '@type': `${HTTP}.${config['type']}`, ...config, type: undefined } },
  });
  const policy = { permissions: [{ any: true }], principals: [{ any: true }] };
  const routes = [
    routeTo({ prefix: '/host' }, 'host', { regex_rewrite: { pattern: { regex: '^/host' }, substitution: '' } }),
    ...['refused', 'silent', 'nowhere', 'full', 'empty', 'stopped'].map((name) => routeTo({ path: `/${name}` }, name)),
    routeTo({ path: '/retried' }, 'refused', {
      retry_policy: { retry_on: 'connect-failure', num_retries: 1, retry_back_off: back_off },
    }),
    { match: { path: '/by-header' }, route: { cluster_header: 'x-cluster' } },
    routeTo({ path: '/timeout' }, 'host', { ...hang, timeout: '0.1s' }),
    routeTo({ path: '/try' }, 'host', {
      ...hang,
      retry_policy: { retry_on: '5xx', num_retries: 0, per_try_timeout: '0.1s' },
    }),
    routeTo({ path: '/idle' }, 'host', { ...hang, idle_timeout: '0.1s' }),
    routeTo({ path: '/duration' }, 'host', { ...hang, max_stream_duration: { max_stream_duration: '0.1s' } }),
    routeTo({ path: '/stream' }, 'brief', hang),
    routeTo(
      { path: '/denied' },
      'host',
      {},
      forRoute('envoy.filters.http.rbac', {
        type: 'rbac.v3.RBACPerRoute',
        rbac: { rules: { action: 'DENY', policies: { 'a secret': policy } } },
      }),
    ),
    routeTo(
      { path: '/buffered' },
      'host',
      {},
      forRoute('envoy.filters.http.buffer', {
        type: 'buffer.v3.BufferPerRoute',
        buffer: { max_request_bytes: 3 },
      }),
    ),
  ];
  const clusters = [
    staticCluster('host', host.port),
    staticCluster('refused', closed),
    staticCluster('silent', silent, { connect_timeout: '0.2s' }),
    staticCluster('nowhere', host.port, {
      upstream_bind_config: { source_address: { address: '203.0.113.9', port_value: 0 } },
    }),
    staticCluster('full', host.port, { circuit_breakers: { thresholds: [{ max_pending_requests: 0 }] } }),
    staticCluster('empty', []),
    staticCluster('stopped', host.port),
    staticCluster(
      'brief',
      host.port,
      clusterHttpOptions({
        common_http_protocol_options: { max_stream_duration: '0.1s' },
        explicit_http_config: { http_protocol_options: {} },
      }),
    ),
  ];
  const manager: Config = {
    access_log: [fileAccessLog(log, '%RESPONSE_CODE_DETAILS% %UPSTREAM_TRANSPORT_FAILURE_REASON%\n')],
    normalize_path: true,
    path_with_escaped_slashes_action: 'REJECT_REQUEST',
    common_http_protocol_options: { headers_with_underscores_action: 'REJECT_REQUEST' },
    request_headers_timeout: '0.3s',
    max_request_headers_kb: 8,
  };
  const filterOf = (name: string, type: string, config: Config = {}, more: Config = {}) => ({
    name: `envoy.filters.http.${name}`,
    typed_config: { '@type': `${HTTP}.${type}`, ...config },
    ...more,
  });
  const filters = [
    filterOf('rbac', 'rbac.v3.RBAC'),
    filterOf('buffer', 'buffer.v3.Buffer', { max_request_bytes: 1000 }, { disabled: true }),
    ROUTER_FILTER,
  ];
  const asking = filterOf('ext_authz', 'ext_authz.v3.ExtAuthz', {
    transport_api_version: 'V3',
    http_service: { server_uri: { uri: 'http://secret', cluster: 'refused', timeout: '1s' } },
  });
  const { ports } = await startProxy(t, {
    ...program,
    listeners: {
      http: managerOf(routes, { ...manager, http_filters: filters }),
      authorized: managerOf([routeTo({ prefix: '/' }, 'host')], { ...manager, http_filters: [asking, ROUTER_FILTER] }),
    },
    clusters,
    extra: {
      layered_runtime: { layers: [{ name: 'a', static_layer: { 'upstream.maintenance_mode.stopped': 100 } }] },
    },
    args: ['-l', 'error', '--file-flush-interval-msec', '20'],
  });
  for (const [index, [request, status, body, details, transport]] of CASES.entries()) {
    const what = request.slice(0, 40);
    const connection = await connectRaw(t, ports[request.includes('/authorized') ? 'authorized' : 'http']!);
    connection.write(request);
    const head = await connection.readUntil('\r\n\r\n');
    t.equal(Number(head.slice(9, 12)), status, what);
    t.equal(await connection.read(Number(/content-length: ([0-9]+)/i.exec(head)?.[1] ?? 0)), body, what);
    connection.destroy();
    const lines = await waitFor(() => logLines(log).length > index && logLines(log), { what: `the log of ${what}` });
    t.equal(lines[index], `${details} ${transport}`, what);
  }
});

besideEnvoy('a reply to a gRPC client discloses no more', async (t, program) => {
  const { port } = await startProxy(t, {
    ...program,
    listeners: { http: managerOf([routeTo({ prefix: '/' }, 'refused')]) },
    clusters: [staticCluster('refused', [loopback(await freePort())])],
  });
  const connection = await connectRaw(t, port);
  connection.write(get('/', 'content-type: application/grpc'));
  const head = await connection.readUntil('\r\n\r\n');
  t.equal(/^grpc-message: (.*)\r$/im.exec(head)?.[1], `${RESET} remote connection failure`);
});
