// Clusters on demand: requests and TCP connections to clusters that do not exist wait until a management server has answered for them.
// The expected results are those of Envoy 1.40, except where a test says so.

import t from 'tap';
import { type ControlPlane, startControlPlane, type XdsProtocol } from '../harness/control-plane.js';
import { besideEnvoy, type ProxyProgram } from '../harness/envoy.js';
import {
  type BatonProcess,
  bootstrap,
  type Config,
  connectRaw,
  type HttpAnswer,
  type HttpRequestOptions,
  httpListener,
  httpRequest,
  ROUTER_FILTER,
  startBaton,
  startUpstream,
  staticCluster,
  type Teardown,
  tcpListener,
  waitFor,
} from '../harness/index.js';
import { startProxy } from '../http/proxy.js';

const PACKAGE = 'type.googleapis.com/envoy.extensions.filters.http.on_demand.v3';
const ADS = { ads: {}, resource_api_version: 'V3' };

function filter(odcds?: Config): Config {
  return {
    name: 'envoy.filters.http.on_demand',
    typed_config: { '@type': `${PACKAGE}.OnDemand`, ...(odcds && { odcds }) },
  };
}

function perRoute(odcds?: Config): Config {
  return {
    typed_per_filter_config: {
      'envoy.filters.http.on_demand': { '@type': `${PACKAGE}.PerRouteConfig`, ...(odcds && { odcds }) },
    },
  };
}

/** Routes by the header x-cluster, and one to a cluster by name. */
function manager(odcds: Config, more: Config = {}): Config {
  const byHeader = { route: { cluster_header: 'x-cluster' } };
  const routes = [
    { match: { prefix: '/off' }, ...byHeader, ...perRoute() },
    { match: { prefix: '/own' }, ...byHeader, ...perRoute({ source: odcds['source'] ?? ADS }) },
    { match: { prefix: '/named' }, route: { cluster: 'named' } },
    { match: { prefix: '/' }, ...byHeader },
  ];
  return {
    route_config: { validate_clusters: false, virtual_hosts: [{ name: 'v', domains: ['*'], routes }] },
    http_filters: [filter(odcds), ROUTER_FILTER],
    ...more,
  };
}

interface Rig {
  readonly plane: ControlPlane;
  readonly baton: BatonProcess;
  readonly upstream: number;
  /** Sends a request for a cluster. */
  get(cluster: string | undefined, path?: string, options?: HttpRequestOptions): Promise<HttpAnswer>;
}

interface Options {
  readonly program: ProxyProgram;
  /** Merged over odcds. */
  readonly odcds?: Config;
  readonly listeners?: readonly Config[];
  readonly args?: readonly string[];
  /** Merged over the bootstrap; gets the plane. */
  readonly extra?: (plane: ControlPlane) => Config;
}

async function start(t: Teardown, { args = [], extra, listeners = [], odcds, program }: Options): Promise<Rig> {
  const upstream = await startUpstream(t, (request, response) => {
    let bytes = 0;
    request.on('data', (chunk: Buffer) => (bytes += chunk.length));
    request.on('end', () => response.end(`${bytes} bytes`));
  });
  const plane = await startControlPlane(t);
  plane.set('cluster', []);
  const baton = await startBaton(t, {
    ...program,
    args,
    config: bootstrap({
      listeners: [httpListener('main', 0, manager({ source: ADS, ...odcds })), ...listeners],
      clusters: [plane.cluster()],
      extra: {
        node: { id: 'test-node', cluster: 'test-cluster' },
        dynamic_resources: { ads_config: plane.api('delta') },
        ...extra?.(plane),
      },
    }),
  });
  const port = await baton.listenerPort('main');
  return {
    plane,
    baton,
    upstream: upstream.port,
    get: (cluster, path = '/', { headers, ...options } = {}) =>
      httpRequest(port, path, { ...options, headers: { ...headers, ...(cluster && { 'x-cluster': cluster }) } }),
  };
}

/** Returns the names of all requests for clusters. */
function requested({ requests }: ControlPlane): string[] {
  return requests.filter(({ type }) => type === 'cluster').flatMap(({ names }) => names);
}

