// internal_redirect_policy: redirects of hosts that the proxy follows. All results are Envoy's, except where a test says otherwise.

import type { ServerResponse } from 'node:http';
import { createServer, type ServerHttp2Stream } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { besideEnvoy, type ProxyProgram } from '../../harness/envoy.js';
import {
  bootstrap,
  type Config,
  connectRaw,
  fileAccessLog,
  HTTP2_CLUSTER,
  httpListener,
  logLines,
  startBaton,
  startUpstream,
  staticCluster,
  tempDir,
  waitFor,
} from '../../harness/index.js';
import { answering, managerOf, routeConfig, routeTo, startProxy } from '../proxy.js';

const PREDICATE = 'type.googleapis.com/envoy.extensions.internal_redirect';
const predicate = (type: string, more: Config = {}) => ({
  name: 'predicate',
  typed_config: { '@type': `${PREDICATE}.${type}`, ...more },
});

const redirecting = (prefix: string, policy: Config, action: Config = {}, more: Config = {}) =>
  routeTo({ prefix }, 'host', { ...action, internal_redirect_policy: policy }, { name: prefix.slice(1), ...more });

const ROUTES = [
  redirecting(
    '/start',
    {
      max_internal_redirects: 2,
      redirect_response_codes: [302, 303, 307, 200],
      response_headers_to_copy: ['x-copy', 'X-Gone'],
    },
    { prefix_rewrite: '/begun' },
    { request_headers_to_add: [{ header: { key: 'x-added', value: 'a' } }], per_request_buffer_limit_bytes: 1000 },
  ),
  redirecting('/previous', {
    max_internal_redirects: 5,
    predicates: [predicate('previous_routes.v3.PreviousRoutesConfig')],
  }),
  redirecting('/allowed', {
    predicates: [predicate('allow_listed_routes.v3.AllowListedRoutesConfig', { allowed_route_names: ['end'] })],
  }),
  redirecting('/safe', {
    allow_cross_scheme_redirect: true,
    predicates: [predicate('safe_cross_scheme.v3.SafeCrossSchemeConfig')],
  }),
  redirecting('/cross', { allow_cross_scheme_redirect: true }),
  routeTo({ prefix: '/old' }, 'host', { internal_redirect_action: 'HANDLE_INTERNAL_REDIRECT' }, { name: 'old' }),
  routeTo({ prefix: '/end' }, 'host', {}, { name: 'end' }),
  answering({ prefix: '/direct' }, 'direct', { name: 'direct' }),
  { match: { path: '/unknown' }, route: { cluster_header: 'x-cluster' } },
];

/** Counts its passes in x-passes of requests. */
const LUA = {
  name: 'lua',
  typed_config: {
    '@type': 'type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua',
    default_source_code: {
      inline_string:
        "function envoy_on_request(h) h:headers():replace('x-passes', (h:headers():get('x-passes') or '') .. '1') end",
    },
  },
};

interface Received {
  readonly line: string;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: string;
}

/** A host that redirects to `to`, with the status `code`, if the query has it. */
async function startHost(t: Test) {
  const received: Received[] = [];
  const { port } = await startUpstream(t, (request, answer) => {
    const pieces: Buffer[] = [];
    request.on('data', (piece: Buffer) => pieces.push(piece));
    request.on('end', () => {
      const body = Buffer.concat(pieces).toString();
      received.push({ line: `${request.method} ${request.url}`, headers: request.headers, body });
      const query = new URL(request.url!, 'http://x').searchParams;
      const location = query.get('to');
      if (location !== null) answer.setHeader('location', location.replace('HOST', request.headers.host!));
      answer.setHeader('x-copy', ['1', '2']);
      answer.statusCode = Number(query.get('code') ?? 200);
      answer.end(query.has('to') ? 'redirected' : 'served');
    });
    request.on('error', () => {});
  });
  return { port, received };
}

