// xdstp names: resources of a management server may have them, and listeners and clusters may be collections. The expected results are
// those of Envoy 1.40.

import t from 'tap';
import { type ControlPlane, startControlPlane, type XdsProtocol } from '../harness/control-plane.js';
import { besideEnvoy, type ProxyProgram } from '../harness/envoy.js';
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
  waitFor,
} from '../harness/index.js';

const ADS = { ads: {}, resource_api_version: 'V3' };
const CLUSTERS = 'xdstp://server/envoy.config.cluster.v3.Cluster/mesh';
const LISTENERS = 'xdstp://server/envoy.config.listener.v3.Listener/mesh';
const ROUTES = 'xdstp://server/envoy.config.route.v3.RouteConfiguration/mesh/routes';
const ENDPOINTS = 'xdstp:///envoy.config.endpoint.v3.ClusterLoadAssignment/mesh/endpoints?zone=a';

interface Rig {
  readonly plane: ControlPlane;
  readonly baton: BatonProcess;
  get(path: string): Promise<number>;
  /** Sets the clusters: those of the collection, and one that is not in it. */
  setClusters(...names: string[]): void;
}

/** `parameters` of the names of listeners and clusters. */
async function start(
  t: Teardown,
  program: ProxyProgram,
  protocol: XdsProtocol,
  more: Config,
  parameters = { listeners: '', clusters: '' },
): Promise<Rig> {
  const upstream = await startUpstream(t, (_request, response) => void response.end());
  const plane = await startControlPlane(t);
  const name = (last: string) => `${CLUSTERS}/${last}${parameters.clusters}`;
  const setClusters = (...names: string[]) => {
    const inCollection = names.map((each) => staticCluster(name(each), upstream.port));
    const eds = { service_name: ENDPOINTS, eds_config: ADS };
    plane.set('cluster', [
      ...inCollection,
      { name: name('eds'), type: 'EDS', connect_timeout: '2s', eds_cluster_config: eds },
      staticCluster('elsewhere', upstream.port),
    ]);
  };
  setClusters('a');
  plane.set('endpoints', [
    { cluster_name: ENDPOINTS, endpoints: [{ lb_endpoints: [{ endpoint: { address: loopback(upstream.port) } }] }] },
  ]);
  const rds = { route_config_name: ROUTES, config_source: ADS };
  plane.set('listener', [httpListener(`${LISTENERS}/front${parameters.listeners}`, 0, { stat_prefix: 'front', rds })]);
  const routes = [...['a', 'b', 'eds'].map(name), 'elsewhere'].map((cluster, index) => ({
    match: { prefix: ['/a', '/b', '/eds', '/elsewhere'][index] },
    route: { cluster },
  }));
  plane.set('route', [{ name: ROUTES, virtual_hosts: [{ name: 'v', domains: ['*'], routes }] }]);
  const { dynamic_resources, ...extra } = more;
  const baton = await startBaton(t, {
    ...program,
    config: bootstrap({
      listeners: [],
      clusters: [plane.cluster()],
      extra: {
        node: { id: 'node 1', cluster: 'a&b', locality: { zone: 'z' }, metadata: { role: 'edge' } },
        dynamic_resources: {
          ads_config: plane.api(protocol),
          ...{ lds_config: ADS, cds_config: ADS },
          ...(dynamic_resources as Config),
        },
        ...extra,
      },
    }),
  });
  const { body } = await baton.admin('/listeners');
  const port = Number(/:(\d+)\n/.exec(body)![1]);
  return { plane, baton, setClusters, get: async (path) => (await httpRequest(port, path)).status };
}

for (const protocol of ['sotw', 'delta'] as const) {
  besideEnvoy(
    `resources with xdstp names are requested from the source next to the name (${protocol})`,
    async (t, program) => {
      const { get, plane } = await start(t, program, protocol, {});
      for (const path of ['/a', '/eds', '/elsewhere']) t.equal(await get(path), 200);
      t.equal(await get('/b'), 503);
      const names = plane.requests.flatMap((request) => request.names);
      t.ok(names.includes(ROUTES));
      t.ok(names.includes(ENDPOINTS));
    },
  );
}

