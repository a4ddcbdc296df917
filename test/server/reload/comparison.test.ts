import t from 'tap';
import type { ResourceChange } from '../../../src/admin/config-reload/reload-view.js';
import type { Bootstrap } from '../../../src/config/generated/api.js';
import { redact } from '../../../src/config/schema/sensitive.js';
import { type Configuration, compareConfigurations } from '../../../src/server/reload/comparison/comparison.js';
import { MAX_FIELDS } from '../../../src/server/reload/comparison/field-changes.js';
import { httpListener, routeAllTo, staticCluster, tcpListener } from '../../e2e/harness/bootstrap.js';

type Parts = Record<string, unknown>;

const whole = (bootstrap: Parts): Configuration => ({
  bootstrap: bootstrap as Bootstrap,
  shown: bootstrap as Bootstrap,
});

const resources = (listeners: Parts[], clusters: Parts[], extra: Parts = {}): Configuration =>
  whole({ static_resources: { listeners, clusters }, ...extra });

const layers = (...list: Parts[]): Configuration => whole({ layered_runtime: { layers: list } });

/** Returns a change as one text. */
const asText = ({ change, fields, kind, name }: ResourceChange): string[] => [
  `${kind} ${name}: ${change}`,
  ...fields.map(({ after, before, path }) => `${path}: ${JSON.stringify(before)} → ${JSON.stringify(after)}`),
];

const compared = (before: Configuration, after: Configuration): string[] => {
  const { difference } = compareConfigurations(before, after);
  return [
    ...difference.changes.flatMap(asText),
    ...difference.restart.map(({ after, before, path }) => `restart: ${path}: ${before} → ${after}`),
  ];
};

t.test('equal configurations do not differ, whatever the order of their fields', async (t) => {
  const before = resources([httpListener('a', 1, { route_config: routeAllTo('x') })], [staticCluster('x', [1, 2])]);
  const after = JSON.parse(JSON.stringify(before.bootstrap), (_key, value: unknown) =>
    typeof value === 'object' && value !== null && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).reverse())
      : value,
  );
  const { difference, plan } = compareConfigurations(before, whole(after));
  t.strictSame(difference, {
    changes: [],
    unchanged: { cluster: 1, listener: 1, 'route configuration': 1, 'runtime layer': 0 },
    restart: [],
  });
  t.match(plan, { clusters: [], removedClusters: [], listeners: [], removedListeners: [], routes: [] });
});

t.test('clusters are added, changed field by field, and removed', async (t) => {
  const before = resources([], [staticCluster('gone', 1), staticCluster('kept', 2), staticCluster('other', [3, 4])]);
  const after = resources(
    [],
    [staticCluster('new', 1), staticCluster('other', [3, 5, 6], { connect_timeout: '3s' }), staticCluster('kept', 2)],
  );
  const { difference, plan } = compareConfigurations(before, after);
  t.strictSame(difference.changes.flatMap(asText), [
    'cluster new: added',
    'cluster gone: removed',
    'cluster other: changed',
    'static_resources.clusters[1].connect_timeout: "2s" → "3s"',
    'static_resources.clusters[1].load_assignment.endpoints[0].lb_endpoints[1].endpoint.address.socket_address.port_value: 4 → 5',
    'static_resources.clusters[1].load_assignment.endpoints[0].lb_endpoints[2]: undefined → ' +
      '{"endpoint":{"address":{"socket_address":{"address":"127.0.0.1","port_value":6}}}}',
  ]);
  t.equal(difference.unchanged.cluster, 1);
  t.strictSame(
    plan.clusters.map(({ name }) => name),
    ['new', 'other'],
  );
  t.strictSame(plan.removedClusters, ['gone']);
});

