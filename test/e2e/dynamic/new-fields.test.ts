// Fields of Envoy 1.40 that Baton does not implement are rejected by name in every kind of resource; fields that no API version
// has are ignored with a warning, as in Envoy. Both in binary form from a management server, and from files.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { encodeJson, loadMessages } from '../../../src/config/schema/messages.js';
import { RESOURCE_MESSAGES, type ResourceType } from '../../../src/xds/resource.js';
import { startControlPlane, type XdsProtocol } from '../harness/control-plane.js';
import {
  bootstrap,
  type Config,
  httpListener,
  httpRequest,
  ROUTER_FILTER,
  startBaton,
  startUpstream,
  staticCluster,
  tempDir,
  waitForLog,
} from '../harness/index.js';
import { ResourceFile } from './resource-file.js';

const DISCOVERY = 'envoy.service.discovery.v3';
const FILTERS = 'type.googleapis.com/envoy.extensions.filters.http';
const OPTIONS = 'envoy.extensions.upstreams.http.v3.HttpProtocolOptions';
const ADS = { resource_api_version: 'V3', ads: {} };

const upstream = await startUpstream(t, (_request, answer) => void answer.end('host'));

const mutation = (mutations: Config): Config => ({
  '@type': `${FILTERS}.header_mutation.v3.HeaderMutation`,
  mutations,
});
const mutationOfRoute = (mutations: Config): Config => ({
  '@type': `${FILTERS}.header_mutation.v3.HeaderMutationPerRoute`,
  mutations,
});

/** The older form of a record. */
const OLD_APPEND = { append: { entry: { key: 'a', value: 'Yg==' } } };

/** Each kind of resource: a valid one with `more` in it. */
const make = {
  listener: (more: Config = {}, manager: Config = {}) => ({
    ...httpListener('front', 0, {
      rds: { route_config_name: 'routes', config_source: ADS },
      http_filters: [
        {
          name: 'marker',
          config_discovery: { config_source: ADS, type_urls: [`${FILTERS}.header_mutation.v3.HeaderMutation`] },
        },
        ROUTER_FILTER,
      ],
      ...manager,
    }),
    ...more,
  }),
  cluster: (more: Config = {}) => ({
    name: 'host',
    type: 'EDS',
    connect_timeout: '1s',
    eds_cluster_config: { eds_config: ADS },
    ...more,
  }),
  endpoints: (more: Config = {}) => ({
    cluster_name: 'host',
    endpoints: [
      {
        lb_endpoints: [
          { endpoint: { address: { socket_address: { address: '127.0.0.1', port_value: upstream.port } }, ...more } },
        ],
      },
    ],
  }),
  route: (match: Config = {}, route: Config = {}) => ({
    name: 'routes',
    virtual_hosts: [
      {
        name: 'v',
        domains: ['*'],
        routes: [{ match: { prefix: '/', ...match }, route: { cluster: 'host' }, ...route }],
      },
    ],
  }),
  'extension-config': (response_mutations: Config[] = []) => ({
    name: 'marker',
    typed_config: mutation({ response_mutations }),
  }),
};

const field = (name: string, message: string) => `field '${name}' of ${message} is not implemented in Baton`;