besideEnvoy('collections of listeners and clusters follow the server', async (t, program) => {
  const { baton, get, plane, setClusters } = await start(t, program, 'delta', {
    dynamic_resources: { lds_resources_locator: `${LISTENERS}/*`, cds_resources_locator: `${CLUSTERS}/*` },
  });
  const first = (type: string) => plane.requests.find((request) => request.type === type)!.names;
  t.strictSame([first('cluster'), first('listener')], [[`${CLUSTERS}/*`], [`${LISTENERS}/*`]]);
  for (const path of ['/a', '/eds']) t.equal(await get(path), 200);
  t.equal(await get('/elsewhere'), 503, 'it is not in the collection');
  setClusters('b');
  await plane.waitForAck('cluster');
  await waitFor(async () => (await get('/b')) === 200 && (await get('/a')) === 503, { what: 'the other cluster' });
  const { body } = await baton.admin('/clusters');
  t.notOk(body.includes(`${CLUSTERS}/a::`));
  plane.endStreams();
  await waitFor(() => plane.streamCount > 1 && plane.streams === 1, { what: 'another stream' });
  setClusters('a', 'b');
  await waitFor(async () => (await get('/a')) === 200, { what: 'the added cluster' });
  t.equal(await get('/b'), 200);
});

besideEnvoy('the node is a part of the names of collections', async (t, program) => {
  const clusters =
    '?shard=1&xds.node.cluster=a%26b&xds.node.id=own&xds.node.locality.zone=z&xds.node.metadata.role="edge"';
  const listeners = '?xds.node.cluster=a%26b&xds.node.id=node 1&xds.node.locality.zone=z&xds.node.metadata.role="edge"';
  const { get, plane } = await start(
    t,
    program,
    'delta',
    {
      node_context_params: ['id', 'cluster', 'locality.zone', 'metadata'],
      dynamic_resources: {
        lds_resources_locator: `${LISTENERS}/*`,
        cds_resources_locator: `${CLUSTERS}/*?xds.node.id=own&shard=1`,
      },
    },
    { listeners, clusters },
  );
  const first = (type: string) => plane.requests.find((request) => request.type === type)!.names;
  t.strictSame([first('cluster'), first('listener')], [[`${CLUSTERS}/*${clusters}`], [`${LISTENERS}/*${listeners}`]]);
  t.equal(await get('/a'), 200);
});

for (const [what, dynamic, expected] of [
  [
    'another type',
    { cds_resources_locator: `${LISTENERS}/*` },
    'xdstp:// type does not match envoy.config.cluster.v3.Cluster',
  ],
  [
    'a list',
    { cds_resources_locator: `${CLUSTERS}/list` },
    "only glob collections are implemented, whose names end with '/*'",
  ],
  ['a directive', { cds_resources_locator: `${CLUSTERS}/*#entry=a` }, 'it must be an xdstp name without directives'],
  ['a file', { cds_resources_locator: 'file:///clusters.yaml' }, 'it must be an xdstp name'],
  ['no source', { cds_resources_locator: `${CLUSTERS}/*`, cds_config: undefined }, 'it needs cds_config'],
  [
    'a file as the source',
    { cds_resources_locator: `${CLUSTERS}/*`, cds_config: { path: 'a.yaml' } },
    'only by DELTA_GRPC',
  ],
] as const) {
  t.test(`a locator with ${what} is refused`, async (t) => {
    const plane = await startControlPlane(t);
    const extra = {
      node: { id: 'n', cluster: 'c' },
      dynamic_resources: { ads_config: plane.api('delta'), cds_config: ADS, ...dynamic },
    };
    const baton = await startBaton(t, {
      wait: 'spawned',
      args: ['--mode', 'validate'],
      config: bootstrap({ listeners: [], clusters: [plane.cluster()], extra }),
    });
    t.equal((await baton.exited).code, 1);
    t.match(baton.stderr, expected);
  });
}

t.test('sources of authorities are refused by name', async (t) => {
  const plane = await startControlPlane(t);
  const extra = {
    node: { id: 'n', cluster: 'c' },
    config_sources: [{ authorities: [{ name: 'server' }], api_config_source: plane.api('delta') }],
    default_config_source: { api_config_source: plane.api('delta') },
  };
  const baton = await startBaton(t, {
    wait: 'spawned',
    args: ['--mode', 'validate'],
    config: bootstrap({ listeners: [], clusters: [plane.cluster()], extra }),
  });
  t.equal((await baton.exited).code, 1);
  for (const field of ['config_sources', 'default_config_source']) t.match(baton.stderr, `field '${field}'`);
});