besideEnvoy('a request waits for its cluster, and later ones find it', async (t, program) => {
  const { baton, get, plane, upstream } = await start(t, { program });
  plane.set(
    'cluster',
    ['a', 'named', 'other'].map((name) => staticCluster(name, upstream)),
  );
  t.strictSame(requested(plane), [], 'nothing is requested before a request');
  const both = await Promise.all([get('a'), get('a', '/own')]);
  t.strictSame(
    both.map(({ status }) => status),
    [200, 200],
  );
  t.equal((await get('a')).status, 200);
  t.equal((await get(undefined, '/named')).status, 200, 'a cluster that the route names');
  const body = await get('other', '/', { method: 'POST', body: 'x'.repeat(50_000) });
  t.match(body, { status: 200, body: '50000 bytes' });
  t.strictSame(requested(plane), ['a', 'named', 'other'], 'each is requested once');
  const { body: dump } = await baton.admin('/config_dump?resource=dynamic_active_clusters');
  const names = (JSON.parse(dump) as { configs: { cluster: { name: string } }[] }).configs.map(
    (each) => each.cluster.name,
  );
  t.strictSame(names.sort(), ['a', 'named', 'other']);
  t.match(await baton.stats('cluster_manager.'), { active_clusters: 4, cluster_added: 4, 'odcds.update_rejected': 0 });
});

besideEnvoy('a missing cluster is answered by 503, as without the filter', async (t, program) => {
  const { baton, get, plane, upstream } = await start(t, { program, odcds: { timeout: '30s' } });
  const began = performance.now();
  t.equal((await get('nothing')).status, 503);
  t.ok(performance.now() - began < 20_000, 'the server says so, which ends the wait');
  plane.set('cluster', [staticCluster('off', upstream)]);
  t.equal((await get('off', '/off')).status, 503, 'the route turns it off');
  t.equal((await get(undefined)).status, 503, 'the request names none');
  t.strictSame(requested(plane), ['nothing']);
  t.match(await baton.stats('http.main.'), { no_cluster: 3 });
});

besideEnvoy(
  'a request waits for a silent server until the timeout, and its cluster may come later',
  async (t, program) => {
    const { get, plane, upstream } = await start(t, { program, odcds: { timeout: '0.3s' } });
    plane.hold();
    t.equal((await get('late')).status, 503);
    plane.set('cluster', [staticCluster('late', upstream)]);
    plane.release();
    await waitFor(async () => (await get('late')).status === 200, { what: 'the late cluster' });
  },
);

besideEnvoy('a cluster that the server changes or removes', async (t, program) => {
  const { baton, get, plane, upstream } = await start(t, { program, odcds: { timeout: '0.5s' } });
  plane.set('cluster', [staticCluster('a', 1)]);
  t.equal((await get('a')).status, 503, 'its only host does not listen');
  plane.set('cluster', [staticCluster('a', upstream)]);
  await waitFor(async () => (await get('a')).status === 200, { what: 'the changed cluster' });
  plane.set('cluster', []);
  await baton.waitForStat('cluster_manager.cluster_removed', 1);
  await waitFor(async () => (await get('a')).status === 503, { what: 'the removed cluster' });
});

besideEnvoy('an invalid cluster is refused', async (t, program) => {
  const { get, plane } = await start(t, { program, odcds: { timeout: '0.3s' } });
  plane.set('cluster', [{ ...staticCluster('bad', 1), connect_timeout: '-1s' }]);
  t.equal((await get('bad')).status, 503);
  await plane.waitForNack('cluster');
});

besideEnvoy('a client that leaves ends its wait', async (t, program) => {
  const { baton, plane, upstream } = await start(t, { program, odcds: { timeout: '30s' } });
  plane.hold();
  const client = await connectRaw(t, await baton.listenerPort('main'));
  client.write('GET / HTTP/1.1\r\nhost: a\r\nx-cluster: a\r\n\r\n');
  await waitFor(() => requested(plane).length === 1, { what: 'the request' });
  client.destroy();
  await baton.waitForStat('http.main.downstream_rq_active', 0);
  plane.set('cluster', [staticCluster('a', upstream)]);
  plane.release();
  t.equal((await httpRequest(await baton.listenerPort('main'), '/', { headers: { 'x-cluster': 'a' } })).status, 200);
});

