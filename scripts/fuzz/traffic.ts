// Mutated requests to a running server, and mutated responses of its upstream.

import { connect, createServer, type Socket } from 'node:net';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import type { Random } from '../../src/common/random.js';
import {
  type BatonProcess,
  bootstrap,
  type Config,
  fileAccessLog,
  httpListener,
  httpRequest,
  ROUTER_FILTER,
  startBaton,
  startEchoUpstream,
  staticCluster,
  tcpListener,
  waitFor,
} from '../../test/e2e/harness/index.js';
import { mutateBytes, pick } from './mutation.js';
import { defectIn, Finding, type Scope } from './scope.js';

/** Concurrent connections. */
const CONNECTIONS = 24;
/** How long to wait for a response: most mutated requests are incomplete and get none. */
const PATIENCE_MS = 40;
/** The server is checked after this many inputs. */
const INPUTS_PER_CHECK = 200;

const crlf = (...lines: string[]): Buffer => Buffer.from(`${lines.join('\r\n')}`, 'latin1');

/** A message with head lines and a body, whose length is right before it is mutated. */
const withBody = (body: Buffer, ...lines: string[]): Buffer =>
  Buffer.concat([crlf(...lines, `content-length: ${body.length}`, '', ''), body]);
const TEXT = Buffer.from('hello world '.repeat(40));
const FRAMES = Buffer.from('\0\0\0\0\x03abc\0\0\0\0\0\x01\0\0\0\x01x', 'latin1');

const REQUESTS: readonly Buffer[] = [
  crlf('GET / HTTP/1.1', 'host: a', '', ''),
  crlf('GET /echo?a=b HTTP/1.1', 'Host: example.com', 'User-Agent: curl/8', 'Accept: */*', '', ''),
  crlf('HEAD /direct HTTP/1.1', 'host: a', 'connection: close', '', ''),
  crlf('POST /echo HTTP/1.1', 'host: a', 'content-length: 11', '', 'hello world'),
  crlf('POST /hostile HTTP/1.1', 'host: a', 'content-length: 3', 'expect: 100-continue', '', 'abc'),
  crlf(
    'PUT /echo HTTP/1.1',
    'host: a',
    'transfer-encoding: chunked',
    '',
    '5;x="y"',
    'hello',
    '0',
    'x-trailer: 1',
    '',
    '',
  ),
  crlf('GET /hostile HTTP/1.1', 'host: a', 'te: trailers', 'accept-encoding: gzip', '', ''),
  crlf('GET /socket HTTP/1.1', 'host: a', 'connection: Upgrade', 'upgrade: websocket', '', '\x81\x02hi'),
  crlf('CONNECT a:443 HTTP/1.1', 'host: a:443', '', ''),
  crlf('OPTIONS * HTTP/1.1', 'host: a', '', ''),
  crlf('GET http://example.com/redirect/x HTTP/1.1', 'host: a', 'x-forwarded-for: 10.0.0.1, ::1', '', ''),
  crlf('GET /old HTTP/1.0', '', ''),
  crlf('GET /a HTTP/1.1', 'host: a', '', 'GET /b HTTP/1.1', 'host: a', '', 'GET /c HTTP/1.1', 'host: a', '', ''),
  crlf('GET /echo HTTP/1.1', 'host: a', 'x-envoy-upstream-rq-timeout-ms: 1', 'x-envoy-retry-on: 5xx', '', ''),
  withBody(
    gzipSync(TEXT),
    'POST /echo HTTP/1.1',
    'host: a',
    'content-encoding: gzip',
    'accept-encoding: gzip;q=0.5, *',
  ),
  withBody(
    brotliCompressSync(TEXT),
    'POST /hostile HTTP/1.1',
    'host: a',
    'content-encoding: br, gzip',
    'accept-encoding: br',
  ),
  withBody(
    Buffer.from(FRAMES.toString('base64')),
    'POST /a.B/Get HTTP/1.1',
    'host: a',
    'content-type: application/grpc-web-text',
    'accept: application/grpc-web-text',
  ),
  withBody(FRAMES, 'POST /a.B/Get HTTP/1.1', 'host: a', 'content-type: application/grpc-web'),
  withBody(FRAMES, 'POST /a.B/Get HTTP/1.1', 'host: a', 'content-type: application/grpc+proto', 'grpc-timeout: 1S'),
  withBody(TEXT, 'POST /a.B/Get HTTP/1.1', 'host: a', 'content-type: application/x-protobuf'),
  withBody(TEXT, 'POST /a.B/Get HTTP/1.1', 'host: a', 'content-type: application/proto', 'connect-protocol-version: 1'),
  withBody(FRAMES, 'POST /a.B/Get HTTP/1.1', 'host: a', 'content-type: application/connect+proto'),
  crlf('GET /a.B/Get?connect=v1&encoding=proto&base64=1&message=YWJj HTTP/1.1', 'host: a', '', ''),
];

