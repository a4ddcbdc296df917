// Hosts that speak HTTP/2: clients of either version, connections that are shared, and hosts that refuse, reset, or leave.

import { createHash, randomBytes } from 'node:crypto';
import { createServer, type Http2Server, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2';
import type { AddressInfo } from 'node:net';
import t from 'tap';
import { type Config, httpRequest, staticCluster, type Teardown, waitFor } from '../../harness/index.js';
import { managerOf, routeTo, startProxy } from '../proxy.js';
import { exchange, openSession, request2 } from './http2-client.js';

const MB = 1 << 20;

interface Host {
  readonly port: number;
  /** Connections accepted since the start, and those open now. */
  readonly sessions: ServerHttp2Session[];
  readonly open: Set<ServerHttp2Session>;
}

type Handler = (stream: ServerHttp2Stream, headers: Record<string, unknown>) => void;

function startHost(t: Teardown, handle: Handler, settings = {}): Promise<Host> {
  const server: Http2Server = createServer({ settings });
  const sessions: ServerHttp2Session[] = [];
  const open = new Set<ServerHttp2Session>();
  server.on('session', (session) => {
    sessions.push(session);
    open.add(session);
    session.on('close', () => open.delete(session));
    session.on('error', () => {});
  });
  server.on('stream', (stream, headers) => {
    stream.on('error', () => {});
    handle(stream, headers);
  });
  t.teardown(() => {
    for (const session of open) session.destroy();
    server.close();
  });
  return new Promise((resolve) =>
    server.listen(0, '127.0.0.1', () => resolve({ port: (server.address() as AddressInfo).port, sessions, open })),
  );
}

function echo(stream: ServerHttp2Stream, headers: Record<string, unknown>): void {
  const hash = createHash('sha256');
  let bytes = 0;
  let trailers = {};
  stream.on('data', (chunk: Buffer) => {
    hash.update(chunk);
    bytes += chunk.length;
  });
  stream.on('trailers', (found) => {
    trailers = found;
  });
  stream.on('end', () => {
    stream.respond({ ':status': 200, 'x-host': 'yes' });
    stream.end(JSON.stringify({ headers, bytes, hash: hash.digest('hex'), trailers }));
  });
}

const waiting: ServerHttp2Stream[] = [];
let refusals = 0;
const main = await startHost(t, (stream, headers) => {
  switch (headers[':path']) {
    case '/wait':
      waiting.push(stream);
      return;
    case '/refuse':
      if (refusals-- > 0) return stream.close(7);
      break;
    case '/reset':
      return stream.close(2);
    case '/half':
      stream.respond({ ':status': 200 });
      stream.write('half', () => stream.destroy(new Error('broken')));
      return;
    case '/early':
      stream.respond({ ':status': 413 }, { endStream: true });
      return;
    case '/trailers':
      stream.respond({ ':status': 200 }, { waitForTrailers: true });
      stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
      stream.end('body');
      return;
    case '/large':
      stream.respond({ ':status': 200 });
      stream.end(Buffer.alloc(32 * MB, 'x'));
      return;
  }
  echo(stream, headers);
});
const narrow = await startHost(t, (stream) => waiting.push(stream), { maxConcurrentStreams: 2 });
const leaving = await startHost(t, (stream) => {
  const { session } = stream;
  if (leaving.sessions.length === 1 && session?.closed === false) {
    // GOAWAY with this stream as the last one that is served.
    session.goaway(0, stream.id);
  }
  stream.respond({ ':status': 200 });
  stream.end(String(leaving.sessions.indexOf(session as ServerHttp2Session)));
});
const counted = await startHost(t, echo);

function http2Cluster(name: string, port: number, http2: Config = {}, common?: Config): Config {
  return {
    ...staticCluster(name, port),
    typed_extension_protocol_options: {
      'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': {
        '@type': 'type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions',
        explicit_http_config: { http2_protocol_options: http2 },
        ...(common === undefined ? {} : { common_http_protocol_options: common }),
      },
    },
  };
}

const refused = { retry_policy: { retry_on: 'refused-stream', num_retries: 2 } };
const proxy = await startProxy(t, {
  listeners: {
    main: managerOf(
      [
        routeTo({ prefix: '/narrow' }, 'narrow', { timeout: '0s' }),
        routeTo({ prefix: '/leaving' }, 'leaving', refused),
        routeTo({ prefix: '/counted' }, 'counted'),
        routeTo({ prefix: '/old' }, 'old'),
        routeTo({ prefix: '/refuse' }, 'main', refused),
        routeTo({ prefix: '/socket' }, 'main', {}, {}),
        routeTo({ prefix: '/' }, 'main', { timeout: '0s' }),
      ],
      { http_protocol_options: { enable_trailers: true }, upgrade_configs: [{ upgrade_type: 'websocket' }] },
    ),
  },
  clusters: [
    http2Cluster('main', main.port),
    http2Cluster('narrow', narrow.port),
    http2Cluster('leaving', leaving.port),
    http2Cluster('counted', counted.port, {}, { max_requests_per_connection: 3 }),
    { ...staticCluster('old', main.port), http2_protocol_options: {} },
  ],
  args: ['-l', 'warning', '--concurrency', '1'],
});

t.test('clients of both versions reach the host over one connection', async (t) => {
  const headers = { 'x-custom': 'value', connection: 'x-hop', 'x-hop': '1', te: 'trailers' };
  const first = await httpRequest(proxy.port, '/path?q', { method: 'PUT', headers, body: 'hello' });
  t.match(first, { status: 200, headers: { 'x-host': 'yes' } });
  const seen = JSON.parse(first.body);
  t.match(seen, { bytes: 5 });
  t.match(seen.headers, {
    ':method': 'PUT',
    ':path': '/path?q',
    ':scheme': 'http',
    ':authority': `127.0.0.1:${proxy.port}`,
    'x-custom': 'value',
    te: 'trailers',
  });
  for (const name of ['host', 'connection', 'x-hop', 'transfer-encoding', 'keep-alive']) t.notOk(name in seen.headers);
  const session = openSession(t, proxy.port);
  const answers = await Promise.all(
    Array.from({ length: 150 }, (_, index) => exchange(session, `/many/${index}`, { body: 'x'.repeat(index) })),
  );
  t.same(
    answers.map(({ body }) => [JSON.parse(body).headers[':path'], JSON.parse(body).bytes]),
    answers.map((_, index) => [`/many/${index}`, index]),
  );
  t.equal(main.sessions.length, 1);
  t.equal((await httpRequest(proxy.port, '/old')).status, 200, 'http2_protocol_options of the cluster itself');
});

t.test('large bodies and trailers in both directions', async (t) => {
  const body = randomBytes(8 * MB);
  const uploaded = await httpRequest(proxy.port, '/up', { method: 'POST', body });
  t.equal(JSON.parse(uploaded.body).hash, createHash('sha256').update(body).digest('hex'));
  t.equal((await httpRequest(proxy.port, '/large')).body.length, 32 * MB);
  t.match(await request2(t, proxy.port, '/trailers'), { body: 'body', trailers: { 'grpc-status': '0' } });
  t.match(await httpRequest(proxy.port, '/trailers'), { body: 'body', trailers: { 'grpc-status': '0' } });
  const sent = await request2(t, proxy.port, '/echo', { body: 'abc', trailers: { 'x-last': 'yes' } });
  t.match(JSON.parse(sent.body), { bytes: 3, trailers: { 'x-last': 'yes' } });
});

t.test('a stream that the host resets or refuses costs only that stream', async (t) => {
  const before = main.sessions.length;
  refusals = 2;
  t.equal((await httpRequest(proxy.port, '/refuse')).status, 200, 'refused twice, then served');
  t.equal((await httpRequest(proxy.port, '/reset')).status, 503);
  const half = await request2(t, proxy.port, '/half');
  t.match(half, { status: 200, body: 'half' });
  t.not(half.resetCode, 0);
  t.equal((await httpRequest(proxy.port, '/early', { method: 'POST', body: 'x'.repeat(MB) })).status, 413);
  t.equal(main.sessions.length, before, 'on the same connection');
  const stats = await proxy.baton.stats('cluster.main.');
  t.equal(stats['http2.stream_refused_errors'], 0);
  t.ok(stats['upstream_rq_rx_reset']! >= 4);
});

t.test('a client that leaves resets its stream at the host', async (t) => {
  const session = openSession(t, proxy.port);
  const stream = session.request({ ':path': '/wait' });
  stream.on('error', () => {});
  await waitFor(() => waiting.length === 1, { what: 'the request' });
  const closed = new Promise((resolve) => waiting[0]!.on('close', resolve));
  stream.close(8);
  await closed;
  t.ok(main.open.size > 0, 'the connection stays');
  waiting.length = 0;
});

t.test('more connections are made when a host allows few streams', async (t) => {
  const session = openSession(t, proxy.port);
  const answers = [exchange(session, '/narrow')];
  // Before the host's SETTINGS have arrived, 100 streams are allowed, and it would refuse most of them.
  await waitFor(() => waiting[0]?.session?.pendingSettingsAck === false, { what: 'the first request' });
  answers.push(...Array.from({ length: 5 }, () => exchange(session, '/narrow')));
  await waitFor(() => waiting.length === 6, { what: 'all requests' });
  t.equal(narrow.sessions.length, 3);
  for (const stream of waiting.splice(0)) {
    stream.respond({ ':status': 200 });
    stream.end();
  }
  t.same(
    (await Promise.all(answers)).map(({ status }) => status),
    [200, 200, 200, 200, 200, 200],
  );
});

t.test('a host that sends GOAWAY gets no further requests on that connection', async (t) => {
  const first = await httpRequest(proxy.port, '/leaving');
  t.match(first, { status: 200, body: '0' });
  await proxy.baton.waitForStat('cluster.leaving.upstream_cx_destroy_local', 1);
  t.match(await httpRequest(proxy.port, '/leaving'), { status: 200, body: '1' });
  await proxy.baton.waitForStat('cluster.leaving.upstream_cx_close_notify', 1);
});

t.test('max_requests_per_connection', async (t) => {
  for (let i = 0; i < 7; i++) t.equal((await httpRequest(proxy.port, '/counted')).status, 200);
  t.equal(counted.sessions.length, 3);
  await proxy.baton.waitForStat('cluster.counted.upstream_cx_max_requests', 2);
});

t.test('an upgrade, which is not implemented over HTTP/2, is refused', async (t) => {
  const headers = { connection: 'upgrade', upgrade: 'websocket' };
  t.match(await httpRequest(proxy.port, '/socket', { headers }), { status: 502 });
  t.equal((await httpRequest(proxy.port, '/after')).status, 200);
});