const REFUSED: readonly (readonly [what: string, type: keyof typeof make, resource: Config, said: string])[] = [
  [
    'of a listener',
    'listener',
    make.listener({ stats_matcher: { reject_all: true } }),
    field('stats_matcher', 'envoy.config.listener.v3.Listener'),
  ],
  [
    'of its connection manager, in an Any',
    'listener',
    make.listener({}, { forward_proto_config: { http_destination_ports: [80] } }),
    field('forward_proto_config', 'envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager'),
  ],
  [
    'a new extension',
    'listener',
    make.listener(
      {},
      {
        http_filters: [{ name: 'a', typed_config: { '@type': `${FILTERS}.mcp.v3.Mcp` } }, ROUTER_FILTER],
      },
    ),
    'Baton does not implement this extension',
  ],
  [
    'of a cluster',
    'cluster',
    make.cluster({ queuing_policies: {} }),
    field('queuing_policies', 'envoy.config.cluster.v3.Cluster'),
  ],
  [
    'of a message in a cluster',
    'cluster',
    make.cluster({ outlier_detection: { detect_degraded_hosts: true } }),
    field('detect_degraded_hosts', 'envoy.config.cluster.v3.OutlierDetection'),
  ],
  [
    'of its protocol options',
    'cluster',
    make.cluster({
      typed_extension_protocol_options: {
        [OPTIONS]: {
          '@type': `type.googleapis.com/${OPTIONS}`,
          explicit_http_config: { http_protocol_options: {} },
          retry_policy: { retry_on: '5xx' },
        },
      },
    }),
    field('retry_policy', OPTIONS),
  ],
  [
    'of an endpoint',
    'endpoints',
    make.endpoints({ observability_name: 'a' }),
    field('observability_name', 'envoy.config.endpoint.v3.Endpoint'),
  ],
  [
    'of a match',
    'route',
    make.route({ filter_state: [{ key: 'a', string_match: { exact: 'b' } }] }),
    field('filter_state', 'envoy.config.route.v3.RouteMatch'),
  ],
  [
    "of a route's filter configuration",
    'route',
    make.route(
      {},
      { typed_per_filter_config: { marker: mutationOfRoute({ query_parameter_mutations: [OLD_APPEND] }) } },
    ),
    field('entry', 'envoy.config.core.v3.KeyValueAppend'),
  ],
  [
    'of a wrapped filter configuration',
    'route',
    make.route(
      {},
      {
        typed_per_filter_config: {
          marker: {
            '@type': 'type.googleapis.com/envoy.config.route.v3.FilterConfig',
            config: mutationOfRoute({ query_parameter_mutations: [OLD_APPEND] }),
          },
        },
      },
    ),
    field('entry', 'envoy.config.core.v3.KeyValueAppend'),
  ],
  [
    'of a list element in a discovered filter',
    'extension-config',
    make['extension-config']([{ remove_on_match: { key_matcher: { custom: { name: 'a' } } } }]),
    field('custom', 'envoy.type.matcher.v3.StringMatcher'),
  ],
];

for (const protocol of ['sotw', 'delta'] as const) {
  t.test(`unimplemented fields are rejected from a management server, ${protocol}`, async (t) => {
    const plane = await startControlPlane(t);
    const good = {
      listener: make.listener(),
      cluster: make.cluster(),
      endpoints: make.endpoints(),
      route: make.route(),
      'extension-config': make['extension-config'](),
    };
    for (const [type, resource] of Object.entries(good)) plane.set(type as ResourceType, [resource]);
    const config = bootstrap({ listeners: [], clusters: [plane.cluster()], extra: plane.ads(protocol) });
    const baton = await startBaton(t, { config });
    const port = await baton.listenerPort('front');
    t.equal((await httpRequest(port)).body, 'host');
    for (const [what, type, resource, said] of REFUSED) {
      plane.set(type, [resource]);
      t.match((await plane.waitForNack(type)).error, said, what);
      plane.set(type, [good[type]]);
      await plane.waitForAck(type);
    }
    t.equal((await httpRequest(port)).body, 'host', 'the previous resources stay in use');
    t.equal(await baton.stat('server.dynamic_unknown_fields'), 0);

    plane.sendBytes('route', responseWith(protocol, withUnknown('route', good.route)));
    await baton.waitForStat('server.dynamic_unknown_fields', 1);
    await plane.waitFor(
      'the answer',
      ({ type, nonce, error }) => type === 'route' && nonce === 'n' && error === undefined,
    );
    await waitForLog(baton, /\[warning\].*unknown field '9999' of envoy\.config\.route\.v3\.RouteConfiguration/);
    await baton.stop();
  });
}