async function start(t: Test, program: ProxyProgram) {
  const host = await startHost(t);
  const log = join(tempDir(t), 'log');
  const format =
    '%REQ(:METHOD)% %REQ(:SCHEME)%://%REQ(:AUTHORITY)%%REQ(:PATH)% %RESPONSE_CODE% %RESPONSE_CODE_DETAILS% ' +
    '%BYTES_RECEIVED% %BYTES_SENT% %ROUTE_NAME% %UPSTREAM_REQUEST_ATTEMPT_COUNT%\n';
  const proxy = await startProxy(t, {
    ...program,
    args: ['-l', 'error', '--file-flush-interval-msec', '20'],
    listeners: {
      all: managerOf(ROUTES, {
        stat_prefix: 'all',
        access_log: [fileAccessLog(log, format)],
        http_filters: [LUA, ROUTER],
      }),
    },
    clusters: [staticCluster('host', host.port)],
  });
  const linesFor = async (count: number) => {
    const lines = await waitFor(() => (logLines(log).length >= count ? logLines(log) : undefined), { what: 'the log' });
    return lines.slice(-count);
  };
  const to = (path: string, location: string, code = 302) => `${path}?code=${code}&to=${encodeURIComponent(location)}`;
  return { ...proxy, host, linesFor, to };
}

const ROUTER = {
  name: 'router',
  typed_config: { '@type': 'type.googleapis.com/envoy.extensions.filters.http.router.v3.Router' },
};

besideEnvoy('a redirect is followed from the first filter on', async (t, program) => {
  const { baton, get, host, linesFor, to } = await start(t, program);
  const path = to('/start', 'http://HOST/end/x?y=1#z');
  const given = { 'x-gone': 'a', 'x-copy': 'b', host: 'a.example' };
  const { body, headers, status } = await get(path, { headers: given });
  t.match({ body, status }, { body: 'served', status: 200 });
  t.equal(headers['location'], undefined);
  const original = path.replace('/start', '/begun');
  t.match(host.received, [
    { line: `GET ${original}`, headers: { 'x-passes': '1', 'x-gone': 'a' } },
    {
      line: 'GET /end/x?y=1',
      headers: {
        ...{ host: 'a.example', 'x-passes': '11', 'x-added': 'a', 'x-envoy-original-path': path, 'x-copy': '1, 2' },
        ...{ 'x-gone': undefined, 'x-envoy-original-url': `http://a.example${original}` },
        'x-envoy-expected-rq-timeout-ms': '15000',
      },
    },
  ]);
  t.equal(host.received[0]!.headers['x-request-id'], host.received[1]!.headers['x-request-id']);
  t.strictSame(await linesFor(2), [
    'GET http://a.example/end/x?y=1 302 internal_redirect 0 0 end 1',
    'GET http://a.example/end/x?y=1 200 via_upstream 0 6 end 1',
  ]);
  await baton.waitForStats({
    'cluster.host.upstream_internal_redirect_succeeded_total': 1,
    'cluster.host.upstream_rq_200': 1,
    'cluster.host.upstream_rq_completed': 1,
    'cluster.host.upstream_rq_total': 2,
    'http.all.downstream_rq_total': 2,
    'http.all.downstream_rq_http1_total': 2,
    'http.all.downstream_rq_completed': 1,
    'http.all.downstream_rq_active': 0,
    'http.all.rq_total': 2,
  });
  t.equal(await baton.stat('cluster.host.upstream_rq_302'), undefined);
  const { body: hosts } = await baton.admin('/clusters');
  t.match(hosts, /rq_success::1\n/);

  t.match(await get(to('/start', 'http://HOST/direct')), { status: 200, body: 'direct' });
  t.match(await get(to('/start', 'http://HOST/unknown')), { status: 503, body: '' });
});

