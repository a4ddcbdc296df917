// A host that was added or has recovered gets few requests at first.

import type { Test } from 'tap';
import t from 'tap';
import { ResourceFile } from '../dynamic/resource-file.js';
import { besideEnvoy } from '../harness/envoy.js';
import {
  type BatonProcess,
  bootstrap,
  type Config,
  httpListener,
  httpRequest,
  routeAllTo,
  startBaton,
  startUpstream,
  staticCluster,
  tempDir,
  waitFor,
} from '../harness/index.js';

let isHealthy = true;
const old = await startUpstream(t, (_request, response) => void response.end('old'));
const young = await startUpstream(t, (request, response) => {
  response.statusCode = request.url === '/healthz' && !isHealthy ? 500 : 200;
  response.end('young');
});
const SLOW = { slow_start_window: '3600s', min_weight_percent: { value: 0 } };

besideEnvoy('an added host gets requests in proportion to its age', async (t, program) => {
  for (const policy of [
    { round_robin_lb_config: { slow_start_config: SLOW } },
    { lb_policy: 'LEAST_REQUEST', least_request_lb_config: { slow_start_config: SLOW } },
  ]) {
    const endpoints = new ResourceFile(tempDir(t), 'endpoints');
    assign(endpoints, [old.port]);
    const proxy = await start(t, program.command, {
      name: 'slow',
      connect_timeout: '2s',
      type: 'EDS',
      eds_cluster_config: { eds_config: endpoints.source },
      ...policy,
    });
    const addedAt = Date.now();
    t.same(await answers(proxy, 3), { old: 3 });
    await waitFor(() => Date.now() - addedAt > 2000, { what: 'the first host to be two seconds old' });
    assign(endpoints, [old.port, young.port]);
    await proxy.waitForStat('cluster.slow.membership_total', 2);
    const changedAt = Date.now();
    const { old: first = 0, young: second = 0 } = await answers(proxy, 100);
    const ages = (Date.now() - changedAt + 1000) / (Date.now() - addedAt);
    t.equal(first + second, 100);
    t.ok(second <= 5 + 100 * ages, `${second} of 100 requests, at most ${ages} of the age`);
    await proxy.stop();
  }
});

t.test('a host that passes its health checks again starts slowly', async (t) => {
  const check = { path: '/healthz' };
  const proxy = await start(t, undefined, {
    ...staticCluster('slow', [old.port, young.port]),
    health_checks: [
      {
        ...{ timeout: '5s', interval: '0.1s', no_traffic_interval: '0.1s' },
        ...{ unhealthy_threshold: 1, healthy_threshold: 1, http_health_check: check },
      },
    ],
    common_lb_config: { healthy_panic_threshold: { value: 0 } },
    round_robin_lb_config: { slow_start_config: SLOW },
  });
  const startedAt = Date.now();
  isHealthy = false;
  await proxy.waitForStat('cluster.slow.membership_healthy', 1);
  await waitFor(() => Date.now() - startedAt > 2000, { what: 'the healthy host to be two seconds old' });
  isHealthy = true;
  await proxy.waitForStat('cluster.slow.membership_healthy', 2);
  const recoveredAt = Date.now();
  const { young: second = 0 } = await answers(proxy, 100);
  const ages = (Date.now() - recoveredAt + 1000) / (Date.now() - startedAt);
  t.ok(second <= 5 + 100 * ages, `${second} of 100 requests, at most ${ages} of the age`);
});

async function start(t: Test, command: string | undefined, cluster: Config): Promise<BatonProcess> {
  const config = bootstrap({
    listeners: [httpListener('web', 0, { route_config: routeAllTo('slow') })],
    clusters: [cluster],
    extra: { node: { id: 'a', cluster: 'a' } },
  });
  return startBaton(t, { command, config, args: ['--concurrency', '1'] });
}

function assign(endpoints: ResourceFile, ports: number[]): void {
  const assignment = staticCluster('slow', ports)['load_assignment'] as Config;
  endpoints.write('envoy.config.endpoint.v3.ClusterLoadAssignment', assignment);
}

async function answers(proxy: BatonProcess, count: number): Promise<Record<string, number>> {
  const port = await proxy.listenerPort('web');
  const counts: Record<string, number> = {};
  for (let index = 0; index < count; index++) {
    const { body } = await httpRequest(port, '/');
    counts[body] = (counts[body] ?? 0) + 1;
  }
  return counts;
}
