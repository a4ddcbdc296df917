// FilterConfig in typed_per_filter_config: a route enables, disables and configures a filter of the chain.

import t from 'tap';
import { type Config, startUpstream, staticCluster } from '../../harness/index.js';
import { headerOption, routeConfig, routeTo, startProxy } from '../proxy.js';

const WRAPPER = { '@type': 'type.googleapis.com/envoy.config.route.v3.FilterConfig' };
const MUTATION = 'type.googleapis.com/envoy.extensions.filters.http.header_mutation.v3.HeaderMutation';

const OFF = { ...WRAPPER, disabled: true };
const ON = { ...WRAPPER, config: {} };

const upstream = await startUpstream(t, (_request, answer) => void answer.end());

const http_filters = [
  { name: 'awake', typed_config: { '@type': MUTATION, ...adding('x-awake', 'chain') } },
  { name: 'asleep', disabled: true, typed_config: { '@type': MUTATION, ...adding('x-asleep', 'chain') } },
  {
    name: 'router',
    typed_config: { '@type': 'type.googleapis.com/envoy.extensions.filters.http.router.v3.Router' },
  },
];

const proxy = await startProxy(t, {
  listeners: {
    plain: { http_filters, route_config: routeConfig([host(routes(), {})]) },
    hostOff: { http_filters, route_config: routeConfig([host(routes(), { awake: OFF, asleep: ON })]) },
    allOff: { http_filters, route_config: routeConfig([host(routes(), {})], saying({ awake: OFF, asleep: ON })) },
  },
  clusters: [staticCluster('host', upstream.port)],
});

t.test('a route without FilterConfig runs the filters that are not disabled in the chain', async (t) => {
  t.same(await filtersOn('plain', '/nothing'), ['chain', undefined]);
});

t.test('a route disables and enables filters', async (t) => {
  t.same(await filtersOn('plain', '/off'), [undefined, undefined]);
  t.same(await filtersOn('plain', '/on'), ['chain', 'chain']);
});

t.test('the wrapped message configures the filter, and enables it', async (t) => {
  t.same(await filtersOn('plain', '/wrapped'), ['chain, route', 'chain, route']);
  t.same(await filtersOn('plain', '/off-with-config'), [undefined, undefined]);
});

t.test('the most specific level decides: weighted cluster, route, virtual host, route configuration', async (t) => {
  for (const listener of ['hostOff', 'allOff']) {
    t.same(await filtersOn(listener, '/nothing'), [undefined, 'chain'], listener);
    t.same(await filtersOn(listener, '/on'), ['chain', 'chain'], listener);
    t.same(await filtersOn(listener, '/bare'), ['chain, route', 'chain, route'], 'an unwrapped message counts');
    t.same(await filtersOn(listener, '/weighted'), [undefined, 'chain'], listener);
  }
  t.same(await filtersOn('plain', '/weighted'), [undefined, 'chain']);
});

t.test('a request without a route runs the filters of the chain', async (t) => {
  const { status, headers } = await proxy.on('plain', '/unknown');
  t.equal(status, 404);
  t.match(headers, { 'x-awake': 'chain' });
});

/** Returns what each filter has written into the response. */
async function filtersOn(listener: string, path: string): Promise<(string | undefined)[]> {
  const { status, headers } = await proxy.on(listener, path);
  t.equal(status, 200);
  return [headers['x-awake'], headers['x-asleep']] as (string | undefined)[];
}

function host(hostRoutes: Config[], configs: Config): Config {
  return { name: 'all', domains: ['*'], routes: hostRoutes, ...saying(configs) };
}

function routes(): Config[] {
  const own = (key: string): Config => ({ '@type': `${MUTATION}PerRoute`, ...adding(key, 'route') });
  const wrapped = (key: string, more: Config = {}): Config => ({ ...WRAPPER, config: own(key), ...more });
  const to = (path: string, configs: Config): Config => routeTo({ path }, 'host', {}, saying(configs));
  return [
    to('/nothing', {}),
    to('/off', { awake: OFF, asleep: OFF }),
    to('/on', { awake: ON, asleep: ON }),
    to('/wrapped', { awake: wrapped('x-awake'), asleep: wrapped('x-asleep') }),
    to('/bare', { awake: own('x-awake'), asleep: own('x-asleep') }),
    to('/off-with-config', { awake: wrapped('x-awake', { disabled: true }), asleep: OFF }),
    {
      match: { path: '/weighted' },
      route: { weighted_clusters: { clusters: [{ name: 'host', weight: 1, ...saying({ awake: OFF, asleep: ON }) }] } },
      ...saying({ awake: ON, asleep: OFF }),
    },
  ];
}

function saying(configs: Config): Config {
  return { typed_per_filter_config: configs };
}

function adding(key: string, value: string): Config {
  const append = headerOption(key, value, { append_action: 'APPEND_IF_EXISTS_OR_ADD' });
  return { mutations: { response_mutations: [{ append }] } };
}
