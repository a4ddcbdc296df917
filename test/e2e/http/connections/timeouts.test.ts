// Timeouts: of requests, attempts, idle streams and connections, slow clients.

import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import {
  type Config,
  clusterHttpOptions,
  connectRaw,
  fileAccessLog,
  logLines,
  rawExchange,
  startBlackHole,
  startUpstream,
  staticCluster,
  tempDir,
  waitFor,
} from '../../harness/index.js';
import { parseMessage } from '../message.js';
import { answering, managerOf, routeConfig, routeTo, startProxy } from '../proxy.js';
import { response, startRawUpstream } from '../raw-upstream.js';

/** Short enough for a test, long enough for a busy machine. */
const SOON = '0.25s';

/** The longest duration of the API. */
const LONGEST = '315576000000s';

const upstream = await startRawUpstream(t, ({ path, socket }) => {
  if (path.startsWith('/answer')) socket.write(response(200, 'yes'));
  if (path.startsWith('/half')) socket.write('HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf');
  if (path.startsWith('/tunnel')) {
    socket.write('HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\n\r\n');
  }
});
const slowly = await startUpstream(t, (_request, answer) => {
  let left = 8;
  const timer = setInterval(() => {
    answer.write('.');
    if (--left > 0) return;
    clearInterval(timer);
    answer.end();
  }, 200);
});
const logFile = join(tempDir(t), 'log');
const access_log = [fileAccessLog(logFile, '%RESPONSE_CODE% %BYTES_SENT% %DURATION%\n')];
const endsFile = join(tempDir(t), 'ends');
const ends = [fileAccessLog(endsFile, '%RESPONSE_CODE_DETAILS% %RESPONSE_FLAGS%\n')];
const silent = await startBlackHole(t);
/** More than the kernel buffers for a client that does not read. */
const LARGE = 16 << 20;
const largeFile = join(tempDir(t), 'large');
writeFileSync(largeFile, Buffer.alloc(LARGE, 'x'));

const toRaw = (path: string, action: Config = {}): Config => routeTo({ prefix: path }, 'raw', action);
/** A connection manager with internal clients, whose router respects expected request timeouts or does not. */
function internal(isRespected: boolean): Config {
  const typed_config = {
    '@type': 'type.googleapis.com/envoy.extensions.filters.http.router.v3.Router',
    respect_expected_rq_timeout: isRespected,
  };
  return {
    use_remote_address: true,
    internal_address_config: { cidr_ranges: [{ address_prefix: '127.0.0.1', prefix_len: 32 }] },
    http_filters: [{ name: 'router', typed_config }],
  };
}
const proxy = await startProxy(t, {
  listeners: {
    routes: managerOf([
      toRaw('/hang/timeout', { timeout: SOON }),
      toRaw('/half/timeout', { timeout: SOON }),
      toRaw('/hang/try', { timeout: '60s', retry_policy: { retry_on: 'connect-failure', per_try_timeout: SOON } }),
      toRaw('/hang/idle', { timeout: '0s', idle_timeout: SOON }),
      toRaw('/hang/both', { timeout: '0s', idle_timeout: SOON, max_stream_duration: { max_stream_duration: '60s' } }),
      toRaw('/hang/unlimited', { timeout: '0s' }),
      toRaw('/answer/try', {
        timeout: '0s',
        retry_policy: { retry_on: 'connect-failure', per_try_timeout: SOON, per_try_idle_timeout: SOON },
      }),
      routeTo({ prefix: '/answer/brief' }, 'brief', { timeout: '0s' }),
      toRaw('/answer', { timeout: SOON }),
      routeTo({ prefix: '/deaf' }, 'deaf'),
      toRaw('/'),
    ]),
    routesAlone: managerOf([toRaw('/hang/idle', { timeout: '0s', idle_timeout: SOON })], {
      stream_idle_timeout: '0s',
      common_http_protocol_options: { idle_timeout: '0s' },
    }),
    idleStreams: managerOf(
      [toRaw('/hang/patient', { idle_timeout: '0s', timeout: '1s' }), toRaw('/', { timeout: '0s' })],
      {
        stream_idle_timeout: SOON,
      },
    ),
    movingStreams: managerOf([routeTo({ prefix: '/' }, 'slowly', { timeout: '0s' })], { stream_idle_timeout: '1s' }),
    inside: managerOf([toRaw('/', { timeout: '60s' })], internal(true)),
    insideAlone: managerOf([toRaw('/', { timeout: SOON })], internal(false)),
    requests: managerOf([toRaw('/')], { request_timeout: SOON, upgrade_configs: [{ upgrade_type: 'websocket' }] }),
    loggedHeads: managerOf([toRaw('/')], { request_headers_timeout: SOON, access_log }),
    logged: managerOf([toRaw('/')], { access_log }),
    heads: managerOf([toRaw('/')], { request_headers_timeout: SOON }),
    headsOfRequests: managerOf([toRaw('/')], {
      request_headers_timeout: '60s',
      request_timeout: SOON,
      access_log: ends,
    }),
    headsOfStreams: managerOf([toRaw('/')], { stream_idle_timeout: SOON, access_log: ends }),
    headsOfLongStreams: managerOf([toRaw('/')], {
      common_http_protocol_options: { max_stream_duration: SOON },
      access_log: ends,
    }),
    idleConnections: managerOf([toRaw('/')], {
      common_http_protocol_options: { idle_timeout: SOON },
      drain_timeout: SOON,
    }),
    oldConnections: managerOf([toRaw('/')], {
      common_http_protocol_options: { max_connection_duration: SOON },
      drain_timeout: SOON,
    }),
    delayedClose: managerOf([answering({ prefix: '/' }, 'no')], { delayed_close_timeout: SOON }),
    cutShort: largeAnswers(SOON),
    cutLate: largeAnswers(LONGEST),
    cutNever: largeAnswers('0s'),
    lateClose: managerOf([answering({ prefix: '/' }, 'no')], {
      delayed_close_timeout: LONGEST,
      http_protocol_options: { accept_http_10: true },
    }),
  },
  clusters: [
    staticCluster('raw', upstream.port),
    staticCluster('slowly', slowly.port),
    staticCluster(
      'brief',
      upstream.port,
      clusterHttpOptions({
        common_http_protocol_options: { max_stream_duration: SOON },
        explicit_http_config: { http_protocol_options: {} },
      }),
    ),
    staticCluster('deaf', silent, { connect_timeout: SOON }),
  ],
  args: ['-l', 'warning', '--file-flush-interval-msec', '20'],
});

