// The health check filter: health checkers get the state of this server, from the filter or from its hosts.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import {
  type Config,
  connectRaw,
  rawExchange,
  startUpstream,
  staticCluster,
  tempDir,
  waitFor,
} from '../../harness/index.js';
import { managerOf, routeTo, startProxy } from '../proxy.js';

const HEALTH_CHECK = 'type.googleapis.com/envoy.extensions.filters.http.health_check.v3.HealthCheck';
const ROUTER = 'type.googleapis.com/envoy.extensions.filters.http.router.v3.Router';
const PATH = [{ name: ':path', string_match: { exact: '/healthz' } }];

/** Status of the host's responses to health checks. */
let hostStatus = 200;
let isHostDegraded = false;
const seen: string[] = [];
const upstream = await startUpstream(t, (request, answer) => {
  seen.push(request.url!);
  if (isHostDegraded) answer.setHeader('x-envoy-degraded', '');
  answer.writeHead(request.url === '/healthz' ? hostStatus : 200).end('from the host');
});
upstream.server.on('upgrade', (_request, socket) => {
  socket.write('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n');
});
t.beforeEach(() => {
  hostStatus = 200;
  isHostDegraded = false;
  seen.length = 0;
});

t.test('health checks are answered locally, and other requests by the host', async (t) => {
  const log = join(tempDir(t), 'access.log');
  const { get, port, baton } = await startProxy(t, {
    listeners: { main: checked({ pass_through_mode: false, headers: PATH }, accessLog(log)) },
    clusters: [staticCluster('host', upstream.port)],
    args: ['-l', 'warning', '--service-cluster', 'edge'],
  });
  const healthy = await get('/healthz');
  t.match(healthy, { status: 200, body: '', headers: { 'x-envoy-upstream-healthchecked-cluster': 'edge' } });
  t.equal(healthy.headers['x-envoy-immediate-health-check-fail'], undefined);
  t.match(await get('/healthz/more'), { status: 200, body: 'from the host' });
  const post = 'POST /healthz HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n';
  for (const end of ['0\r\n\r\n', '0\r\nlate: yes\r\n\r\n']) {
    t.match((await rawExchange(port, [post, `4\r\nbody\r\n${end}`])).text, /^HTTP\/1.1 200 OK\r\n/);
  }
  t.same(seen, ['/healthz/more']);
  const beforeFailure = await baton.stat('http.main.downstream_rq_completed');
  t.equal(beforeFailure, 1, 'health checks are not counted as requests');
  t.equal(await baton.stat('http.main.tracing.health_check'), 3);

  t.equal((await baton.admin('/healthcheck/fail', { method: 'POST' })).body, 'OK\n');
  const failing = await get('/healthz');
  t.match(failing, { status: 503, body: '', headers: { 'x-envoy-upstream-healthchecked-cluster': 'edge' } });
  t.equal(failing.headers['x-envoy-immediate-health-check-fail'], 'true');
  const other = await get('/other');
  t.match(other, { status: 200, headers: { 'x-envoy-immediate-health-check-fail': 'true' } });
  t.equal(other.headers['x-envoy-upstream-healthchecked-cluster'], undefined);

  await baton.admin('/healthcheck/ok', { method: 'POST' });
  t.equal((await get('/healthz')).status, 200);
  t.equal((await get('/other')).headers['x-envoy-immediate-health-check-fail'], undefined);
  t.match(await baton.stats('http.main.health_check.'), {
    request_total: 5,
    ok: 4,
    failed: 1,
    cached_response: 0,
    degraded: 0,
  });
  await baton.stop();
  t.match(readFileSync(log, 'utf8').split('\n'), [
    '/healthz 200 - health_check_ok',
    '/healthz/more 200 - via_upstream',
    '/healthz 200 - health_check_ok',
    '/healthz 200 - health_check_ok',
    '/healthz 503 LH health_check_failed',
    '/other 200 - via_upstream',
    '/healthz 200 - health_check_ok',
  ]);
});

