// Subset load balancing: requests go to the hosts whose metadata they name. The expected results are those of Envoy 1.40.

import t, { type Test } from 'tap';
import { ResourceFile } from '../dynamic/resource-file.js';
import { besideEnvoy, type ProxyProgram } from '../harness/envoy.js';
import {
  type BatonProcess,
  bootstrap,
  type Config,
  httpListener,
  httpRequest,
  loopback,
  rawExchange,
  startBaton,
  startUpstream,
  staticCluster,
  tcpListener,
  tempDir,
} from '../harness/index.js';
import { managerOf, routeTo } from '../http/proxy.js';

const NAMES = ['a', 'b', 'c', 'd', 'e'] as const;
const upstreams = await Promise.all(
  NAMES.map((name) => startUpstream(t, (_request, response) => void response.end(name))),
);

/** Fields of the hosts a, b, …; undefined: no metadata. */
type Fields = readonly (Config | undefined)[];

const TWO_KEYS: Fields = [{ v: '1', s: 'p' }, { v: '1', s: 'q' }, { v: '2', s: 'p' }, { v: ['2', '3'] }, undefined];
const HEADERS: Config = {
  name: 'headers',
  typed_config: {
    '@type': 'type.googleapis.com/envoy.extensions.filters.http.header_to_metadata.v3.Config',
    request_rules: ['v', 's'].map((key) => ({
      header: `x-${key}`,
      on_header_present: { metadata_namespace: 'envoy.lb', key },
    })),
  },
};
const ROUTER: Config = {
  name: 'router',
  typed_config: { '@type': 'type.googleapis.com/envoy.extensions.filters.http.router.v3.Router' },
};

/** The fields that requests can name. */
const MATCHES: readonly Config[] = [
  ...['1', '2', '3', '9', 1, ['2', '3']].map((v) => ({ v })),
  ...[{ s: 'q', v: '1' }, { s: 'p' }, { v: '1', s: 'p', x: 'y' }, { v: '2', s: 'z' }, { v: '9', s: 'z' }, { s: 'z' }],
  ...[
    { v: '1', s: 'q', x: 'y' },
    { v: '1', x: 'y' },
    { v: '1', s: '1' },
    { v: '2', s: '2' },
  ],
  ...[{ fallback_list: [{ v: '9' }, { v: '2' }] }, { v: '1', fallback_list: [{ s: 'z' }, { s: 'q' }] }],
  ...[
    { v: '1', fallback_list: [] },
    { v: '1', fallback_list: [{ v: '9' }] },
    { fallback_list: [...listed(63), { v: '1' }] },
    { fallback_list: [...listed(64), { v: '1' }] },
  ],
];

/** Returns fields that no host has. */
function listed(count: number): Config[] {
  return Array.from({ length: count }, (_, index) => ({ v: `no ${index}` }));
}

besideEnvoy('requests go to the hosts whose fields they name, and others to the fallback', async (t, program) => {
  const selectors = [{ keys: ['v'] }, { keys: ['v', 's'] }];
  const to = await start(t, program, {
    none: subsets(TWO_KEYS, { subset_selectors: selectors }),
    any: subsets(TWO_KEYS, { subset_selectors: selectors, fallback_policy: 'ANY_ENDPOINT' }),
    default: subsets(TWO_KEYS, {
      subset_selectors: selectors,
      fallback_policy: 'DEFAULT_SUBSET',
      default_subset: { s: 'p' },
    }),
    lists: subsets(TWO_KEYS, { subset_selectors: selectors, list_as_any: true }),
  });
  t.equal(await to('none', { v: '1' }), 'ab');
  t.equal(await to('none', { s: 'q', v: '1' }), 'b');
  t.equal(await to('none', { v: '2' }), 'c', 'a list is one value');
  t.equal(await to('none', { v: ['2', '3'] }), 'd');
  t.equal(await to('none', { v: 1 }), '503', 'a number is not a string');
  t.equal(await to('none', { s: 'p' }), '503', 'no selector has only this key');
  t.equal(await to('none', { v: '1', s: 'p', x: 'y' }), '503', 'no selector has all of these keys');
  t.equal(await to('none', undefined), '503');
  t.equal(await to('any', { v: '9' }), 'abcde');
  t.equal(await to('any', undefined), 'abcde');
  t.equal(await to('default', { v: '9' }), 'ac');
  t.equal(await to('default', { v: '1' }), 'ab');
  t.equal(await to('lists', { v: '2' }), 'cd');
  t.equal(await to('lists', { v: '3' }), 'd');
  t.match(await to.baton.stats('cluster.none.lb_subsets_'), { active: 12, created: 12, removed: 0, fallback: 0 });
  t.match(await to.baton.stats('cluster.any.lb_subsets_'), { fallback: 20, selected: 0, fallback_panic: 0 });
  t.match(await to.baton.stats('cluster.default.lb_subsets_'), { fallback: 10, selected: 10 });
});

