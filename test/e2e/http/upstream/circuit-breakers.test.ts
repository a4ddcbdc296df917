// Circuit breakers: requests above the thresholds of a cluster are refused at once, on any worker.

import t from 'tap';
import { type Config, startBlackHole, staticCluster, waitFor } from '../../harness/index.js';
import { type Answer, KeepAliveClient } from '../keep-alive.js';
import { managerOf, routeTo, startProxy } from '../proxy.js';
import { type RawRequest, response, startRawUpstream } from '../raw-upstream.js';

/** Enough for both workers to have some connections. */
const CLIENTS = 20;
const OVERFLOW = 'upstream connect error or disconnect/reset before headers. reset reason: overflow';

const held: RawRequest[] = [];
const upstream = await startRawUpstream(t, (request) => {
  if (/\r\nx-envoy-attempt-count: 1(\r\n|$)/.test(request.head)) request.socket.write(response(503, 'again'));
  else held.push(request);
});
const closing = await startRawUpstream(t, ({ socket }) => socket.end(response(200, 'last', { connection: 'close' })));
const deaf = await startBlackHole(t);

const guarded = (name: string, port: number, thresholds: Config, more: Config = {}) =>
  staticCluster(name, port, { circuit_breakers: { thresholds: [thresholds] }, ...more });
const retryPolicy = { retry_on: '5xx', retry_back_off: { base_interval: '0.001s', max_interval: '0.001s' } };
const retrying = {
  name: 'retrying',
  domains: ['retrying.test'],
  include_request_attempt_count: true,
  routes: [
    routeTo({ prefix: '/ranks/high' }, 'ranks', { retry_policy: retryPolicy, priority: 'HIGH' }),
    ...['retries', 'budget', 'ranks'].map((name) =>
      routeTo({ prefix: `/${name}` }, name, { retry_policy: retryPolicy }),
    ),
  ],
};
const rest = {
  name: 'rest',
  domains: ['*'],
  routes: [
    routeTo({ prefix: '/requests/high' }, 'requests', { priority: 'HIGH' }),
    routeTo({ prefix: '/requests' }, 'requests'),
    routeTo({ prefix: '/pending' }, 'pending'),
    routeTo({ prefix: '/connections' }, 'connections'),
    routeTo({ prefix: '/without' }, 'without'),
    routeTo({ prefix: '/single' }, 'single'),
  ],
};
const proxy = await startProxy(t, {
  listeners: { main: managerOf([], { route_config: { name: 'routes', virtual_hosts: [retrying, rest] } }) },
  clusters: [
    staticCluster('requests', upstream.port, {
      circuit_breakers: {
        thresholds: [
          { priority: 'DEFAULT', max_requests: 3, track_remaining: true },
          { priority: 'HIGH', max_requests: 1 },
        ],
      },
    }),
    guarded('pending', deaf, { max_pending_requests: 3 }, { connect_timeout: '5s' }),
    guarded('connections', upstream.port, { max_connections: 2 }),
    guarded('without', upstream.port, { max_connections: 0 }),
    guarded('retries', upstream.port, { max_retries: 2 }),
    staticCluster('ranks', upstream.port, {
      circuit_breakers: { thresholds: [{ max_retries: 0 }, { priority: 'HIGH', max_retries: 1 }] },
    }),
    guarded('single', closing.port, { max_connections: 1 }),
    guarded('budget', upstream.port, {
      max_retries: 100,
      retry_budget: { budget_percent: { value: 0 }, min_retry_concurrency: 2 },
      track_remaining: true,
    }),
  ],
  args: ['-l', 'warning', '--concurrency', '2'],
});

t.test('both workers have accepted connections', async (t) => {
  const answers = await Promise.all(Array.from({ length: CLIENTS }, () => proxy.get('/nowhere')));
  t.ok(answers.every(({ status }) => status === 404));
  const counts = await Promise.all(
    [0, 1].map((worker) => proxy.baton.stat(`listener.main.worker_${worker}.downstream_cx_total`)),
  );
  t.ok(
    counts.every((count) => count! > 0),
    `otherwise the following tests would prove little: ${counts}`,
  );
});

t.test('max_requests applies to all workers together, and to each priority separately', async (t) => {
  const client = new KeepAliveClient(t, proxy.port, CLIENTS);
  const { done, answers } = collect(client, CLIENTS, '/requests');
  await waitFor(() => answers.length === CLIENTS - 3 && held.length >= 3);
  t.equal(held.length, 3, 'three reach the host');
  for (const { status, body, headers } of answers) {
    t.match(
      { status, body, overloaded: headers['x-envoy-overloaded'] },
      { status: 503, body: OVERFLOW, overloaded: 'true' },
    );
  }
  await proxy.baton.waitForStat('cluster.requests.circuit_breakers.default.rq_open', 1);
  await proxy.baton.waitForStat('cluster.requests.circuit_breakers.default.remaining_rq', 0);
  const pools = await proxy.baton.stat('cluster.requests.circuit_breakers.default.remaining_cx_pools');
  t.ok(pools! > 0, 'max_connection_pools is neither limited nor exceeded');
  await proxy.baton.waitForStat('cluster.requests.upstream_rq_active_overflow', CLIENTS - 3);
  t.equal(await proxy.baton.stat('cluster.requests.upstream_rq_pending_overflow'), 0);

  const high = proxy.get('/requests/high');
  await waitFor(() => held.length === 4, { what: 'a request of high priority to pass' });
  t.equal((await proxy.get('/requests/high')).status, 503, 'the second exceeds the limit');
  release();
  t.equal((await high).status, 200);
  t.ok((await done).filter(({ status }) => status === 200).length === 3);

  await proxy.baton.waitForStat('cluster.requests.circuit_breakers.default.rq_open', 0);
  const again = proxy.get('/requests');
  await waitFor(() => held.length === 1, { what: 'requests to pass again' });
  release();
  t.equal((await again).status, 200);
});