t.test('in pass-through mode the host answers, except while health checks are failed', async (t) => {
  const { get, baton } = await startProxy(t, {
    listeners: { main: checked({ pass_through_mode: true, headers: PATH }) },
    clusters: [staticCluster('host', upstream.port)],
  });
  hostStatus = 429;
  isHostDegraded = true;
  const answer = await get('/healthz');
  t.match(answer, { status: 429, body: 'from the host', headers: { 'x-envoy-upstream-healthchecked-cluster': '' } });
  t.has(answer.headers, { 'x-envoy-degraded': '' });
  t.equal(await baton.stat('cluster.host.upstream_rq_completed'), 0, 'health checks are not counted as requests');
  t.equal(await baton.stat('cluster.host.upstream_rq_total'), 1);
  await baton.admin('/healthcheck/fail', { method: 'POST' });
  t.match(await get('/healthz'), { status: 503, body: '' });
  t.equal(seen.length, 1);
  t.match(await baton.stats('http.main.health_check.'), { request_total: 1, failed: 1, ok: 0, degraded: 0 });
});

t.test("the host's response is cached for cache_time", async (t) => {
  const log = join(tempDir(t), 'access.log');
  const check = (cache_time: string) => checked({ pass_through_mode: true, cache_time, headers: PATH }, accessLog(log));
  const { on, baton } = await startProxy(t, {
    listeners: { main: check('3600s'), short: check('0.020s') },
    clusters: [staticCluster('host', upstream.port)],
  });
  hostStatus = 500;
  isHostDegraded = true;
  t.match(await on('main', '/healthz'), { status: 500, body: 'from the host' });
  hostStatus = 200;
  const cached = await on('main', '/healthz');
  t.match(cached, { status: 500, body: '', headers: { 'x-envoy-degraded': '' } });
  t.equal(seen.length, 1);
  t.match(await baton.stats('http.main.health_check.'), {
    request_total: 1,
    failed: 1,
    cached_response: 1,
    degraded: 1,
  });
  await on('short', '/healthz');
  await waitFor(async () => (await on('short', '/healthz')).body !== '', {
    what: 'a response that is not cached',
  });
  await baton.stop();
  const [first, second] = readFileSync(log, 'utf8').split('\n');
  t.same([first, second], ['/healthz 500 - via_upstream', '/healthz 500 LH health_check_cached']);
});

t.test('any status of a host is repeated, except that of an upgrade', async (t) => {
  const { baton, port, get } = await startProxy(t, {
    listeners: {
      main: checked(
        { pass_through_mode: true, cache_time: '3600s', headers: PATH },
        { upgrade_configs: [{ upgrade_type: 'websocket' }] },
      ),
    },
    clusters: [staticCluster('host', upstream.port)],
  });
  const upgrade = `GET /healthz HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n`;
  const tunnel = await connectRaw(t, port);
  tunnel.write(upgrade);
  t.match(await tunnel.readUntil('\r\n\r\n'), /^HTTP\/1.1 101 /);
  for (const status of [999, 200]) {
    hostStatus = status;
    const answer = await get('/healthz');
    t.match(answer, { status: 999, body: status === 999 ? 'from the host' : '' });
  }
  t.match(await baton.stats('http.main.health_check.'), { request_total: 1, failed: 1, cached_response: 1 });
  t.equal(await baton.stat('server.envoy_bug_failures'), 0);
});

t.test(
  'a check that starts while health checks are failed is answered, and caches no response of a host',
  async (t) => {
    const { port, baton } = await startProxy(t, {
      listeners: { main: checked({ pass_through_mode: true, cache_time: '3600s', headers: PATH }) },
      clusters: [staticCluster('host', upstream.port)],
    });
    await baton.admin('/healthcheck/fail', { method: 'POST' });
    const client = await connectRaw(t, port);
    client.write('POST /healthz HTTP/1.1\r\nhost: a\r\ncontent-length: 4\r\nconnection: close\r\n\r\n');
    await waitFor(async () => (await baton.stat('http.main.health_check.request_total')) === 1, {
      what: 'the check to begin',
    });
    await baton.admin('/healthcheck/ok', { method: 'POST' });
    client.write('body');
    t.match((await client.readToEnd()).text, /^HTTP\/1.1 503 /);
    t.match(await baton.stats('http.main.health_check.'), { failed: 1, cached_response: 0 });
  },
);