besideEnvoy('TCP connections wait for their cluster', async (t, program) => {
  const tcp = (name: string, timeout = '30s') =>
    tcpListener(name, 0, { cluster: name, on_demand: { odcds_config: ADS, timeout } });
  const { baton, plane, upstream } = await start(t, {
    program,
    listeners: [tcp('there'), tcp('missing'), tcp('silent', '0.2s')],
  });
  plane.set('cluster', [staticCluster('there', upstream)]);
  const get = async (name: string) => {
    const options = { headers: { connection: 'close' } };
    return httpRequest(await baton.listenerPort(name), '/', options).then(
      ({ status }) => status,
      () => 'closed',
    );
  };
  t.equal(await get('there'), 200);
  t.equal(await get('there'), 200);
  t.equal(await get('missing'), 'closed');
  plane.hold();
  t.equal(await get('silent'), 'closed');
  t.match(await baton.stats('tcp.there.'), { on_demand_cluster_attempt: 1, on_demand_cluster_success: 1 });
  t.match(await baton.stats('tcp.missing.'), { on_demand_cluster_missing: 1, downstream_cx_no_route: 1 });
  t.match(await baton.stats('tcp.silent.'), { on_demand_cluster_timeout: 1, downstream_cx_no_route: 1 });
});

for (const protocol of ['its own stream', 'the stream of CDS'] as const) {
  besideEnvoy(`clusters come from ${protocol}`, async (t, program) => {
    const upstream = await startUpstream(t, (_request, response) => void response.end());
    const plane = await startControlPlane(t);
    plane.set('cluster', [staticCluster('all', upstream.port)]);
    const isShared = protocol === 'the stream of CDS';
    const source = isShared ? ADS : plane.source('delta');
    const { baton, port } = await startProxy(t, {
      ...program,
      listeners: { main: manager({ source, timeout: '30s' }) },
      clusters: [plane.cluster()],
      extra: isShared
        ? plane.ads('delta', { lds_config: undefined })
        : { node: { id: 'test-node', cluster: 'test-cluster' } },
    });
    const get = async (cluster: string) => (await httpRequest(port, '/', { headers: { 'x-cluster': cluster } })).status;
    t.equal(await get('all'), 200);
    t.equal(await get('missing'), 503);
    plane.set('cluster', [staticCluster('all', upstream.port), staticCluster('more', upstream.port)]);
    await waitFor(async () => (await get('more')) === 200, { what: 'another cluster' });
    const path = isShared
      ? 'cluster_manager.cds.update_rejected'
      : 'cluster_manager.odcds.control_plane.connected_state';
    t.equal(await baton.stat(path), isShared ? 0 : 1);
  });
}

t.test('a cluster that the server did not have is requested again', async (t) => {
  const { get, plane, upstream } = await start(t, { program: { command: undefined }, odcds: { timeout: '30s' } });
  t.equal((await get('a')).status, 503);
  t.equal((await get('a')).status, 503);
  plane.set('cluster', [staticCluster('a', upstream)]);
  t.equal((await get('a')).status, 200);
});

t.test('names of several clusters are not requested', async (t) => {
  const { get, plane, upstream } = await start(t, { program: { command: undefined }, odcds: { timeout: '30s' } });
  const type = 'envoy.config.cluster.v3.Cluster';
  plane.set('cluster', [staticCluster('a', upstream), staticCluster(`xdstp://s/${type}/b`, upstream)]);
  for (const name of ['*', `xdstp://s/${type}/*`, `xdstp://s/${type}/*?a=b`]) t.equal((await get(name)).status, 503);
  t.strictSame(requested(plane), []);
  t.equal((await get(`xdstp://s/${type}/b`)).status, 200, 'a single one');
  t.equal((await get('a')).status, 200);
  t.strictSame(requested(plane), [`xdstp://s/${type}/b`, 'a']);
});

