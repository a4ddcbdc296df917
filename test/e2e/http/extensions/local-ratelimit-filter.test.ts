// The local rate limit: all workers together admit exactly as many requests as the bucket has tokens.

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import {
  bootstrap,
  type Config,
  fileAccessLog,
  httpListener,
  startBaton,
  startEchoUpstream,
  staticCluster,
  tempDir,
  waitFor,
} from '../../harness/index.js';
import { KeepAliveClient, tally } from '../keep-alive.js';
import { answering, headerOption, routeConfig, routeTo, startProxy } from '../proxy.js';
import { ALWAYS, bucketOf, limiting, limitOf } from './rate-limits.js';

const host = await startEchoUpstream(t);
const logFile = join(tempDir(t), 'log');
const toHost = [routeTo({ prefix: '/' }, 'host')];

const proxy = await startProxy(t, {
  listeners: {
    plain: limiting(limitOf('plain', 20), toHost, {
      access_log: [fileAccessLog(logFile, '%REQ(:PATH)% %RESPONSE_CODE% %RESPONSE_FLAGS% %RESPONSE_CODE_DETAILS%\n')],
    }),
    told: limiting(
      limitOf('told', 2, {
        status: { code: 'ServiceUnavailable' },
        response_headers_to_add: [headerOption('x-limited', '%RESPONSE_CODE%')],
        enable_x_ratelimit_headers: 'DRAFT_VERSION_03',
      }),
      toHost,
    ),
    low: limiting(limitOf('low', 1, { status: { code: 'OK' } }), toHost),
    grpc: limiting(limitOf('grpc', 1), toHost),
    exhausted: limiting(limitOf('exhausted', 1, { rate_limited_as_resource_exhausted: true }), toHost),
    observed: limiting(
      limitOf('observed', 1, {
        filter_enforced: { runtime_key: 'limit.enforced', default_value: { numerator: 0 } },
        request_headers_to_add_when_not_enforced: [headerOption('x-over', 'limit')],
      }),
      toHost,
    ),
    idle: limiting({ stat_prefix: 'idle', token_bucket: bucketOf(1) }, toHost),
    open: limiting({ stat_prefix: 'open', filter_enabled: ALWAYS, filter_enforced: ALWAYS }, toHost),
    connections: limiting(limitOf('connections', 2, { local_rate_limit_per_downstream_connection: true }), toHost),
    fast: limiting(limitOf('fast', 1, { token_bucket: { max_tokens: 1, fill_interval: '1s' } }), toHost),
    routes: limiting({ stat_prefix: 'routes' }, [
      answering({ prefix: '/own' }, 'own', perRoute(limitOf('own_route', 2))),
      answering({ prefix: '/same' }, 'same', perRoute(limitOf('routes', 1))),
      answering({ prefix: '/off' }, 'off', perRoute(limitOf('routes', 1, { filter_enabled: undefined }))),
      answering({ prefix: '/free' }, 'free'),
    ]),
    again: limiting({ stat_prefix: 'again' }, [answering({ prefix: '/' }, 'own', perRoute(limitOf('own_route', 1)))]),
    hosts: {
      ...limiting({ stat_prefix: 'hosts' }, []),
      route_config: routeConfig([
        {
          name: 'limited',
          domains: ['limited'],
          routes: [answering({ prefix: '/a' }, 'a'), answering({ prefix: '/b' }, 'b')],
          ...perRoute(limitOf('hosts', 3)),
        },
        { name: 'other', domains: ['*'], routes: [answering({ prefix: '/' }, 'other')] },
      ]),
    },
  },
  clusters: [staticCluster('host', host.port)],
  extra: { layered_runtime: { layers: [{ name: 'admin', admin_layer: {} }] } },
  args: ['-l', 'warning', '--concurrency', '3', '--file-flush-interval-msec', '20'],
});
const statuses = async (listener: string, count: number, path = '/', headers = {}) => {
  const answers = [];
  for (let i = 0; i < count; i++) answers.push((await proxy.on(listener, path, { headers })).status);
  return answers;
};
const stats = (prefix: string) => proxy.baton.stats(`${prefix}.http_local_rate_limit.`);

t.test('workers together admit as many requests as the bucket has tokens', async (t) => {
  t.same(
    await stats('plain'),
    { enabled: 0, enforced: 0, ok: 0, rate_limited: 0, shadow_mode: 0 },
    'stats exist before traffic',
  );
  const answers = await new KeepAliveClient(t, proxy.ports['plain']!, 12).repeat(60, '/');
  t.same(tally(answers.map(({ status }) => String(status))), { 200: 20, 429: 40 });
  const refused = answers.find(({ status }) => status === 429)!;
  t.match(refused, { body: 'local_rate_limited', headers: { 'content-type': 'text/plain' } });
  t.notOk('x-ratelimit-limit' in refused.headers);
  t.same(await stats('plain'), { enabled: 60, enforced: 40, ok: 20, rate_limited: 40, shadow_mode: 0 });
  const lines = await waitFor(
    () => {
      const text = existsSync(logFile) ? readFileSync(logFile, 'utf8') : '';
      return text.split('\n').length === 61 && text.trimEnd().split('\n');
    },
    { what: 'lines in the log' },
  );
  t.same(tally(lines), { '/ 200 - via_upstream': 20, '/ 429 RL local_rate_limited': 40 });
});

t.test('the bucket is refilled', async () => {
  await waitFor(async () => (await proxy.on('fast', '/')).status === 429, { what: 'the limit' });
  await waitFor(async () => (await proxy.on('fast', '/')).status === 200, { what: 'a token' });
});