t.test('clusters need their minimum percentage of healthy hosts', async (t) => {
  const percents = (values: Record<string, number>): Config =>
    checked({
      pass_through_mode: false,
      headers: PATH,
      cluster_min_healthy_percentages: Object.fromEntries(
        Object.entries(values).map(([name, value]) => [name, { value }]),
      ),
    });
  const { on, baton } = await startProxy(t, {
    listeners: {
      enough: percents({ mixed: 75, host: 100 }),
      truncated: percents({ mixed: 75.9 }),
      tooFew: percents({ host: 100, mixed: 76 }),
      empty: percents({ empty: 1 }),
      emptyAllowed: percents({ empty: 0 }),
      unknown: percents({ gone: 0 }),
    },
    clusters: [
      staticCluster('host', upstream.port),
      clusterOf('mixed', ['HEALTHY', 'DEGRADED', 'UNKNOWN', 'UNHEALTHY']),
      clusterOf('empty', []),
    ],
  });
  const expected = { enough: 200, truncated: 200, tooFew: 503, empty: 503, emptyAllowed: 200, unknown: 503 };
  for (const [listener, status] of Object.entries(expected)) {
    t.equal((await on(listener, '/healthz')).status, status, listener);
  }
  t.equal(await baton.stat('http.tooFew.health_check.failed_cluster_unhealthy'), 1);
  t.equal(await baton.stat('http.empty.health_check.failed_cluster_empty'), 1);
  t.equal(await baton.stat('http.unknown.health_check.failed_cluster_not_found'), 1);
  await baton.admin('/healthcheck/fail', { method: 'POST' });
  t.equal((await on('enough', '/healthz')).status, 503);
});

t.test('all matchers of a health check must match, in every form', async (t) => {
  const headers = [
    { name: ':path', string_match: { prefix: '/health' } },
    { name: 'user-agent', string_match: { safe_regex: { regex: 'checker/[0-9]+' } } },
    { name: 'x-real', present_match: false },
  ];
  const { get } = await startProxy(t, {
    listeners: { main: checked({ pass_through_mode: false, headers }) },
    clusters: [staticCluster('host', upstream.port)],
  });
  const isAnsweredHere = async (path: string, headers: Record<string, string>) =>
    'x-envoy-upstream-healthchecked-cluster' in (await get(path, { headers })).headers;
  t.equal(await isAnsweredHere('/health/1', { 'user-agent': 'checker/12' }), true);
  t.equal(await isAnsweredHere('/health/1', { 'user-agent': 'checker/x' }), false);
  t.equal(await isAnsweredHere('/other', { 'user-agent': 'checker/12' }), false);
  t.equal(await isAnsweredHere('/health/1', { 'user-agent': 'checker/12', 'x-real': '1' }), false);
});

function checked(config: Config, more: Config = {}): Config {
  return managerOf([routeTo({ prefix: '/' }, 'host')], {
    http_filters: [
      { name: 'health', typed_config: { '@type': HEALTH_CHECK, ...config } },
      { name: 'router', typed_config: { '@type': ROUTER } },
    ],
    ...more,
  });
}

function accessLog(path: string): Config {
  const text_format = '%REQ(:PATH)% %RESPONSE_CODE% %RESPONSE_FLAGS% %RESPONSE_CODE_DETAILS%\n';
  const typed_config = {
    '@type': 'type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog',
    path,
    log_format: { text_format_source: { inline_string: text_format } },
  };
  return { access_log: [{ name: 'file', typed_config }] };
}

function clusterOf(name: string, statuses: string[]): Config {
  const lb_endpoints = statuses.map((health_status, index) => ({
    health_status,
    endpoint: { address: { socket_address: { address: '127.0.0.1', port_value: 1 + index } } },
  }));
  return { name, load_assignment: { cluster_name: name, endpoints: [{ lb_endpoints }] } };
}
