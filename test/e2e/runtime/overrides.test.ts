// Runtime overrides under traffic: values set by the admin interface apply on all workers, until they are removed.

import t, { type Test } from 'tap';
import {
  bootstrap,
  type Config,
  connectRaw,
  httpListener,
  httpRequest,
  startBaton,
  startUpstream,
  staticCluster,
  waitFor,
} from '../harness/index.js';
import { KeepAliveClient, tally } from '../http/keep-alive.js';
import { answering, routeConfig, routeTo } from '../http/proxy.js';
import { response, startRawUpstream } from '../http/raw-upstream.js';

/** Enough for both workers to have some connections. */
const CLIENTS = 16;

const a = await startUpstream(t, (_request, answer) => answer.end('a'));
const b = await startUpstream(t, (_request, answer) => answer.end('b'));
let tries = 0;
const failing = await startRawUpstream(t, (request) => {
  tries++;
  request.socket.write(response(503, 'again'));
});
const split = { default_value: { numerator: 0, denominator: 'HUNDRED' }, runtime_key: 'routing.split' };
const weighted: Config = {
  match: { prefix: '/weighted' },
  route: {
    weighted_clusters: {
      runtime_key_prefix: 'weights',
      clusters: [
        { name: 'a', weight: 100 },
        { name: 'b', weight: 0 },
      ],
    },
  },
};
const routes = [
  answering({ prefix: '/split', runtime_fraction: split }, 'new'),
  answering({ prefix: '/split' }, 'old'),
  weighted,
  routeTo({ prefix: '/failing' }, 'failing', { retry_policy: { retry_on: '5xx', num_retries: 2 } }),
  routeTo({ prefix: '/' }, 'a'),
];
const virtualHost = { name: 'all', domains: ['*'], include_attempt_count_in_response: true, routes };
const manager = { route_config: routeConfig([virtualHost]) };
const baton = await startBaton(t, {
  config: bootstrap({
    listeners: [httpListener('main', 0, manager)],
    clusters: [staticCluster('a', a.port), staticCluster('b', b.port), staticCluster('failing', failing.port)],
    extra: {
      layered_runtime: {
        layers: [
          { name: 'base', static_layer: { upstream: { base_retry_backoff_ms: 1 } } },
          { name: 'operators', admin_layer: {} },
        ],
      },
    },
  }),
  args: ['-l', 'warning', '--concurrency', '2'],
});
const port = await baton.listenerPort('main');
const client = new KeepAliveClient(t, port, CLIENTS);

async function modify(values: Readonly<Record<string, string>>): Promise<void> {
  const answer = await baton.admin(`/runtime_modify?${new URLSearchParams(values)}`, { method: 'POST' });
  if (answer.status !== 200 || answer.body !== 'OK\n') throw new Error(`${answer.status}: ${answer.body}`);
}

const bodies = async (path: string, count = CLIENTS) =>
  tally((await client.repeat(count, path)).map((answer) => `${answer.status} ${answer.body}`));

/** Checks that every response is this one, on every worker. */
async function allAre(t: Test, expected: string, path: string): Promise<void> {
  t.same(await bodies(path), { [expected]: CLIENTS });
}

t.test('an acknowledged value applies to the next request, even on busy workers', async (t) => {
  const busy = await Promise.all(Array.from({ length: CLIENTS }, () => connectRaw(t, port)));
  const much = 'GET /split HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(500);
  for (let i = 0; i < 20; i++) {
    for (const connection of busy) connection.write(much);
    const [value, expected] = i % 2 === 0 ? ['100', '200 new'] : ['', '200 old'];
    await modify({ 'routing.split': value! });
    await allAre(t, expected!, '/split');
  }
  for (const connection of busy) connection.destroy();
});

t.test('one request can set 100,000 keys, and they do not slow down single ones', async (t) => {
  const others = (value: string, prefix = 'k') =>
    Array.from({ length: 100_000 }, (_, i) => `${prefix}${i}=${value}`).join('&');
  const set = (body: string) =>
    baton.admin('/runtime_modify', {
      method: 'POST',
      body,
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
    });
  t.match(await set(`routing.split=100&${others('1')}`), { status: 200, body: 'OK\n' });
  await allAre(t, '200 new', '/split');
  const keys = (await baton.stat('runtime.num_keys'))!;
  t.ok(keys > 100_000);
  await Promise.all(Array.from({ length: 100 }, (_, i) => modify({ [`single${i}`]: '1' })));
  t.equal(await baton.stat('runtime.num_keys'), keys + 100);
  const refused = { status: 400, body: /^the admin layer of runtime holds at most 200000 keys/ };
  t.match(await set(others('1', 'm')), refused);
  t.equal(await baton.stat('runtime.num_keys'), keys + 100);
  t.match(await set(`routing.split=&${others('')}`), { status: 200, body: 'OK\n' });
  await allAre(t, '200 old', '/split');
  await modify(Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`single${i}`, ''])));
});

