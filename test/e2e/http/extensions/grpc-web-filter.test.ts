// envoy.filters.http.grpc_web. All results are Envoy's.

import { Server, ServerCredentials, type ServerUnaryCall, type sendUnaryData } from '@grpc/grpc-js';
import type { Test } from 'tap';
import t from 'tap';
import { besideEnvoy, type ProxyProgram } from '../../harness/envoy.js';
import { freePort, HTTP2_CLUSTER, ROUTER_FILTER, staticCluster } from '../../harness/index.js';
import { request2 } from '../h2/http2-client.js';
import { managerOf, routeTo, startProxy } from '../proxy.js';
import { frame, startGrpcHost } from './grpc-host.js';

const FILTERS = 'type.googleapis.com/envoy.extensions.filters.http';
const BINARY = 'application/grpc-web';
const TEXT = 'application/grpc-web-text';
/** The trailers of the host in their frame. */
const TRAILERS = lastFrame('grpc-status:0\r\ngrpc-message:\r\nx-trailer:Tail\r\n');

function lastFrame(lines: string): Buffer {
  const whole = frame(lines);
  whole[0] = 0x80;
  return whole;
}

const base64 = (...parts: Buffer[]) => parts.map((part) => part.toString('base64')).join('');
const latin1 = (...parts: Buffer[]) => Buffer.concat(parts).toString('latin1');

async function start(t: Test, program: ProxyProgram, port?: number) {
  const host = await startGrpcHost(t);
  const policy = {
    '@type': `${FILTERS}.cors.v3.CorsPolicy`,
    allow_origin_string_match: [{ prefix: 'http://' }],
    allow_methods: 'POST',
    allow_headers: 'x-grpc-web,content-type',
    expose_headers: 'grpc-status,grpc-message',
  };
  const proxy = await startProxy(t, {
    ...program,
    listeners: {
      main: managerOf(
        [
          { match: { prefix: '/local' }, direct_response: { status: 403, body: { inline_string: 'denied' } } },
          routeTo({ prefix: '/down' }, 'down'),
          routeTo({ prefix: '/' }, 'host', {}, { typed_per_filter_config: { cors: policy } }),
        ],
        {
          http_filters: [
            { name: 'cors', typed_config: { '@type': `${FILTERS}.cors.v3.Cors` } },
            { name: 'web', typed_config: { '@type': `${FILTERS}.grpc_web.v3.GrpcWeb` } },
            ROUTER_FILTER,
          ],
        },
      ),
    },
    clusters: [
      staticCluster('host', port ?? host.port, HTTP2_CLUSTER),
      staticCluster('down', await freePort(), HTTP2_CLUSTER),
    ],
  });
  const call = (path: string, type: string, body: string | Buffer, headers = {}) =>
    proxy.get(path, { method: 'POST', headers: { 'content-type': type, ...headers }, body });
  return { call, host, proxy };
}

besideEnvoy('a client gets the trailers as the last frame, in binary or in base64', async (t, program) => {
  const { call, host, proxy } = await start(t, program);
  const binary = await call('/a.B/Get', BINARY, frame('abc'));
  t.match(binary, { status: 200, headers: { 'content-type': 'application/grpc-web+proto' } });
  t.equal(binary.body, latin1(frame('answer'), TRAILERS));
  const { body, headers } = host.calls[0]!;
  t.same(body, frame('abc'));
  t.match(headers, { 'content-type': 'application/grpc', te: 'trailers', 'grpc-accept-encoding': 'identity' });
  t.notOk('content-length' in headers);

  const text = await call('/a.B/Get?messages=2', TEXT, base64(frame('abc')), { accept: TEXT });
  t.match(text, { status: 200, headers: { 'content-type': 'application/grpc-web-text+proto' } });
  t.equal(text.body, base64(frame('answer'), frame('answer'), TRAILERS), 'each frame has its own padding');
  t.same(host.calls[1]!.body, frame('abc'));

  const mixed = await call('/a.B/Get?status=7&message=bad', `${TEXT}+proto`, base64(frame('x')), { accept: '*/*' });
  const failure = lastFrame('grpc-status:7\r\ngrpc-message:bad\r\nx-trailer:Tail\r\n');
  t.equal(mixed.body, latin1(frame('answer'), failure), 'only `accept` asks for base64');
  const accepts = { 'grpc-accept-encoding': 'gzip', te: 'other', accept: `${TEXT}+proto` };
  const http2 = await request2(t, proxy.port, '/a.B/Get', {
    headers: { ':method': 'POST', 'content-type': `${BINARY}+proto`, ...accepts, te: 'trailers' },
    body: frame('abc'),
  });
  t.match(http2, { status: 200, body: base64(frame('answer'), TRAILERS), trailers: {} }, 'over HTTP/2');
  t.match(host.calls[3]!.headers, { 'grpc-accept-encoding': 'gzip', te: 'trailers' });
  const noTrailers = await call('/a.B/NoTrailers', BINARY, frame('abc'), { accept: TEXT });
  t.equal(noTrailers.body, base64(frame('answer')));
  const stats = await proxy.baton.stats('cluster.host.grpc-web.a.B.Get.');
  t.same(stats, { '0': 3, '7': 1, success: 3, failure: 1, total: 4 });
});

