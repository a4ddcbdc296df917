// A management server provides everything over one stream or over several, changes it under traffic, and its errors and its
// shutdown change nothing.

import { readFileSync } from 'node:fs';
import t from 'tap';
import { startBlackHole } from '../harness/black-hole.js';
import { HTTP2_CLUSTER } from '../harness/bootstrap.js';
import { type ControlPlane, startControlPlane, type XdsProtocol, type XdsRequest } from '../harness/control-plane.js';
import {
  type BatonProcess,
  bootstrap,
  type Config,
  httpListener,
  httpRequest,
  loopback,
  startBaton,
  startUpstream,
  staticCluster,
  type Teardown,
  type Upstream,
  waitFor,
} from '../harness/index.js';

interface Setting {
  readonly plane: ControlPlane;
  readonly one: Upstream;
  readonly two: Upstream;
  /** Source of endpoints and routes. */
  readonly source: Config;
}

async function start(t: Teardown, protocol: XdsProtocol, isAggregated: boolean): Promise<Setting> {
  const [one, two] = await Promise.all(
    ['one', 'two'].map((text) => startUpstream(t, (_request, answer) => void answer.end(text))),
  );
  const plane = await startControlPlane(t);
  const source = isAggregated ? { ads: {}, resource_api_version: 'V3' } : plane.source(protocol);
  return { plane, one: one!, two: two!, source };
}

const cluster = (source: Config, more: Config = {}): Config => ({
  name: 'web',
  type: 'EDS',
  connect_timeout: '5s',
  eds_cluster_config: { eds_config: source },
  ...more,
});

const endpoints = (port: number): Config => ({
  cluster_name: 'web',
  endpoints: [{ lb_endpoints: [{ endpoint: { address: loopback(port) } }] }],
});

const listener = (source: Config, more: Config = {}): Config =>
  httpListener('front', 0, { rds: { route_config_name: 'routes', config_source: source }, ...more });

const routes = (prefix = '/'): Config => ({
  name: 'routes',
  virtual_hosts: [{ name: 'all', domains: ['*'], routes: [{ match: { prefix }, route: { cluster: 'web' } }] }],
});

function setAll({ plane, one, source }: Setting): void {
  plane.set('cluster', [cluster(source)]);
  plane.set('endpoints', [endpoints(one.port)]);
  plane.set('listener', [listener(source)]);
  plane.set('route', [routes()]);
}

function get(port: number): Promise<string> {
  return httpRequest(port, '/').then(({ status, body }) => (status === 200 ? body : String(status)));
}

function startClient(t: Teardown, { plane }: Setting, dynamic: Config): Promise<BatonProcess> {
  return startBaton(t, {
    args: ['-l', 'info', '--drain-time-s', '1'],
    config: bootstrap({ listeners: [], clusters: [plane.cluster()], extra: dynamic }),
  });
}

