// Stream durations: max_stream_duration of connection manager, route and cluster, and x-envoy-upstream-stream-duration-ms of
// internal requests.

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import {
  clusterHttpOptions,
  connectRaw,
  fileAccessLog,
  rawExchange,
  staticCluster,
  tempDir,
  waitFor,
} from '../../harness/index.js';
import { managerOf, routeTo, startProxy } from '../proxy.js';
import { response, startRawUpstream } from '../raw-upstream.js';

const FIELD = 'x-envoy-upstream-stream-duration-ms';
const LAST_CHUNK = /\r\n0\r\n\r\n$/;
const SHORT = { [FIELD]: '100' };

const upstream = await startRawUpstream(t, ({ path, socket, head }) => {
  const isFirst = upstream.requests.filter((request) => request.path === path).length === 1;
  if (path.startsWith('/later')) setTimeout(() => socket.write(response(200, 'served')), 300);
  else if (path === '/again' && !isFirst) socket.write(response(200, 'served'));
  else if (path === '/stream') {
    socket.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n');
    const timer = setInterval(() => socket.write('1\r\n.\r\n'), 20);
    socket.once('close', () => clearInterval(timer));
  } else if (path === '/tunnel' && /\r\nupgrade: websocket/.test(head)) {
    socket.write('HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n');
  }
});

const logFile = join(tempDir(t), 'log');
const common = {
  access_log: [fileAccessLog(logFile, '%REQ(:PATH)% %RESPONSE_CODE% %RESPONSE_FLAGS% %RESPONSE_CODE_DETAILS%\n')],
  use_remote_address: true,
  upgrade_configs: [{ upgrade_type: 'websocket' }],
};
const routes = [
  routeTo({ prefix: '/again' }, 'raw', {
    retry_policy: { retry_on: 'reset', retry_back_off: { base_interval: '0.001s' } },
  }),
  routeTo({ prefix: '/' }, 'raw', { timeout: '0s' }),
];
const lasting = (duration: string) => ({ max_stream_duration: { max_stream_duration: duration } });
const limited = [
  routeTo({ path: '/hang/route' }, 'raw', { timeout: '0s', ...lasting('0.1s') }),
  routeTo({ path: '/later' }, 'raw', lasting('0s')),
  routeTo({ path: '/later/anyway' }, 'raw', { timeout: '0.1s', ...lasting('60s') }),
  routeTo({ prefix: '/hang/cluster' }, 'limited', { timeout: '0s', ...lasting('0s') }),
  routeTo({ prefix: '/' }, 'raw', { timeout: '0s' }),
];
const inside = { cidr_ranges: [{ address_prefix: '127.0.0.1', prefix_len: 32 }] };
const proxy = await startProxy(t, {
  listeners: {
    inside: managerOf(routes, { ...common, internal_address_config: inside }),
    outside: managerOf(routes, common),
    limited: managerOf(limited, {
      ...common,
      stream_idle_timeout: '0s',
      common_http_protocol_options: { max_stream_duration: '0.2s', idle_timeout: '0s' },
    }),
    durations: managerOf(limited, { ...common, internal_address_config: inside }),
    byRoute: managerOf(limited, {
      ...common,
      stream_idle_timeout: '0s',
      common_http_protocol_options: { idle_timeout: '0s' },
    }),
  },
  clusters: [
    staticCluster('raw', upstream.port),
    staticCluster(
      'limited',
      upstream.port,
      clusterHttpOptions({
        common_http_protocol_options: { max_stream_duration: '0.1s' },
        explicit_http_config: { http_protocol_options: {} },
      }),
    ),
  ],
  args: ['-l', 'warning', '--file-flush-interval-msec', '20'],
});
t.afterEach(() => proxy.baton.waitForStat('cluster.raw.upstream_rq_active', 0));

t.test('a host that has not answered by then is abandoned with 504', async (t) => {
  const { status, body } = await proxy.get('/hang', { headers: SHORT });
  t.match({ status, body }, { status: 504, body: 'upstream max stream duration reached' });
  t.equal(await logged('/hang'), '504 UMSDR upstream_max_stream_duration_reached');
  t.notMatch(upstream.requests.at(-1)!.head, FIELD, 'the field is not forwarded');
  t.equal(await proxy.baton.stat('cluster.raw.upstream_rq_max_duration_reached'), 1);
});

