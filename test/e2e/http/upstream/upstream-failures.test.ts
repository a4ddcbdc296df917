// Host failures as clients see them: an error response or an aborted response, never one that looks complete.

import type { Socket } from 'node:net';
import t from 'tap';
import {
  clusterHttpOptions,
  connectRaw,
  freePort,
  rawExchange,
  startTcpUpstream,
  staticCluster,
  waitFor,
} from '../../harness/index.js';
import { dechunk, parseMessage } from '../message.js';
import { managerOf, routeTo, startProxy } from '../proxy.js';
import { response, startRawUpstream } from '../raw-upstream.js';

const OK = 'HTTP/1.1 200 OK\r\n';
/** More than the sockets of a client that does not read can hold. */
const LARGE = 1_000_000;
const FAILED = /^upstream connect error or disconnect\/reset before headers\. reset reason: /;

const upstream = await startRawUpstream(t, ({ path, socket }) => {
  const bytes = answers()[path];
  if (bytes === undefined) return;
  socket.write(bytes, 'latin1');
  if (path.startsWith('/ends') || path.endsWith('cut-off')) socket.end();
  if (path.startsWith('/resets')) setImmediate(() => socket.resetAndDestroy());
});
const immediately = await startTcpUpstream(t, (socket) => socket.resetAndDestroy());
/** Its connection, which it never reads. */
let refusing: Socket | undefined;
const deaf = await startTcpUpstream(t, (socket) => {
  refusing = socket.pause();
});
const talkative = await startTcpUpstream(t, (socket) => socket.write('220 mail.test ESMTP\r\n'));

const toRaw = routeTo({ prefix: '/' }, 'raw', { timeout: '0s' });
const proxy = await startProxy(t, {
  listeners: {
    main: managerOf([
      routeTo({ prefix: '/cluster/none' }, 'none'),
      routeTo({ prefix: '/cluster/unhealthy' }, 'unhealthy'),
      routeTo({ prefix: '/cluster/closed' }, 'closed'),
      routeTo({ prefix: '/cluster/retried' }, 'closed', { retry_policy: { retry_on: 'connect-failure' } }),
      routeTo({ prefix: '/cluster/resetting' }, 'resetting'),
      routeTo({ prefix: '/cluster/talkative' }, 'talkative'),
      routeTo({ prefix: '/cluster/refusing' }, 'refusing'),
      routeTo({ prefix: '/calls' }, 'calls'),
      toRaw,
    ]),
    old: managerOf([toRaw], { http_protocol_options: { accept_http_10: true } }),
  },
  clusters: [
    staticCluster('none', []),
    { ...staticCluster('unhealthy', upstream.port), ...unhealthyHost(upstream.port) },
    staticCluster('closed', await freePort()),
    staticCluster('resetting', immediately.port),
    staticCluster('talkative', talkative.port),
    staticCluster('refusing', deaf.port),
    staticCluster('raw', upstream.port),
    {
      ...staticCluster('calls', upstream.port),
      ...clusterHttpOptions({ explicit_http_config: { http_protocol_options: { enable_trailers: true } } }),
    },
  ],
});

t.test('without a usable host the response is 503', async (t) => {
  t.match(await proxy.get('/cluster/none'), { status: 503, body: 'no healthy upstream' });
  t.match(await proxy.get('/cluster/unhealthy'), { status: 503, body: 'no healthy upstream' });
  const refused = await proxy.get('/cluster/closed');
  t.equal(refused.status, 503);
  t.match(refused.body, FAILED);
  t.match(refused.body, /remote connection failure$/);
  t.match((await proxy.get('/cluster/retried')).body, /before headers\. retried and the latest reset reason: remote /);
  for (let i = 0; i < 5; i++) t.equal((await proxy.get('/cluster/resetting')).status, 503);
});

t.test('a host that closes before its response results in a 503, and within its head in a 502', async (t) => {
  for (const end of ['/ends', '/resets']) {
    const none = await proxy.get(`${end}/at-once`);
    t.match(none, { status: 503, body: FAILED }, end);
    t.match(none.body, /connection termination$/, end);
  }
  const half = await proxy.get('/ends/in-the-head');
  t.match(half, { status: 502, body: FAILED });
  t.match(half.body, /protocol error$/);
  await proxy.baton.waitForStat('cluster.raw.upstream_cx_protocol_error', 1);
  // A reset may overtake the bytes before it.
  t.match(await proxy.get('/resets/in-the-head'), { body: /protocol error$|connection termination$/ });
});