t.test('a fraction of requests changes while they are served', async (t) => {
  await allAre(t, '200 old', '/split');
  await modify({ 'routing.split': '100' });
  await allAre(t, '200 new', '/split');
  await modify({ 'routing.split': '{numerator:5000,denominator:TEN_THOUSAND}' });
  await waitFor(async () => (await bodies('/split'))['200 old'] !== undefined, { what: 'a fraction of the requests' });
  const counts = await bodies('/split', 2000);
  t.ok(Math.abs(counts['200 new']! - 1000) < 150, `half of 2000: ${counts['200 new']}`);
  await modify({ 'routing.split': '' });
  await allAre(t, '200 old', '/split');
});

t.test('cluster weights change one by one, and a sum of 0 is ignored', async () => {
  await allAre(t, '200 a', '/weighted');
  await modify({ 'weights.a': '0', 'weights.b': '7' });
  await allAre(t, '200 b', '/weighted');
  await modify({ 'weights.b': '0' });
  await allAre(t, '200 a', '/weighted');
  await modify({ 'weights.a': '', 'weights.b': '' });
});

t.test('a cluster in maintenance mode gets no requests', async (t) => {
  await modify({ 'upstream.maintenance_mode.a': '100' });
  await allAre(t, '503 maintenance mode', '/');
  const refused = (await baton.stat('cluster.a.upstream_rq_maintenance_mode'))!;
  const total = await baton.stat('cluster.a.upstream_rq_total');
  const answer = await httpRequest(port, '/');
  t.match(answer, { status: 503, body: 'maintenance mode', headers: { 'x-envoy-overloaded': 'true' } });
  t.equal(answer.headers['x-envoy-attempt-count'], undefined, 'no attempt was made');
  await baton.waitForStat('cluster.a.upstream_rq_maintenance_mode', refused + 1);
  t.equal(await baton.stat('cluster.a.upstream_rq_total'), total);
  t.equal(await baton.stat('cluster.a.upstream_rq_503'), refused + 1);
  await modify({ 'upstream.maintenance_mode.a': '' });
  await allAre(t, '200 a', '/');
});

t.test('retries can be disabled globally', async (t) => {
  const triesOf = async () => {
    tries = 0;
    t.match(await httpRequest(port, '/failing'), { status: 503, body: 'again' });
    return tries;
  };
  t.equal(await triesOf(), 3);
  await modify({ 'upstream.use_retry': '0' });
  await waitFor(async () => (await triesOf()) + (await triesOf()) === 2, { what: 'requests without retries' });
  await modify({ 'upstream.use_retry': '' });
  await waitFor(async () => (await triesOf()) === 3, { what: 'retries again' });
});

t.test('circuit breaker limits are shown as they apply, and apply', async (t) => {
  const key = 'circuit_breakers.a.default.max_requests';
  const shown = async () => {
    const text = (await baton.admin('/clusters?filter=^a$')).body;
    const { cluster_statuses } = JSON.parse((await baton.admin('/clusters?format=json&filter=^a$')).body);
    const { thresholds } = cluster_statuses[0].circuit_breakers;
    return [/^a::default_priority::max_requests::(.*)$/m.exec(text)?.[1], thresholds[0].max_requests];
  };
  t.same(await shown(), ['1024', 1024]);
  await modify({ [key]: '0' });
  t.same(await shown(), ['0', 0]);
  await waitFor(
    async () => Object.keys(await bodies('/')).every((answer) => answer.endsWith('reset reason: overflow')),
    { what: 'overflow on both workers' },
  );
  t.equal(await baton.stat('cluster.a.circuit_breakers.default.rq_open'), 1);
  await modify({ [key]: '' });
  t.same(await shown(), ['1024', 1024]);
  await allAre(t, '200 a', '/');
  t.equal(await baton.stat('cluster.a.circuit_breakers.default.rq_open'), 0);
});

t.test('/runtime shows each layer, and form bodies work like queries', async (t) => {
  const headers = { 'content-type': 'application/x-www-form-urlencoded' };
  const body = 'text=a+b%26c&upstream.base_retry_backoff_ms=2';
  t.equal((await baton.admin('/runtime_modify', { method: 'POST', headers, body })).body, 'OK\n');
  const answer = await baton.admin('/runtime');
  t.equal(answer.headers['content-type'], 'application/json');
  t.same(JSON.parse(answer.body), {
    layers: ['base', 'operators'],
    entries: {
      text: { final_value: 'a b&c', layer_values: ['', 'a b&c'] },
      'upstream.base_retry_backoff_ms': { final_value: '2', layer_values: ['1', '2'] },
    },
  });
  t.same(Object.keys(JSON.parse(answer.body).entries), ['text', 'upstream.base_retry_backoff_ms']);
  t.equal(await baton.stat('runtime.admin_overrides_active'), 1);
  t.equal(await baton.stat('runtime.num_keys'), 2);
  await modify({ text: '', 'upstream.base_retry_backoff_ms': '' });
  t.equal(await baton.stat('runtime.admin_overrides_active'), 0);
  t.equal((await baton.admin('/runtime_modify?a=1')).status, 400, 'GET changes nothing');
  const usage = await baton.admin('/runtime_modify', { method: 'POST' });
  t.equal(usage.status, 400);
  t.equal(usage.body.split('\n', 1)[0], 'usage: /runtime_modify?key1=value1&key2=value2&keyN=valueN');
});