besideEnvoy('a selector may have a fallback of its own', async (t, program) => {
  const of = (...subset_selectors: Config[]) =>
    subsets(TWO_KEYS, { subset_selectors, fallback_policy: 'ANY_ENDPOINT', default_subset: { v: '2' } });
  const keys = ['v', 's'];
  const to = await start(t, program, {
    none: of({ keys, fallback_policy: 'NO_FALLBACK' }),
    default: of({ keys, fallback_policy: 'DEFAULT_SUBSET' }),
    fewer: of({ keys, fallback_policy: 'KEYS_SUBSET', fallback_keys_subset: ['v'] }, { keys: ['v'] }),
    // The first selector takes the place of the second.
    hidden: of({ keys: ['s', 'v'] }, { keys: ['s'], fallback_policy: 'NO_FALLBACK' }),
  });
  const missing = { v: '2', s: 'z' };
  t.equal(await to('none', missing), '503');
  t.equal(await to('none', { v: '2' }), 'abcde', 'another selector has the fallback of the cluster');
  t.equal(await to('default', missing), 'c');
  t.equal(await to('fewer', missing), 'c');
  t.equal(await to('fewer', { v: '9', s: 'z' }), 'abcde');
  t.equal(await to('hidden', { s: 'z' }), 'abcde');
  t.match(await to.baton.stats('cluster.fewer.lb_subsets_'), { selected: 10, fallback: 10 });
});

besideEnvoy('with single_host_per_subset the first host gets all requests, whatever its health', async (t, program) => {
  const cluster = subsets(TWO_KEYS, { subset_selectors: [{ keys: ['v'], single_host_per_subset: true }] });
  const [group] = (cluster['load_assignment'] as { endpoints: { lb_endpoints: Config[] }[] }).endpoints;
  group!.lb_endpoints[0]!['health_status'] = 'UNHEALTHY';
  const to = await start(t, program, { single: cluster });
  t.equal(await to('single', { v: '1' }), 'a');
  t.equal(await to.baton.stat('cluster.single.lb_subsets_single_host_per_subset_duplicate'), 1);
});

besideEnvoy('health, panic and the last resort are those of the subset', async (t, program) => {
  const unhealthy = (fields: Fields, config: Config) => {
    const cluster = subsets(fields, config);
    const [group] = (cluster['load_assignment'] as { endpoints: { lb_endpoints: Config[] }[] }).endpoints;
    for (const place of [0, 1]) group!.lb_endpoints[place]!['health_status'] = 'UNHEALTHY';
    return cluster;
  };
  const selectors = { subset_selectors: [{ keys: ['v'] }], default_subset: { v: '1' } };
  const calm = { common_lb_config: { healthy_panic_threshold: { value: 0 } } };
  const to = await start(t, program, {
    panic: unhealthy(TWO_KEYS, selectors),
    calm: { ...unhealthy(TWO_KEYS, selectors), ...calm },
    last: {
      ...unhealthy(TWO_KEYS, { ...selectors, fallback_policy: 'DEFAULT_SUBSET', panic_mode_any: true }),
      ...calm,
    },
  });
  t.equal(await to('panic', { v: '1' }), 'ab');
  t.equal(await to.baton.stat('cluster.panic.lb_healthy_panic'), 10);
  t.equal(await to('calm', { v: '1' }), '503');
  t.equal(await to('last', undefined), 'cde');
  t.match(await to.baton.stats('cluster.last.lb_subsets_'), { fallback: 0, fallback_panic: 10 });
  t.equal(await to('last', { v: '1' }), '503', 'a subset without a healthy host has no fallback');
});

