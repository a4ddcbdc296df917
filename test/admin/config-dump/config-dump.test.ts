import t from 'tap';
import type { ConfigDump } from '../../../src/admin/config-dump/config-dump.js';
import { type DumpQuery, dumpTexts } from '../../../src/admin/config-dump/config-dump-query.js';
import { prettyPieces } from '../../../src/admin/config-dump/pretty-pieces.js';
import { loadSchema } from '../../../src/config/schema/schema.js';

const CLUSTER = 'type.googleapis.com/envoy.config.cluster.v3.Cluster';
const DUMP = 'type.googleapis.com/envoy.admin.v3';

function cluster(name: string) {
  const message = { cluster: { '@type': CLUSTER, name, connect_timeout: '1s' }, last_updated: '2026-01-01T00:00:00Z' };
  return { name, message };
}

const DUMPS: ConfigDump[] = [
  {
    message: 'envoy.admin.v3.BootstrapConfigDump',
    fields: { bootstrap: { node: { id: 'n', cluster: 'c' } } },
    lists: [],
  },
  {
    message: 'envoy.admin.v3.ClustersConfigDump',
    fields: { version_info: '7' },
    lists: [
      { field: 'static_clusters', resources: [cluster('web'), cluster('api')] },
      { field: 'dynamic_active_clusters', resources: [cluster('xds')] },
    ],
  },
  { message: 'envoy.admin.v3.SecretsConfigDump', fields: {}, lists: [{ field: 'static_secrets', resources: [] }] },
];

function dump(query: DumpQuery, dumps = DUMPS): { configs: Record<string, unknown>[] } {
  const steps = dumpTexts(dumps, query, loadSchema());
  let step = steps.next();
  while (step.done !== true) step = steps.next();
  return JSON.parse([...step.value].join(''));
}

t.test('without a selection every dump is shown, without empty lists', async (t) => {
  const { configs } = dump({});
  t.strictSame(
    configs.map((config) => config['@type']),
    [`${DUMP}.BootstrapConfigDump`, `${DUMP}.ClustersConfigDump`, `${DUMP}.SecretsConfigDump`],
  );
  t.strictSame(Object.keys(configs[1]!), ['@type', 'version_info', 'static_clusters', 'dynamic_active_clusters']);
  t.strictSame(Object.keys(configs[2]!), ['@type']);
});

t.test('a mask selects the dumps that it fits, and their fields that it names', async (t) => {
  t.strictSame(dump({ mask: 'bootstrap.node.id' }).configs, [
    { '@type': `${DUMP}.BootstrapConfigDump`, bootstrap: { node: { id: 'n' } } },
  ]);
  t.strictSame(dump({ mask: 'version_info' }).configs, [{ '@type': `${DUMP}.ClustersConfigDump`, version_info: '7' }]);
  t.throws(() => dump({ mask: 'a,'.repeat(5000) }), {
    status: 400,
    message: 'The mask is longer than 8192 characters.',
  });
  for (const mask of ['nonsense', 'static_clusters.cluster', 'bootstrap.static_resources.clusters.name']) {
    t.throws(() => dump({ mask }), {
      status: 400,
      message: `FieldMask ${mask} could not be successfully applied to any configs.`,
    });
  }
});

t.test('a path deeper than any message selects no field', async (t) => {
  const mask = Array.from({ length: 800 }, () => 'bootstrap').join('.');
  t.throws(() => dump({ mask }), { status: 400, message: /^FieldMask .* could not be successfully applied/ });
});

t.test('a resource is shown with its own type, and a mask applies to its message', async (t) => {
  const element = { '@type': `${DUMP}.ClustersConfigDump.StaticCluster` };
  const shown = dump({ resource: 'static_clusters', mask: 'cluster.name', nameRegex: 'w.*' });
  t.strictSame(shown.configs, [{ ...element, cluster: { '@type': CLUSTER, name: 'web' } }]);
  t.strictSame(dump({ resource: 'static_clusters', mask: 'last_updated' }).configs[0], {
    ...element,
    last_updated: '2026-01-01T00:00:00Z',
  });
  t.strictSame(dump({ resource: 'static_secrets' }), {});
  t.throws(() => dump({ resource: 'static_clusters', mask: 'cluster.nonsense' }), {
    status: 400,
    message: 'FieldMask cluster.nonsense could not be successfully used.',
  });
  t.throws(() => dump({ resource: 'nonsense' }), { status: 404, message: 'nonsense not found in config dump' });
  t.throws(() => dump({ resource: 'last_updated' }), {
    status: 400,
    message: /^last_updated is not a repeated field\. Use \?mask=last_updated /,
  });
});

t.test('name_regex matches whole names, in every list', async (t) => {
  const { configs } = dump({ nameRegex: '.*b|xds' });
  t.match(configs[1], {
    static_clusters: [{ cluster: { name: 'web' } }],
    dynamic_active_clusters: [{ cluster: { name: 'xds' } }],
  });
  t.strictSame((dump({ nameRegex: 'we' }).configs[1] as { static_clusters?: unknown }).static_clusters, undefined);
  t.throws(() => dump({ nameRegex: '(' }), {
    status: 400,
    message: 'INVALID_ARGUMENT: Error while parsing name_regex from (: missing ): (',
  });
  t.throws(() => dump({ nameRegex: '.*'.repeat(1000) }), { status: 400, message: /is too costly: at most 4096$/ });
});

t.test('large values are rendered as many small texts', async (t) => {
  const value = {
    list: Array.from({ length: 5000 }, (_each, index) => ({ index, text: `"${index}"`, none: undefined })),
    none: undefined,
    nested: { deep: Array.from({ length: 2000 }, (_each, index) => [index, null, true]), empty: [], object: {} },
  };
  const texts = [...prettyPieces(value)];
  t.equal(texts.join(''), JSON.stringify(value, null, 1));
  t.ok(Math.max(...texts.map((text) => text.length)) < 50_000);
});

t.test('a mask through a member that a resource lacks selects the resource without it', async (t) => {
  const state = { name: 'a', active_state: undefined, error_state: { details: 'bad', version_info: '2' } };
  const resources = [{ name: 'a', message: state }];
  const dumps = [
    { message: 'envoy.admin.v3.ListenersConfigDump', fields: {}, lists: [{ field: 'dynamic_listeners', resources }] },
  ];
  const query = { resource: 'dynamic_listeners', mask: 'active_state.version_info,error_state.details' };
  t.strictSame(dump(query, dumps).configs, [
    { '@type': `${DUMP}.ListenersConfigDump.DynamicListener`, error_state: { details: 'bad' } },
  ]);
});

t.test('fitting a mask to many resources is split into steps', async (t) => {
  const resources = Array.from({ length: 5000 }, (_, index) => cluster(`c${index}`));
  const message = 'envoy.admin.v3.ClustersConfigDump';
  const dumps = [{ message, fields: {}, lists: [{ field: 'static_clusters', resources }] }];
  const steps = dumpTexts(dumps, { resource: 'static_clusters', mask: 'cluster.name' }, loadSchema());
  let count = 0;
  let step = steps.next();
  for (; step.done !== true; step = steps.next()) count++;
  t.ok(count >= 10, `${count} steps`);
  const { configs } = JSON.parse([...step.value].join(''));
  t.same(configs.at(-1).cluster, { '@type': CLUSTER, name: 'c4999' });
});