const RESPONSES: readonly Buffer[] = [
  crlf('HTTP/1.1 200 OK', 'content-length: 5', '', 'hello'),
  crlf('HTTP/1.1 200 OK', 'transfer-encoding: chunked', '', '5', 'hello', '0', 'x-trailer: 1', '', ''),
  crlf('HTTP/1.1 100 Continue', '', 'HTTP/1.1 503 Busy', 'content-length: 0', 'x-envoy-overloaded: true', '', ''),
  crlf('HTTP/1.1 103 Early Hints', 'link: </a>', '', 'HTTP/1.1 204 No Content', '', ''),
  crlf('HTTP/1.1 101 Switching Protocols', 'upgrade: websocket', 'connection: upgrade', '', '\x81\x02yo'),
  crlf('HTTP/1.0 200 OK', '', 'until the end'),
  // The syntax of old hosts.
  Buffer.from('HTTP/1.1 200 OK\nx-a: b\n c\ncontent-length: 5\n\nhello'),
  crlf(
    'HTTP/1.1  200\tOK',
    'transfer-encoding:',
    '\tchunked',
    'x-a: b',
    ' c',
    '',
    '5  ',
    'hello',
    '0 ',
    'x-t: 1',
    ' 2',
    '',
    '',
  ),
  withBody(TEXT, 'HTTP/1.1 200 OK', 'content-type: text/plain', 'etag: "a"', 'vary: b'),
  withBody(gzipSync(TEXT), 'HTTP/1.1 200 OK', 'content-type: text/plain', 'content-encoding: gzip'),
  withBody(FRAMES, 'HTTP/1.1 200 OK', 'content-type: application/grpc'),
  Buffer.concat([
    crlf('HTTP/1.1 200 OK', 'content-type: application/grpc', 'transfer-encoding: chunked', '', '13', ''),
    FRAMES,
    crlf('', '0', 'grpc-status: 7', 'grpc-message: a%20b', '', ''),
  ]),
  crlf('HTTP/1.1 200 OK', 'content-type: application/grpc', 'grpc-status: 5', 'content-length: 0', '', ''),
  crlf('HTTP/1.1 304 Not Modified', 'etag: "a"', 'connection: close, x', 'x: y', '', ''),
  crlf('HTTP/1.1 302 Found', 'location: /b', 'content-length: 0', 'set-cookie: a=b', 'set-cookie: c=d', '', ''),
];

const TOKENS: readonly Buffer[] = [
  '\r\n',
  '\r\n ',
  '\n\t',
  '\n',
  '\r',
  '\0',
  ' ',
  '\t',
  ':',
  '\r\n\r\n',
  '\xff',
  'HTTP/1.1',
  'HTTP/9.9',
  'content-length: 0\r\n',
  'content-length: 5, 5\r\n',
  'content-length: 18446744073709551616\r\n',
  'content-length: -1\r\n',
  'transfer-encoding: chunked\r\n',
  'transfer-encoding: gzip, chunked\r\n',
  'connection: close\r\n',
  'connection: upgrade\r\nupgrade: websocket\r\n',
  'expect: 100-continue\r\n',
  'FFFFFFFFFFFFFFFFF\r\n',
  '0\r\n\r\n',
  '%00%ff/../',
  '//',
  `x-long: ${'y'.repeat(70_000)}\r\n`,
  'a: b\r\n'.repeat(120),
].map((text) => Buffer.from(text, 'latin1'));

