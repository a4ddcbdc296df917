// The policy of a load assignment: requests that it demands to drop are refused and reported, and the weights of hosts decide about
// the load of priorities. The expected results are those of Envoy 1.40.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { type LoadService, startLoadService } from '../dynamic/load-service.js';
import { startControlPlane } from '../harness/control-plane.js';
import { besideEnvoy } from '../harness/envoy.js';
import {
  bootstrap,
  type Config,
  fileAccessLog,
  HTTP2_CLUSTER,
  httpListener,
  httpRequest,
  loopback,
  startBaton,
  startUpstream,
  staticCluster,
  tcpListener,
  tempDir,
  waitFor,
} from '../harness/index.js';
import { managerOf, routeTo } from '../http/proxy.js';

/** Returns a cluster with this policy. */
function withPolicy(name: string, port: number, policy: Config): Config {
  const cluster = staticCluster(name, port);
  return { ...cluster, load_assignment: { ...(cluster['load_assignment'] as Config), policy } };
}

function dropping(numerator: number, more: Config = {}): Config {
  return { drop_overloads: [{ category: 'throttle', drop_percentage: { numerator, ...more } }] };
}

const countOf = (statuses: readonly number[], status: number) => statuses.filter((each) => each === status).length;

besideEnvoy('requests are dropped before they reach a host', async (t, program) => {
  const upstream = await startUpstream(t, (_request, response) => void response.end());
  const log = join(tempDir(t), 'access.log');
  const routes = ['all', 'half', 'few', 'none'].map((name) => routeTo({ prefix: `/${name}` }, name));
  const quiet = {
    name: 'envoy.filters.http.router',
    typed_config: {
      '@type': 'type.googleapis.com/envoy.extensions.filters.http.router.v3.Router',
      suppress_envoy_headers: true,
    },
  };
  const access_log = [fileAccessLog(log, '%REQ(:PATH)% %RESPONSE_FLAGS% %RESPONSE_CODE_DETAILS% %UPSTREAM_CLUSTER%\n')];
  const baton = await startBaton(t, {
    ...program,
    args: ['--file-flush-interval-msec', '50'],
    config: bootstrap({
      listeners: [
        httpListener('main', 0, managerOf(routes, { access_log })),
        httpListener('quiet', 0, managerOf(routes, { http_filters: [quiet] })),
        tcpListener('tcp', 0, { cluster: 'all' }),
      ],
      clusters: [
        withPolicy('all', upstream.port, dropping(1_000_000, { denominator: 'MILLION' })),
        withPolicy('half', upstream.port, dropping(50)),
        withPolicy('few', upstream.port, dropping(30)),
        withPolicy('none', upstream.port, dropping(0)),
      ],
      extra: {
        layered_runtime: {
          layers: [
            { name: 'limit', static_layer: { 'load_balancing_policy.drop_overload_limit': 100 } },
            { name: 'admin', admin_layer: {} },
          ],
        },
      },
    }),
  });
  const port = await baton.listenerPort('main');
  const all = await httpRequest(port, '/all');
  t.equal(all.status, 503);
  t.equal(all.body, 'unconditional drop overload');
  t.match(all.headers, { 'x-envoy-unconditional-drop-overload': 'true', 'x-envoy-overloaded': undefined });
  const quietAnswer = await httpRequest(await baton.listenerPort('quiet'), '/all');
  t.match(quietAnswer, { status: 503, headers: { 'x-envoy-unconditional-drop-overload': undefined } });
  const answers = [];
  for (let i = 0; i < 100; i++) answers.push(await httpRequest(port, '/half'));
  const dropped = answers.filter(({ status }) => status === 503);
  t.ok(dropped.length > 20 && dropped.length < 80, `${dropped.length} of 100 dropped`);
  t.match(dropped[0], { body: 'drop overload', headers: { 'x-envoy-drop-overload': 'true' } });
  t.equal((await httpRequest(port, '/none')).status, 200);
  t.equal(
    (await httpRequest(await baton.listenerPort('tcp'), '/', { headers: { connection: 'close' } })).status,
    200,
    'TCP connections are not dropped',
  );
  const { 'cluster.half.upstream_rq_503': counted, ...others } = await baton.stats();
  t.equal(counted, dropped.length);
  t.match(others, {
    'cluster.half.upstream_rq_completed': 100,
    'cluster.half.upstream_rq_total': 100 - dropped.length,
  });
  const text = await waitFor(() => /^\/half DO .*$/m.exec(readFileSync(log, 'utf8')), { what: 'the log' });
  t.equal(text[0], '/half DO drop_overload half');
  t.match(readFileSync(log, 'utf8'), '/all UDO unconditional_drop_overload all\n');
  const { body } = await baton.admin('/config_dump?include_eds&resource=static_endpoint_configs');
  const policies = (JSON.parse(body) as { configs: { endpoint_config: { cluster_name: string; policy: Config } }[] })
    .configs;
  t.strictSame(policies.find(({ endpoint_config: each }) => each.cluster_name === 'few')!.endpoint_config.policy, {
    drop_overloads: [{ category: 'throttle', drop_percentage: { numerator: 300_000, denominator: 'MILLION' } }],
    overprovisioning_factor: 140,
  });
});

