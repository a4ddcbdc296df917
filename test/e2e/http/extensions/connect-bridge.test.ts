// envoy.filters.http.connect_grpc_bridge. All results are Envoy's, except where a test says otherwise.

import type { Test } from 'tap';
import t from 'tap';
import { besideEnvoy, type ProxyProgram } from '../../harness/envoy.js';
import { HTTP2_CLUSTER, ROUTER_FILTER, staticCluster } from '../../harness/index.js';
import { exchange, openSession } from '../h2/http2-client.js';
import { managerOf, routeTo, startProxy } from '../proxy.js';
import { frame, startGrpcHost } from './grpc-host.js';

const TYPE = 'type.googleapis.com/envoy.extensions.filters.http.connect_grpc_bridge.v3.FilterConfig';
const UNARY = { 'connect-protocol-version': '1', 'content-type': 'application/proto' };
const STREAM = { 'content-type': 'application/connect+proto' };

async function start(t: Test, program: ProxyProgram) {
  const host = await startGrpcHost(t);
  const routes = [
    { match: { prefix: '/local' }, direct_response: { status: 403, body: { inline_string: 'denied' } } },
    routeTo({ prefix: '/' }, 'host'),
  ];
  const filters = [{ name: 'connect', typed_config: { '@type': TYPE } }, ROUTER_FILTER];
  const proxy = await startProxy(t, {
    ...program,
    listeners: { main: managerOf(routes, { http_filters: filters }) },
    clusters: [staticCluster('host', host.port, HTTP2_CLUSTER)],
  });
  const call = (path: string, headers: Record<string, string>, body: string | Buffer = 'abc') =>
    proxy.get(path, { method: 'POST', headers, body });
  return { call, host, proxy };
}

/** Returns the JSON in the last frame of a streaming response. */
function lastFrame(body: string): unknown {
  const at = body.lastIndexOf('\u0002\0\0');
  return JSON.parse(body.slice(at + 5));
}

besideEnvoy('a unary call has no frames, and its status in the head', async (t, program) => {
  const { call, host, proxy } = await start(t, program);
  const ok = await call('/a.B/Get', UNARY);
  const head = { 'content-type': 'application/proto', 'trailer-x-trailer': 'Tail', 'grpc-status': undefined };
  t.match(ok, { status: 200, headers: head, body: 'answer' });
  t.match(host.calls[0], {
    headers: { 'content-type': 'application/grpc+proto', te: 'trailers', 'connect-protocol-version': undefined },
    body: frame('abc'),
  });
  await call('/a.B/Get', {
    ...UNARY,
    'content-type': 'application/json',
    'connect-timeout-ms': '500',
    'content-encoding': 'gzip',
    'accept-encoding': 'gzip, br',
  });
  const compressed = frame('abc');
  compressed[0] = 1;
  t.match(host.calls[1], {
    headers: {
      'content-type': 'application/grpc+json',
      'grpc-timeout': '500m',
      'grpc-encoding': 'gzip',
      'grpc-accept-encoding': 'gzip, br',
    },
    body: compressed,
  });
  const json = await call('/a.B/Get?type=application/grpc%2Bjson', UNARY);
  t.match(json.headers, { 'content-type': 'application/json' });
  await call('/a.B/Get', UNARY, '');
  t.same(host.calls.at(-1)!.body, frame(''));
  t.match(await call('/a.B/NoTrailers', UNARY), { status: 200, body: 'answer' });
  const http2 = await exchange(openSession(t, proxy.port), '/a.B/Get', {
    headers: { ':method': 'POST', ...UNARY },
    body: 'abc',
  });
  t.match(http2, { status: 200, headers: head, body: 'answer', trailers: {} });
});