t.test('a route timeout answers 504 and releases the host', async (t) => {
  const { status, body } = await proxy.on('routes', '/hang/timeout');
  t.match({ status, body }, { status: 504, body: 'upstream request timeout' });
  await waitFor(() => upstream.sockets.size === 0, { what: 'the abandoned connection to be closed' });
});

t.test('a response that has started is aborted when the timeout ends', async (t) => {
  const { text } = await rawExchange(proxy.ports['routes']!, 'GET /half/timeout HTTP/1.1\r\nhost: a\r\n\r\n');
  t.match(text, /^HTTP\/1\.1 200 OK\r\n/);
  t.match(text, /\r\n\r\nhalf$/, 'the received part is forwarded, and nothing else');
});

t.test('timeouts of a finished request do not end another one', async (t) => {
  const { baton, ports } = proxy;
  const leave = async () => {
    const { length } = upstream.requests;
    const client = await connectRaw(t, ports['routes']!);
    client.write('GET /hang/timeout HTTP/1.1\r\nhost: a\r\n\r\n');
    await waitFor(() => upstream.requests.length > length, { what: 'the request at the host' });
    client.reset();
    await baton.waitForStat('http.routes.downstream_rq_active', 0);
  };
  const ask = (path: string) => async () => t.equal((await proxy.on('routes', path)).status, 200, path);
  for (const end of [leave, ask('/answer'), ask('/answer/try'), ask('/answer/brief')]) {
    await end();
    const patient = await connectRaw(t, ports['routes']!);
    patient.write('GET /hang/unlimited HTTP/1.1\r\nhost: a\r\n\r\n');
    await waitFor(() => upstream.requests.at(-1)!.path === '/hang/unlimited');
    const { socket } = upstream.requests.at(-1)!;
    await timePasses();
    socket.write(response(200, 'late'));
    t.match(await patient.readUntil('late'), /^HTTP\/1\.1 200 /);
    patient.destroy();
  }
});

t.test('the route timeout starts when the request is complete', async (t) => {
  const connection = await connectRaw(t, proxy.ports['routes']!);
  connection.write('POST /answer HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\n1');
  await timePasses();
  connection.write('2');
  t.match(await connection.readUntil('yes'), /^HTTP\/1\.1 200 /);
});

t.test('an attempt that times out without a retry is answered 504', async (t) => {
  const { status, body } = await proxy.on('routes', '/hang/try');
  t.match({ status, body }, { status: 504, body: 'upstream request timeout' });
});

