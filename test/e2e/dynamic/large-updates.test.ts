// A management server that sends thousands of clusters at once delays neither the admin port nor traffic, and updates that
// arrive meanwhile are applied afterwards.

import t, { type Test } from 'tap';
import { type ControlPlane, startControlPlane, type XdsProtocol } from '../harness/control-plane.js';
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
  waitFor,
} from '../harness/index.js';

const MANY = 5000;
/** Static clusters of the bootstrap. */
const STATIC = 2;
const ADS: Config = { resource_api_version: 'V3', ads: {} };

for (const protocol of ['sotw', 'delta'] as const) {
  t.test(`requests are served while ${MANY} clusters are added and removed (${protocol})`, async (t) => {
    const { baton, plane, port } = await start(t, protocol);
    const watch = watchTurns(baton, port);
    plane.set('cluster', clusters(MANY));
    await plane.waitForAck('cluster');
    watch.atAnswer();
    t.equal(await baton.stat('cluster_manager.active_clusters'), MANY + STATIC, 'acknowledged when all are in use');
    t.equal(await baton.stat('cluster_manager.cds.update_success'), 1);
    t.ok(watch.between(STATIC, MANY + STATIC), 'the admin port has answered while a part of them was in use');

    plane.set('cluster', []);
    await plane.waitForAck('cluster');
    watch.atAnswer();
    t.equal(await baton.stat('cluster_manager.active_clusters'), STATIC);
    t.equal(await baton.stat('cluster_manager.cluster_removed'), MANY);
    t.equal(await watch.finish(), 0, 'no request has failed');
    await baton.stop();
  });
}

t.test('requests are served while hundreds of listeners are added and removed', async (t) => {
  const { baton, plane, port } = await start(t, 'sotw', { lds_config: { ...ADS, initial_fetch_timeout: '0.01s' } });
  const watch = watchTurns(baton, port, 'listener_manager.total_listeners_active');
  plane.set(
    'listener',
    Array.from({ length: 300 }, (_, index) => httpListener(`l${index}`, 0, { route_config: routeAllTo('origin') })),
  );
  await plane.waitForAck('listener');
  await waitFor(async () => (await baton.stat('listener_manager.total_listeners_active')) === 301, { what: 'all' });
  watch.atAnswer();
  t.ok(watch.between(1, 301), 'the admin port has answered while a part of them was in use');
  plane.set('listener', []);
  await plane.waitForAck('listener');
  t.equal(await baton.stat('listener_manager.total_listeners_active'), 1);
  t.equal(await baton.stat('listener_manager.listener_removed'), 300);
  t.equal(await watch.finish(), 0, 'no request has failed');
  await baton.stop();
});

t.test('an update that arrives while another is applied is applied after it', async (t) => {
  const { baton, plane } = await start(t, 'sotw');
  const first = plane.set('cluster', clusters(MANY));
  const second = plane.set('cluster', clusters(20, '3s'));
  await plane.waitForAck('cluster', second);
  const answered = plane.requests.filter(({ type, nonce }) => type === 'cluster' && nonce !== '');
  t.same(
    answered.map(({ error, version }) => [error, version]),
    [
      [undefined, first],
      [undefined, second],
    ],
  );
  t.equal(await baton.stat('cluster_manager.active_clusters'), 20 + STATIC);
  t.equal(await baton.stat('cluster_manager.cds.update_success'), 2);
  const dump = JSON.parse((await baton.admin('/config_dump?resource=dynamic_active_clusters')).body);
  t.ok(dump.configs.every((each: Config) => (each['cluster'] as Config)['connect_timeout'] === '3s'));
  await baton.stop();
});

t.test('routes sent after clusters find all of them', async (t) => {
  const { baton, origin, plane, port } = await start(t, 'sotw');
  const watch = watchTurns(baton, port);
  plane.set('cluster', [...clusters(MANY), staticCluster('last', origin)]);
  plane.set('route', [{ ...routeAllTo('last'), name: 'routes' }]);
  await plane.waitForAck('route');
  t.equal(await baton.stat('cluster_manager.active_clusters'), MANY + 1 + STATIC);
  await waitFor(async () => ((await baton.stat('cluster.last.upstream_rq_total')) ?? 0) > 10, { what: 'requests' });
  t.equal(await watch.finish(), 0, 'no request was routed to a missing cluster');
  await baton.stop();
});

t.test('a server can be stopped while clusters are applied', async (t) => {
  const { baton, plane } = await start(t, 'sotw');
  plane.set('cluster', clusters(MANY));
  await waitFor(async () => ((await baton.stat('cluster_manager.active_clusters')) ?? 0) > STATIC, { what: 'some' });
  await baton.stop();
  t.same(baton.exit, { code: 0, signal: null });
  t.notMatch(baton.stderr, /\]\[(error|critical)\]/);
});

async function start(t: Test, protocol: XdsProtocol, dynamic: Config = {}) {
  const origin = await startUpstream(t, (_, answer) => void answer.end('ok'));
  const plane: ControlPlane = await startControlPlane(t);
  plane.set('route', [{ ...routeAllTo('origin'), name: 'routes' }]);
  const rds = { route_config_name: 'routes', config_source: ADS };
  const config = bootstrap({
    listeners: [httpListener('in', 0, { rds })],
    clusters: [plane.cluster(), staticCluster('origin', origin.port)],
    extra: {
      node: { id: 'test-node', cluster: 'test-cluster' },
      // The first update is sent when the server is live.
      dynamic_resources: {
        ads_config: plane.api(protocol),
        cds_config: { ...ADS, initial_fetch_timeout: '0.01s' },
        ...dynamic,
      },
    },
  });
  const baton = await startBaton(t, { config, args: ['-l', 'warning'] });
  return { baton, plane, origin: origin.port, port: await baton.listenerPort('in') };
}

function clusters(count: number, timeout = '2s'): Config[] {
  return Array.from({ length: count }, (_, index) =>
    staticCluster(`c${index}`, 10_000 + index, { connect_timeout: timeout }),
  );
}

/** Polls the admin port for the number of clusters, and sends requests, one after the other. */
function watchTurns(baton: BatonProcess, port: number, gauge = 'cluster_manager.active_clusters') {
  let isOver = false;
  let failures = 0;
  let counts: number[] = [];
  let atAnswer: number[] = [];
  const until = async (act: () => Promise<void>): Promise<void> => {
    while (!isOver) await act();
  };
  const asking = until(async () => {
    counts.push((await baton.stat(gauge)) ?? 0);
  });
  const requesting = until(async () => {
    if ((await httpRequest(port, '/')).status !== 200) failures++;
  });
  return {
    /** between() considers what was observed until now. */
    atAnswer: (): void => {
      atAnswer = counts;
      counts = [];
    },
    between: (few: number, many: number): boolean => atAnswer.some((count) => count > few && count < many),
    finish: async (): Promise<number> => {
      isOver = true;
      await Promise.all([asking, requesting]);
      return failures;
    },
  };
}
