// preconnect_policy: connections are opened before requests need them. The expected results are those of Envoy 1.40.

import t from 'tap';
import { besideEnvoy, type ProxyProgram } from '../harness/envoy.js';
import {
  type Config,
  connectRaw,
  loopback,
  routeAllTo,
  startUpstream,
  staticCluster,
  type Teardown,
} from '../harness/index.js';
import { startProxy } from '../http/proxy.js';

/** Holds requests for /hold. */
const hosts = await Promise.all(
  [0, 1, 2].map(() => startUpstream(t, ({ url }, response) => void (url === '/hold' || response.end('served')))),
);

const BATON: ProxyProgram = { command: undefined };

function start(t: Teardown, program: ProxyProgram, preconnect_policy: Config, count = 1, more: Config = {}) {
  const addresses = hosts.slice(0, count).map(({ port }) => loopback(port));
  return startProxy(t, {
    ...program,
    args: ['-l', 'error', '--concurrency', '1'],
    listeners: { l: { route_config: routeAllTo('c') } },
    clusters: [{ ...staticCluster('c', addresses), preconnect_policy, ...more }],
  });
}

besideEnvoy('a host has connections for more requests than it gets', async (t, program) => {
  for (const [ratio, connections] of [
    [1, 1],
    [1.5, 2],
    [2, 2],
    [3, 3],
  ] as const) {
    const { baton, get } = await start(t, program, { per_upstream_preconnect_ratio: ratio });
    t.match(await get('/'), { status: 200, body: 'served' });
    t.match(await get('/'), { status: 200, body: 'served' });
    await baton.waitForStats({ 'cluster.c.upstream_cx_total': connections, 'cluster.c.upstream_rq_total': 2 });
  }
});

besideEnvoy('each request in flight opens connections in advance', async (t, program) => {
  const { baton, port } = await start(t, program, { per_upstream_preconnect_ratio: 2 });
  for (const count of [1, 2, 3]) {
    const client = await connectRaw(t, port);
    client.write('GET /hold HTTP/1.1\r\nhost: h\r\n\r\n');
    await baton.waitForStats({ 'cluster.c.upstream_rq_active': count, 'cluster.c.upstream_cx_total': 2 * count });
  }
});

besideEnvoy('the hosts of the next requests are connected in advance', async (t, program) => {
  const { baton, get } = await start(t, program, { predictive_preconnect_ratio: 2 }, 2);
  t.match(await get('/'), { status: 200, body: 'served' });
  await baton.waitForStats({ 'cluster.c.upstream_cx_total': 2, 'cluster.c.upstream_rq_total': 1 });
  const { body } = await baton.admin('/clusters');
  const connected = hosts
    .slice(0, 2)
    .map(({ port }) => new RegExp(`127.0.0.1:${port}::cx_total::(\\d)`).exec(body)![1]);
  t.same(connected, ['1', '1'], 'the other host too');
});

besideEnvoy('only hosts with the metadata are connected in advance', async (t, program) => {
  const preconnect_enabled_metadata = {
    filter: 'envoy.lb',
    path: [{ key: 'warm' }],
    value: { bool_match: true },
  };
  const policy = { per_upstream_preconnect_ratio: 2, preconnect_enabled_metadata };
  const endpoints = (metadata: Config) => ({
    load_assignment: {
      cluster_name: 'c',
      endpoints: [{ lb_endpoints: [{ endpoint: { address: loopback(hosts[0]!.port) }, metadata }] }],
    },
  });
  const warm = { filter_metadata: { 'envoy.lb': { warm: true } } };
  const chosen = await start(t, program, policy, 1, endpoints(warm));
  await chosen.get('/');
  await chosen.baton.waitForStats({
    'cluster.c.upstream_cx_total': 2,
    'cluster.c.upstream_cx_preconnect_skipped': 0,
  });
  const other = await start(t, program, policy, 1, endpoints({}));
  await other.get('/');
  await other.baton.waitForStats({
    'cluster.c.upstream_cx_total': 1,
    'cluster.c.upstream_cx_preconnect_skipped': 1,
  });
});

besideEnvoy('connections in advance respect the circuit breaker', async (t, program) => {
  const circuit_breakers = { thresholds: [{ max_connections: 1 }] };
  const { baton, get } = await start(t, program, { per_upstream_preconnect_ratio: 3 }, 1, { circuit_breakers });
  t.match(await get('/'), { status: 200, body: 'served' });
  await baton.waitForStats({ 'cluster.c.upstream_cx_total': 1, 'cluster.c.upstream_cx_overflow': 1 });
});

t.test('the hosts of the next requests are not connected beyond the circuit breaker', async (t) => {
  const circuit_breakers = { thresholds: [{ max_connections: 1 }] };
  const { baton, get } = await start(t, BATON, { predictive_preconnect_ratio: 3 }, 3, { circuit_breakers });
  t.match(await get('/'), { status: 200, body: 'served' });
  // One in advance, and that of the request, which every host may have.
  await baton.waitForStats({ 'cluster.c.upstream_cx_total': 2, 'cluster.c.upstream_rq_total': 1 });
});

t.test('a host that is not connected in advance takes no place for a pool', async (t) => {
  const policy = {
    predictive_preconnect_ratio: 3,
    preconnect_enabled_metadata: { filter: 'envoy.lb', path: [{ key: 'warm' }], value: { bool_match: true } },
  };
  const circuit_breakers = { thresholds: [{ max_connection_pools: 2 }] };
  const { baton, get } = await start(t, BATON, policy, 2, { circuit_breakers });
  t.match(await get('/'), { status: 200, body: 'served' });
  await baton.waitForStats({
    'cluster.c.upstream_cx_preconnect_skipped': 1,
    'cluster.c.circuit_breakers.default.cx_pool_open': 0,
  });
});