t.test("external clients cannot set the proxy's timeouts", async (t) => {
  const headers = { 'x-envoy-upstream-rq-timeout-ms': '1', 'x-envoy-expected-rq-timeout-ms': '1' };
  const { status } = await proxy.on('routes', '/hang/timeout', { headers });
  t.equal(status, 504);
  const { head } = upstream.requests.at(-1)!;
  t.match(head, /\r\nx-envoy-expected-rq-timeout-ms: 250(\r\n|$)/, "the host gets the proxy's timeout");
  t.notMatch(head, /x-envoy-upstream-rq-timeout-ms|timeout-ms: 1(\r\n|$)/);
});

t.test('an internal proxy may respect the expected timeout of the one before it', async (t) => {
  const headers = { 'x-envoy-expected-rq-timeout-ms': '200', 'x-envoy-upstream-rq-timeout-ms': '60000' };
  t.equal((await proxy.on('inside', '/hang', { headers })).status, 504);
  const { head } = upstream.requests.at(-1)!;
  t.match(head, /\r\nx-envoy-expected-rq-timeout-ms: 200(\r\n|$)/);
  const alone = { 'x-envoy-expected-rq-timeout-ms': '60000' };
  t.equal((await proxy.on('insideAlone', '/hang', { headers: alone })).status, 504, "or use its route's timeout");
  const asking = { 'x-envoy-upstream-rq-timeout-ms': '200' };
  t.equal(
    (await proxy.on('inside', '/hang', { headers: asking })).status,
    504,
    "a client's own header sets the timeout",
  );
});

t.test('a host that does not accept connections in time is answered with 503', async (t) => {
  const { status, body } = await proxy.on('routes', '/deaf');
  t.equal(status, 503);
  t.match(body, /^upstream connect error or disconnect\/reset before headers\. reset reason: /);
  t.match(body, /connection timeout/);
});

t.test('an idle stream times out', async (t) => {
  const port = proxy.ports['idleStreams']!;
  const waiting = await proxy.on('idleStreams', '/hang');
  t.match(waiting, { status: 504, body: 'stream timeout' }, 'waiting for the host: 504');
  const uploading = await rawExchange(port, 'POST /hang HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n\r\n1');
  t.match(
    parseMessage(uploading.text),
    { status: 408, headers: { connection: 'close' }, rest: 'stream timeout' },
    'waiting for the client',
  );
  const broken = await rawExchange(port, 'GET /half HTTP/1.1\r\nhost: a\r\n\r\n');
  t.match(broken.text, /\r\n\r\nhalf$/, 'the rest of a response: the connection is closed');
  t.match(await proxy.on('routes', '/hang/idle'), { status: 504, body: 'stream timeout' }, 'the limit of a route');
  t.match(await proxy.on('routesAlone', '/hang/idle'), { status: 504 }, 'where it is the only limit');
  const both = await proxy.on('routes', '/hang/both');
  t.match(both, { status: 504, body: 'stream timeout' }, 'beside a longer timeout of the same route');
  t.match(
    await proxy.on('idleStreams', '/hang/patient'),
    { status: 504, body: 'upstream request timeout' },
    'a route may disable the limit',
  );
});

t.test('an active stream outlives its idle timeout', async (t) => {
  t.match(await proxy.on('movingStreams', '/'), { status: 200, body: '........' });
});

t.test('a request that is incomplete at request_timeout is answered 408', async (t) => {
  const slow = await rawExchange(
    proxy.ports['requests']!,
    'POST /hang HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n',
  );
  t.match(parseMessage(slow.text), { status: 408, headers: { connection: 'close' }, rest: 'request timeout' });
  const trickle = await connectRaw(t, proxy.ports['requests']!);
  trickle.write('POST /hang HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n');
  const timer = setInterval(() => trickle.closed === 'open' && trickle.write('1\r\na\r\n'), 20);
  t.teardown(() => clearInterval(timer));
  t.match(await trickle.readUntil('request timeout'), /^HTTP\/1\.1 408 /, 'though its bytes keep arriving');
  const complete = await connectRaw(t, proxy.ports['requests']!);
  complete.write('POST /hang/complete HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\n\r\na');
  await waitFor(() => upstream.requests.at(-1)!.path === '/hang/complete');
  const { socket } = upstream.requests.at(-1)!;
  await timePasses();
  socket.write(response(200, 'late'));
  t.match(await complete.readUntil('late'), /^HTTP\/1\.1 200 /, 'a complete request is not limited');
});