t.test('a server answers every request for a missing cluster at once', async (t) => {
  const { get } = await start(t, {
    program: { command: undefined },
    odcds: { timeout: '60s' },
    args: ['-l', 'warning', '--concurrency', '2'],
  });
  const began = performance.now();
  for (let i = 0; i < 40; i++) {
    const answers = await Promise.all(Array.from({ length: 8 }, () => get('nothing')));
    t.ok(answers.every(({ status }) => status === 503));
  }
  t.ok(performance.now() - began < 50_000, 'no request has waited for the timeout');
});

besideEnvoy('a cluster that warms for longer than requests wait can be removed', async (t, program) => {
  const { baton, get, plane, upstream } = await start(t, { program, odcds: { timeout: '0.3s' } });
  const eds_cluster_config = { eds_config: { ...ADS, initial_fetch_timeout: '0s' } };
  plane.set('cluster', [{ name: 'late', type: 'EDS', connect_timeout: '2s', eds_cluster_config }]);
  t.equal((await get('late')).status, 503);
  t.equal((await get('late')).status, 503);
  const { load_assignment } = staticCluster('late', upstream);
  plane.set('endpoints', [load_assignment as Config]);
  await waitFor(async () => (await get('late')).status === 200, { what: 'the warm cluster' });
  plane.set('cluster', []);
  await baton.waitForStat('cluster_manager.cluster_removed', 1);
  await waitFor(async () => (await get('late')).status === 503, { what: 'the removed cluster' });
});

t.test('a virtual host on demand configures its clusters on demand', async (t) => {
  const [upstream, plane] = await Promise.all([
    startUpstream(t, (_request, response) => void response.end()),
    startControlPlane(t),
  ]);
  const source = plane.source('delta');
  const host = (name: string, more: Config = {}) => ({
    name: `routes/${name}`,
    domains: [name],
    routes: [{ match: { prefix: '/' }, route: { cluster: name } }],
    ...more,
  });
  plane.set('route', [{ name: 'routes', vhds: { config_source: source } }]);
  plane.set('virtual-host', []);
  const rds = { route_config_name: 'routes', config_source: source };
  const own = { rds, http_filters: [filter({ source: ADS, timeout: '30s' }), ROUTER_FILTER] };
  const none = { rds, http_filters: [filter(), ROUTER_FILTER] };
  const baton = await startBaton(t, {
    config: bootstrap({
      listeners: [httpListener('own', 0, own), httpListener('none', 0, none)],
      clusters: [plane.cluster()],
      extra: {
        node: { id: 'test-node', cluster: 'test-cluster' },
        dynamic_resources: { ads_config: plane.api('delta') },
      },
    }),
  });
  plane.set(
    'cluster',
    ['plain', 'off', 'on'].map((name) => staticCluster(name, upstream.port)),
  );
  plane.set('virtual-host', [
    host('plain'),
    host('off', perRoute()),
    host('on', perRoute({ source: ADS, timeout: '30s' })),
  ]);
  const get = async (listener: string, name: string) =>
    (await httpRequest(await baton.listenerPort(listener), '/', { headers: { host: name } })).status;
  t.equal(await get('own', 'off'), 503, 'it turns them off');
  t.equal(await get('none', 'plain'), 503, 'nothing turns them on');
  t.strictSame(requested(plane), []);
  t.equal(await get('none', 'on'), 200, 'it turns them on');
  t.equal(await get('own', 'plain'), 200);
  t.strictSame(requested(plane), ['on', 'plain']);
});

t.test('a name that is too long is not requested', async (t) => {
  const { baton, get, plane } = await start(t, { program: { command: undefined }, odcds: { timeout: '30s' } });
  t.equal((await get('x'.repeat(2000))).status, 503);
  t.equal(await baton.stat('cluster_manager.odcds.requests_overflow'), 1);
  t.strictSame(requested(plane), []);
});

