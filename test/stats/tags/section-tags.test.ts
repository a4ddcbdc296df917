import { deepEqual } from 'node:assert/strict';
import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import t from 'tap';
import type { StatsConfig } from '../../../src/config/generated/api.js';
import { defineLayout, type Layout, type LayoutDefinition } from '../../../src/stats/layout.js';
import { Pass } from '../../../src/stats/read/section.js';
import { statsSettings } from '../../../src/stats/settings/settings.js';
import { StatsStore } from '../../../src/stats/store.js';
import { DEFAULT_ROWS } from '../../../src/stats/tags/default-rows.js';
import { TagExtractor } from '../../../src/stats/tags/tag-extractor.js';

const CodesLayout = defineLayout({
  total: 'counter',
  upstream_rq_503: 'counter',
  upstream_rq_5xx: 'counter',
  allowed: 'counter',
  'v1.found': 'counter',
  'worker_3.total': 'counter',
  'grpc.svc.Get.total': 'counter',
  'P-256': 'counter',
  'TLSv1.3': 'counter',
  '__partition_id=1234567': 'counter',
  time_ms: 'histogram',
});

/** Names that no tag matches. */
const PlainLayout = defineLayout({ downstream_total: 'counter', no_route: 'counter' });

const WORDS = [
  ...new Set(DEFAULT_ROWS.flatMap(({ pattern }) => pattern.split(/[.|]/)).filter((word) => /^\w+$/.test(word))),
];
const token = fc.oneof(
  fc.constantFrom(...WORDS, 'a', 'worker_0', 'v2', '127', '1_80', 'TLSv1', '[__1]_80'),
  fc.constant('b-c'),
);

/** Returns full names whose tags differ from those extracted from the full name. */
function differences(
  prefixes: readonly string[],
  config: StatsConfig | undefined,
  layout: Layout<LayoutDefinition> = CodesLayout,
): string[] {
  const settings = statsSettings(config, ['site:berlin']);
  const store = new StatsStore({ workers: 1, settings });
  const extractor = new TagExtractor(settings.usesDefaultTags, settings.tags);
  for (const prefix of new Set(prefixes)) {
    store.addScope(prefix, layout);
    store.own.dynamicCounter(prefix, 'upstream_rq_200');
  }
  const reader = store.reader();
  const names: string[] = [];
  for (const section of reader.sections) {
    for (const table of section.tables) {
      table.names.forEach((own, index) => {
        const name = section.prefix + own;
        if (!isDeepStrictEqual(reader.tagged(section, table, index), extractor.extract(name))) names.push(name);
      });
    }
  }
  return names;
}

t.test('for any prefix, the tags of a section equal those of its full names', async (t) => {
  const prefix = fc.array(token, { maxLength: 6 }).map((tokens) => tokens.map((text) => `${text}.`).join(''));
  const some = {
    use_all_default_tags: false,
    stats_tags: [{ tag_name: 'envoy.cluster_name' }, { tag_name: 'envoy.response_code' }],
  };
  const expressions = {
    stats_tags: [
      { tag_name: 'lazy', regex: String.raw`^cluster\.((.+?(\..+?\.total)?)\.)` },
      { tag_name: 'own', regex: String.raw`^http\.(?:.*\.)?(up)stream` },
      { tag_name: 'envoy.listener_address', regex: String.raw`^listener\.((.*)_80)` },
    ],
  };
  const codesLast = { use_all_default_tags: false, stats_tags: [{ tag_name: 'envoy.response_code_class' }] };
  const same = fc.property(fc.array(prefix, { maxLength: 4 }), (prefixes) => {
    deepEqual(differences(prefixes, undefined), []);
    deepEqual(differences(prefixes, some), []);
    deepEqual(differences(prefixes, expressions), []);
    deepEqual(differences(prefixes, codesLast), []);
  });
  t.doesNotThrow(() => fc.assert(same, { numRuns: 100 }));
});

t.test('a tag that overlaps another one is set only on the stats in which it is found', async (t) => {
  const config = { stats_tags: [{ tag_name: 'side', regex: String.raw`^http\.((.+?)\.)downstream` }] };
  t.same(differences(['http.edge.'], config, PlainLayout), []);
});

t.test('stats of a section with the same tags share one list', async (t) => {
  const store = new StatsStore({ workers: 1 });
  for (const name of ['a', 'b']) store.addScope(`cluster.${name}.`, CodesLayout);
  const reader = store.reader();
  const [a, b] = reader.sections;
  const table = a!.tables[Pass.Values];
  const total = table.indexOf('total');
  t.equal(reader.tagged(a!, table, total).tags, reader.tagged(a!, table, table.indexOf('allowed')).tags);
  t.same(reader.tagged(b!, table, total), {
    name: 'cluster.total',
    tags: [{ name: 'envoy.cluster_name', value: 'b' }],
  });
});

t.test('an unchanged section remains the same object, and its cached tags stay valid', async (t) => {
  const store = new StatsStore({ workers: 1 });
  const ref = store.addScope('cluster.a.', CodesLayout);
  store.addScope('cluster.b.', CodesLayout);
  const [, before] = store.reader().sections;
  store.removeScope(ref);
  store.addScope('cluster.c.', CodesLayout);
  const { sections } = store.reader();
  t.equal(
    sections.find(({ prefix }) => prefix === 'cluster.b.'),
    before,
  );
  t.same(
    sections.map(({ prefix }) => prefix),
    ['cluster.b.', 'cluster.c.'],
  );
});