t.test('request_timeout does not apply once the response has started', async (t) => {
  const upload = await connectRaw(t, proxy.ports['requests']!);
  upload.write('POST /half HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n');
  await upload.readUntil('half');
  const { socket: answering } = upstream.requests.at(-1)!;
  const tunnel = await connectRaw(t, proxy.ports['requests']!);
  tunnel.write('GET /tunnel HTTP/1.1\r\nhost: a\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n');
  await tunnel.readUntil('\r\n\r\n');
  const { socket: tunneling } = upstream.requests.at(-1)!;
  await timePasses();
  await timePasses();
  answering.write(' more.');
  tunneling.write('more');
  t.equal(await upload.readUntil('.'), ' more.', 'a response');
  t.equal(await tunnel.readUntil('more'), 'more', 'a tunnel');
});

t.test('a header section that is incomplete at request_headers_timeout is answered 408', async (t) => {
  const { text, closed } = await rawExchange(proxy.ports['heads']!, 'GET /hang HTTP/1.1\r\nhost');
  t.match(parseMessage(text), { status: 408, headers: { connection: 'close' }, rest: 'request header timeout' });
  t.equal(closed, 'end');
});

t.test('timeouts of requests and streams apply while a header section is incomplete too', async (t) => {
  const cases: [string, string, string, string][] = [
    ['headsOfRequests', 'request timeout', 'downstream_rq_timeout', 'request_overall_timeout -'],
    ['headsOfStreams', 'stream timeout', 'downstream_rq_idle_timeout', 'stream_idle_timeout SI'],
    [
      'headsOfLongStreams',
      'downstream duration timeout',
      'downstream_rq_max_duration_reached',
      'max_duration_timeout -',
    ],
  ];
  for (const [listener, rest, counter, line] of cases) {
    const { text, closed } = await rawExchange(proxy.ports[listener]!, 'GET /hang HTTP/1.1\r\nhost');
    t.match({ ...parseMessage(text), closed }, { status: 408, rest, closed: 'end' }, listener);
    t.equal(await proxy.baton.stat(`http.${listener}.${counter}`), 1, counter);
    t.equal(await proxy.baton.stat(`http.${listener}.downstream_rq_header_timeout`), 0);
    await waitFor(() => existsSync(endsFile) && readFileSync(endsFile, 'latin1').includes(`${line}\n`), { what: line });
  }
});

t.test('an empty line after a request does not start another one', async (t) => {
  const client = await connectRaw(t, proxy.ports['headsOfStreams']!);
  client.write('GET /answer HTTP/1.1\r\nhost: a\r\n\r\n\r\n');
  await client.readUntil('yes');
  await timePasses();
  client.write('GET /answer HTTP/1.1\r\nhost: a\r\n\r\n\r');
  await client.readUntil('yes');
  await timePasses();
  client.write('\nGET /hang');
  t.match(parseMessage((await client.readToEnd()).text), { status: 408 }, 'this is the start of a request');
});

t.test('the duration of a request starts with the first byte of its header section', async (t) => {
  await rawExchange(proxy.ports['loggedHeads']!, 'GET /hang HTTP/1.1\r\nhost');
  const slow = await connectRaw(t, proxy.ports['logged']!);
  slow.write('GET /answer HTTP/1.1\r\nhost');
  await timePasses();
  slow.write(': a\r\n\r\n');
  await slow.readUntil('yes');
  const lines = () => logLines(logFile);
  for (const what of ['408 22', '200 3']) {
    const line = await waitFor(() => lines().find((each) => each.startsWith(what)));
    t.ok(Number(line.split(' ')[2]) >= 200, line);
  }
});

t.test('idle connections are closed, busy ones are not', async (t) => {
  const unused = await rawExchange(proxy.ports['idleConnections']!, '');
  t.same(unused, { text: '', closed: 'end' }, 'before the first request');
  const used = await connectRaw(t, proxy.ports['idleConnections']!);
  used.write('GET /hang/busy HTTP/1.1\r\nhost: a\r\n\r\n');
  await waitFor(() => upstream.requests.at(-1)!.path === '/hang/busy');
  const { socket } = upstream.requests.at(-1)!;
  await timePasses();
  socket.write(response(200, 'late'));
  t.match(await used.readUntil('late'), /^HTTP\/1\.1 200 /, 'a request is under way');
  t.same(await used.readToEnd(), { text: '', closed: 'end' }, 'after the last request');
});

t.test('a connection closes at its maximum age', async (t) => {
  const connection = await connectRaw(t, proxy.ports['oldConnections']!);
  connection.write('GET /answer HTTP/1.1\r\nhost: a\r\n\r\n');
  t.match(await connection.readUntil('yes'), /^HTTP\/1\.1 200 /);
  t.equal((await connection.readToEnd()).closed, 'end');
});

