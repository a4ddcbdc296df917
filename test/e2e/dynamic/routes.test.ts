// Routes that change under traffic: no request is lost, invalid updates change nothing, and requests wait for missing virtual
// hosts.

import t, { type Test } from 'tap';
import { startControlPlane } from '../harness/control-plane.js';
import {
  type BatonProcess,
  bootstrap,
  type Config,
  connectRaw,
  httpListener,
  httpRequest,
  Load,
  ROUTER_FILTER,
  startBaton,
  startUpstream,
  staticCluster,
  tempDir,
  waitFor,
} from '../harness/index.js';
import { KeepAliveClient, tally } from '../http/keep-alive.js';
import { answering, routeTo } from '../http/proxy.js';
import { ResourceFile } from './resource-file.js';

const ROUTES = 'envoy.config.route.v3.RouteConfiguration';
const ON_DEMAND: Config = {
  name: 'envoy.filters.http.on_demand',
  typed_config: { '@type': 'type.googleapis.com/envoy.extensions.filters.http.on_demand.v3.OnDemand' },
};

/** Returns routes that answer with the text. */
function saying(text: string, name = 'routes', more: Config = {}): Config {
  return {
    name,
    virtual_hosts: [{ name: 'all', domains: ['*'], routes: [answering({ prefix: '/' }, text)] }],
    ...more,
  };
}

async function wasReloadedSince(t: Test, before: number, baton: BatonProcess, scope: string): Promise<void> {
  const at = (await baton.stat(`${scope}.config_reload_time_ms`))!;
  t.ok(before <= at && at <= Date.now(), `${scope}: ${at}, not before ${before}`);
}

t.test(
  'routes from a file are swapped under load without a failed request, and invalid ones change nothing',
  async (t) => {
    const upstream = await startUpstream(t, (_request, answer) => void answer.end('upstream'));
    const file = new ResourceFile(tempDir(t), 'routes');
    file.write(ROUTES, saying('0'));
    const rds = { route_config_name: 'routes', config_source: file.source };
    const baton = await startBaton(t, {
      args: ['-l', 'warning', '--concurrency', '2'],
      config: bootstrap({
        listeners: [httpListener('in', 0, { rds })],
        clusters: [staticCluster('up', upstream.port)],
      }),
    });
    const port = await baton.listenerPort('in');
    const client = new KeepAliveClient(t, port, 8);
    const seen: string[] = [];
    const load = new Load(t, 8, async () => {
      const { body, status } = await client.get('/');
      seen.push(`${status} ${body}`);
    });
    const served = (text: string) => async () => (await httpRequest(port)).body === text;
    for (let round = 1; round <= 10; round++) {
      file.write(ROUTES, saying(`${round}`));
      await waitFor(served(`${round}`), { what: `routes ${round}` });
    }
    const all = { name: 'all', domains: ['*'], routes: [routeTo({ prefix: '/' }, 'up')] };
    file.write(ROUTES, { name: 'routes', virtual_hosts: [all], validate_clusters: true });
    await waitFor(served('upstream'), { what: 'routes to a cluster' });
    await load.end();
    t.same(load.failures, []);
    t.ok(seen.length > 0);
    const answers = Object.keys(tally(seen));
    t.strictSame(
      answers.filter((answer) => !answer.startsWith('200 ')),
      [],
    );
    const nowhere = { ...all, routes: [routeTo({ prefix: '/' }, 'nowhere')] };
    file.write(ROUTES, { name: 'routes', virtual_hosts: [nowhere], validate_clusters: true });
    await baton.waitForStat('http.in.rds.routes.update_rejected', 1);
    t.match(await httpRequest(port), { status: 200, body: 'upstream' });
    t.match(baton.stderr, /route configuration 'routes': unknown cluster 'nowhere'/);
    const { body } = await baton.admin('/config_dump?resource=dynamic_route_configs');
    t.match(JSON.parse(body).configs, [
      {
        '@type': 'type.googleapis.com/envoy.admin.v3.RoutesConfigDump.DynamicRouteConfig',
        version_info: '12',
        route_config: {
          '@type': `type.googleapis.com/${ROUTES}`,
          name: 'routes',
          virtual_hosts: [{ routes: [{ route: { cluster: 'up' } }] }],
        },
        error_state: { details: /unknown cluster 'nowhere'/, version_info: '13' },
        client_status: 'NACKED',
      },
    ]);
    const before = Date.now();
    file.write(ROUTES, { name: 'routes', virtual_hosts: [nowhere] });
    await waitFor(async () => (await httpRequest(port)).status === 503, { what: 'a route to a missing cluster' });
    t.equal(await baton.stat('http.in.rds.routes.config_reload'), 13);
    await wasReloadedSince(t, before, baton, 'http.in.rds.routes');
    t.ok((await baton.stat('http.in.no_cluster'))! > 0);
  },
);

