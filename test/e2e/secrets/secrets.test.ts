// The admin interface, the log, the command line and messages to management servers show no credential of a configuration.

import { writeFileSync } from 'node:fs';
import t from 'tap';
import { startControlPlane } from '../harness/control-plane.js';
import {
  type BatonProcess,
  bootstrap,
  type Config,
  HTTP2_CLUSTER,
  startBaton,
  startUpstream,
  waitFor,
} from '../harness/index.js';
import {
  cluster,
  endpoint,
  headerMutation,
  leaks,
  listener,
  metadata,
  routeConfiguration,
  secret,
  uri,
} from './credentials.js';
import { mistakes, refusals } from './invalid-configurations.js';

const ADS = { resource_api_version: 'V3', ads: {} };

/** Returns the leaks in the responses of GET for every path that /help lists, and of dumps with each filter. */
async function leaksOfAdmin(baton: BatonProcess): Promise<string[]> {
  const { body: help } = await baton.admin('/help');
  const listed = Array.from(help.matchAll(/^ {2}(\/[\w/]*)/gm), ([, path]) => path!);
  const lists = ['bootstrap.static_resources.clusters', 'bootstrap.static_resources.listeners'];
  const resources = [
    'static_clusters',
    'dynamic_active_clusters',
    'static_listeners',
    'dynamic_listeners',
    'static_route_configs',
    'dynamic_route_configs',
    'dynamic_endpoint_configs',
    'static_endpoint_configs',
    'ecds_filters',
  ];
  const paths = [
    ...listed.filter((path) => !/stream|dump_|heap|profil|contention|quit/.test(path)),
    '/config_dump?include_eds',
    ...lists.map((mask) => `/config_dump?mask=${mask}`),
    ...resources.map((resource) => `/config_dump?include_eds&resource=${resource}`),
    '/config_dump?resource=static_clusters&mask=cluster.health_checks,cluster.metadata',
    '/clusters?format=json',
    '/listeners?format=json',
  ];
  return (await Promise.all(paths.map(async (path) => leaks(path, (await baton.admin(path)).body)))).flat();
}

/** Listeners and clusters with other credentials. */
function changed(plane: Config): Config {
  return {
    static_resources: {
      listeners: [listener('static', { route_config: routeConfiguration('static-routes', 'static') })],
      clusters: [plane, cluster('static', 1)],
    },
  };
}

t.test('a running server shows no credential', async (t) => {
  const upstream = await startUpstream(t, (_request, answer) => void answer.end('host'));
  const plane = await startControlPlane(t);
  plane.set('listener', [
    listener('dynamic', { rds: { route_config_name: 'routes', config_source: ADS } }, [
      {
        name: 'discovered',
        config_discovery: {
          config_source: ADS,
          type_urls: ['type.googleapis.com/envoy.extensions.filters.http.header_mutation.v3.HeaderMutation'],
        },
      },
    ]),
    listener('inline', { route_config: routeConfiguration('own', 'dynamic') }),
  ]);
  plane.set('cluster', [cluster('dynamic', upstream.port, ADS)]);
  plane.set('endpoints', [{ cluster_name: 'dynamic', endpoints: [{ lb_endpoints: [endpoint(upstream.port)] }] }]);
  plane.set('route', [routeConfiguration('routes', 'dynamic')]);
  plane.set('extension-config', [{ name: 'discovered', typed_config: headerMutation() }]);
  const { node, dynamic_resources } = plane.ads() as { node: object; dynamic_resources: { ads_config: object } };
  const ads_config = {
    ...dynamic_resources.ads_config,
    grpc_services: [
      {
        envoy_grpc: { cluster_name: 'control-plane' },
        initial_metadata: [
          { key: 'x-tenant', value: secret() },
          { key: 'authorization', value: secret() },
        ],
      },
    ],
  };
  const config = bootstrap({
    listeners: [listener('static', { route_config: routeConfiguration('static-routes', 'static') })],
    clusters: [plane.cluster(), cluster('static', upstream.port)],
    extra: {
      node: { ...node, metadata: { ...metadata(), password: secret(), url: uri() } },
      dynamic_resources: { ...dynamic_resources, ads_config },
    },
  });
  const yaml = `{ node: { metadata: { more: { api_token: ${secret()} }, list: [ { key: x-api-key, value: ${secret()} } ] } } }`;
  const baton = await startBaton(t, { config, args: ['-l', 'trace', '--config-yaml', yaml] });
  await baton.listenerPort('dynamic');
  await baton.listenerPort('inline');
  await waitFor(async () => (await baton.admin('/config_dump')).body.includes('x-tenant'));
  t.same(await leaksOfAdmin(baton), []);

  // Differences are reported without values, and a refused configuration is not shown either.
  const reload = async (query: string) => (await baton.admin(`/config/reload?${query}`, { method: 'POST' })).body;
  const second = { ...config, ...changed(plane.cluster()) };
  writeFileSync(baton.configPath, JSON.stringify(second));
  for (const query of ['format=json', '']) {
    const answer = await reload(query);
    t.match(answer, /request_headers_to_add.*\[redacted\]/s);
    t.same(leaks('reload', answer), []);
  }
  t.match(await reload('apply=true'), /^applied/);
  t.same(await leaksOfAdmin(baton), []);
  for (const [what, broken] of mistakes().slice(0, 3)) {
    writeFileSync(baton.configPath, typeof broken === 'string' ? broken : JSON.stringify({ ...config, ...broken }));
    for (const query of ['format=json', 'apply=true']) {
      const answer = await reload(query);
      t.match(answer, /refused|invalid/, what);
      t.same(leaks(what, answer), []);
    }
  }

  for (const [what, type, resource, error] of refusals(upstream.port)) {
    plane.set(type, [resource]);
    const nack = await plane.waitForNack(type);
    t.match(nack.error, error, what);
    t.same(leaks(what, nack.error!), []);
    const { body } = await baton.admin('/config_dump?include_eds');
    t.match(body, '"error_state"', what);
    t.same(leaks(what, body), []);
  }
  t.same(await leaksOfAdmin(baton), []);
  t.same(leaks('log', baton.stdout + baton.stderr), []);
  await baton.stop();
});

const { ENVOY } = process.env;
t.test("docs/compatibility.md on Envoy's own dump", { skip: ENVOY === undefined && 'ENVOY is not set' }, async (t) => {
  const initial_metadata = [{ key: 'authorization', value: secret() }];
  const grpc_services = [{ envoy_grpc: { cluster_name: 'static' }, initial_metadata }];
  const api_config_source = { api_type: 'GRPC', transport_api_version: 'V3', grpc_services };
  const shown = {
    ...cluster('static', 1),
    health_checks: [],
    metadata: { filter_metadata: { a: { token: secret(), b: uri() } } },
  };
  const config = bootstrap({
    listeners: [],
    clusters: [{ ...shown, ...HTTP2_CLUSTER }],
    extra: {
      dynamic_resources: { cds_config: { resource_api_version: 'V3', api_config_source } },
      node: { id: 'a', cluster: 'b' },
    },
  });
  const envoy = await startBaton(t, { config, command: ENVOY, wait: 'admin' });
  const { body } = await envoy.admin('/config_dump');
  for (const each of JSON.stringify([initial_metadata, shown.metadata]).match(/hunter2-\d+-q/g)!) t.match(body, each);
  await envoy.stop();
});