t.test('max_pending_requests limits the requests queued for a connection', async (t) => {
  const client = new KeepAliveClient(t, proxy.port, CLIENTS);
  const { done, answers } = collect(client, CLIENTS, '/pending');
  await waitFor(() => answers.length === CLIENTS - 3);
  for (const { status, body } of answers) t.match({ status, body }, { status: 503, body: OVERFLOW });
  const late = (await done).filter(({ body }) => body !== OVERFLOW);
  t.equal(late.length, 3);
  for (const { status, body } of late) t.match({ status, body }, { status: 503, body: /connection timeout/ });
});

t.test('max_connections limits the connections, and requests queue for them', async (t) => {
  const before = upstream.sockets.size;
  const client = new KeepAliveClient(t, proxy.port, CLIENTS);
  const { done } = collect(client, CLIENTS, '/connections');
  let answered = 0;
  while (answered < CLIENTS) {
    await waitFor(() => held.length > 0);
    // A worker without a connection may always open one.
    t.ok(upstream.sockets.size - before <= 3, `${upstream.sockets.size - before} connections`);
    answered += held.length;
    release();
  }
  t.ok((await done).every(({ status }) => status === 200));
});

t.test('a request queued behind a connection that its host closes gets the next one', async (t) => {
  const client = new KeepAliveClient(t, proxy.port, CLIENTS);
  const answers = await client.repeat(CLIENTS, '/single');
  t.ok(answers.every(({ body }) => body === 'last'));
});

t.test('with max_connections of 0 each worker may still open one connection', async (t) => {
  await proxy.baton.waitForStat('cluster.without.circuit_breakers.default.cx_open', 1);
  const client = new KeepAliveClient(t, proxy.port, CLIENTS);
  const { done } = collect(client, CLIENTS, '/without');
  for (let answered = 0; answered < CLIENTS; ) {
    await waitFor(() => held.length > 0);
    t.ok(held.length <= 2, `${held.length} requests at once`);
    answered += held.length;
    release();
  }
  t.ok((await done).every(({ status }) => status === 200));
  t.ok((await proxy.baton.stat('cluster.without.upstream_cx_active'))! <= 2);
  t.ok((await proxy.baton.stat('cluster.without.upstream_cx_overflow'))! > 0);
  t.equal(await proxy.baton.stat('cluster.without.upstream_rq_pending_overflow'), 0);
});

for (const [what, cluster] of [
  ['max_retries', 'retries'],
  ['a retry budget', 'budget'],
] as const) {
  t.test(`${what} limits the active retries`, async (t) => {
    const client = new KeepAliveClient(t, proxy.port, CLIENTS);
    const { done, answers } = collect(client, CLIENTS, `/${cluster}`, { host: 'retrying.test' });
    await waitFor(() => answers.length === CLIENTS - 2 && held.length === 2);
    for (const { status, body } of answers) t.match({ status, body }, { status: 503, body: 'again' });
    await proxy.baton.waitForStat(`cluster.${cluster}.upstream_rq_retry_overflow`, CLIENTS - 2);
    await proxy.baton.waitForStat(`cluster.${cluster}.circuit_breakers.default.rq_retry_open`, 1);
    t.match((await proxy.baton.admin('/clusters')).body, `${cluster}::default_priority::max_retries::2\n`);
    release();
    t.equal((await done).filter(({ status }) => status === 200).length, 2);
    await proxy.baton.waitForStat(`cluster.${cluster}.circuit_breakers.default.rq_retry_open`, 0);
  });
}

t.test('max_retries applies to each priority separately', async (t) => {
  const headers = { host: 'retrying.test' };
  t.match(await proxy.get('/ranks', { headers }), { status: 503, body: 'again' });
  const high = proxy.get('/ranks/high', { headers });
  await waitFor(() => held.length === 1, { what: 'a retry of a high-priority request' });
  t.match(
    await proxy.get('/ranks/high', { headers }),
    { status: 503, body: 'again' },
    'a second one exceeds the limit',
  );
  const open = 'cluster.ranks.circuit_breakers.high.rq_retry_open';
  await proxy.baton.waitForStat(open, 1);
  const [{ socket }] = held.splice(0) as [RawRequest];
  const [head, end] = response(200, 'done').split(/(?=ne$)/);
  socket.write(head!);
  await proxy.baton.waitForStat(open, 0);
  socket.write(end!);
  t.match(await high, { status: 200, body: 'done' }, 'a response in progress is no longer an active retry');
});

/** Answers all held requests. */
function release(): void {
  for (const { socket } of held.splice(0)) socket.write(response(200, 'done'));
}

/** Sends requests at once; `answers` grows as responses arrive. */
function collect(
  client: KeepAliveClient,
  count: number,
  path: string,
  headers: Record<string, string> = {},
): { done: Promise<Answer[]>; answers: Answer[] } {
  const answers: Answer[] = [];
  const done = Promise.all(
    Array.from({ length: count }, async () => {
      const answer = await client.get(path, headers);
      answers.push(answer);
      return answer;
    }),
  );
  return { done, answers };
}