t.test(
  'thousands of virtual hosts stop using a cluster before it is removed, and requests are served meanwhile',
  async (t) => {
    const upstreams = await Promise.all(
      ['one', 'two'].map((name) => startUpstream(t, (_request, answer) => void answer.end(name))),
    );
    const [one, two] = upstreams.map(({ port }, index) => staticCluster(index === 0 ? 'one' : 'two', port)) as [
      Config,
      Config,
    ];
    const long = (cluster: string, path = '/nowhere') => ({
      name: 'routes',
      virtual_hosts: Array.from({ length: 5000 }, (_, index) => ({
        name: `v${index}`,
        domains: index === 0 ? ['*'] : [`h${index}.com`],
        routes: [routeTo({ prefix: path }, cluster), routeTo({ prefix: '/' }, cluster)],
      })),
    });
    const plane = await startControlPlane(t);
    const rds = { route_config_name: 'routes', config_source: { resource_api_version: 'V3', ads: {} } };
    plane.set('cluster', [one, two]);
    plane.set('listener', [httpListener('in', 0, { rds })]);
    plane.set('route', [long('one')]);
    const baton = await startBaton(t, {
      args: ['-l', 'warning', '--concurrency', '2'],
      config: bootstrap({ listeners: [], clusters: [plane.cluster()], extra: plane.ads() }),
    });
    const client = new KeepAliveClient(t, await baton.listenerPort('in'), 4);
    const seen: string[] = [];
    const load = new Load(t, 4, async () => {
      const { body, status } = await client.get('/');
      seen.push(`${status} ${body}`);
    });
    await waitFor(() => seen.includes('200 one'), { what: 'the first cluster' });
    plane.set('route', [long('two')]);
    await plane.waitForAck('route');
    plane.set('cluster', [two]);
    await plane.waitForAck('cluster');
    await waitFor(() => seen.at(-1) === '200 two', { what: 'the second cluster' });
    await baton.waitForStat('cluster_manager.cluster_removed', 1);
    await client.repeat(20, '/');
    await load.end();
    t.same(load.failures, []);
    t.strictSame(Object.keys(tally(seen)).sort(), ['200 one', '200 two'], 'the old routes serve until the new ones do');
    // It may be removed while workers still build.
    plane.set('route', [long('two', '/elsewhere')]);
    await plane.waitForAck('route');
    await baton.stop();
  },
);