besideEnvoy('the body goes along, within the buffer limit, but not after a 303', async (t, program) => {
  const { baton, get, host, linesFor, to } = await start(t, program);
  const post = (code: number, body: string) => get(to('/start', 'http://HOST/end', code), { method: 'POST', body });
  t.equal((await post(307, 'some')).status, 200);
  t.equal((await post(303, 'some')).status, 200);
  t.equal((await post(307, 'x'.repeat(2000))).status, 307);
  t.strictSame(
    host.received.map(({ body, headers, line }) => [line.slice(0, 8), body.length, headers['content-length']]),
    [
      ['POST /be', 4, '4'],
      ['POST /en', 4, '4'],
      ['POST /be', 4, '4'],
      ['GET /end', 0, undefined],
      ['POST /be', 2000, '2000'],
    ],
  );
  const lines = (await linesFor(5)).map((line) => line.split(' ').slice(2, 5).join(' '));
  t.strictSame(lines, [
    '307 internal_redirect 4',
    '200 via_upstream 8',
    '303 internal_redirect 4',
    '200 via_upstream 4',
    '307 via_upstream 2000',
  ]);
  await baton.waitForStats({
    'cluster.host.upstream_internal_redirect_succeeded_total': 2,
    'cluster.host.upstream_internal_redirect_failed_total': 1,
    'cluster.host.retry_or_shadow_abandoned': 1,
  });
});