besideEnvoy('metadata of weighted clusters and of filters replaces that of routes', async (t, program) => {
  const to = await start(t, program, {
    one: subsets(TWO_KEYS, { subset_selectors: [{ keys: ['v'] }, { keys: ['s', 'v'] }] }),
  });
  const { baton } = to;
  const get = async (path: string, headers: Record<string, string> = {}) =>
    (await httpRequest(await baton.listenerPort('one'), path, { headers })).body;
  t.equal(await get('/weighted-s'), 'b');
  t.equal(await get('/weighted-v'), 'c');
  t.equal(await get('/weighted-other'), 'c', 'metadata of another namespace changes nothing');
  t.equal(await get('/v1', { 'x-v': '2' }), 'c');
  t.equal(await get('/v1', { 'x-s': 'q' }), 'b');
  t.equal(await get('/weighted-v', { 'x-v': '1', 'x-s': 'p' }), 'a');
  t.equal(await get('/none', { 'x-v': '2' }), 'c');
  t.equal(await get('/none', { 'x-v': `${'"'.repeat(1000)}` }), 'no healthy upstream');
});

besideEnvoy('TCP connections are passed to subsets', async (t, program) => {
  const listeners = {
    plain: { cluster: 'one', metadata_match: lb({ v: '2' }) },
    weighted: {
      weighted_clusters: { clusters: [{ name: 'one', weight: 1, metadata_match: lb({ s: 'q' }) }] },
      metadata_match: lb({ v: '1' }),
    },
    none: { cluster: 'one' },
  };
  const config = { subset_selectors: [{ keys: ['v'] }, { keys: ['s', 'v'] }] };
  const baton = await startBaton(t, {
    ...program,
    config: bootstrap({
      listeners: Object.entries(listeners).map(([name, proxy]) => tcpListener(name, 0, proxy)),
      clusters: [{ ...subsets(TWO_KEYS, config), name: 'one' }],
    }),
  });
  const get = async (name: string) =>
    (
      await rawExchange(await baton.listenerPort(name), 'GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n')
    ).text.at(-1);
  for (let turn = 0; turn < 3; turn++) {
    t.equal(await get('plain'), 'c');
    t.equal(await get('weighted'), 'b');
  }
  t.equal(await get('none').catch(() => undefined), undefined);
  t.equal(await baton.stat('cluster.one.upstream_cx_none_healthy'), 1);
});

besideEnvoy('the policy extension ignores further fields, and tries lists of fields', async (t, program) => {
  const keys = [{ keys: ['v'] }, { keys: ['s', 'v'] }];
  const to = await start(t, program, {
    redundant: extension(TWO_KEYS, { subset_selectors: keys, allow_redundant_keys: true }),
    lists: extension(TWO_KEYS, { subset_selectors: keys, metadata_fallback_policy: 'FALLBACK_LIST' }),
    nothing: extension(TWO_KEYS, {}),
  });
  t.equal(await to('redundant', { v: '1', s: 'q', x: 'y' }), 'b');
  t.equal(await to('redundant', { v: '1', x: 'y' }), 'ab');
  t.equal(await to('lists', { fallback_list: [{ v: '9' }, { v: '2' }] }), 'c');
  t.equal(await to('lists', { v: '1', fallback_list: [{ s: 'z' }, { s: 'q' }] }), 'b');
  t.equal(await to('lists', { v: '1', fallback_list: [] }), 'ab');
  t.equal(await to('lists', { v: '1', fallback_list: [{ v: '9' }] }), '503');
  t.equal(await to('lists', { v: '1' }), 'ab');
  t.equal(await to('nothing', { v: '1' }), '503');
});

besideEnvoy('subsets follow the hosts and the metadata that EDS delivers', async (t, program) => {
  const endpoints = new ResourceFile(tempDir(t), 'endpoints');
  const assign = (fields: Fields) =>
    endpoints.write('envoy.config.endpoint.v3.ClusterLoadAssignment', {
      ...assignment(fields),
      cluster_name: 'moving',
    });
  assign([{ v: '1' }, { v: '2' }]);
  const to = await start(t, program, {
    moving: {
      name: 'moving',
      connect_timeout: '2s',
      type: 'EDS',
      eds_cluster_config: { eds_config: endpoints.source },
      lb_subset_config: { subset_selectors: [{ keys: ['v'] }] },
    },
  });
  const counts = (active: number, created: number, removed: number) =>
    to.baton.waitForStats({
      'cluster.moving.lb_subsets_active': active,
      'cluster.moving.lb_subsets_created': created,
      'cluster.moving.lb_subsets_removed': removed,
    });
  await counts(4, 4, 0);
  t.equal(await to('moving', { v: '1' }), 'a');
  assign([{ v: '1' }, { v: '1' }, { v: '3' }]);
  await counts(4, 6, 2);
  t.equal(await to('moving', { v: '1' }), 'ab');
  t.equal(await to('moving', { v: '2' }), '503');
  t.equal(await to('moving', { v: '3' }), 'c');
  assign([undefined]);
  await counts(0, 6, 6);
  t.equal(await to('moving', { v: '1' }), '503');
});