t.test('a listener accepts no traffic before its routes have arrived', async (t) => {
  const plane = await startControlPlane(t);
  plane.set('route', [saying('here')]);
  plane.hold();
  const rds = { route_config_name: 'routes', config_source: plane.source('sotw', { initial_fetch_timeout: '0s' }) };
  const baton = await startBaton(t, {
    wait: 'admin',
    config: bootstrap({ listeners: [httpListener('in', 0, { rds })], clusters: [plane.cluster()] }),
  });
  await waitFor(async () => /target RDS routes/.test((await baton.admin('/init_dump')).body), { what: 'the target' });
  t.match(await baton.admin('/ready'), { status: 503, body: 'INITIALIZING\n' });
  plane.release();
  await waitFor(async () => (await baton.admin('/ready')).status === 200, { what: 'a live server' });
  t.match(await httpRequest(await baton.listenerPort('in')), { status: 200, body: 'here' });
  const twice = { name: 'b', domains: ['*'], routes: [answering({ prefix: '/' }, 'b')] };
  plane.set('route', [{ ...saying('a'), virtual_hosts: [twice, { ...twice, name: 'c' }] }]);
  const reloadedAt = await baton.stat('http.in.rds.routes.config_reload_time_ms');
  const { error } = await plane.waitForNack('route');
  t.match(error, /domain '\*'/);
  t.equal(
    await baton.stat('http.in.rds.routes.config_reload_time_ms'),
    reloadedAt,
    'a rejected update is not a reload',
  );
  t.match(await httpRequest(await baton.listenerPort('in')), { status: 200, body: 'here' });
});

t.test('requests for an unknown virtual host wait for it, or are answered when it does not exist', async (t) => {
  const upstream = await startUpstream(t, (request, answer) => void request.pipe(answer));
  const plane = await startControlPlane(t);
  const hosts = [{ name: 'known', domains: ['known.com'], routes: [answering({ prefix: '/' }, 'known')] }];
  plane.set('route', [{ name: 'routes', virtual_hosts: hosts, vhds: { config_source: plane.source('delta') } }]);
  plane.set('virtual-host', []);
  const rds = { route_config_name: 'routes', config_source: plane.source('delta') };
  const manager = { rds, http_filters: [ON_DEMAND, ROUTER_FILTER] };
  const baton = await startBaton(t, {
    args: ['-l', 'warning', '--concurrency', '2'],
    config: bootstrap({
      // Less than a client sends with its header section.
      listeners: [{ ...httpListener('in', 0, manager), per_connection_buffer_limit_bytes: 1024 }],
      clusters: [plane.cluster(), staticCluster('up', upstream.port)],
    }),
  });
  const port = await baton.listenerPort('in');
  const to = (host: string, more = {}) => httpRequest(port, '/', { headers: { host }, ...more });
  t.match(await to('known.com'), { status: 200, body: 'known' });
  t.match(await to('nowhere.com'), { status: 404 });
  plane.hold();
  const before = Date.now();
  const body = 'x'.repeat(3_000_000);
  const waiting = [to('New.com'), to('new.com', { method: 'POST', body })];
  await plane.waitFor('the subscription', ({ names }) => names.includes('routes/new.com'));
  plane.set('virtual-host', [
    { name: 'routes/new.com', domains: ['new.com'], routes: [routeTo({ prefix: '/' }, 'up')] },
  ]);
  plane.release();
  const [got, posted] = await Promise.all(waiting);
  t.match(got, { status: 200, body: '' });
  t.equal(posted!.status, 200);
  t.equal(posted!.body.length, body.length);
  t.match(await to('new.com'), { status: 200 });
  t.equal(await baton.stat('http.in.rds.vhds.routes.config_reload'), 1);
  await wasReloadedSince(t, before, baton, 'http.in.rds.vhds.routes');
  const dump = await baton.admin('/config_dump?resource=dynamic_route_configs');
  t.match(
    JSON.parse(dump.body).configs[0].route_config.virtual_hosts.map(({ name }: Config) => name),
    ['known', 'routes/new.com'],
    'the dump shows all virtual hosts in use',
  );
  plane.set('virtual-host', []);
  await waitFor(async () => (await to('new.com')).status === 404, { what: 'the removal of a virtual host' });
});