besideEnvoy('a redirect that is not allowed passes to the client, with the request unchanged', async (t, program) => {
  const { baton, get, host, to } = await start(t, program);
  const passes = async (path: string, status = 302) => {
    const { headers, ...answer } = await get(path, { headers: { 'x-copy': 'mine', host: 'a.example' } });
    t.match(answer, { status, body: path.includes('to=') ? 'redirected' : 'served' }, path);
  };
  const before = 'http.all.passthrough_internal_redirect_';
  const counts = async (name: string, by: () => Promise<void>, added = 1) => {
    const old = (await baton.stat(`${before}${name}`)) ?? 0;
    await by();
    await baton.waitForStat(`${before}${name}`, old + added);
  };
  await counts('bad_location', () => passes(to('/start', '/end')));
  await counts('bad_location', () => passes(to('/start', 'http://')));
  await counts('unsafe_scheme', () => passes(to('/start', 'https://HOST/end')));
  await counts('no_route', () => passes(to('/start', 'http://HOST/nowhere')));
  await counts('predicate', () => passes(to('/allowed', 'http://HOST/direct')));
  await counts('predicate', () => passes(to('/safe', 'https://HOST/end')));
  const again = (path: string) => to(path, `http://HOST${to('/start', 'http://HOST/end')}`);
  await counts('too_many_redirects', () => passes(to('/start', `http://HOST${again('/start')}`)));
  const twice = to('/previous', `http://HOST${to('/previous', `http://HOST${to('/previous', 'http://HOST/end')}`)}`);
  await counts('predicate', () => passes(twice));
  await passes(to('/start', 'http://HOST/end', 301), 301);
  await passes('/start?code=302');
  await baton.waitForStats({ 'cluster.host.upstream_internal_redirect_failed_total': 9 });
  const asReceived = host.received.filter(({ line }) =>
    line.startsWith('GET /begun?code=302&to=http%3A%2F%2FHOST%2Fnowhere'),
  );
  t.match(asReceived, [{ headers: { host: 'a.example', 'x-copy': 'mine' } }]);
});

besideEnvoy('predicates, other schemes and deprecated fields let redirects through', async (t, program) => {
  const { get, linesFor, to } = await start(t, program);
  for (const path of [
    to('/previous', `http://HOST${to('/previous', 'http://HOST/end')}`),
    to('/allowed', 'http://HOST/end'),
    to('/safe', 'http://HOST/end'),
    to('/old', 'http://HOST/end'),
    to('/cross', 'https://b.example:8443/end'),
  ]) {
    t.match(await get(path, { headers: { host: 'a.example' } }), { status: 200, body: 'served' }, path);
  }
  t.match((await linesFor(11)).at(-1), 'GET https://b.example:8443/end 200 via_upstream');
});

t.test('a client that leaves during the second pass is logged once more, and frees its request', async (t) => {
  const held = await startUpstream(t, (request, answer) => {
    if (request.url === '/end') return;
    answer.writeHead(302, { location: 'http://a/end' }).end();
  });
  const proxy = await startProxy(t, {
    listeners: {
      all: managerOf([redirecting('/start', {}), routeTo({ prefix: '/end' }, 'host')], { stat_prefix: 'all' }),
    },
    clusters: [staticCluster('host', held.port)],
  });
  const client = await connectRaw(t, proxy.port);
  client.socket.write('POST /start HTTP/1.1\r\nhost: a\r\ncontent-length: 4\r\n\r\nbody');
  await proxy.baton.waitForStats({ 'cluster.host.upstream_rq_total': 2, 'cluster.host.upstream_rq_active': 1 });
  client.socket.destroy();
  await proxy.baton.waitForStats({ 'cluster.host.upstream_rq_active': 0, 'http.all.downstream_rq_active': 0 });
});

besideEnvoy(
  'the second pass normalizes host and path, and filters decide about it by its own route',
  async (t, program) => {
    const host = await startHost(t);
    const rbac = (rules: Config) => ({
      '@type': 'type.googleapis.com/envoy.extensions.filters.http.rbac.v3.RBAC',
      rules,
    });
    const any = { permissions: [{ any: true }], principals: [{ any: true }] };
    const onRoute = {
      '@type': 'type.googleapis.com/envoy.extensions.filters.http.rbac.v3.RBACPerRoute',
      rbac: { rules: { action: 'DENY', policies: { all: any } } },
    };
    const byHost = { header: { name: ':authority', string_match: { exact: 'denied.example' } } };
    const { get } = await startProxy(t, {
      ...program,
      listeners: {
        all: managerOf(
          [
            redirecting('/start', {}),
            routeTo({ prefix: '/denied' }, 'host', {}, { typed_per_filter_config: { rbac: onRoute } }),
            routeTo({ prefix: '/end' }, 'host'),
          ],
          {
            strip_any_host_port: true,
            normalize_path: true,
            merge_slashes: true,
            http_filters: [
              {
                name: 'rbac',
                typed_config: rbac({
                  action: 'DENY',
                  policies: { host: { permissions: [byHost], principals: [{ any: true }] } },
                }),
              },
              ROUTER,
            ],
          },
        ),
      },
      clusters: [staticCluster('host', host.port)],
    });
    const to = (location: string) => get(`/start?code=302&to=${encodeURIComponent(location)}`);
    t.match(await to('http://a.example:1234/end//x/../y'), { status: 200, body: 'served' });
    t.match(host.received.at(-1), { line: 'GET /end/y', headers: { host: 'a.example' } });
    t.match(await to('http://denied.example:1234/end'), { status: 403 });
    t.match(await to('http://a.example/denied'), { status: 403 });
  },
);

besideEnvoy('a refused redirect leaves no mark on the next request of the connection', async (t, program) => {
  const host = await startHost(t);
  const policy = {
    allow_cross_scheme_redirect: true,
    predicates: [
      predicate('previous_routes.v3.PreviousRoutesConfig'),
      predicate('safe_cross_scheme.v3.SafeCrossSchemeConfig'),
    ],
  };
  const { port } = await startProxy(t, {
    ...program,
    listeners: {
      all: managerOf([redirecting('/start', policy), routeTo({ prefix: '/end' }, 'host', {}, { name: 'end' })]),
    },
    clusters: [staticCluster('host', host.port)],
  });
  const client = await connectRaw(t, port);
  const to = async (location: string, status: number) => {
    client.write(`GET /start?code=302&to=${encodeURIComponent(location)} HTTP/1.1\r\nhost: a\r\n\r\n`);
    t.match(await client.readUntil(/redirected|served/), new RegExp(`HTTP/1.1 ${status} `));
  };
  await to('https://HOST/end', 302);
  await to('http://HOST/end', 200);
});

besideEnvoy('max_stream_duration limits all passes together', async (t, program) => {
  let passes = 0;
  const { port } = await startUpstream(t, (_request, answer) => {
    passes++;
    setTimeout(() => answer.writeHead(302, { location: 'http://a/loop' }).end(), 100);
  });
  const { get } = await startProxy(t, {
    ...program,
    listeners: {
      all: managerOf([redirecting('/loop', { max_internal_redirects: 1000 })], {
        common_http_protocol_options: { max_stream_duration: '0.5s' },
      }),
    },
    clusters: [staticCluster('host', port)],
  });
  t.match(await get('/loop'), { status: 504 });
  t.ok(passes > 1 && passes < 10, `${passes} passes`);
});

for (const [protocol, options] of [
  ['HTTP/1', {}],
  ['HTTP/2', HTTP2_CLUSTER],
] as const) {
  t.test(`redirects without a body leave nothing behind (${protocol} host)`, async (t) => {
    const redirects = [0, 1, 2, 3, 4].map((index) => ({
      match: { path: `/r${index}` },
      redirect: { path_redirect: `/r${index + 1}`, response_code: 'FOUND' },
    }));
    const host = await startProxy(t, {
      listeners: { host: managerOf([...redirects, answering({ prefix: '/' }, 'end')]) },
    });
    const routes = [redirecting('/r', { max_internal_redirects: 5 })];
    const { baton, get } = await startProxy(t, {
      listeners: { all: managerOf(routes, { stat_prefix: 'all' }) },
      clusters: [staticCluster('host', host.port, options)],
    });
    for (let left = 5; left > 0; left--) t.match(await get('/r0'), { status: 200, body: 'end' });
    await baton.waitForStats({
      'cluster.host.upstream_internal_redirect_succeeded_total': 25,
      'cluster.host.upstream_rq_total': 30,
      'cluster.host.upstream_rq_active': 0,
      'cluster.host.upstream_rq_pending_active': 0,
      'http.all.downstream_rq_active': 0,
      'http.all.downstream_rq_total': 30,
    });
  });
}

t.test('headers of the target and of the connection cannot be copied from responses', async (t) => {
  const names = ['Host', ':path', 'Content-Length', 'transfer-encoding', 'connection', 'x y'];
  const route = redirecting('/start', { response_headers_to_copy: names });
  const listener = httpListener('in', 0, {
    route_config: routeConfig([{ name: 'v', domains: ['*'], routes: [route] }]),
  });
  const config = bootstrap({ listeners: [listener], clusters: [staticCluster('host', 1)] });
  const baton = await startBaton(t, { config, args: ['--mode', 'validate'], wait: 'spawned' });
  t.equal((await baton.exited).code, 1);
  for (const index of names.keys()) t.match(baton.stderr, `response_headers_to_copy[${index}]`);
});

t.test('the response of a redirect waits for a client whose send queue is full of 1xx responses', async (t) => {
  const piece = Buffer.alloc(64 * 1024, 'x');
  const endless = (response: ServerResponse) => {
    while (!response.destroyed && response.write(piece));
    response.once('drain', () => endless(response));
  };
  const end = await startUpstream(t, (_, response) => endless(response));
  let redirecting: ServerHttp2Stream | undefined;
  // Heads of HTTP/2 arrive although their stream is paused.
  const host = createServer().on('stream', (stream) => {
    redirecting = stream.on('error', () => {});
  });
  t.teardown(() => void host.close());
  await new Promise<void>((resolve) => host.listen(0, '127.0.0.1', resolve));
  const { port: hostPort } = host.address() as AddressInfo;
  const { baton, port } = await startProxy(t, {
    listeners: {
      main: managerOf(
        [routeTo({ path: '/start' }, 'host', { internal_redirect_policy: {} }), routeTo({ path: '/end' }, 'end')],
        { proxy_100_continue: true },
      ),
    },
    clusters: [{ ...staticCluster('host', hostPort), ...HTTP2_CLUSTER }, staticCluster('end', end.port)],
    args: ['--concurrency', '1'],
  });
  const client = await connectRaw(t, port);
  client.socket.pause();
  client.write('GET /start HTTP/1.1\r\nhost: localhost\r\n\r\n');
  const stream = await waitFor(() => redirecting, { what: 'the request' });
  const link = `<${'a'.repeat(8000)}>; rel=preload`;
  const PAUSED = 'upstream_flow_control_paused_reading_total';
  await waitFor(
    async () => {
      for (let count = 0; count < 100; count++) stream.additionalHeaders({ ':status': 103, link });
      return (await baton.stat(`cluster.host.${PAUSED}`)) === 1;
    },
    { what: 'the pause of the host' },
  );
  stream.respond({ ':status': 302, location: 'http://localhost/end' }, { endStream: true });
  await baton.waitForStat(`cluster.end.${PAUSED}`, 1);
  client.destroy();
  await baton.waitForStat('http.main.downstream_cx_active', 0);
});
