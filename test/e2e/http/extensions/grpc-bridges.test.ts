// envoy.filters.http.grpc_http1_bridge and grpc_http1_reverse_bridge. All results are Envoy's, except where a test says otherwise.

import type { Test } from 'tap';
import t from 'tap';
import { besideEnvoy, type ProxyProgram } from '../../harness/envoy.js';
import {
  type Config,
  freePort,
  HTTP2_CLUSTER,
  ROUTER_FILTER,
  startUpstream,
  staticCluster,
} from '../../harness/index.js';
import { exchange, openSession } from '../h2/http2-client.js';
import { managerOf, routeTo, startProxy } from '../proxy.js';
import { frame, startGrpcHost } from './grpc-host.js';

const FILTERS = 'type.googleapis.com/envoy.extensions.filters.http';
const PROTOBUF = 'application/x-protobuf';

async function startBridge(t: Test, program: ProxyProgram) {
  const host = await startGrpcHost(t);
  const manager = (config: Config) =>
    managerOf(
      [
        { match: { prefix: '/local' }, direct_response: { status: 403, body: { inline_string: 'denied' } } },
        routeTo({ prefix: '/' }, 'host'),
      ],
      {
        http_filters: [
          { name: 'bridge', typed_config: { '@type': `${FILTERS}.grpc_http1_bridge.v3.Config`, ...config } },
          ROUTER_FILTER,
        ],
      },
    );
  const proxy = await startProxy(t, {
    ...program,
    listeners: {
      plain: manager({}),
      all: manager({ upgrade_protobuf_to_grpc: true, ignore_query_parameters: true }),
      upgrade: manager({ upgrade_protobuf_to_grpc: true }),
    },
    clusters: [staticCluster('host', host.port, HTTP2_CLUSTER)],
  });
  const call = (listener: string, path: string, type: string, body: string | Buffer, headers = {}) =>
    proxy.on(listener, path, { method: 'POST', headers: { 'content-type': type, ...headers }, body });
  return { call, host, proxy };
}

besideEnvoy('an HTTP/1.1 client gets the gRPC status in the response headers', async (t, program) => {
  const { call, host, proxy } = await startBridge(t, program);
  const ok = await call('plain', '/a.B/Get', 'application/grpc', frame('abc'));
  t.match(ok, { status: 200, headers: { 'content-length': '11', 'grpc-status': '0', 'grpc-message': '' } });
  t.equal(ok.body, frame('answer').toString('latin1'));
  const failed = await call('plain', '/a.B/Get?status=7&message=bad', 'application/grpc+proto', frame('abc'));
  t.match(failed, { status: 503, headers: { 'grpc-status': '7', 'grpc-message': 'bad' } });
  t.match(await call('plain', '/a.B/Get?status=x', 'application/grpc', frame('abc')), { status: 503 });
  const trailersOnly = await call('plain', '/a.B/TrailersOnly?status=5', 'application/grpc', frame('abc'));
  t.match(trailersOnly, { status: 200, headers: { 'grpc-status': '5', 'content-length': '0' } });
  const noTrailers = await call('plain', '/a.B/NoTrailers', 'application/grpc', frame('abc'));
  t.match(noTrailers, { status: 200, headers: { 'grpc-status': undefined }, body: frame('answer').toString('latin1') });
  const plain = await call('plain', '/a.B/Plain?body=no', 'application/grpc', frame('abc'));
  t.match(plain, { status: 503, headers: { 'content-type': 'text/plain' }, body: 'no' });
  t.match(await call('plain', '/local', 'application/grpc', frame('abc')), {
    status: 200,
    headers: { 'grpc-status': '7', 'grpc-message': 'denied' },
  });
  const other = await call('plain', '/a.B/Get', 'text/plain', 'abc');
  t.match(other, { status: 200, headers: { 'grpc-status': undefined, 'transfer-encoding': 'chunked' } });
  const http2 = await exchange(openSession(t, proxy.ports['plain']!), '/a.B/Get?status=3', {
    headers: { ':method': 'POST', 'content-type': 'application/grpc' },
    body: frame('abc'),
  });
  t.match(http2, { status: 200, trailers: { 'grpc-status': '3' } }, 'HTTP/2 clients read trailers');
  t.equal(host.calls[0]!.headers['content-length'], '8');
});