/** Throws a Finding when the server shows a defect. Returns a summary. */
export async function fuzzTraffic(scope: Scope, random: Random, durationMs: number): Promise<string> {
  const hostile = await startHostileUpstream(scope, random);
  const echo = await startEchoUpstream(scope);
  const baton = await startBaton(scope, {
    config: configuration(echo.port, hostile),
    args: ['--concurrency', '2', '--file-flush-interval-msec', '100'],
  });
  const listeners = ['web', 'web', 'filtered', 'filtered', 'wire'];
  const ports = await Promise.all(listeners.map((name) => baton.listenerPort(name)));
  const recent: Buffer[] = [];
  const end = performance.now() + durationMs;
  let inputs = 0;
  let answered = 0;

  const worker = async (): Promise<void> => {
    while (performance.now() < end && baton.exit === undefined) {
      const input = mutateBytes(random, REQUESTS, TOKENS);
      recent.push(input);
      if (recent.length > 4 * CONNECTIONS) recent.shift();
      if (await exchange(random, pick(random, ports), input)) answered++;
      if (++inputs % INPUTS_PER_CHECK === 0) await check(baton, ports[0]!, recent);
    }
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, worker));
  await check(baton, ports[0]!, recent);
  await nothingIsLeft(baton, recent);
  await baton.stop();
  return `${inputs} inputs, ${answered} of them answered; no defect`;
}

/** Sends the input in pieces, and disconnects in one of several ways. Returns whether anything was received. */
async function exchange(random: Random, port: number, input: Buffer): Promise<boolean> {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  let hasAnswer = false;
  const over = new Promise<void>((resolve) => {
    socket.on('error', () => resolve());
    socket.on('end', resolve);
    socket.on('data', () => {
      hasAnswer = true;
    });
  });
  for (let at = 0; at < input.length; ) {
    const to = random.below(3) === 0 ? Math.min(input.length, at + 1 + random.below(40)) : input.length;
    socket.write(input.subarray(at, to));
    at = to;
    if (random.below(2) === 0) await new Promise(setImmediate);
  }
  const leaving = random.below(4);
  if (leaving === 0) socket.end();
  const patience = new Promise<void>((resolve) => setTimeout(resolve, leaving === 1 ? 0 : PATIENCE_MS));
  await Promise.race([over, patience]);
  if (leaving === 1) socket.resetAndDestroy();
  else socket.destroy();
  return hasAnswer;
}

/** Checks that the server answers an ordinary request, and that its log shows no defect. */
async function check(baton: BatonProcess, port: number, recent: readonly Buffer[]): Promise<void> {
  const { status } = await httpRequest(port, '/direct').catch((error: unknown) => ({ status: String(error) }));
  const defect = defectIn(baton.stderr) ?? (status === 200 ? undefined : `an ordinary request got ${status}`);
  if (defect !== undefined) throw new Finding(`${defect}\n\nThe last inputs:\n${recent.map(shown).join('\n')}`);
}

async function nothingIsLeft(baton: BatonProcess, recent: readonly Buffer[]): Promise<void> {
  const gauges = /^(?:http|cluster|listener)\.\S*_active: [1-9]\d*$/gm;
  // Pools keep idle connections to upstreams, and this check itself is a request.
  const isLeft = (line: string): boolean => !/upstream_cx_active|^(?:listener|http)\.admin/.test(line);
  let left: string[] = [];
  await waitFor(async () => {
    left = ((await baton.admin('/stats')).body.match(gauges) ?? []).filter(isLeft);
    return left.length === 0;
  }).catch(() => {
    throw new Finding(
      `left behind after all clients had disconnected:\n${left.join('\n')}\n\n${recent.map(shown).join('\n')}`,
    );
  });
}

/** Starts an upstream that answers everything with mutated responses, and disconnects in different ways. Returns the port. */
async function startHostileUpstream(scope: Scope, random: Random): Promise<number> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    socket.on('error', () => {});
    socket.on('data', () => {
      const response = mutateBytes(random, RESPONSES, TOKENS);
      const cut = random.below(response.length + 1);
      socket.write(response.subarray(0, cut));
      setImmediate(() => {
        socket.write(response.subarray(cut));
        const leaving = random.below(4);
        if (leaving === 0) socket.end();
        if (leaving === 1) socket.resetAndDestroy();
      });
    });
  });
  scope.teardown(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return (server.address() as { port: number }).port;
}