t.test('unimplemented fields are rejected from files', async (t) => {
  const directory = tempDir(t);
  const routes = new ResourceFile(directory, 'routes');
  routes.write(RESOURCE_MESSAGES.route, make.route());
  const manager = { rds: { route_config_name: 'routes', config_source: routes.source } };
  const binary = join(directory, 'clusters.pb');
  writeFileSync(binary, responseWith('sotw', withUnknown('cluster', staticCluster('host', upstream.port))));
  const clusters = { resource_api_version: 'V3', path_config_source: { path: binary } };
  const baton = await startBaton(t, {
    config: bootstrap({
      listeners: [httpListener('front', 0, manager)],
      clusters: [],
      extra: { dynamic_resources: { cds_config: clusters } },
    }),
  });
  const port = await baton.listenerPort('front');
  t.equal((await httpRequest(port)).body, 'host');
  t.equal(await baton.stat('server.dynamic_unknown_fields'), 1);
  t.match(baton.stderr, /\[warning\].*unknown field '9999' of envoy\.config\.cluster\.v3\.Cluster/);

  routes.write(RESOURCE_MESSAGES.route, make.route({ filter_state: [{ key: 'a', string_match: { exact: 'b' } }] }));
  await baton.waitForStat('http.front.rds.routes.update_rejected', 1);
  await waitForLog(baton, field('filter_state', 'envoy.config.route.v3.RouteMatch'));
  writeFileSync(binary, responseWith('sotw', encode('cluster', { ...staticCluster('host', 1), queuing_policies: {} })));
  await baton.waitForStat('cluster_manager.cds.update_rejected', 1);
  await waitForLog(baton, field('queuing_policies', 'envoy.config.cluster.v3.Cluster'));
  t.equal((await httpRequest(port)).body, 'host');
  t.equal(await baton.stat('server.dynamic_unknown_fields'), 1);
  await baton.stop();
});

t.test('unknown fields are refused in a bootstrap, or counted if they are allowed', async (t) => {
  const config = bootstrap({
    listeners: [],
    clusters: [{ ...staticCluster('host', upstream.port), of_tomorrow: 1 }],
  });
  const refusing = await startBaton(t, { config, wait: 'spawned' });
  t.match(await refusing.exited, { code: 1 });
  t.match(refusing.stderr, "unknown field 'of_tomorrow' of envoy.config.cluster.v3.Cluster");
  const allowing = await startBaton(t, { config, args: ['--allow-unknown-static-fields'] });
  t.equal(await allowing.stat('server.static_unknown_fields'), 1);
  await allowing.stop();
});

function encode(type: ResourceType, resource: Config): Uint8Array {
  const message = RESOURCE_MESSAGES[type];
  return encodeJson(loadMessages(message)[message], resource);
}

/** Returns the resource followed by a field with a number that no message has. */
function withUnknown(type: ResourceType, resource: Config): { type: ResourceType; name: string; value: Uint8Array } {
  return { type, name: String(resource['name']), value: Buffer.concat([encode(type, resource), UNKNOWN_FIELD]) };
}

/** Field 9999, a varint. */
const UNKNOWN_FIELD = Buffer.from([0xf8, 0xf0, 0x04, 0x01]);

function responseWith(protocol: XdsProtocol, resource: Uint8Array | ReturnType<typeof withUnknown>): Uint8Array {
  const { type, name, value } =
    resource instanceof Uint8Array ? { type: 'cluster' as const, name: 'host', value: resource } : resource;
  const url = `type.googleapis.com/${RESOURCE_MESSAGES[type]}`;
  const any = { type_url: url, value };
  const name_ =
    protocol === 'sotw'
      ? (`${DISCOVERY}.DiscoveryResponse` as const)
      : (`${DISCOVERY}.DeltaDiscoveryResponse` as const);
  const Response = loadMessages(name_)[name_];
  const response =
    protocol === 'sotw'
      ? { version_info: 'x', resources: [any], type_url: url, nonce: 'n' }
      : { system_version_info: 'x', resources: [{ name, version: 'x', resource: any }], type_url: url, nonce: 'n' };
  return Response.encode(Response.create(response)).finish();
}