t.test('a response that the host aborts is aborted for the client too', async (t) => {
  const cases: [string, string][] = [
    ['/ends/in-the-body', 'half'],
    ['/resets/in-the-body', 'half'],
    ['/ends/behind-the-head', ''],
    ['/ends/in-a-chunk', 'halfha'],
    ['/resets/in-a-chunk', 'halfha'],
    ['/ends/between-chunks', 'half'],
    ['/ends/in-the-trailers', 'half'],
  ];
  for (const [path, sent] of cases) {
    const { text } = await rawExchange(proxy.port, `GET ${path} HTTP/1.1\r\nhost: a\r\n\r\n`);
    const { status, headers, rest } = parseMessage(text);
    t.equal(status, 200, path);
    const isChunked = headers['transfer-encoding'] === 'chunked';
    if (!isChunked) t.equal(headers['content-length'], '10', `${path}: the length is unchanged`);
    const { body, isComplete } = isChunked ? dechunk(rest) : { body: rest, isComplete: rest.length === 10 };
    t.notOk(isComplete, `${path}: incomplete`);
    if (path.startsWith('/ends')) t.equal(body, sent, `${path}: everything received`);
    else t.ok(sent.startsWith(body), `${path}: nothing is added`);
    await t.rejects(proxy.get(path), `${path}: an HTTP client reports an error`);
  }
});

t.test(
  'a slow client gets the received part of an aborted response, and the complete responses before it',
  async (t) => {
    const broken = 'cluster.raw.upstream_cx_protocol_error';
    const before = (await proxy.baton.stat(broken)) ?? 0;
    const client = await connectRaw(t, proxy.port);
    client.socket.pause();
    client.write('GET /whole HTTP/1.1\r\nhost: a\r\n\r\nGET /ends/in-a-large-body HTTP/1.1\r\nhost: a\r\n\r\n');
    await proxy.baton.waitForStat(broken, before + 1);
    client.socket.resume();
    const { text, closed } = await client.readToEnd();
    const first = parseMessage(text);
    t.ok(first.rest.startsWith('whole'));
    t.equal(parseMessage(first.rest.slice('whole'.length)).rest.length, LARGE);
    t.equal(closed, 'end');
  },
);

t.test('a gRPC call counts for its host as its grpc-status says, and as failed without one', async (t) => {
  const call = (how: string) =>
    rawExchange(
      proxy.port,
      `POST /calls/${how} HTTP/1.1\r\nhost: a\r\ncontent-type: application/grpc\r\ncontent-length: 0\r\nconnection: close\r\n\r\n`,
    );
  const ofHost = async (name: string) =>
    Number(new RegExp(`^calls::.*::${name}::(\\d+)$`, 'm').exec((await proxy.baton.admin('/clusters')).body)?.[1]);
  const broken = 'http.main.rq_reset_after_downstream_response_started';
  const cases: [how: string, errors: number, broken: number][] = [
    ['fine', 0, 0],
    ['rejected', 0, 0],
    ['failed', 1, 0],
    ['without-status', 1, 0],
    ['cut-off', 1, 1],
  ];
  for (const [how, errors, breaks] of cases) {
    const before = await ofHost('rq_error');
    const successes = await ofHost('rq_success');
    const breaksBefore = (await proxy.baton.stat(broken)) ?? 0;
    await call(how);
    await waitFor(async () => (await ofHost('rq_error')) + (await ofHost('rq_success')) === before + successes + 1, {
      what: how,
    });
    t.equal(await ofHost('rq_error'), before + errors, how);
    t.equal(await proxy.baton.stat(broken), breaksBefore + breaks, how);
  }
});

t.test('a body without a length ends with the connection', async (t) => {
  const { status, body } = await proxy.get('/ends/without-length');
  t.match({ status, body }, { status: 200, body: 'until the end' });
  const { text } = await rawExchange(
    proxy.port,
    'GET /ends/without-length HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n',
  );
  t.match(parseMessage(text).headers, { 'transfer-encoding': 'chunked' }, 'and is chunked for the client');
});

t.test('a close-delimited body does not look complete when its host resets the connection', async (t) => {
  const reset = (socket: Socket) => void socket.resetAndDestroy();
  const cases: [path: string, what: string, breakOff: (socket: Socket) => void][] = [
    ['/half/1.1', 'resets', reset],
    ['/half/1.0', 'resets', reset],
    ['/half/1.0-kept', 'resets', reset],
    ['/half/chunked', 'resets', reset],
    ['/half/chunked', 'ends between chunks', (socket) => socket.end()],
    ['/half/chunked', 'ends in a chunk', (socket) => socket.end('9\r\n')],
    ['/half/chunked', 'ends in the trailers', (socket) => socket.end('0\r\nx-a: b\r\n')],
    ['/half/chunked', 'sends garbage', (socket) => void socket.write('xyz\r\n')],
  ];
  for (const [path, what, breakOff] of cases) {
    const client = await connectRaw(t, proxy.port);
    client.write(`GET ${path} HTTP/1.1\r\nhost: a\r\n\r\n`);
    const begun = await client.readUntil('half');
    breakOff(upstream.requests.at(-1)!.socket);
    const { rest } = parseMessage(begun + (await client.readToEnd()).text);
    t.match(dechunk(rest), { body: 'half', isComplete: false }, `${path} ${what}: no last chunk`);

    for (const field of ['', 'connection: keep-alive\r\n']) {
      const older = await connectRaw(t, proxy.ports['old']!);
      older.write(`GET ${path} HTTP/1.0\r\nhost: a\r\n${field}\r\n`);
      t.match(parseMessage(await older.readUntil('half')).headers, { connection: 'close' });
      breakOff(upstream.requests.at(-1)!.socket);
      t.same(await older.readToEnd(), { text: '', closed: 'reset' }, `${path} ${what}: HTTP/1.0 has no other sign`);
    }
  }
  const whole = await rawExchange(proxy.ports['old']!, 'GET /ends/without-length HTTP/1.0\r\nhost: a\r\n\r\n');
  t.match({ ...whole, text: parseMessage(whole.text).rest }, { text: 'until the end', closed: 'end' });
});

