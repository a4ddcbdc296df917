// The buffer filter: a host gets a request only when it is complete, and never one larger than the limit.

import type { IncomingMessage } from 'node:http';
import t from 'tap';
import {
  type Config,
  connectRaw,
  rawExchange,
  startUpstream,
  staticCluster,
  TRAILERS,
  TRAILERS_CLUSTER,
  waitFor,
} from '../../harness/index.js';
import { parseMessage } from '../message.js';
import { managerOf, routeTo, startProxy } from '../proxy.js';

const FILTER = 'type.googleapis.com/envoy.extensions.filters.http.buffer.v3.';
const LIMIT = 10_000;

/** Requests when their header section arrived, and bodies when they were complete. */
const requests: IncomingMessage[] = [];
const bodies: string[] = [];
const upstream = await startUpstream(t, (request, answer) => {
  requests.push(request);
  let body = '';
  request.setEncoding('latin1');
  request.on('data', (chunk: string) => {
    body += chunk;
  });
  request.on('end', () => {
    bodies.push(body);
    answer.end('done');
  });
});

const http_filters = [
  { name: 'buffer', typed_config: { '@type': `${FILTER}Buffer`, max_request_bytes: LIMIT } },
  {
    name: 'router',
    typed_config: { '@type': 'type.googleapis.com/envoy.extensions.filters.http.router.v3.Router' },
  },
];
const proxy = await startProxy(t, {
  listeners: {
    main: managerOf(
      [
        routeTo({ prefix: '/off' }, 'host', {}, perRoute({ disabled: true })),
        routeTo({ prefix: '/smaller' }, 'host', {}, perRoute({ buffer: { max_request_bytes: 10 } })),
        routeTo({ prefix: '/' }, 'host'),
      ],
      { http_filters, ...TRAILERS },
    ),
    tunnels: managerOf([routeTo({ prefix: '/' }, 'host')], {
      http_filters,
      upgrade_configs: [{ upgrade_type: 'websocket' }],
    }),
  },
  clusters: [staticCluster('host', upstream.port, TRAILERS_CLUSTER)],
});

t.test('an upgrade request is not buffered: it has no end', async (t) => {
  const { text } = await rawExchange(
    proxy.ports['tunnels']!,
    'GET /tunnel HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n',
  );
  t.equal(parseMessage(text).status, 200);
  t.match(requests.splice(0), [{ url: '/tunnel', headers: { upgrade: 'websocket' } }]);
  bodies.splice(0);
});

t.test('a body above the limit does not pass after a request for an upgrade', async (t) => {
  const { text } = await rawExchange(
    proxy.ports['tunnels']!,
    `GET /tunnel HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket\r\ncontent-length: 1000000000\r\n\r\n`,
    { until: /\r\n\r\n/ },
  );
  t.equal(parseMessage(text).status, 413);
  t.strictSame(requests, []);
  await proxy.baton.waitForStats({ 'http.tunnels.downstream_rq_too_large': 1 });
});

t.test('a slow request reaches the host in one piece, with a content-length', async (t) => {
  const connection = await connectRaw(t, proxy.port);
  const { length } = requests;
  connection.write('POST /slow HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n');
  // Other requests are forwarded meanwhile, and this one is not.
  t.equal((await proxy.get('/other')).status, 200);
  t.equal(requests.length, length + 1);
  connection.write('6\r\n world\r\n0\r\n\r\n');
  t.equal(parseMessage(await connection.readUntil('done')).status, 200);
  const { headers } = requests.at(-1)!;
  t.equal(headers['content-length'], '11');
  t.equal(headers['transfer-encoding'], undefined);
  t.equal(bodies.at(-1), 'hello world');
});

t.test('a request with trailers is buffered until they have arrived', async (t) => {
  const connection = await connectRaw(t, proxy.port);
  const { length } = requests;
  connection.write('POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nx-sum: 5\r\n');
  t.equal((await proxy.get('/other')).status, 200);
  t.equal(requests.length, length + 1);
  connection.write('\r\n');
  t.equal(parseMessage(await connection.readUntil('done')).status, 200);
  t.equal(bodies.at(-1), 'hello');
  t.same(requests.at(-1)!.trailers, { 'x-sum': '5' });
});

t.test('an oversized body is refused with 413 and never reaches the host', async (t) => {
  const { length } = requests;
  const fits = await proxy.get('/', { method: 'POST', body: 'x'.repeat(LIMIT) });
  t.equal(fits.status, 200, 'a body of exactly the limit is allowed');
  t.equal(bodies.at(-1), 'x'.repeat(LIMIT));
  t.equal(requests.length, length + 1);

  t.match(await proxy.get('/', { method: 'POST', body: 'x'.repeat(LIMIT + 1) }), {
    status: 413,
    body: 'Payload Too Large',
  });
  const chunk = `1000\r\n${'x'.repeat(0x1000)}\r\n`;
  const unfinished = [
    `POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1000000\r\n\r\n${'x'.repeat(LIMIT + 1)}`,
    `POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n${chunk.repeat(4)}`,
  ];
  for (const bytes of unfinished) {
    const { text } = await rawExchange(proxy.port, bytes);
    t.match(parseMessage(text), { status: 413, headers: { connection: 'close' }, rest: 'Payload Too Large' });
  }
  t.equal(requests.length, length + 1);
});

t.test('a route may have another limit, or none', async (t) => {
  t.equal((await proxy.get('/smaller', { method: 'POST', body: '0123456789' })).status, 200);
  t.equal((await proxy.get('/smaller', { method: 'POST', body: '0123456789x' })).status, 413);
  t.equal((await proxy.get('/off', { method: 'POST', body: 'x'.repeat(LIMIT * 2) })).status, 200);
  t.equal(bodies.at(-1)!.length, LIMIT * 2);
  const connection = await connectRaw(t, proxy.port);
  const { length } = requests;
  connection.write('POST /off HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\nhel');
  await waitFor(() => requests.length > length, { what: 'the host to see the header section before the end' });
  connection.write('lo');
  t.equal(parseMessage(await connection.readUntil('done')).status, 200);
});

t.test('requests without a body pass', async (t) => {
  t.equal((await proxy.get('/')).status, 200);
  t.equal((await proxy.get('/', { method: 'POST', headers: { 'content-length': '0' } })).status, 200);
});

t.test('a client that disconnects while its request is buffered leaves nothing behind', async (t) => {
  const { length } = requests;
  const connection = await connectRaw(t, proxy.port);
  connection.write('POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 100\r\n\r\nhalf');
  await proxy.baton.waitForStat('http.main.downstream_rq_active', 1);
  connection.reset();
  await proxy.baton.waitForStat('http.main.downstream_rq_active', 0);
  t.equal(requests.length, length);
});

function perRoute(config: Config): Config {
  return { typed_per_filter_config: { buffer: { '@type': `${FILTER}BufferPerRoute`, ...config } } };
}