for (const protocol of ['sotw', 'delta'] as XdsProtocol[]) {
  t.test(`${protocol}: all resources on the aggregated stream`, async (t) => {
    const setting = await start(t, protocol, true);
    const { plane, two, source } = setting;
    setAll(setting);
    const baton = await startClient(t, setting, plane.ads(protocol));
    const port = await baton.listenerPort('front');
    t.equal(await get(port), 'one');
    await Promise.all((['cluster', 'endpoints', 'listener', 'route'] as const).map((type) => plane.waitForAck(type)));
    t.equal(plane.streamCount, 1);
    t.match(plane.requests[0], {
      type: 'cluster',
      node: { id: 'test-node', cluster: 'test-cluster', user_agent_name: 'baton' },
    });
    const first = plane.requests.filter(({ nonce }) => nonce === '').map(({ type, names }) => [type, names]);
    t.same(
      first,
      [
        ['cluster', []],
        ['endpoints', ['web']],
        ['listener', []],
        ['route', ['routes']],
      ],
      'in this order, each once',
    );

    plane.set('endpoints', [endpoints(two.port)]);
    await waitFor(async () => (await get(port)) === 'two', { what: 'the other host' });
    plane.set('route', [routes('/other')]);
    await waitFor(async () => (await get(port)) === '404', { what: 'the other routes' });
    plane.set('route', [routes()]);
    await waitFor(async () => (await get(port)) === 'two', { what: 'the routes as before' });

    // Errors are reported with their reason, and the previous resources stay in use.
    plane.set('cluster', [cluster(source, { lb_policy: 'CLUSTER_PROVIDED', connect_timeout: '-1s' })]);
    t.match((await plane.waitForNack('cluster')).error, /^web: .*connect_timeout.*\n.*lb_policy/);
    const failed = (await baton.admin('/config_dump?resource=dynamic_active_clusters')).body;
    t.match(JSON.parse(failed).configs[0].error_state.failed_configuration, { connect_timeout: '-1s' });
    plane.set('listener', [listener(source, { stat_prefix: '' })]);
    t.match((await plane.waitForNack('listener')).error, /^front: .*stat_prefix/);
    t.equal(await get(port), 'two');
    t.equal(await baton.stat('cluster_manager.cds.update_rejected'), 1);
    t.equal(await baton.stat('listener_manager.lds.update_rejected'), 1);
    const { body } = await baton.admin('/config_dump');
    t.match(body, /"error_state"/);

    // The server shuts down, and returns with other resources.
    plane.stop();
    await baton.waitForStat('control_plane.connected_state', 0);
    t.equal(await get(port), 'two');
    setAll(setting);
    await plane.start();
    await waitFor(async () => (await get(port)) === 'one', { what: 'the resources of the restarted server' });
    await baton.waitForStat('control_plane.connected_state', 1);
    await plane.waitForAck('listener');
    t.equal((await baton.admin('/ready')).status, 200);
    await baton.stop();
  });

  t.test(
    `${protocol}: a cluster update on the aggregated stream is acknowledged when the clusters are warm`,
    async (t) => {
      const setting = await start(t, protocol, true);
      const { plane, one, source } = setting;
      setAll(setting);
      const baton = await startClient(t, setting, plane.ads(protocol));
      await Promise.all((['cluster', 'endpoints', 'listener', 'route'] as const).map((type) => plane.waitForAck(type)));

      const late = { ...cluster(source), name: 'late' };
      const version = plane.set('cluster', [cluster(source), late]);
      plane.hold();
      await plane.waitFor('what the new cluster needs', ({ names }) => names.includes('late'));
      const isAnswer = ({ type, nonce }: XdsRequest) => type === 'cluster' && nonce.startsWith(`${version}/`);
      t.notOk(plane.requests.find(isAnswer), 'not acknowledged before the cluster is warm');
      t.equal(await baton.stat('cluster_manager.warming_clusters'), 1);

      // A server without this state is sent plain subscriptions, and the resources in use stay.
      plane.endStreams();
      const again = await plane.waitFor('another stream', ({ stream, type }) => stream === 1 && type === 'cluster');
      if (protocol === 'sotw') t.equal(again.version, version);
      else t.same(Object.keys(again.initialVersions).sort(), ['late', 'web']);

      plane.set('endpoints', [endpoints(one.port), { ...endpoints(one.port), cluster_name: 'late' }]);
      plane.release();
      await baton.waitForStat('cluster_manager.warming_clusters', 0);
      const last = plane.set('cluster', [cluster(source)]);
      await plane.waitForAck('cluster', last);
      t.equal(await baton.stat('cluster_manager.active_clusters'), 2);

      // Errors of this update are reported with the rejected resources.
      const another = plane.set('cluster', [cluster(source), { ...late, name: 'later' }, cluster({}, { name: 'bad' })]);
      plane.hold();
      await plane.waitFor('what the next one needs', ({ names }) => names.includes('later'));
      t.notOk(plane.requests.find(({ error }) => error !== undefined));
      plane.set('endpoints', [endpoints(one.port), { ...endpoints(one.port), cluster_name: 'later' }]);
      plane.release();
      t.match((await plane.waitForNack('cluster', another)).error, /^bad: /);
      await baton.stop();
    },
  );

  t.test(`${protocol}: one stream for each service`, async (t) => {
    const setting = await start(t, protocol, false);
    const { plane, two, source } = setting;
    setAll(setting);
    const dynamic = { node: { id: 'n', cluster: 'c' }, dynamic_resources: { lds_config: source, cds_config: source } };
    const baton = await startClient(t, setting, dynamic);
    const port = await baton.listenerPort('front');
    t.equal(await get(port), 'one');
    await waitFor(() => plane.streams === 4, { what: 'four streams' });
    for (const prefix of ['cluster_manager.cds.', 'listener_manager.lds.', 'cluster.web.', 'http.front.rds.routes.']) {
      await baton.waitForStat(`${prefix}control_plane.connected_state`, 1);
      await baton.waitForStat(`${prefix}update_success`, 1);
    }
    plane.endStreams();
    plane.set('endpoints', [endpoints(two.port)]);
    await waitFor(async () => (await get(port)) === 'two', { what: 'the other host, on another stream' });

    plane.set('listener', []);
    plane.set('cluster', []);
    await waitFor(() => plane.streams === 2, { what: 'unused streams to end' });
    await baton.stop();
  });
}