t.test('an invalid HTTP response results in a 502', async (t) => {
  const paths = Object.keys(answers()).filter((path) => path.startsWith('/garbage'));
  for (const path of paths) {
    const { status, body } = await proxy.get(path);
    t.equal(status, 502, path);
    t.match(body, FAILED, path);
    t.match(body, /protocol error/, path);
  }
  const early = await proxy.get('/cluster/talkative');
  t.ok([502, 503].includes(early.status), `a host that sends first: ${early.status}`);
  t.match(await proxy.get('/whole'), { status: 200, body: 'whole' }, 'other requests are served');
});

t.test('a response that becomes invalid is aborted', async (t) => {
  for (const path of ['/nonsense/bad-chunk', '/nonsense/bad-trailer']) {
    const { text } = await rawExchange(proxy.port, `GET ${path} HTTP/1.1\r\nhost: a\r\n\r\n`);
    const { status, rest } = parseMessage(text);
    t.equal(status, 200, path);
    t.notOk(dechunk(rest).isComplete, `${path}: incomplete`);
  }
});

t.test('bytes after a response never reach another request', async (t) => {
  for (let i = 0; i < 4; i++) {
    t.match(await proxy.get('/surplus'), { status: 200, body: 'mine' });
    t.match(await proxy.get('/whole'), { status: 200, body: 'whole' });
  }
});

t.test('bytes after a response without a body never reach another request', async (t) => {
  for (const [method, path, status] of [
    ['HEAD', '/body/head', 200],
    ['GET', '/body/204', 204],
    ['GET', '/body/304', 304],
  ] as const) {
    for (let i = 0; i < 3; i++) {
      const first = `${method} ${path} HTTP/1.1\r\nhost: a\r\n\r\n`;
      const { text } = await rawExchange(
        proxy.port,
        `${first}GET /whole HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n`,
      );
      const answer = parseMessage(text);
      t.equal(answer.status, status, `${method} ${path}`);
      t.match(parseMessage(answer.rest), { status: 200, rest: 'whole' }, `${method} ${path}: the next request`);
    }
  }
});

t.test('a host may answer before it has the whole request', async (t) => {
  const connection = await connectRaw(t, proxy.port);
  connection.write('POST /whole HTTP/1.1\r\nhost: a\r\ncontent-length: 1000000\r\n\r\nsome');
  const { text } = await connection.readToEnd();
  t.match(parseMessage(text), { status: 200, headers: { connection: 'close' }, rest: 'whole' });
});

t.test('the response of a host that resets an unread upload reaches the client completely', async (t) => {
  for (let i = 0; i < 5; i++) {
    const connection = await connectRaw(t, proxy.port);
    connection.write('POST /cluster/refusing HTTP/1.1\r\nhost: a\r\ncontent-length: 50000000\r\n\r\n');
    connection.write(new Uint8Array(20 * LARGE));
    // More than all buffers on the way hold: some of it is buffered in Baton.
    await waitFor(() => refusing !== undefined);
    refusing!.write(response(413, 'too large'), () => refusing!.resetAndDestroy());
    const { text, closed } = await connection.readToEnd();
    t.match(parseMessage(text), { status: 413, headers: { connection: 'close' }, rest: 'too large' });
    t.equal(closed, 'end');
    refusing = undefined;
  }
});