/** Filters that parse or change bodies. */
const FILTERS: readonly Config[] = [
  filter('grpc_http1_bridge.v3.Config', { upgrade_protobuf_to_grpc: true }),
  filter('connect_grpc_bridge.v3.FilterConfig', {}),
  filter('grpc_web.v3.GrpcWeb', {}),
  filter('grpc_stats.v3.FilterConfig', { stats_for_all_methods: true, emit_filter_state: true }),
  filter('compressor.v3.Compressor', { compressor_library: library('gzip', 'compressor') }),
  filter('compressor.v3.Compressor', { compressor_library: library('brotli', 'compressor') }),
  filter('decompressor.v3.Decompressor', { decompressor_library: library('gzip', 'decompressor') }),
  filter('decompressor.v3.Decompressor', { decompressor_library: library('brotli', 'decompressor') }),
];

function filter(type: string, config: Config): Config {
  const typed_config = { '@type': `type.googleapis.com/envoy.extensions.filters.http.${type}`, ...config };
  return { name: type, typed_config };
}

function library(kind: 'gzip' | 'brotli', direction: string): Config {
  const message = kind === 'gzip' ? 'Gzip' : 'Brotli';
  return {
    name: kind,
    typed_config: { '@type': `type.googleapis.com/envoy.extensions.compression.${kind}.${direction}.v3.${message}` },
  };
}

function configuration(echo: number, hostile: number): Config {
  const retry_policy = { retry_on: '5xx,reset,connect-failure', num_retries: 1 };
  const routes = [
    { match: { prefix: '/echo' }, route: { cluster: 'echo', prefix_rewrite: '/', timeout: '1s' } },
    { match: { path: '/direct' }, direct_response: { status: 200, body: { inline_string: 'direct' } } },
    { match: { prefix: '/redirect' }, redirect: { host_redirect: 'b', prefix_rewrite: '/c' } },
    { match: { safe_regex: { regex: '/o(l+)d.*' } }, redirect: { path_redirect: '/new' } },
    { match: { prefix: '/hostile' }, route: { cluster: 'hostile', timeout: '1s', retry_policy } },
    { match: { prefix: '/' }, route: { cluster: 'hostile', timeout: '1s' } },
  ];
  const log = '%START_TIME% %REQ(:PATH)% %REQ(X-A?USER-AGENT)% %RESP(CONTENT-TYPE)% %TRAILER(X-TRAILER)% %PROTOCOL%\n';
  const from = { key: 'x-from', value: '%DOWNSTREAM_REMOTE_ADDRESS%' };
  const failed = {
    or_filter: { filters: [{ response_flag_filter: {} }, { grpc_status_filter: { statuses: ['UNAVAILABLE'] } }] },
  };
  return bootstrap({
    listeners: [
      httpListener('web', 0, {
        route_config: {
          name: 'all',
          request_headers_to_add: [{ header: from }],
          response_headers_to_remove: ['x-powered-by'],
          virtual_hosts: [
            { name: 'suffix', domains: ['*.com'], routes },
            { name: 'all', domains: ['*'], routes },
          ],
        },
        upgrade_configs: [{ upgrade_type: 'websocket' }],
        use_remote_address: true,
        normalize_path: true,
        merge_slashes: true,
        stream_idle_timeout: '2s',
        access_log: [fileAccessLog('access.log', log), { ...fileAccessLog('filtered.log', log), filter: failed }],
        local_reply_config: {
          mappers: [
            { filter: { header_filter: { header: { name: 'x-a', present_match: true } } }, status_code: 299 },
            { filter: failed, body: { inline_string: 'failed' }, headers_to_add: [{ header: from }] },
          ],
          body_format: {
            json_format: { path: '%REQ(:PATH)%', agent: '%REQ(USER-AGENT)%', text: '%LOCAL_REPLY_BODY%' },
          },
        },
        http_protocol_options: { accept_http_10: true, default_host_for_http_10: 'a', enable_trailers: true },
      }),
      httpListener('filtered', 0, {
        route_config: { name: 'filtered', virtual_hosts: [{ name: 'all', domains: ['*'], routes }] },
        http_filters: [...FILTERS, ROUTER_FILTER],
        stream_idle_timeout: '2s',
      }),
      tcpListener('wire', 0, { cluster: 'hostile', idle_timeout: '2s', access_log: [fileAccessLog('access.log')] }),
    ],
    clusters: [staticCluster('echo', echo), staticCluster('hostile', hostile)],
  });
}

function shown(bytes: Buffer): string {
  const text = JSON.stringify(bytes.toString('latin1'));
  return text.length > 2000 ? `${text.slice(0, 2000)}… (${bytes.length} bytes)` : text;
}