t.test('routes are compared apart from their listener', async (t) => {
  const listener = (manager: Parts) => httpListener('web', 80, manager);
  const before = resources([listener({ route_config: routeAllTo('a') }), tcpListener('tcp', 1, { cluster: 'a' })], []);
  const routesOnly = resources(
    [listener({ route_config: routeAllTo('b') }), tcpListener('tcp', 1, { cluster: 'a' })],
    [],
  );
  const path = 'static_resources.listeners[0].filter_chains[0].filters[0].typed_config';
  const routeChange = [
    'route configuration web/all: changed',
    `${path}.route_config.virtual_hosts[0].routes[0].route.cluster: "a" → "b"`,
  ];
  t.strictSame(compared(before, routesOnly), routeChange);
  const { plan } = compareConfigurations(before, routesOnly);
  t.strictSame(plan.listeners, []);
  const planned = ({ bootstrap }: Configuration, before: number | undefined, number: number) => {
    const config = bootstrap.static_resources!.listeners![number]!;
    return { before, number, config, shown: config };
  };
  t.strictSame(plan.routes, [planned(routesOnly, 0, 0)]);

  const both = resources([listener({ route_config: routeAllTo('b'), codec_type: 'HTTP1' })], []);
  t.strictSame(compared(before, both), [
    'listener tcp: removed',
    'listener web: changed',
    `${path}.codec_type: undefined → "HTTP1"`,
    ...routeChange,
  ]);
  const { plan: withListener } = compareConfigurations(before, both);
  t.strictSame(withListener.routes, [], 'they are applied with the listener');
  t.strictSame(withListener.listeners, [planned(both, 0, 0)]);
  t.strictSame(withListener.removedListeners, [1]);
  const moved = resources([tcpListener('tcp', 1, { cluster: 'a' }), listener({ route_config: routeAllTo('a') })], []);
  const { plan: ofMoved } = compareConfigurations(before, moved);
  t.strictSame(
    [...ofMoved.places],
    [
      [1, 0],
      [0, 1],
    ],
  );
  t.strictSame([ofMoved.listeners, ofMoved.routes], [[], []]);

  const rds = resources([listener({ rds: { route_config_name: 'r' } })], []);
  t.match(compared(before, rds).slice(1), [
    'listener web: changed',
    /\.route_config: \{"name":"all".* → undefined$/,
    /\.rds: undefined → \{"route_config_name":"r"\}$/,
  ]);
});

t.test('a route inserted between others is one difference, and so is the order of filters', async (t) => {
  const routes = (...prefixes: string[]) => ({
    virtual_hosts: [{ name: 'v', domains: ['*'], routes: prefixes.map((prefix) => ({ match: { prefix } })) }],
  });
  const filters = (...names: string[]) => names.map((name) => ({ name }));
  const manager = (prefixes: string[], names: string[]) =>
    resources([httpListener('web', 80, { route_config: routes(...prefixes), http_filters: filters(...names) })], []);
  const path = 'static_resources.listeners[0].filter_chains[0].filters[0].typed_config';
  t.strictSame(compared(manager(['/a', '/c', '/d'], []), manager(['/a', '/b', '/c', '/d'], [])), [
    'route configuration web/without a name: changed',
    `${path}.route_config.virtual_hosts[0].routes[1]: undefined → {"match":{"prefix":"/b"}}`,
  ]);
  t.strictSame(compared(manager([], ['one', 'two', 'three']), manager([], ['two', 'one', 'new', 'three'])), [
    'listener web: changed',
    `${path}.http_filters[2]: undefined → {"name":"new"}`,
    `${path}.http_filters: ["one","two","three"] → ["two","one","three"]`,
  ]);
});

t.test('listeners without names are identified by their addresses', async (t) => {
  const unnamed = (port: number, more: Parts = {}) => {
    const { name: _name, ...listener } = tcpListener('', port, { cluster: 'a', ...more });
    return listener;
  };
  t.strictSame(
    compared(resources([unnamed(1), unnamed(2)], []), resources([unnamed(2, { cluster: 'b' }), unnamed(3)], [])),
    [
      'listener without a name at 127.0.0.1:3: added',
      'listener without a name at 127.0.0.1:1: removed',
      'listener without a name at 127.0.0.1:2: changed',
      'static_resources.listeners[0].filter_chains[0].filters[0].typed_config.cluster: "a" → "b"',
    ],
  );
  t.strictSame(compared(resources([unnamed(0), unnamed(0)], []), resources([unnamed(0), unnamed(0)], [])), []);
});

t.test('static runtime layers can be replaced, others stay', async (t) => {
  const admin = { name: 'admin', admin_layer: {} };
  const base = (values: Parts) => ({ name: 'base', static_layer: values });
  const before = layers(base({ a: 1 }), admin);
  const more = layers(base({ a: 2 }), { name: 'more', static_layer: { b: 1 } }, admin);
  t.strictSame(compared(before, more), [
    'runtime layer more: added',
    'runtime layer base: changed',
    'layered_runtime.layers[0].static_layer.a: 1 → 2',
  ]);
  t.strictSame(compareConfigurations(before, more).plan.runtime?.after, more.bootstrap.layered_runtime!.layers);
  t.strictSame(compared(before, layers(admin, base({ a: 1 }))), [
    'runtime layer their order: changed',
    'layered_runtime.layers: ["base","admin"] → ["admin","base"]',
  ]);
  const without = layers(base({ a: 2 }));
  t.match(compared(before, without), [
    /^restart: layered_runtime\.layers\[0\]\.static_layer\.a: 1 → 2$/,
    /^restart: .*\[1\]/,
  ]);
  t.equal(compareConfigurations(before, without).plan.runtime, undefined);
  // Present without layers, it is an admin layer.
  t.match(compared(whole({}), layers()), [/^restart: layered_runtime: undefined/]);
});

t.test('all else needs a restart; a partial reload keeps it', async (t) => {
  const before = resources([], [staticCluster('a', 1)], {
    node: { id: 'n', metadata: { x: [1] } },
    admin: { profile_path: '/a' },
  });
  const after = resources([], [staticCluster('b', 1)], {
    node: { id: 'n', metadata: { x: [2] } },
    stats_flush_interval: '1s',
    admin: { profile_path: '/a' },
  });
  t.strictSame(compared(before, after).slice(2), [
    'restart: node.metadata.x[0]: 1 → 2',
    'restart: stats_flush_interval: undefined → 1s',
  ]);
  const { result } = compareConfigurations(before, after);
  t.strictSame(result.bootstrap, {
    ...before.bootstrap,
    static_resources: { listeners: [], clusters: after.bootstrap.static_resources!.clusters },
  });
});

t.test('secrets are compared but not shown', async (t) => {
  const secret = (value: string, note: string): Configuration => {
    const bootstrap = whole({
      static_resources: { clusters: [{ name: 'a', key: { inline: value }, note }] },
    }).bootstrap;
    const path = ['static_resources', 'clusters', 0, 'key'];
    return { bootstrap, shown: redact(bootstrap, [{ path, shown: undefined }]) };
  };
  t.strictSame(compared(secret('one', 'n'), secret('two', 'n')), [
    'cluster a: changed',
    'static_resources.clusters[0].key.inline: "[redacted]" → "[redacted]"',
  ]);
  t.strictSame(compared(secret('one', 'n'), secret('one', 'n')), []);
});

t.test('of very many fields the first are shown and all are counted', async (t) => {
  const many = (value: number) =>
    resources(
      [],
      [{ name: 'a', metadata: Object.fromEntries(Array.from({ length: 500 }, (_, at) => [`f${at}`, value])) }],
    );
  const [change] = compareConfigurations(many(1), many(2)).difference.changes;
  t.equal(change!.fields.length, MAX_FIELDS);
  t.equal(change!.fieldCount, 500);
});