t.test('a client that disconnects cancels its request at the host', async (t) => {
  for (const leave of ['end', 'reset'] as const) {
    await waitFor(() => upstream.requests.every(({ path, socket }) => path !== '/hang' || socket.destroyed));
    const { length } = upstream.requests;
    const connection = await connectRaw(t, proxy.port);
    connection.write('POST /hang HTTP/1.1\r\nhost: a\r\ncontent-length: 10\r\n\r\nhalf');
    await waitFor(() => upstream.requests.length > length);
    const { socket } = upstream.requests.at(-1)!;
    connection[leave]();
    await waitFor(() => socket.destroyed, { what: `the host to see the end after ${leave}` });
    t.pass(`${leave} in the middle of the request`);
  }
  for (const leave of ['end', 'reset', 'destroy'] as const) {
    const { length } = upstream.requests;
    const waiting = await connectRaw(t, proxy.port);
    waiting.write('GET /hang HTTP/1.1\r\nhost: a\r\n\r\n');
    await waitFor(() => upstream.requests.length > length);
    waiting[leave]();
    const { socket } = upstream.requests.at(-1)!;
    await waitFor(() => socket.destroyed, { what: `the host to see the end after ${leave}` });
    t.pass(`${leave} while waiting for the answer`);
  }
});

/** Responses of the host by path; none for other paths. */
function callResponse(trailers: string): string {
  return `${OK}content-type: application/grpc\r\ntransfer-encoding: chunked\r\n\r\n5\r\n\0\0\0\0\0\r\n0\r\n${trailers}\r\n`;
}

function answers(): Record<string, string> {
  const length = `${OK}content-length: 10\r\n\r\n`;
  const chunked = `${OK}transfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n`;
  return {
    '/whole': response(200, 'whole'),
    '/surplus': `${response(200, 'mine')}${response(200, 'yours')}`,
    '/body/head': 'HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nbody',
    '/body/204': 'HTTP/1.1 204 No Content\r\n\r\nbody',
    '/body/304': 'HTTP/1.1 304 Not Modified\r\ncontent-length: 4\r\n\r\nbody',
    '/ends/at-once': '',
    '/resets/at-once': '',
    '/ends/in-the-head': 'HTTP/1.1 200 OK\r\ncontent-len',
    '/resets/in-the-head': 'HTTP/1.1 200 OK\r\ncontent-len',
    '/ends/in-a-large-body': `${OK}content-length: 10000000\r\n\r\n${'x'.repeat(LARGE)}`,
    '/ends/in-the-body': `${length}half`,
    '/resets/in-the-body': `${length}half`,
    '/ends/behind-the-head': length,
    '/ends/in-a-chunk': `${chunked}9\r\nha`,
    '/resets/in-a-chunk': `${chunked}9\r\nha`,
    '/ends/between-chunks': chunked,
    '/ends/in-the-trailers': `${chunked}0\r\nx-a: b\r\n`,
    '/ends/without-length': `${OK}\r\nuntil the end`,
    '/calls/fine': callResponse('grpc-status: 0\r\n'),
    '/calls/rejected': callResponse('grpc-status: 5\r\n'),
    '/calls/failed': callResponse('grpc-status: 14\r\n'),
    '/calls/without-status': callResponse(''),
    '/calls/cut-off': callResponse('').slice(0, -7),
    '/half/1.1': `${OK}\r\nhalf`,
    '/half/1.0': 'HTTP/1.0 200 OK\r\n\r\nhalf',
    '/half/1.0-kept': 'HTTP/1.0 200 OK\r\nconnection: keep-alive\r\n\r\nhalf',
    '/half/chunked': chunked,
    '/nonsense/bad-chunk': `${chunked}xyz\r\n`,
    '/nonsense/bad-trailer': `${chunked}0\r\nx a: b\r\n\r\n`,
    '/garbage/text': 'hello\r\n\r\n',
    '/garbage/version': 'HTTP/3.1 200 OK\r\ncontent-length: 0\r\n\r\n',
    '/garbage/status': 'HTTP/1.1 20 OK\r\ncontent-length: 0\r\n\r\n',
    '/garbage/two-lengths': `${OK}content-length: 1\r\ncontent-length: 2\r\n\r\nab`,
    '/garbage/both': `${OK}content-length: 1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n`,
    '/garbage/field': `${OK}no colon\r\n\r\n`,
    '/garbage/name': `${OK}bad name: a\r\ncontent-length: 0\r\n\r\n`,
    '/garbage/value': `${OK}a: b\0c\r\ncontent-length: 0\r\n\r\n`,
    '/garbage/large-head': `${OK}a: ${'x'.repeat(82 * 1024)}\r\ncontent-length: 0\r\n\r\n`,
    '/garbage/many-fields': `${OK}${'a: b\r\n'.repeat(1001)}content-length: 0\r\n\r\n`,
  };
}

function unhealthyHost(port: number): object {
  const endpoint = { address: { socket_address: { address: '127.0.0.1', port_value: port } } };
  return {
    load_assignment: {
      cluster_name: 'unhealthy',
      endpoints: [{ lb_endpoints: [{ endpoint, health_status: 'UNHEALTHY' }] }],
    },
    common_lb_config: { healthy_panic_threshold: { value: 0 } },
  };
}
