// Outlier detection while clusters and hosts change, and after the death of a worker.

import t from 'tap';
import { ResourceFile } from '../dynamic/resource-file.js';
import {
  type BatonProcess,
  bootstrap,
  type Config,
  httpListener,
  httpRequest,
  loopback,
  routeAllTo,
  startBaton,
  startUpstream,
  staticCluster,
  tempDir,
  waitFor,
} from '../harness/index.js';
import { startBreakableBaton } from '../process/faults/fault-injection.js';

/** The others answer 200. */
let failing = '';
const upstreams = await Promise.all(
  ['a', 'b', 'c'].map((name) =>
    startUpstream(t, (_request, response) => response.writeHead(failing === name ? 500 : 200).end(name)),
  ),
);
const [a, b, c] = upstreams.map(({ port }) => port) as [number, number, number];
/** The detection before the cluster changes. */
const WATCHED: Config = {
  outlier_detection: { base_ejection_time: '600s', max_ejection_time: '600s', max_ejection_percent: 100 },
  common_lb_config: { healthy_panic_threshold: { value: 0 }, update_merge_window: '0s' },
};
const DETECTION = 'cluster.service.outlier_detection.';

t.test('ejections survive updates of the cluster for the hosts that stay', async (t) => {
  const directory = tempDir(t);
  const cds = new ResourceFile(directory, 'cds');
  const assigned = new ResourceFile(directory, 'eds');
  const have = (...ports: number[]) =>
    assigned.write('envoy.config.endpoint.v3.ClusterLoadAssignment', {
      cluster_name: 'service',
      endpoints: [{ lb_endpoints: ports.map((port) => ({ endpoint: { address: loopback(port) } })) }],
    });
  const set = (more: Config) =>
    cds.write('envoy.config.cluster.v3.Cluster', {
      ...{ name: 'service', type: 'EDS', connect_timeout: '2s', ...WATCHED, ...more },
      eds_cluster_config: { eds_config: assigned.source },
    });
  have(a, b);
  set({});
  const baton = await startBaton(t, {
    config: bootstrap({
      listeners: [httpListener('web', 0, { route_config: { ...routeAllTo('service'), validate_clusters: false } })],
      clusters: [],
      extra: { dynamic_resources: { cds_config: cds.source } },
    }),
    args: ['--concurrency', '2'],
  });
  failing = 'b';
  await failUntilEjected(baton);
  await waitForHosts(baton, 'a');

  have(a, b, c);
  await waitForHosts(baton, 'a,c');
  t.equal(await baton.stat(`${DETECTION}ejections_active`), 1, 'a host that stays remains ejected');
  have(a, c);
  await baton.waitForStat(`${DETECTION}ejections_active`, 0);
  failing = '';
  have(a, b, c);
  await waitForHosts(baton, 'a,b,c');

  failing = 'c';
  await failUntilEjected(baton);
  failing = '';
  set({ connect_timeout: '3s' });
  await waitForHosts(baton, 'a,b,c');
  t.match(await baton.stats(DETECTION), { ejections_active: 0, ejections_enforced_total: 2 });

  failing = 'a';
  set({ outlier_detection: undefined });
  await waitFor(async () => Object.keys(await baton.stats(DETECTION)).length === 0, { what: 'stats to go' });
  for (let i = 0; i < 30; i++) await httpRequest(await baton.listenerPort('web'));
  await waitForHosts(baton, 'a,b,c');
  set({});
  await failUntilEjected(baton);
  await waitForHosts(baton, 'b,c');
});

t.test('results counted by a worker survive its death, and its replacement knows the ejected hosts', async (t) => {
  const { baton, killWorker } = await startBreakableBaton(t, {
    config: bootstrap({
      listeners: [httpListener('web', 0, { route_config: routeAllTo('service') })],
      clusters: [staticCluster('service', a, WATCHED)],
    }),
    args: ['--concurrency', '2'],
  });
  failing = 'a';
  const request = async () => httpRequest(await baton.listenerPort('web'));
  for (let i = 0; i < 4; i++) t.equal((await request()).status, 500);
  await killWorker('throw');
  await killWorker('throw');
  t.equal(await baton.stat(`${DETECTION}ejections_active`), 0);
  t.equal((await request()).status, 500);
  await baton.waitForStat(`${DETECTION}ejections_active`, 1);
  await waitForHosts(baton, 'no healthy upstream');
  await killWorker('throw');
  await killWorker('throw');
  for (let i = 0; i < 10; i++) t.equal((await request()).body, 'no healthy upstream');
});

async function failUntilEjected(baton: BatonProcess): Promise<void> {
  const port = await baton.listenerPort('web');
  await waitFor(async () => {
    await httpRequest(port);
    return (await baton.stat(`${DETECTION}ejections_active`)) === 1;
  });
}

/** Waits until all workers use exactly these hosts. */
async function waitForHosts(baton: BatonProcess, expected: string): Promise<void> {
  const port = await baton.listenerPort('web');
  const hasHosts = async () => {
    const seen = new Set<string>();
    for (let i = 0; i < 24; i++) seen.add((await httpRequest(port)).body);
    return [...seen].sort().join() === expected;
  };
  await waitFor(hasHosts, { what: expected });
}