besideEnvoy('a runtime key limits the share, as it is when the assignment arrives', async (t, program) => {
  const upstream = await startUpstream(t, (_request, response) => void response.end());
  const baton = await startBaton(t, {
    ...program,
    config: bootstrap({
      listeners: [httpListener('main', 0, managerOf([routeTo({ prefix: '/' }, 'all')]))],
      clusters: [withPolicy('all', upstream.port, dropping(100))],
      extra: {
        layered_runtime: {
          layers: [
            { name: 'limit', static_layer: { 'load_balancing_policy.drop_overload_limit': 0 } },
            { name: 'admin', admin_layer: {} },
          ],
        },
      },
    }),
  });
  const port = await baton.listenerPort('main');
  t.equal((await httpRequest(port, '/')).status, 200);
  await baton.admin('/runtime_modify?load_balancing_policy.drop_overload_limit=100', { method: 'POST' });
  for (let i = 0; i < 10; i++) t.equal((await httpRequest(port, '/')).status, 200);
});

besideEnvoy('a control plane begins, reports and ends dropping', async (t, program) => {
  const [plane, lrs, upstream] = await Promise.all([
    startControlPlane(t),
    startLoadService(t),
    startUpstream(t, (_request, response) => void response.end()),
  ]);
  // Each has another weight: Envoy notices a policy only where hosts differ too.
  let weight = 0;
  const assignment = (policy: Config) => {
    const endpoint = { address: loopback(upstream.port) };
    const endpoints = [{ lb_endpoints: [{ endpoint, load_balancing_weight: ++weight }] }];
    return [{ cluster_name: 'web', policy, endpoints }];
  };
  plane.set('endpoints', assignment({}));
  const ads = { ads: {}, resource_api_version: 'V3' };
  const baton = await startBaton(t, {
    ...program,
    config: bootstrap({
      listeners: [httpListener('main', 0, managerOf([routeTo({ prefix: '/' }, 'web')]))],
      clusters: [
        plane.cluster(),
        { name: 'web', type: 'EDS', connect_timeout: '2s', eds_cluster_config: { eds_config: ads } },
        staticCluster('lrs', lrs.port, HTTP2_CLUSTER),
      ],
      extra: {
        node: { id: 'n', cluster: 'c' },
        dynamic_resources: { ads_config: plane.api() },
        cluster_manager: {
          load_stats_config: {
            api_type: 'GRPC',
            transport_api_version: 'V3',
            grpc_services: [{ envoy_grpc: { cluster_name: 'lrs' } }],
          },
        },
      },
    }),
  });
  const port = await baton.listenerPort('main');
  const get = async () => (await httpRequest(port, '/')).status;
  t.equal(await get(), 200);
  await waitFor(() => lrs.reports.length > 0);
  lrs.request({ clusters: ['web'], load_reporting_interval: { nanos: 200_000_000 } });
  await waitFor(() => loadsOf(lrs).length > 0);
  plane.set('endpoints', assignment(dropping(100)));
  await plane.waitForAck('endpoints');
  await waitFor(async () => (await get()) === 503, { what: 'a dropped request' });
  const statuses = [await get(), await get(), await get()];
  t.equal(countOf(statuses, 503), 3);
  await waitFor(() => droppedOf(lrs) >= 4, { what: 'the reports' });
  t.equal(droppedOf(lrs), 4);
  t.strictSame(
    new Set(loadsOf(lrs).flatMap(({ dropped_requests: each = [] }) => each.map(({ category }) => category))),
    new Set(['throttle']),
  );
  t.equal(
    loadsOf(lrs).reduce((sum, { total_dropped_requests: count = 0 }) => sum + count, 0),
    4,
    'they are part of the total',
  );
  const two = { drop_overloads: ['a', 'b'].map((category) => ({ category, drop_percentage: { numerator: 1 } })) };
  plane.set('endpoints', assignment(two));
  t.match((await plane.waitForNack('endpoints')).error, /drop_overloads/);
  t.equal(await get(), 503, 'the previous policy stays');
  plane.set('endpoints', assignment({}));
  await plane.waitForAck('endpoints');
  await waitFor(async () => (await get()) === 200, { what: 'a request that is not dropped' });
});