t.test('the response is as configured, and reports the remaining tokens', async (t) => {
  const first = await proxy.on('told', '/');
  t.match(first, {
    status: 200,
    headers: { 'x-ratelimit-limit': '2', 'x-ratelimit-remaining': '1', 'x-ratelimit-reset': '0' },
  });
  t.notOk('x-limited' in first.headers);
  t.match(await proxy.on('told', '/'), {
    headers: { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': /^3[56]\d\d$/ },
  });
  t.match(await proxy.on('told', '/'), {
    status: 503,
    headers: { 'x-ratelimit-limit': '2', 'x-ratelimit-remaining': '0', 'x-limited': '503' },
  });
  t.same(await statuses('low', 2), [200, 429], 'a status below 400 is replaced by 429');
});

t.test('gRPC clients get RESOURCE_EXHAUSTED or UNAVAILABLE', async (t) => {
  const headers = { 'content-type': 'application/grpc' };
  await statuses('grpc', 1);
  await statuses('exhausted', 1);
  t.match(await proxy.on('grpc', '/', { headers }), {
    status: 200,
    headers: { 'grpc-status': '14', 'grpc-message': 'local_rate_limited' },
  });
  t.match(await proxy.on('exhausted', '/', { headers }), { status: 200, headers: { 'grpc-status': '8' } });
  const plain = await proxy.on('exhausted', '/');
  t.equal(plain.status, 429);
  t.notOk('grpc-status' in plain.headers);
});

t.test('a limit that is not enforced marks requests, and runtime enforces it', async (t) => {
  const over = async () => JSON.parse((await proxy.on('observed', '/')).body).headers['x-over'];
  t.equal(await over(), undefined);
  t.equal(await over(), 'limit');
  t.same(await stats('observed'), { enabled: 2, enforced: 0, ok: 1, rate_limited: 1, shadow_mode: 0 });
  await proxy.baton.admin('/runtime_modify?limit.enforced=100', { method: 'POST' });
  await waitFor(async () => (await proxy.on('observed', '/')).status === 429, { what: 'the limit to be enforced' });
});

t.test('without filter_enabled nothing is counted, and without a bucket nothing is refused', async (t) => {
  t.same(await statuses('idle', 3), [200, 200, 200]);
  t.same(await stats('idle'), { enabled: 0, enforced: 0, ok: 0, rate_limited: 0, shadow_mode: 0 });
  t.same(await statuses('open', 3), [200, 200, 200]);
  t.same(await stats('open'), { enabled: 3, enforced: 0, ok: 3, rate_limited: 0, shadow_mode: 0 });
});

t.test('each connection may have a separate bucket', async (t) => {
  for (let connection = 0; connection < 3; connection++) {
    const answers = await new KeepAliveClient(t, proxy.ports['connections']!, 1).repeat(4, '/');
    t.same(
      answers.map(({ status }) => status),
      [200, 200, 429, 429],
    );
  }
});

t.test('a route has its own bucket and stats', async (t) => {
  t.same(await statuses('routes', 4, '/own'), [200, 200, 429, 429]);
  t.same(await statuses('routes', 2, '/same'), [200, 429]);
  t.same(await statuses('routes', 3, '/off'), [200, 200, 200]);
  t.same(await statuses('routes', 3, '/free'), [200, 200, 200]);
  t.same(await stats('own_route'), { enabled: 4, enforced: 2, ok: 2, rate_limited: 2, shadow_mode: 0 });
  t.same(await stats('routes'), { enabled: 2, enforced: 1, ok: 1, rate_limited: 1, shadow_mode: 0 });
});

t.test('filters and routes with the same stat_prefix share their counters', async (t) => {
  const before = (await stats('own_route'))['enabled'] ?? 0;
  t.same(await statuses('again', 2), [200, 429]);
  const { body } = await proxy.baton.admin('/stats?filter=own_route.http_local_rate_limit.enabled');
  t.equal(body, `own_route.http_local_rate_limit.enabled: ${before + 2}\n`, 'a name is listed once');
});

t.test('the routes of a virtual host share its bucket', async (t) => {
  const headers = { host: 'limited' };
  t.same(await statuses('hosts', 2, '/a', headers), [200, 200]);
  t.same(await statuses('hosts', 2, '/b', headers), [200, 429]);
  t.same(await statuses('hosts', 1, '/a', headers), [429]);
  t.same(await statuses('hosts', 3, '/a', { host: 'b' }), [200, 200, 200]);
});

t.test('unsupported configurations are refused', async (t) => {
  const manager = limiting(
    limitOf('a', 1, {
      token_bucket: { max_tokens: 1, fill_interval: '0.01s' },
      response_headers_to_add: [headerOption('a b', 'c')],
      descriptors: [
        { entries: [{ key: 'a', value: 'b' }], token_bucket: bucketOf(1) },
        { entries: [{ key: 'a', value: 'b' }], token_bucket: { max_tokens: 1, fill_interval: '0.02s' } },
      ],
      local_cluster_rate_limit: {},
    }),
    [answering({ prefix: '/' }, 'a', perRoute(limitOf('a', 1, { token_bucket: undefined })))],
  );
  const baton = await startBaton(t, {
    config: bootstrap({ listeners: [httpListener('a', 0, manager)], clusters: [] }),
    wait: 'spawned',
  });
  t.match(await baton.exited, { code: 1 });
  for (const mistake of [
    'token_bucket.fill_interval: it must be at least 50 ms',
    "response_headers_to_add[0].header.key: 'a b'",
    'descriptors[1]: another descriptor has the same entries',
    'descriptors[1].token_bucket.fill_interval: it must be at least 50 ms',
    "field 'local_cluster_rate_limit'",
    'typed_per_filter_config.limit: token_bucket must be set',
  ])
    t.match(baton.stderr, mistake);
});

function perRoute(limit: Config): Config {
  return { typed_per_filter_config: { limit } };
}