besideEnvoy('a client of plain protobuf sends and receives messages without frames', async (t, program) => {
  const { call, host } = await startBridge(t, program);
  const ok = await call('upgrade', '/a.B/Get', PROTOBUF, 'abcdef');
  t.match(ok, { status: 200, headers: { 'content-length': '6', 'grpc-status': '0' }, body: 'answer' });
  t.same(host.calls[0]!.body, frame('abcdef'));
  t.match(host.calls[0]!.headers, { 'content-type': 'application/grpc', 'content-length': undefined });
  await call('upgrade', '/a.B/Get', PROTOBUF, 'abcdef', { 'transfer-encoding': 'chunked' });
  t.same(host.calls[1]!.body, frame('abcdef'), 'chunked');
  t.match(await call('upgrade', '/a.B/Get?status=5', PROTOBUF, ''), { status: 503, body: 'answer' });
  t.equal(host.calls[2]!.body.length, 0, 'no message, no frame');
  t.match(await call('upgrade', '/a.B/Plain?body=whole', PROTOBUF, 'abc'), { status: 503, body: 'whole' });
  t.match(await call('upgrade', '/local', PROTOBUF, 'abc'), { status: 403, body: 'denied' }, 'not a gRPC client');
  await call('plain', '/a.B/Get', PROTOBUF, 'abc');
  t.match(host.calls.at(-1), { headers: { 'content-type': PROTOBUF }, body: Buffer.from('abc') });
  await call('all', '/a.B/Get?status=7', PROTOBUF, 'abc');
  t.equal(host.calls.at(-1)!.headers[':path'], '/a.B/Get');
  await call('all', '/a.B/Get?status=7', 'application/grpc', frame('abc'));
  t.equal(host.calls.at(-1)!.headers[':path'], '/a.B/Get');
  await call('all', '/a.B/Get?status=7', 'text/plain', 'abc');
  t.equal(host.calls.at(-1)!.headers[':path'], '/a.B/Get?status=7');
});

t.test('a large message of known length is not buffered', async (t) => {
  const { call, host } = await startBridge(t, { command: undefined });
  const message = Buffer.alloc(5_000_000, 'x');
  t.match(await call('upgrade', '/a.B/Get', PROTOBUF, message), { status: 200, body: 'answer' });
  t.ok(host.calls[0]!.body.equals(frame(message)));
  const chunked = { 'transfer-encoding': 'chunked' };
  t.match(
    await call('upgrade', '/a.B/Get', PROTOBUF, message, chunked),
    { status: 413 },
    'a message of unknown length is buffered, up to the limit',
  );
});

/** The query selects the host's response: `type` (content type), `code` (status), `times` (repetitions of the text), `x-size`. */
async function startReverse(t: Test, program: ProxyProgram) {
  const requests: { headers: Record<string, unknown>; body: string }[] = [];
  const host = await startUpstream(t, (request, response) => {
    const { searchParams: query } = new URL(`http://host${request.url}`);
    let body = '';
    request.setEncoding('latin1').on('data', (part) => {
      body += part;
    });
    request.on('end', () => {
      requests.push({ headers: request.headers, body });
      const text = 'hello '.repeat(Number(query.get('times') ?? 20));
      const size = query.get('x-size');
      response.writeHead(Number(query.get('code') ?? 200), {
        ...(query.get('type') === 'none' ? {} : { 'content-type': query.get('type') ?? 'application/x-proto' }),
        ...(size === null ? {} : { 'x-size': size }),
        ...(query.has('chunked') ? {} : { 'content-length': text.length }),
      });
      response.end(text);
    });
  });
  const PACKAGE = `${FILTERS}.grpc_http1_reverse_bridge.v3`;
  const config = { '@type': `${PACKAGE}.FilterConfig`, content_type: 'application/x-proto' };
  const off = { bridge: { '@type': `${PACKAGE}.FilterConfigPerRoute`, disabled: true } };
  const typed = { headers: [{ name: 'content-type', string_match: { exact: 'application/x-proto' } }] };
  const manager = (more: Config) =>
    managerOf(
      [
        routeTo({ prefix: '/off' }, 'host', {}, { typed_per_filter_config: off }),
        routeTo({ prefix: '/down' }, 'down'),
        routeTo({ prefix: '/typed', ...typed }, 'host', { prefix_rewrite: '/rerouted' }),
        routeTo({ prefix: '/' }, 'host'),
      ],
      { http_filters: [{ name: 'bridge', typed_config: { ...config, ...more } }, ROUTER_FILTER] },
    );
  const proxy = await startProxy(t, {
    ...program,
    listeners: {
      frames: manager({ withhold_grpc_frames: true }),
      plain: manager({}),
      sized: manager({ withhold_grpc_frames: true, response_size_header: 'x-size' }),
    },
    clusters: [staticCluster('host', host.port), staticCluster('down', await freePort())],
  });
  const sessions = new Map(Object.entries(proxy.ports).map(([name, port]) => [name, openSession(t, port)]));
  const call = (listener: string, path: string, body: Buffer = frame('abc'), type = 'application/grpc+proto') =>
    exchange(sessions.get(listener)!, path, { headers: { ':method': 'POST', 'content-type': type }, body });
  return { call, requests };
}