interface Drops {
  readonly dropped_requests?: readonly { readonly category: string; readonly dropped_count: number }[];
  readonly total_dropped_requests?: number;
}

function loadsOf({ reports }: LoadService): Drops[] {
  return reports.flatMap(({ cluster_stats: all = [] }) => all.filter(({ cluster_name: name }) => name === 'web'));
}

function droppedOf(lrs: LoadService): number {
  const counts = loadsOf(lrs).flatMap(({ dropped_requests: each = [] }) => each.map((one) => one.dropped_count));
  return counts.reduce((sum, count) => sum + count, 0);
}

for (const [weighted, expected] of [
  [false, [0.55, 0.85]],
  [true, [0.03, 0.26]],
] as const) {
  const how = weighted ? 'the weights of healthy hosts' : 'the number of healthy hosts';
  besideEnvoy(`${how} decide about the load of a priority`, async (t, program) => {
    const [near, far] = await Promise.all(
      ['near', 'far'].map((text) => startUpstream(t, (_request, response) => void response.end(text))),
    );
    const host = (octet: number, port: number, weight: number, health_status = 'HEALTHY') => ({
      health_status,
      load_balancing_weight: weight,
      endpoint: { address: { socket_address: { address: `127.0.0.${octet}`, port_value: port } } },
    });
    const cluster = {
      name: 'c',
      type: 'STATIC',
      connect_timeout: '2s',
      load_assignment: {
        cluster_name: 'c',
        policy: { weighted_priority_health: weighted },
        endpoints: [
          { lb_endpoints: [host(1, near!.port, 1), host(2, near!.port, 9, 'UNHEALTHY')] },
          { priority: 1, lb_endpoints: [host(1, far!.port, 1)] },
        ],
      },
    };
    const baton = await startBaton(t, {
      ...program,
      config: bootstrap({
        listeners: [httpListener('main', 0, managerOf([routeTo({ prefix: '/' }, 'c')]))],
        clusters: [cluster],
      }),
    });
    const port = await baton.listenerPort('main');
    let count = 0;
    for (let i = 0; i < 200; i++) if ((await httpRequest(port, '/')).body === 'near') count++;
    t.ok(count / 200 > expected[0] && count / 200 < expected[1], `${count} of 200 requests to the first priority`);
  });
}

t.test('more than all requests cannot be dropped', async (t) => {
  const baton = await startBaton(t, {
    wait: 'spawned',
    args: ['--mode', 'validate'],
    config: bootstrap({ listeners: [], clusters: [withPolicy('c', 1, dropping(101))] }),
  });
  t.equal((await baton.exited).code, 1);
  t.match(baton.stderr, 'more than all requests cannot be dropped');
});