besideEnvoy('weights of localities count in subsets only if that is configured', async (t, program) => {
  const weighted = (more: Config) => ({
    ...staticCluster('x', []),
    load_assignment: {
      cluster_name: 'x',
      endpoints: [
        {
          locality: { zone: 'z1' },
          load_balancing_weight: 3,
          lb_endpoints: [host(0, { v: '1' }), host(1, undefined), host(2, undefined)],
        },
        { locality: { zone: 'z2' }, load_balancing_weight: 1, lb_endpoints: [host(3, { v: '1' })] },
      ],
    },
    lb_subset_config: { subset_selectors: [{ keys: ['v'] }], ...more },
    common_lb_config: { locality_weighted_lb_config: {} },
  });
  const to = await start(t, program, {
    even: weighted({}),
    aware: weighted({ locality_weight_aware: true }),
    scaled: weighted({ locality_weight_aware: true, scale_locality_weight: true }),
  });
  const share = async (name: string) => (await to.all(name, { v: '1' }, 80)).filter((each) => each === 'a').length;
  t.ok(Math.abs((await share('even')) - 40) <= 2);
  t.ok(Math.abs((await share('aware')) - 60) <= 2);
  t.ok(Math.abs((await share('scaled')) - 40) <= 2);
});

t.test('a host in very many subsets is left out of them, and counted', async (t) => {
  const many = Array.from({ length: 40 }, (_, index) => String(index));
  const to = await start(
    t,
    { command: undefined },
    {
      wide: subsets(
        [
          { v: many, s: many },
          { v: '1', s: '1' },
        ],
        { subset_selectors: [{ keys: ['v', 's'] }], list_as_any: true },
      ),
    },
  );
  t.equal(await to('wide', { v: '1', s: '1' }), 'b');
  t.equal(await to('wide', { v: '2', s: '2' }), '503');
  t.equal(await to.baton.stat('cluster.wide.lb_subsets_overflow'), 1);
});

t.test('only the first fields of a list are tried, since a client may have written it', async (t) => {
  const listing = { subset_selectors: [{ keys: ['v'] }], metadata_fallback_policy: 'FALLBACK_LIST' };
  const to = await start(t, { command: undefined }, { listing: subsets(TWO_KEYS, listing) });
  t.equal(await to('listing', { fallback_list: [...listed(63), { v: '1' }] }), 'ab');
  t.equal(await to('listing', { fallback_list: [...listed(64), { v: '1' }] }), '503');
});

t.test('subsets are refused for the reasons of Envoy', async (t) => {
  const selector = (more: Config) => ({ subset_selectors: [{ keys: ['a', 'b'], ...more }] });
  const KEYS = { fallback_policy: 'KEYS_SUBSET' };
  const config = bootstrap({
    listeners: [],
    clusters: [
      { ...subsets([], selector(KEYS)), name: 'none' },
      { ...subsets([], selector({ ...KEYS, fallback_keys_subset: ['c'] })), name: 'other' },
      { ...subsets([], selector({ ...KEYS, fallback_keys_subset: ['b', 'a'] })), name: 'all' },
      { ...subsets([], selector({ fallback_keys_subset: ['a'] })), name: 'useless' },
      { ...subsets([], { locality_weight_aware: true }), name: 'unweighted' },
      { ...subsets([], selector({})), name: 'provided', lb_policy: 'CLUSTER_PROVIDED' },
      { ...extension([], selector({})), name: 'both', lb_subset_config: {} },
    ],
  });
  const baton = await startBaton(t, { config, args: ['--mode', 'validate'], wait: 'spawned' });
  t.equal((await baton.exited).code, 1);
  for (const message of [
    'clusters[0].lb_subset_config.subset_selectors[0]: fallback_keys_subset cannot be empty',
    'subset_selectors[0].fallback_keys_subset: fallback_keys_subset must be a subset of selector keys',
    'subset_selectors[0].fallback_keys_subset: fallback_keys_subset cannot be equal to keys',
    'fallback_keys_subset can be set only for KEYS_SUBSET fallback_policy',
    'Locality weight aware subset LB requires that a locality_weighted_lb_config be set',
    'LB policy CLUSTER_PROVIDED cannot be combined with lb_subset_config',
    'load_balancing_policy cannot be combined with lb_subset_config',
  ])
    t.match(baton.stderr, message);
});