t.test('a request for an on-demand virtual host does not bypass its authorization', async (t) => {
  const asked: string[] = [];
  const service = await startUpstream(t, ({ url }, answer) => {
    asked.push(url!);
    answer.end();
  });
  const plane = await startControlPlane(t);
  plane.set('route', [{ name: 'routes', vhds: { config_source: plane.source('delta') } }]);
  plane.set('virtual-host', []);
  const authz = {
    name: 'authz',
    typed_config: {
      '@type': 'type.googleapis.com/envoy.extensions.filters.http.ext_authz.v3.ExtAuthz',
      http_service: { server_uri: { uri: 'http://service', cluster: 'service', timeout: '5s' } },
    },
  };
  const rds = { route_config_name: 'routes', config_source: plane.source('delta') };
  const baton = await startBaton(t, {
    args: ['-l', 'warning'],
    config: bootstrap({
      listeners: [httpListener('in', 0, { rds, http_filters: [authz, ON_DEMAND, ROUTER_FILTER] })],
      clusters: [plane.cluster(), staticCluster('service', service.port)],
    }),
  });
  const port = await baton.listenerPort('in');
  plane.hold();
  const late = httpRequest(port, '/secret', { headers: { host: 'late.com' } });
  await plane.waitFor('the subscription', ({ names }) => names.includes('routes/late.com'));
  plane.set('virtual-host', [
    { name: 'routes/late.com', domains: ['late.com'], routes: [answering({ prefix: '/' }, 'late')] },
  ]);
  plane.release();
  t.match(await late, { status: 200, body: 'late' });
  t.strictSame(asked, ['/secret']);
});

t.test('the filter configurations of an on-demand virtual host apply to the request that waited for it', async (t) => {
  const plane = await startControlPlane(t);
  const ads = { resource_api_version: 'V3', ads: {} };
  const mutation = 'type.googleapis.com/envoy.extensions.filters.http.header_mutation.v3.HeaderMutation';
  const saying = (value: string) => ({
    mutations: { response_mutations: [{ append: { header: { key: 'said', value } } }] },
  });
  const filter = { name: 'mutation', typed_config: { '@type': mutation, ...saying('filter') } };
  const rds = { route_config_name: 'routes', config_source: ads };
  const more = { typed_per_filter_config: { mutation: { '@type': `${mutation}PerRoute`, ...saying('host') } } };
  const routes = [answering({ prefix: '/' }, 'late')];
  plane.set('cluster', []);
  plane.set('virtual-host', []);
  plane.set('route', [{ name: 'routes', vhds: { config_source: plane.source('delta') } }]);
  plane.set('listener', [httpListener('in', 0, { rds, http_filters: [ON_DEMAND, filter, ROUTER_FILTER] })]);
  const baton = await startBaton(t, {
    config: bootstrap({ listeners: [], clusters: [plane.cluster()], extra: plane.ads('sotw') }),
  });
  const port = await baton.listenerPort('in');
  plane.hold();
  const late = httpRequest(port, '/', { headers: { host: 'late.com' } });
  const none = httpRequest(port, '/', { headers: { host: 'none.com' } });
  for (const host of ['late', 'none']) {
    await plane.waitFor(`the subscription to ${host}`, ({ names }) => names.includes(`routes/${host}.com`));
  }
  // An empty resource with its name reports that it does not exist.
  plane.respond('virtual-host', 'delta', {
    type_url: 'type.googleapis.com/envoy.config.route.v3.VirtualHost',
    system_version_info: '7',
    nonce: '7',
    resources: [{ name: 'routes/none.com', aliases: ['routes/none.com'] }],
  });
  t.match(await none, { status: 404, headers: { said: 'filter' } });
  plane.set('virtual-host', [{ name: 'routes/late.com', domains: ['late.com'], routes, ...more }]);
  plane.release();
  t.match(await late, { status: 200, body: 'late', headers: { said: 'filter, host' } });
  t.equal(await baton.stat('http.in.rds.vhds.routes.update_rejected'), 0);
});