t.test('a client that is still sending reads the whole response before the connection closes', async (t) => {
  const connection = await connectRaw(t, proxy.ports['delayedClose']!);
  connection.write('POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1000000\r\n\r\n');
  const answer = await connection.readUntil(/\r\n\r\nno/);
  t.match(parseMessage(answer), { status: 200, headers: { connection: 'close' }, rest: 'no' });
  // The proxy discards the rest of the upload, and still does not reset the connection.
  connection.write('x'.repeat(100_000));
  await waitFor(() => connection.closed !== 'open', { what: 'the end after delayed_close_timeout' });
});

t.test(
  'a delayed close that the client does not finish is counted, unless nothing was left to send or receive',
  async (t) => {
    const port = proxy.ports['cutShort']!;
    const counter = 'http.cutShort.downstream_cx_delayed_close_timeout';
    t.equal(await proxy.baton.stat(counter), 0);
    const whole = await connectRaw(t, port);
    whole.write('GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n');
    await whole.readToEnd();
    await waitFor(() => whole.write('x') ?? whole.closed === 'reset', {
      what: 'the end of a half-closed connection',
    });
    const incomplete = await connectRaw(t, port);
    incomplete.write('POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 10\r\n\r\n');
    await incomplete.readToEnd();
    await proxy.baton.waitForStat(counter, 1);
    const left = await connectRaw(t, port);
    left.write('POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 10\r\n\r\n');
    await left.readToEnd();
    left.end();
    const stalled = await connectRaw(t, port);
    stalled.socket.pause();
    stalled.write('GET /large HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n');
    await proxy.baton.waitForStat(counter, 2);
  },
);

t.test('after a client has announced its last request, the close does not wait for the client', async (t) => {
  for (const head of ['GET / HTTP/1.1\r\nhost: a\r\nconnection: close', 'GET / HTTP/1.0\r\nhost: a']) {
    const connection = await connectRaw(t, proxy.ports['lateClose']!);
    connection.write(`${head}\r\n\r\n`);
    t.match(parseMessage(await connection.readUntil(/\r\n\r\nno/)), { status: 200, headers: { connection: 'close' } });
    await waitFor(() => connection.write('x') ?? connection.closed === 'reset', {
      what: `the socket is closed, after ${head.split('\r')[0]}`,
    });
  }
});

t.test('a client that reads nothing of its response is closed after delayed_close_timeout', async (t) => {
  const stalled = async (name: string) => {
    const connection = await connectRaw(t, proxy.ports[name]!);
    connection.socket.pause();
    connection.write('GET /large HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n');
    return connection;
  };
  const patient = [await stalled('cutLate'), await stalled('cutNever')];
  await proxy.baton.waitForStats({ 'http.cutLate.downstream_rq_2xx': 1, 'http.cutNever.downstream_rq_2xx': 1 });
  const counter = 'http.cutShort.downstream_cx_delayed_close_timeout';
  const before = (await proxy.baton.stat(counter)) ?? 0;
  await stalled('cutShort');
  await proxy.baton.waitForStat(counter, before + 1);
  for (const connection of patient) {
    connection.socket.resume();
    const { text, closed } = await connection.readToEnd();
    t.equal(closed, 'end');
    t.equal(text.length - text.indexOf('\r\n\r\n') - 4, LARGE, 'the response is complete');
  }
});

t.test('delayed_close_timeout may be the longest duration of the API', async (t) => {
  const [kept, connection] = [
    await connectRaw(t, proxy.ports['lateClose']!),
    await connectRaw(t, proxy.ports['lateClose']!),
  ];
  connection.write('POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 10\r\n\r\n');
  t.match(parseMessage(await connection.readUntil(/\r\n\r\nno/)), { status: 200, headers: { connection: 'close' } });
  kept.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n');
  t.match(parseMessage(await kept.readUntil(/\r\n\r\nno/)), { status: 200 }, 'other connections continue');
});

/** A connection manager whose response is larger than what the kernel buffers for a client. */
function largeAnswers(timeout: string) {
  const large = { match: { path: '/large' }, direct_response: { status: 200, body: { filename: largeFile } } };
  const routes = [large, answering({ prefix: '/' }, 'no')];
  return {
    delayed_close_timeout: timeout,
    route_config: routeConfig([{ name: 'all', domains: ['*'], routes }], {
      max_direct_response_body_size_bytes: LARGE,
    }),
  };
}

/** Waits as long as the timeouts last by the proxy's clock: until another request has timed out. */
async function timePasses(): Promise<void> {
  const { status } = await proxy.on('routes', '/hang/timeout');
  if (status !== 504) throw new Error(`a request that hangs was answered ${status}`);
}