t.test('all workers get the cluster, whichever has requested it', async (t) => {
  const { baton, get, plane, upstream } = await start(t, {
    program: { command: undefined },
    odcds: { timeout: '30s' },
    args: ['-l', 'warning', '--concurrency', '2'],
  });
  plane.hold();
  const port = await baton.listenerPort('main');
  const clients = await Promise.all(Array.from({ length: 20 }, () => connectRaw(t, port)));
  for (const client of clients) client.write('GET / HTTP/1.1\r\nhost: a\r\nx-cluster: a\r\n\r\n');
  await baton.waitForStat('http.main.downstream_rq_active', 20);
  await waitFor(() => requested(plane).length === 1, { what: 'the request' });
  for (const client of clients) client.destroy();
  plane.set('cluster', [staticCluster('a', upstream)]);
  plane.release();
  for (let i = 0; i < 4; i++) t.equal((await get('a')).status, 200);
});

t.test('names that clients make up are bounded, and do not keep others from their clusters', async (t) => {
  const { baton, get, plane, upstream } = await start(t, {
    program: { command: undefined },
    odcds: { timeout: '60s' },
    args: ['-l', 'warning'],
  });
  plane.hold();
  const port = await baton.listenerPort('main');
  const clients = await Promise.all(Array.from({ length: 1100 }, () => connectRaw(t, port)));
  for (const [index, client] of clients.entries())
    client.write(`GET / HTTP/1.1\r\nhost: a\r\nx-cluster: made-up-${index}\r\n\r\n`);
  await waitFor(async () => ((await baton.stat('cluster_manager.odcds.requests_overflow')) ?? 0) >= 76, {
    what: 'dismissed requests',
  });
  for (const client of clients) client.destroy();
  await baton.waitForStat('http.main.downstream_rq_active', 0);
  plane.set('cluster', [staticCluster('real', upstream)]);
  plane.release();
  t.equal((await get('real')).status, 200);
});

t.test('more sources than there is room for replace those that were asked longest ago', async (t) => {
  const upstream = await startUpstream(t, (_, response) => response.end('here'));
  const plane = await startControlPlane(t);
  const names = Array.from({ length: 70 }, (_, index) => `c${index}`);
  plane.set(
    'cluster',
    names.map((name) => staticCluster(name, upstream.port)),
  );
  const routes = names.map((name, index) => ({
    match: { path: `/${name}` },
    route: { cluster: name },
    ...perRoute({ source: { ...ADS, initial_fetch_timeout: `${index + 1}s` } }),
  }));
  const route_config = { validate_clusters: false, virtual_hosts: [{ name: 'v', domains: ['*'], routes }] };
  const baton = await startBaton(t, {
    config: bootstrap({
      listeners: [httpListener('main', 0, manager({ source: ADS }, { route_config }))],
      clusters: [plane.cluster()],
      extra: { node: { id: 'n', cluster: 'c' }, dynamic_resources: { ads_config: plane.api('delta') } },
    }),
  });
  const port = await baton.listenerPort('main');
  // The first ones again, whose sources have been replaced.
  for (const name of [...names, ...names.slice(0, 3)]) t.equal((await httpRequest(port, `/${name}`)).status, 200, name);
  await baton.waitForStat('cluster_manager.active_clusters', 65);
  t.equal((await baton.stat('cluster_manager.odcds.clusters_overflow')) ?? 0, 0);
});

for (const [what, odcds, expected] of [
  ['no source', {}, 'it needs source'],
  ['a file', { source: { path_config_source: { path: 'clusters.yaml' } } }, 'only by DELTA_GRPC'],
  ['state of the world', { source: 'sotw' }, 'only by DELTA_GRPC'],
] as const) {
  t.test(`${what} cannot deliver clusters on demand`, async (t) => {
    const plane = await startControlPlane(t);
    const config =
      'source' in odcds && odcds.source === 'sotw' ? { source: plane.source('sotw' as XdsProtocol) } : odcds;
    const baton = await startBaton(t, {
      wait: 'spawned',
      args: ['--mode', 'validate'],
      config: bootstrap({
        listeners: [httpListener('main', 0, manager(config))],
        clusters: [plane.cluster()],
        extra: { node: { id: 'n', cluster: 'c' } },
      }),
    });
    t.equal((await baton.exited).code, 1);
    t.match(baton.stderr, expected);
  });
}
