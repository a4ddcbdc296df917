// Circuit breakers of connection pools (max_connection_pools) and of the connections to a host (per_host_thresholds). The expected results are those of Envoy 1.40.

import type { ServerResponse } from 'node:http';
import t from 'tap';
import { besideEnvoy } from '../harness/envoy.js';
import {
  bootstrap,
  type Config,
  connectRaw,
  startBaton,
  startTcpUpstream,
  startUpstream,
  staticCluster,
  tcpListener,
  waitFor,
} from '../harness/index.js';
import { managerOf, routeTo, startProxy } from '../http/proxy.js';

besideEnvoy('a request that needs one pool too many fails', async (t, program) => {
  const one = await startUpstream(t, (_, response) => void response.end('one'));
  const two = await startUpstream(t, (_, response) => void response.end('two'));
  const thresholds = [{ max_connection_pools: 1, track_remaining: true }];
  const { baton, get } = await startProxy(t, {
    ...program,
    listeners: { in: managerOf([routeTo({ prefix: '/' }, 'api')]) },
    clusters: [staticCluster('api', [one.port, two.port], { circuit_breakers: { thresholds } })],
  });
  const answers = [];
  for (let sent = 0; sent < 4; sent++) answers.push((await get('/')).body);
  // The hosts take turns; the first one has the pool.
  const [first] = answers.filter((answer) => answer !== 'no healthy upstream');
  t.same(answers.sort(), ['no healthy upstream', 'no healthy upstream', first, first].sort());
  await baton.waitForStats({
    'cluster.api.upstream_cx_pool_overflow': 2,
    'cluster.api.upstream_cx_none_healthy': 0,
    'cluster.api.upstream_cx_total': 1,
    'cluster.api.circuit_breakers.default.cx_pool_open': 1,
    'cluster.api.circuit_breakers.default.remaining_cx_pools': 0,
  });
  // Without its connection the pool is not in use.
  for (const { sockets } of [one, two]) for (const socket of sockets) socket.end();
  await baton.waitForStats({
    'cluster.api.circuit_breakers.default.cx_pool_open': 0,
    'cluster.api.circuit_breakers.default.remaining_cx_pools': 1,
    'cluster.api.upstream_cx_active': 0,
  });
  t.not((await get('/')).body, 'no healthy upstream');
});

besideEnvoy('a host gets no more connections than per_host_thresholds permit', async (t, program) => {
  const held: ServerResponse[] = [];
  const upstream = await startUpstream(t, (_, response) => void held.push(response));
  const per_host_thresholds = [{ max_connections: 2 }];
  const { baton, get } = await startProxy(t, {
    ...program,
    args: ['-l', 'warning', '--concurrency', '1'],
    listeners: { in: managerOf([routeTo({ prefix: '/' }, 'api', { timeout: '60s' })]) },
    clusters: [staticCluster('api', upstream.port, { circuit_breakers: { per_host_thresholds } })],
  });
  const answers = Promise.all([get('/'), get('/'), get('/')]);
  await waitFor(() => held.length === 2);
  await baton.waitForStats({
    'cluster.api.upstream_cx_active': 2,
    'cluster.api.upstream_rq_pending_active': 1,
  });
  t.ok((await baton.stat('cluster.api.upstream_cx_overflow'))! > 0);
  held[0]!.end('answer');
  await waitFor(() => held.length === 3);
  for (const response of held) response.end('answer');
  for (const { body } of await answers) t.equal(body, 'answer');
  await baton.waitForStats({ 'cluster.api.upstream_cx_total': 2 });
});

t.test('the limit of a host holds for all workers and for TCP, and other fields are refused', async (t) => {
  const upstream = await startTcpUpstream(t, (socket) => void socket.write('hello'));
  const breakers = (more: Config) => ({ circuit_breakers: { per_host_thresholds: [more] } });
  const baton = await startBaton(t, {
    args: ['-l', 'warning', '--concurrency', '2'],
    config: bootstrap({
      listeners: [tcpListener('in', 0, { cluster: 'api' })],
      clusters: [staticCluster('api', upstream.port, breakers({ max_connections: 2 }))],
    }),
  });
  const port = await baton.listenerPort('in');
  const open = await Promise.all([connectRaw(t, port), connectRaw(t, port)]);
  for (const connection of open) await connection.readUntil('hello');
  for (let extra = 0; extra < 6; extra++) await (await connectRaw(t, port)).readToEnd();
  await baton.waitForStats({ 'cluster.api.upstream_cx_overflow': 6, 'cluster.api.upstream_cx_total': 2 });
  open[0]!.reset();
  await baton.waitForStats({ 'cluster.api.upstream_cx_active': 1 });
  await (await connectRaw(t, port)).readUntil('hello');
  const refused = await startBaton(t, {
    args: ['--mode', 'validate'],
    wait: 'spawned',
    config: bootstrap({ listeners: [], clusters: [staticCluster('a', 1, breakers({ max_requests: 1 }))] }),
  });
  t.equal((await refused.exited).code, 1);
  t.match(refused.stderr, /Unsupported field in per_host_thresholds/);
});