t.test('made-up virtual hosts do not block existing ones', async (t) => {
  const plane = await startControlPlane(t);
  plane.set('route', [{ name: 'routes', vhds: { config_source: plane.source('delta') } }]);
  plane.set('virtual-host', []);
  const rds = { route_config_name: 'routes', config_source: plane.source('delta') };
  const baton = await startBaton(t, {
    args: ['-l', 'warning', '--concurrency', '1'],
    config: bootstrap({
      listeners: [httpListener('in', 0, { rds, http_filters: [ON_DEMAND, ROUTER_FILTER] })],
      clusters: [plane.cluster()],
    }),
  });
  const port = await baton.listenerPort('in');
  plane.hold();
  const gone = await connectRaw(t, port);
  gone.write('GET / HTTP/1.1\r\nhost: gone.com\r\n\r\n');
  await plane.waitFor('the subscription', ({ names }) => names.includes('routes/gone.com'));
  gone.destroy();
  await plane.waitFor('its removal', ({ unsubscribed }) => unsubscribed.includes('routes/gone.com'));

  const made = Array.from({ length: 1024 }, (_, index) =>
    connectRaw(t, port).then((client) => {
      client.write(`GET / HTTP/1.1\r\nhost: made-up-${index}.com\r\n\r\n`);
      return client;
    }),
  );
  const clients = await Promise.all(made);
  const asked = () => new Set(plane.requests.flatMap(({ names }) => names.filter((name) => name.includes('made-up'))));
  await waitFor(() => asked().size === clients.length, { what: 'all subscriptions' });
  const there = httpRequest(port, '/', { headers: { host: 'there.com' } });
  await plane.waitFor('the subscription', ({ names }) => names.includes('routes/there.com'));
  const routes = [answering({ prefix: '/' }, 'there')];
  plane.set('virtual-host', [{ name: 'routes/there.com', domains: ['there.com'], routes }]);
  plane.release();
  t.match(await there, { status: 200, body: 'there' });
  await baton.waitForStat('http.in.rds.vhds.routes.requests_overflow', 1);
  t.equal(await baton.stat('http.in.rds.vhds.routes.hosts_overflow'), 0);
  for (const client of clients) client.destroy();
  await baton.stop();
});

t.test('the scope of a request selects its routes', async (t) => {
  const plane = await startControlPlane(t);
  const scope = (name: string, routes: string) => ({
    name: `scope-${name}`,
    key: { fragments: [{ string_key: name }] },
    route_configuration_name: routes,
  });
  plane.set('scoped-route', [scope('a', 'first'), scope('b', 'second')]);
  plane.set('route', [saying('first', 'first'), saying('second', 'second')]);
  const ads = { resource_api_version: 'V3', ads: {} };
  const scoped_routes = {
    name: 'scopes',
    scope_key_builder: { fragments: [{ header_value_extractor: { name: 'tenant', index: 0 } }] },
    rds_config_source: ads,
    scoped_rds: { scoped_rds_config_source: ads },
  };
  const baton = await startBaton(t, {
    config: bootstrap({
      listeners: [httpListener('in', 0, { scoped_routes })],
      clusters: [plane.cluster()],
      extra: { node: { id: 'n', cluster: 'c' }, dynamic_resources: { ads_config: plane.api() } },
    }),
  });
  const port = await baton.listenerPort('in');
  const of = async (tenant: string) => (await httpRequest(port, '/', { headers: { tenant } })).body;
  t.equal(await of('a'), 'first');
  t.equal(await of('b'), 'second');
  t.match(await httpRequest(port), { status: 404 });
  t.equal(await baton.stat('http.in.scoped_rds.scopes.active_scopes'), 2);
  const before = Date.now();
  plane.set('scoped-route', [scope('a', 'second'), scope('c', 'first')]);
  await waitFor(async () => (await of('c')) === 'first', { what: 'the new scope' });
  await wasReloadedSince(t, before, baton, 'http.in.scoped_rds.scopes');
  t.equal(await of('a'), 'second');
  t.equal(await of('b'), '');
  const { body } = await baton.admin('/config_dump?resource=dynamic_scoped_route_configs');
  t.match(JSON.parse(body).configs, [
    { name: 'scopes', scoped_route_configs: [{ name: 'scope-a' }, { name: 'scope-c' }] },
  ]);
});