besideEnvoy('errors of a unary call are JSON', async (t, program) => {
  const { call } = await start(t, program);
  const statuses = [408, 500, 400, 408, 404, 409, 403, 429, 412, 409, 400, 404, 500, 503, 500, 401];
  for (const [index, status] of statuses.entries()) {
    const answer = await call(`/a.B/TrailersOnly?status=${index + 1}&message=no`, UNARY);
    t.match(answer, { status, headers: { 'content-type': 'application/json' } });
    t.match(JSON.parse(answer.body), { code: /^[a-z_]+$/, message: 'no' });
  }
  const late = await call('/a.B/Get?status=5', UNARY);
  t.match(late, { status: 404, headers: { 'content-type': 'application/json', 'trailer-x-trailer': 'Tail' } });
  t.same(JSON.parse(late.body), { code: 'not_found' });
  t.match(await call('/a.B/Plain?code=500&body=no', UNARY), { status: 500, body: 'no' });
  t.match(await call('/local', UNARY), { status: 403, body: 'denied' });
});

besideEnvoy('a call without side effects may be a GET', async (t, program) => {
  const { host, proxy } = await start(t, program);
  const get = (query: string) => proxy.get(`/a.B/Get?${query}`);
  t.match(await get('connect=v1&encoding=proto&message=YWJj&base64=1'), { status: 200, body: 'answer' });
  const sent = { ':method': 'POST', ':path': '/a.B/Get', 'content-type': 'application/grpc+proto' };
  t.match(host.calls[0], { headers: { ...sent, 'grpc-encoding': 'identity' }, body: frame('abc') });
  await get('connect=v1&encoding=json&message=%7B%7D&compression=gzip');
  t.match(host.calls[1]!.headers, { 'content-type': 'application/grpc+json', 'grpc-encoding': 'gzip' });
  t.equal(host.calls[1]!.body.toString('latin1'), '\u0001\0\0\0\u0002{}');
  await get('encoding=proto&message=abc');
  t.match(host.calls[2]!.headers, { ':method': 'GET', ':path': '/a.B/Get?encoding=proto&message=abc' });
});

besideEnvoy('a streaming call ends with a frame of JSON', async (t, program) => {
  const { call, host } = await start(t, program);
  const encodings = { 'connect-content-encoding': 'gzip', 'connect-accept-encoding': 'br', 'connect-timeout-ms': '9' };
  const ok = await call('/a.B/Get?messages=2', { ...STREAM, ...encodings, 'connect-timeout-ms': '9000' }, frame('abc'));
  t.match(ok, { status: 200, headers: { 'content-type': 'application/connect+proto' } });
  t.ok(ok.body.startsWith(Buffer.concat([frame('answer'), frame('answer')]).toString('latin1')));
  t.same(lastFrame(ok.body), { metadata: { 'x-trailer': ['Tail'] } });
  t.match(host.calls[0], {
    headers: { 'grpc-encoding': 'gzip', 'grpc-accept-encoding': 'br', 'grpc-timeout': '9000m' },
    body: frame('abc'),
  });
  const failed = await call('/a.B/Get?status=7&message=bad', STREAM, frame('abc'));
  t.same(lastFrame(failed.body), {
    metadata: { 'x-trailer': ['Tail'] },
    error: { code: 'permission_denied', message: 'bad' },
  });
  const trailersOnly = await call('/a.B/TrailersOnly?status=5', STREAM, frame('abc'));
  t.same(lastFrame(trailersOnly.body), { error: { code: 'not_found' } });
  t.equal(trailersOnly.status, 200);
});

besideEnvoy('other requests pass unchanged', async (t, program) => {
  const { call, host } = await start(t, program);
  for (const headers of [{ 'content-type': 'application/proto' }, { ...UNARY, 'content-type': 'text/plain' }]) {
    const answer = await call('/a.B/Get', headers);
    t.match(answer.headers, { 'content-type': 'application/grpc' });
    t.match(host.calls.at(-1)!.headers, headers);
  }
});

t.test('a message is text, and a large response is refused', async (t) => {
  const { call } = await start(t, { command: undefined });
  const answer = await call('/a.B/TrailersOnly?status=5&message=not%2520%25C3%25A9', UNARY);
  t.same(JSON.parse(Buffer.from(answer.body, 'latin1').toString()), { code: 'not_found', message: 'not é' });
  t.match(await call('/a.B/Get?messages=200000', UNARY), { status: 500, body: 'Internal Server Error' });
});