t.test('an unreadable resource in a response removes nothing', async (t) => {
  const setting = await start(t, 'sotw', true);
  const { plane } = setting;
  setAll(setting);
  const baton = await startClient(t, setting, plane.ads());
  const port = await baton.listenerPort('front');
  t.equal(await get(port), 'one');
  const wrongType = { '@type': 'type.googleapis.com/envoy.config.core.v3.Node', id: 'front' };
  for (const type of ['listener', 'cluster', 'endpoints', 'route'] as const) {
    const { requests } = plane;
    const type_url = requests.find((request) => request.type === type)!.typeUrl;
    plane.respond(type, 'sotw', { version_info: '2', nonce: `stray/${type}`, type_url, resources: [wrongType] });
    const { error } = await plane.waitFor(`a refusal of ${type}`, ({ nonce }) => nonce === `stray/${type}`);
    t.match(error, /found type URL/);
    t.equal(await get(port), 'one');
  }
  t.equal(await baton.stat('listener_manager.listener_removed'), 0);
  for (const type of ['listeners', 'active_clusters']) {
    const { body } = await baton.admin(`/config_dump?resource=dynamic_${type}`);
    const refused = JSON.parse(body).configs.filter((each: Config) => each['error_state']);
    t.match(refused, [{ error_state: { details: /found type URL/ }, client_status: 'NACKED' }], `${type} in the dump`);
  }
  setAll(setting);
  await plane.waitForAck('listener');
  t.notMatch((await baton.admin('/config_dump?resource=dynamic_listeners')).body, /error_state/);
  await baton.stop();
});

t.test('an unreachable management server does not block the start forever', async (t) => {
  const setting = await start(t, 'sotw', true);
  setting.plane.stop();
  const source = { ads: {}, resource_api_version: 'V3', initial_fetch_timeout: '0.5s' };
  const extra = setting.plane.ads('sotw', { lds_config: source, cds_config: source });
  const baton = await startClient(t, setting, extra);
  t.equal(await baton.stat('cluster_manager.cds.init_fetch_timeout'), 1);
  t.equal(await baton.stat('listener_manager.lds.init_fetch_timeout'), 1);
  const closed = 'StreamAggregatedResources gRPC config stream to control-plane closed: ';
  await waitFor(() => baton.stderr.includes(closed), { what: 'the log entry' });
  setAll(setting);
  await setting.plane.start();
  const port = await waitFor(() => baton.listenerPort('front').catch(() => undefined), { what: 'the listener' });
  await waitFor(async () => (await get(port)) === 'one', { what: 'traffic' });
  await baton.stop();
});

t.test('the exit does not wait for a connection to an unreachable server', async (t) => {
  const plane = await startControlPlane(t);
  plane.stop();
  const extra = { dynamic_resources: { lds_config: plane.source('sotw', { initial_fetch_timeout: '0s' }) } };
  const cluster = { ...plane.cluster(), connect_timeout: '3600s' };
  const config = bootstrap({ listeners: [], clusters: [cluster], extra });
  const baton = await startBaton(t, { config, wait: 'admin' });
  await waitFor(() => baton.stderr.includes('gRPC config stream to control-plane closed: '), {
    what: 'a failed attempt',
  });
  t.match(await baton.kill('SIGTERM'), { code: 0, signal: null });
});

t.test('the exit does not wait for a connection without an answer', async (t) => {
  const port = await startBlackHole(t);
  const plane = await startControlPlane(t);
  const extra = { dynamic_resources: { lds_config: plane.source('sotw', { initial_fetch_timeout: '0s' }) } };
  const cluster = staticCluster('control-plane', port, HTTP2_CLUSTER);
  const baton = await startBaton(t, {
    config: bootstrap({ listeners: [], clusters: [cluster], extra }),
    wait: 'admin',
  });
  // The kernel's table: SYN sent to that port, no answer yet.
  const waiting = new RegExp(` [0-9A-F]{8}:${port.toString(16).toUpperCase().padStart(4, '0')} 02 `);
  await waitFor(() => waiting.test(readFileSync('/proc/net/tcp', 'latin1')), {
    what: 'a connection without an answer',
  });
  t.match(await baton.kill('SIGTERM'), { code: 0, signal: null });
});