t.test('a request that is incomplete by then is answered 408', async (t) => {
  const client = await connectRaw(t, proxy.port);
  client.write(`POST /slow HTTP/1.1\r\nhost: a\r\n${FIELD}: 100\r\ncontent-length: 5\r\n\r\n1`);
  t.match((await client.readToEnd()).text, /^HTTP\/1\.1 408 /);
  t.equal(await logged('/slow'), '408 UMSDR upstream_max_stream_duration_reached');
});

t.test('a response in progress is aborted', async (t) => {
  const { text } = await rawExchange(proxy.port, `GET /stream HTTP/1.1\r\nhost: a\r\n${FIELD}: 100\r\n\r\n`);
  t.match(text, /^HTTP\/1\.1 200 /);
  t.notMatch(text, LAST_CHUNK);
  t.equal(await logged('/stream'), '200 UMSDR upstream_max_stream_duration_reached');
});

t.test('a tunnel is closed', async (t) => {
  const upgrade = 'connection: upgrade\r\nupgrade: websocket\r\n';
  const { text } = await rawExchange(proxy.port, `GET /tunnel HTTP/1.1\r\nhost: a\r\n${upgrade}${FIELD}: 100\r\n\r\n`);
  t.match(text, /^HTTP\/1\.1 101 /);
  t.equal(await logged('/tunnel'), '101 UMSDR upstream_max_stream_duration_reached');
});

t.test('each attempt has the full duration', async (t) => {
  t.match(await proxy.get('/again', { headers: SHORT }), { status: 200, body: 'served' });
});

t.test('external requests cannot set the duration, and 0 means no limit', async (t) => {
  t.equal((await proxy.on('outside', '/later', { headers: SHORT })).status, 200);
  t.equal((await proxy.get('/later', { headers: { [FIELD]: '0' } })).status, 200);
});

t.test("the connection manager's limit ends longer streams, and so does a route's", async (t) => {
  const tooLong = '504 - max_duration_timeout';
  t.match(await proxy.on('limited', '/hang/manager'), { status: 504, body: 'downstream duration timeout' });
  t.equal(await logged('/hang/manager'), tooLong);
  t.match(await proxy.on('byRoute', '/hang/route'), { status: 504, body: 'downstream duration timeout' });
  t.equal(await logged('/hang/route'), tooLong, "the route's limit alone");
  const limitedPort = proxy.ports['limited']!;
  const { text } = await rawExchange(limitedPort, 'GET /stream HTTP/1.1\r\nhost: a\r\n\r\n');
  t.match(text, /^HTTP\/1\.1 200 /);
  t.notMatch(text, LAST_CHUNK);
  const slow = await connectRaw(t, limitedPort);
  slow.write('POST /slow/manager HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\n1');
  t.match((await slow.readToEnd()).text, /^HTTP\/1\.1 408 /);
  const ofGrpc = { method: 'POST', headers: { 'content-type': 'application/grpc' } };
  const call = await proxy.on('byRoute', '/hang/route', ofGrpc);
  t.equal(call.headers['grpc-status'], '4', 'gRPC status DEADLINE_EXCEEDED');
  t.equal((await proxy.on('limited', '/later')).status, 200, 'a route overrides the limit');
  t.equal(await proxy.baton.stat('http.limited.downstream_rq_max_duration_reached'), 3);
});

t.test(
  'a route with max_stream_duration has no default timeout, but obeys the one that a request asks for',
  async (t) => {
    t.match(await proxy.on('byRoute', '/later/anyway'), { status: 200, body: 'served' });
    t.notMatch(upstream.requests.at(-1)!.head, 'x-envoy-expected-rq-timeout-ms');
    const headers = { 'x-envoy-upstream-rq-timeout-ms': '100' };
    t.match(await proxy.on('durations', '/later/anyway', { headers }), {
      status: 504,
      body: 'upstream request timeout',
    });
  },
);

t.test("a cluster's limit ends longer attempts", async (t) => {
  t.match(await proxy.on('limited', '/hang/cluster'), { status: 504, body: 'upstream max stream duration reached' });
  t.equal(await proxy.baton.stat('cluster.limited.upstream_rq_max_duration_reached'), 1);
  const { body } = await proxy.baton.admin('/clusters?filter=^limited$');
  t.match(body, /::rq_error::1\n/, 'counted as an error of the host');
  t.match(body, /::rq_timeout::0\n/, 'not counted as a timeout');
});

/** Returns the log entry of the first request for a path. */
function logged(path: string): Promise<string> {
  return waitFor(() => {
    const lines = existsSync(logFile) ? readFileSync(logFile, 'latin1').split('\n') : [];
    return lines.find((line) => line.startsWith(`${path} `))?.slice(path.length + 1);
  });
}