besideEnvoy('a response that is not gRPC becomes a status', async (t, program) => {
  const { call, proxy } = await start(t, program);
  const head = { 'content-type': 'application/grpc-web+proto', 'content-length': '0' };
  const trailersOnly = await call('/a.B/TrailersOnly?status=5&message=gone', BINARY, frame('abc'));
  t.match(trailersOnly, { status: 200, headers: { ...head, 'grpc-status': '5', 'grpc-message': 'gone' }, body: '' });
  const cases: [string, number, string, string][] = [
    ['/a.B/Plain?body=no%20%C3%A9%25', 503, '14', 'no %C3%A9%25'],
    ['/a.B/Plain?code=200&body=fine', 200, '2', 'fine'],
    ['/a.B/Plain?code=404', 404, '12', ''],
    ['/local', 403, '7', 'denied'],
    [
      '/down',
      503,
      '14',
      'upstream connect error or disconnect/reset before headers. reset reason: remote connection failure',
    ],
  ];
  for (const [path, status, grpcStatus, message] of cases) {
    const headers = { ...head, 'grpc-status': grpcStatus, 'grpc-message': message };
    t.match(await call(path, BINARY, frame('abc')), { status, headers, body: '' }, path);
  }
  const long = await request2(t, proxy.port, `/a.B/Plain?body=${'x'.repeat(17_000)}`, {
    headers: { ':method': 'POST', 'content-type': TEXT, accept: TEXT },
    body: base64(frame('abc')),
  });
  t.match(long, { status: 503, headers: { 'content-type': 'application/grpc-web-text+proto' }, body: '' });
  t.equal(long.headers['grpc-message'], 'x'.repeat(16_384), 'its text is cut');
  const own = await call('/a.B/Get?type=application/grpc-web', BINARY, frame('abc'));
  t.equal(own.body, latin1(frame('answer'), TRAILERS), 'hosts may answer in gRPC-Web');
});

besideEnvoy('a request that is not base64 is refused', async (t, program) => {
  const { call, host } = await start(t, program);
  const refused = [
    'AAAAAANhYmM',
    'AAAA!!!!',
    'AA=A',
    'AAAAAAA=AAAA',
    'AAAAAAB=',
    'AAAAAB==',
    '____',
    'AAAAAAAA\n',
    '=',
  ];
  for (const text of refused) {
    const headers = { 'grpc-status': '13', 'grpc-message': 'Bad gRPC-web request, invalid base64 data.' };
    t.match(await call('/a.B/Get', TEXT, text), { status: 400, headers, body: '' }, JSON.stringify(text));
  }
  t.equal(host.calls.length, 0);
  for (const text of ['AAAAAAA=', 'AAAAAA==', 'AAAAAAAA']) t.match(await call('/a.B/Get', TEXT, text), { status: 200 });
});

besideEnvoy('other requests pass unchanged', async (t, program) => {
  const { call, host } = await start(t, program);
  const others = ['application/grpc', 'application/grpc-web-json', 'Application/grpc-web', 'application/grpc-web; a=b'];
  for (const type of others) {
    const { headers, body } = await call('/a.B/Get', type, frame('abc'));
    t.match(
      { headers, body },
      { headers: { 'content-type': 'application/grpc' }, body: latin1(frame('answer')) },
      type,
    );
    t.equal(host.calls.at(-1)!.headers['content-type'], type);
  }
});

besideEnvoy('browsers may read the status, as the CORS policy allows', async (t, program) => {
  const { call, proxy } = await start(t, program);
  const origin = { origin: 'http://page' };
  const asked = { 'access-control-request-method': 'POST', 'access-control-request-headers': 'x-grpc-web' };
  const preflight = await proxy.get('/a.B/Get', { method: 'OPTIONS', headers: { ...origin, ...asked } });
  const allowed = { 'access-control-allow-origin': 'http://page' };
  t.match(preflight, {
    status: 200,
    headers: { ...allowed, 'access-control-allow-headers': 'x-grpc-web,content-type' },
  });
  const exposed = { ...allowed, 'access-control-expose-headers': 'grpc-status,grpc-message' };
  const answer = await call('/a.B/Get', BINARY, frame('abc'), origin);
  t.match(answer.headers, { ...exposed, 'content-type': 'application/grpc-web+proto' });
});

t.test('a server of grpc-js answers a large call', async (t) => {
  const server = new Server();
  const plain = (bytes: Buffer) => bytes;
  const definition = {
    path: '/a.B/Echo',
    requestStream: false,
    responseStream: false,
    requestSerialize: plain,
    requestDeserialize: plain,
    responseSerialize: plain,
    responseDeserialize: plain,
  };
  server.addService(
    { Echo: definition },
    { Echo: (call: ServerUnaryCall<Buffer, Buffer>, done: sendUnaryData<Buffer>) => done(null, call.request) },
  );
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });
  t.teardown(() => server.forceShutdown());
  const { call } = await start(t, { command: undefined }, port);
  const message = Buffer.alloc(3_000_000, 'grpc-web ');
  const { body } = await call('/a.B/Echo', TEXT, frame(message).toString('base64'), { accept: TEXT });
  const end = body.indexOf('=') + 1 + Number(body[body.indexOf('=') + 1] === '=');
  t.ok(Buffer.from(body.slice(0, end), 'base64').equals(frame(message)));
  t.match(Buffer.from(body.slice(end), 'base64').toString('latin1'), /^\x80[\s\S]{4}grpc-status:0\r\n/);
});
