// track_cluster_stats.per_endpoint_stats: the stats of hosts are shown like those of their cluster, while the host exists.

import t from 'tap';
import { ResourceFile } from '../dynamic/resource-file.js';
import { besideEnvoy } from '../harness/envoy.js';
import {
  type BatonProcess,
  type Config,
  freePort,
  loopback,
  staticCluster,
  tempDir,
  waitFor,
} from '../harness/index.js';
import { managerOf, routeConfig, routeTo, startProxy } from '../http/proxy.js';
import { response, startRawUpstream } from '../http/raw-upstream.js';

const CLUSTER = 'envoy.config.cluster.v3.Cluster';
const TRACKED: Config = { track_cluster_stats: { per_endpoint_stats: true } };

const host = await startRawUpstream(t, ({ path, socket }) =>
  socket.write(response(path === '/503' ? 503 : 200, 'hello')),
);

besideEnvoy('each host has its stats, in text and for Prometheus', async (t, program) => {
  const dead = await freePort();
  const { baton, on } = await startProxy(t, {
    ...program,
    listeners: { main: managerOf([routeTo({ prefix: '/dead' }, 'dead'), routeTo({ prefix: '/' }, 'alive')]) },
    clusters: [
      { ...staticCluster('alive', host.port), alt_stat_name: 'one', ...TRACKED },
      { ...staticCluster('dead', dead), ...TRACKED },
      staticCluster('plain', host.port),
    ],
  });
  for (const path of ['/', '/503', '/dead']) await on('main', path);
  t.same(await statsOf(baton, `cluster.one.endpoint.127.0.0.1_${host.port}.`), {
    ...NONE,
    cx_active: 1,
    cx_total: 1,
    healthy: 1,
    rq_error: 1,
    rq_success: 1,
    rq_total: 2,
  });
  t.same(await statsOf(baton, `cluster.dead.endpoint.127.0.0.1_${dead}.`), {
    ...NONE,
    cx_connect_fail: 1,
    cx_total: 1,
    healthy: 1,
    rq_error: 1,
  });
  const { body } = await baton.admin('/stats/prometheus?filter=endpoint.*(rq_total|healthy)');
  t.match(body, '# TYPE envoy_cluster_endpoint_healthy gauge\n');
  const labels = `envoy_cluster_name="one",envoy_endpoint_address="127.0.0.1:${host.port}"`;
  t.match(body, `envoy_cluster_endpoint_rq_total{${labels}} 2\n`);
  t.notMatch(body, 'plain');
});

besideEnvoy('the stats of hosts come and go with hosts, their health and the option', async (t, program) => {
  const file = new ResourceFile(tempDir(t), 'clusters');
  const set = (cluster: Config) => file.write(CLUSTER, cluster);
  set({ ...staticCluster('a', host.port), ...TRACKED });
  const { baton, on } = await startProxy(t, {
    ...program,
    listeners: { main: { route_config: { ...ROUTES, validate_clusters: false } } },
    clusters: [],
    extra: { node: { id: 'node', cluster: 'tests' }, dynamic_resources: { cds_config: file.source } },
  });
  await on('main', '/');
  const prefix = `cluster.a.endpoint.127.0.0.1_${host.port}.`;
  t.match(await statsOf(baton, prefix), { healthy: 1, rq_total: 1 });
  const other = await startRawUpstream(t, ({ socket }) => socket.write(response(200, 'other')));
  const endpoints = [endpointOf(host.port), { ...endpointOf(other.port), health_status: 'UNHEALTHY' }];
  const load_assignment = { cluster_name: 'a', endpoints: [{ lb_endpoints: endpoints }] };
  set({ ...staticCluster('a', []), load_assignment, ...TRACKED });
  const added = `cluster.a.endpoint.127.0.0.1_${other.port}.`;
  const gained = await waitFor(async () => nonEmpty(await statsOf(baton, added)), { what: 'the second host' });
  t.same(gained, NONE, 'an unhealthy host');
  set({ ...staticCluster('a', other.port), ...TRACKED });
  await waitFor(async () => (await statsOf(baton, added))['healthy'] === 1, { what: 'a healthy host' });
  t.same(await statsOf(baton, prefix), {}, 'a removed host has no stats');
  set(staticCluster('a', other.port));
  await waitFor(async () => nonEmpty(await statsOf(baton, added)) === undefined, { what: 'hidden stats' });
});

const ROUTES = routeConfig([{ name: 'all', domains: ['*'], routes: [routeTo({ prefix: '/' }, 'a')] }]);
const NONE = {
  cx_active: 0,
  cx_connect_fail: 0,
  cx_total: 0,
  healthy: 0,
  rq_active: 0,
  rq_error: 0,
  rq_pending_active: 0,
  rq_success: 0,
  rq_timeout: 0,
  rq_total: 0,
};

function endpointOf(port: number): Config {
  return { endpoint: { address: loopback(port) } };
}

function nonEmpty(stats: Readonly<Record<string, number>>): Readonly<Record<string, number>> | undefined {
  return Object.keys(stats).length === 0 ? undefined : stats;
}

/** Returns the stats below a prefix without it. */
async function statsOf(baton: BatonProcess, prefix: string): Promise<Readonly<Record<string, number>>> {
  const { body } = await baton.admin('/stats?filter=endpoint');
  const lines = body.split('\n').filter((line) => line.startsWith(prefix));
  return Object.fromEntries(lines.map((line) => line.slice(prefix.length).split(': ')).map(([k, v]) => [k, Number(v)]));
}
