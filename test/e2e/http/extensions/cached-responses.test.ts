// The HTTP filter cache between careless hosts and other filters: no client gets a response that is not its own, or a broken one.

import type { Socket } from 'node:net';
import t from 'tap';
import { FrameFlag, FrameType, fields, frame } from '../../harness/http2-frames.js';
import {
  type Config,
  HTTP2_CLUSTER,
  httpRequest,
  ROUTER_FILTER,
  startTcpUpstream,
  startUpstream,
  staticCluster,
  type Teardown,
} from '../../harness/index.js';
import { managerOf, routeTo, startProxy } from '../proxy.js';

const CACHE = {
  name: 'cache',
  typed_config: {
    '@type': 'type.googleapis.com/envoy.extensions.filters.http.cache.v3.CacheConfig',
    typed_config: {
      '@type': 'type.googleapis.com/envoy.extensions.http.cache.simple_http_cache.v3.SimpleHttpCacheConfig',
    },
  },
};

function lua(code: string): Config {
  return {
    name: 'lua',
    typed_config: {
      '@type': 'type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua',
      default_source_code: { inline_string: code },
    },
  };
}

/** Starts a host that speaks HTTP/2. The first response must be validated; its 304 has these DATA frames after its head. */
function startFramesHost(t: Teardown, data: readonly string[]) {
  const { Data, Headers, Settings } = FrameType;
  const { Ack, EndHeaders, EndStream } = FrameFlag;
  let requests = 0;
  const answer = (socket: Socket, stream: number) => {
    const isFirst = requests++ === 0;
    const head = { ':status': isFirst ? '200' : '304', 'cache-control': 'no-cache', etag: '"e"' };
    const bodies = isFirst ? ['0123456789'] : data;
    socket.write(frame(Headers, EndHeaders, stream, fields(head)));
    bodies.forEach((body, index) => {
      socket.write(frame(Data, index === bodies.length - 1 ? EndStream : 0, stream, Buffer.from(body)));
    });
  };
  return startTcpUpstream(t, (socket) => {
    let received = Buffer.alloc(0);
    let at = 24;
    socket.write(frame(Settings, 0, 0));
    socket.on('data', (bytes: Buffer) => {
      received = Buffer.concat([received, bytes]);
      while (received.length >= at + 9 && received.length >= at + 9 + received.readUIntBE(at, 3)) {
        const type = received[at + 3]!;
        const stream = received.readUInt32BE(at + 5);
        if (type === Settings && received[at + 4] !== Ack) socket.write(frame(Settings, Ack, 0));
        if (type === Headers) answer(socket, stream);
        at += 9 + received.readUIntBE(at, 3);
      }
    });
  });
}

for (const [what, data] of [
  ['an empty frame', ['']],
  ['a body that it must not have', ['evil', 'HTTP/1.1 200 OK']],
] as const)
  t.test(`a 304 whose head is followed by ${what} gets the stored body`, async (t) => {
    const host = await startFramesHost(t, data);
    const { port } = await startProxy(t, {
      args: ['--concurrency', '1'],
      listeners: { main: managerOf([routeTo({ prefix: '/' }, 'host')], { http_filters: [CACHE, ROUTER_FILTER] }) },
      clusters: [staticCluster('host', host.port, HTTP2_CLUSTER)],
    });
    for (let count = 0; count < 3; count++) {
      const { body, headers, status } = await httpRequest(port, '/');
      t.equal(`${status} ${headers['content-length'] ?? '10'} ${body}`, '200 10 0123456789');
    }
  });

t.test('filters may make a validated response longer', async (t) => {
  const host = await startUpstream(t, (request, answer) => {
    const isKnown = request.headers['if-none-match'] !== undefined;
    answer.writeHead(isKnown ? 304 : 200, { 'cache-control': 'no-cache', etag: '"e"' });
    answer.end(isKnown ? undefined : 'short');
  });
  const longer = lua(`function envoy_on_response(handle)
    handle:body():setBytes(string.rep("x", 100))
  end`);
  const { get } = await startProxy(t, {
    args: ['--concurrency', '1'],
    listeners: {
      main: managerOf([routeTo({ prefix: '/' }, 'host')], { http_filters: [longer, CACHE, ROUTER_FILTER] }),
    },
    clusters: [staticCluster('host', host.port)],
  });
  t.equal((await get('/')).body, 'x'.repeat(100));
  t.equal((await get('/')).body, 'x'.repeat(100));
});

t.test('a response of a cluster that a later filter has chosen is not for others', async (t) => {
  const startHost = (name: string) =>
    startUpstream(t, (_request, answer) => {
      answer.writeHead(200, { 'cache-control': 'max-age=100' }).end(name);
    });
  const [all, own] = await Promise.all([startHost('for all'), startHost('for one')]);
  const choose = lua(`function envoy_on_request(handle)
    local user = handle:headers():get("cookie")
    if user == nil then return end
    handle:headers():add("x-user", user)
    handle:clearRouteCache()
  end`);
  const routes = [
    routeTo({ prefix: '/', headers: [{ name: 'x-user', present_match: true }] }, 'own'),
    routeTo({ prefix: '/' }, 'all'),
  ];
  const { port } = await startProxy(t, {
    args: ['--concurrency', '1'],
    listeners: { main: managerOf(routes, { http_filters: [CACHE, choose, ROUTER_FILTER] }) },
    clusters: [staticCluster('all', all.port), staticCluster('own', own.port)],
  });
  t.equal((await httpRequest(port, '/', { headers: { cookie: 'a' } })).body, 'for one');
  t.equal((await httpRequest(port, '/')).body, 'for all');
  t.match((await httpRequest(port, '/')).headers, { age: /./ }, 'that one is stored');
});

t.test('a response that is valid for no time is validated at once', async (t) => {
  let requests = 0;
  const host = await startUpstream(t, (_request, answer) => {
    answer.writeHead(200, { 'cache-control': 'max-age=0' }).end(String(++requests));
  });
  const { get } = await startProxy(t, {
    args: ['--concurrency', '1'],
    listeners: { main: managerOf([routeTo({ prefix: '/' }, 'host')], { http_filters: [CACHE, ROUTER_FILTER] }) },
    clusters: [staticCluster('host', host.port)],
  });
  for (const expected of ['1', '2', '3', '4']) t.equal((await get('/')).body, expected);
});