/** Sends ten requests to a cluster, and returns the letters of the hosts that have responded, or the status. */
interface Balanced {
  (cluster: string, match: Config | undefined): Promise<string>;
  all(cluster: string, match: Config | undefined, count: number): Promise<string[]>;
  readonly baton: BatonProcess;
}

/** Starts a proxy with a listener for each cluster. Requests select their metadata with a header of the route. */
async function start(t: Test, program: ProxyProgram, clusters: Record<string, Config>): Promise<Balanced> {
  const known = new Map<string, Config>();
  for (const match of MATCHES) known.set(JSON.stringify(match), match);
  const routes = (name: string): Config[] => [
    ...[...known].map(([text, match]) =>
      routeTo({ prefix: '/', headers: [{ name: 'x-match', string_match: { exact: text } }] }, name, {
        metadata_match: lb(match),
      }),
    ),
    routeTo({ prefix: '/v1' }, name, { metadata_match: lb({ v: '1' }) }),
    weightedRoute('/weighted-s', name, lb({ v: '1' }), lb({ s: 'q' })),
    weightedRoute('/weighted-v', name, lb({ v: '1' }), lb({ v: '2' })),
    weightedRoute('/weighted-other', name, lb({ v: '2' }), { filter_metadata: { other: { v: '1' } } }),
    routeTo({ prefix: '/' }, name),
  ];
  const baton = await startBaton(t, {
    ...program,
    args: ['-l', 'warning', '--service-node', 'n', '--service-cluster', 'c'],
    config: bootstrap({
      listeners: Object.keys(clusters).map((name) =>
        httpListener(name, 0, managerOf(routes(name), { http_filters: [HEADERS, ROUTER] })),
      ),
      clusters: Object.entries(clusters).map(([name, cluster]) => ({ ...cluster, name })),
    }),
  });
  const all = async (cluster: string, match: Config | undefined, count: number) => {
    const headers: Record<string, string> = {};
    if (match !== undefined) headers['x-match'] = JSON.stringify(match);
    if (match !== undefined && !known.has(headers['x-match']!)) throw new Error(`add ${headers['x-match']} to MATCHES`);
    const port = await baton.listenerPort(cluster);
    const found: string[] = [];
    for (let index = 0; index < count; index++) {
      const { body, status } = await httpRequest(port, '/', { headers });
      found.push(status === 200 ? body : String(status));
    }
    return found;
  };
  const send = async (cluster: string, match: Config | undefined) =>
    [...new Set(await all(cluster, match, 10))].sort().join('');
  return Object.assign(send, { all, baton });
}

function weightedRoute(prefix: string, name: string, ofRoute: Config, ofCluster: Config): Config {
  const clusters = [{ name, weight: 1, metadata_match: ofCluster }];
  return { match: { prefix }, route: { metadata_match: ofRoute, weighted_clusters: { clusters } } };
}

function lb(fields: Config): Config {
  return { filter_metadata: { 'envoy.lb': fields } };
}

function host(index: number, fields: Config | undefined): Config {
  const endpoint = { address: loopback(upstreams[index]!.port) };
  return fields === undefined ? { endpoint } : { endpoint, metadata: lb(fields) };
}

function assignment(fields: Fields): Config {
  return { cluster_name: 'x', endpoints: [{ lb_endpoints: fields.map((each, index) => host(index, each)) }] };
}

function subsets(fields: Fields, lb_subset_config: Config): Config {
  return { ...staticCluster('x', []), load_assignment: assignment(fields), lb_subset_config };
}

function extension(fields: Fields, config: Config): Config {
  const typed = (message: string, more: Config) => ({
    policies: [
      {
        typed_extension_config: {
          name: 'policy',
          typed_config: { '@type': `type.googleapis.com/envoy.extensions.load_balancing_policies.${message}`, ...more },
        },
      },
    ],
  });
  const subset_lb_policy = typed('round_robin.v3.RoundRobin', {});
  return {
    ...staticCluster('x', []),
    load_assignment: assignment(fields),
    load_balancing_policy: typed('subset.v3.Subset', { ...config, subset_lb_policy }),
  };
}