besideEnvoy('a plain HTTP host serves gRPC clients', async (t, program) => {
  const { call, requests } = await startReverse(t, program);
  const text = 'hello '.repeat(20);
  const whole = frame(text).toString('latin1');
  const head = { 'content-type': 'application/grpc+proto' };
  for (const path of ['/a', '/a?chunked=1']) {
    const answer = await call('frames', path);
    t.match(answer, { status: 200, headers: head, body: whole, trailers: { 'grpc-status': '0' } }, path);
    t.equal(answer.headers['content-length'], path === '/a' ? '125' : undefined);
  }
  const sent = { accept: 'application/x-proto', 'content-type': 'application/x-proto' };
  t.match(requests[0], { headers: sent, body: 'abc' });
  t.match(await call('frames', '/a?code=404'), { status: 200, body: whole, trailers: { 'grpc-status': '12' } });
  t.match(await call('frames', '/a?times=0'), { status: 200, body: '\0\0\0\0\0', trailers: { 'grpc-status': '0' } });
  t.match(await call('plain', '/a'), { status: 200, headers: head, body: text, trailers: { 'grpc-status': '0' } });
  t.match(requests.at(-1), { headers: sent, body: frame('abc').toString('latin1') });
  await call('frames', '/typed');
  t.equal(requests.length, 6);
});

besideEnvoy('a response that the bridge cannot convert becomes a gRPC status', async (t, program) => {
  const { call, requests } = await startReverse(t, program);
  const type = (found: string, status = 200) => ({
    'grpc-status': '2',
    'grpc-message': `envoy reverse bridge: upstream responded with ${found}, status code ${status}`,
  });
  t.match(await call('frames', '/a?type=text/plain'), {
    status: 200,
    headers: type('unsupported content-type text/plain'),
  });
  t.match(await call('plain', '/a?type=none&code=500'), { status: 200, headers: type('no content-type header', 500) });
  t.match(await call('frames', '/down'), { headers: type('unsupported content-type application/grpc') });
  t.match(await call('frames', '/a', Buffer.from('abc')), { status: 200, headers: { 'grpc-status': '2' } });
  const before = requests.length;
  const off = await call('frames', '/off');
  t.match(off, { headers: { 'content-type': 'application/x-proto' }, trailers: {} }, 'disabled for a route');
  t.match(requests[before], { headers: { 'content-type': 'application/grpc+proto' } });
  const other = await call('frames', '/a', Buffer.from('abc'), 'text/plain');
  t.match(other, { headers: { 'content-type': 'application/x-proto' } }, 'not a gRPC request');
});

besideEnvoy('a response of known size is not buffered', async (t, program) => {
  const { call } = await startReverse(t, program);
  const whole = frame('hello '.repeat(20)).toString('latin1');
  for (const path of ['/a?x-size=120', '/a?x-size=120&chunked=1']) {
    const answer = await call('sized', path);
    t.match(answer, { headers: { 'content-length': '125' }, body: whole, trailers: { 'grpc-status': '0' } }, path);
  }
  const missing = { 'grpc-status': '13', 'grpc-message': 'envoy reverse bridge: upstream did not set content length' };
  for (const path of ['/a', '/a?x-size=many'])
    t.match(await call('sized', path), { status: 200, headers: missing }, path);
  for (const size of [7, 500]) {
    const answer = await call('sized', `/a?x-size=${size}&chunked=1`);
    t.not(answer.resetCode, 0, 'a body of another size than announced is cut off');
  }
});
