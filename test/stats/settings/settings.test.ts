import t from 'tap';
import type { Bootstrap, StatsConfig } from '../../../src/config/generated/api.js';
import { defineLayout } from '../../../src/stats/layout.js';
import { renderText } from '../../../src/stats/render/render-text.js';
import { checkStatsConfig } from '../../../src/stats/settings/check-config.js';
import { statsSettings } from '../../../src/stats/settings/settings.js';
import { StatsStore } from '../../../src/stats/store.js';

const Layout = defineLayout({ total: 'counter', active: 'gauge', time_ms: 'histogram', state: 'text' });

/** Returns the shown names of two scopes and a name that traffic created. */
function shown(stats_matcher: StatsConfig['stats_matcher']): string[] {
  const store = new StatsStore({ workers: 1, settings: statsSettings({ stats_matcher }, []) });
  for (const prefix of ['cluster.a.', 'cluster.b.']) store.addScope(prefix, Layout);
  store.own.dynamicCounter('cluster.b.', 'upstream_rq_503');
  const text = Buffer.concat([...renderText(store.reader())]).toString();
  return text.split('\n').flatMap((line) => line.split(':', 1)[0] || []);
}

const A = ['cluster.a.state', 'cluster.a.active', 'cluster.a.total', 'cluster.a.time_ms'];
const B = ['cluster.b.state', 'cluster.b.active', 'cluster.b.total', 'cluster.b.time_ms'];

t.test('stats_matcher decides which stats are shown', async (t) => {
  t.equal(shown(undefined).length, 9);
  t.equal(shown({ reject_all: false }).length, 9);
  t.same(shown({ reject_all: true }), []);
  t.same(shown({ inclusion_list: { patterns: [{ prefix: 'cluster.a.' }] } }), A);
  t.same(shown({ inclusion_list: { patterns: [{ exact: 'cluster.a.total' }] } }), ['cluster.a.total']);
  t.same(shown({ inclusion_list: { patterns: [{ exact: 'cluster.a.total' }, { suffix: '_503' }] } }), [
    'cluster.a.total',
    'cluster.b.upstream_rq_503',
  ]);
  t.same(
    shown({ exclusion_list: { patterns: [{ prefix: 'CLUSTER.A', ignore_case: true }, { contains: '_rq_' }] } }),
    B,
  );
  t.same(shown({ exclusion_list: { patterns: [{ safe_regex: { regex: '.*\\.(total|active|state|upstream.*)' } }] } }), [
    'cluster.a.time_ms',
    'cluster.b.time_ms',
  ]);
});

t.test('a rejected stat is not found by name, but it can be counted', async (t) => {
  const settings = statsSettings({ stats_matcher: { exclusion_list: { patterns: [{ suffix: '.total' }] } } }, []);
  const store = new StatsStore({ workers: 1, settings });
  const ref = store.addScope('s.', Layout);
  store.scope(ref).increment(Layout.at.total);
  store.scope(ref).set(Layout.at.active, 3);
  t.equal(store.value('s.total'), undefined);
  t.equal(store.value('s.active'), 3);
  t.equal(store.valueOf(ref, Layout.at.total), 1);
});

t.test('the first matching histogram_bucket_settings give the bounds, in ascending order', async (t) => {
  const settings = statsSettings(
    {
      histogram_bucket_settings: [
        { match: { suffix: '.time_ms' }, buckets: [10, 1, 5] },
        { match: { prefix: 's.' }, buckets: [7] },
        { match: { prefix: 'u.' }, bins: 10 },
        { match: { prefix: 'u.' }, buckets: [8] },
      ],
    },
    [],
  );
  const store = new StatsStore({ workers: 1, settings });
  store.addScope('s.', defineLayout({ time_ms: 'histogram', size: 'histogram_bytes' }));
  store.addScope('t.', defineLayout({ size: 'histogram_bytes' }));
  store.addScope('u.', defineLayout({ size: 'histogram_bytes' }));
  const reader = store.reader();
  const bounds = (name: string) => {
    const { section, table, index } = reader.find(name)!;
    return reader.bounds(section, table, index);
  };
  t.same(bounds('s.time_ms'), [1, 5, 10]);
  t.same(bounds('s.size'), [7]);
  t.equal(bounds('t.size').length, 19, 'default bounds');
  t.equal(bounds('u.size').length, 19, 'default bounds for a setting without bounds');
});

t.test('errors that the schema cannot detect are reported with their paths', async (t) => {
  const problems: string[] = [];
  const bootstrap: Bootstrap = {
    stats_flush_interval: '1s',
    stats_flush_on_admin: true,
    stats_config: {
      stats_tags: [
        { tag_name: 'envoy.cluster_name' },
        { tag_name: 'fixed', fixed_value: '' },
        { tag_name: 'foo' },
        { tag_name: 'bar', regex: '([' },
        { regex: '(x)' },
        { tag_name: 'fixed', fixed_value: 'again' },
        { tag_name: 'none', regex: 'a(?:b)' },
        { tag_name: 'one', regex: 'a((?:b))' },
      ],
      histogram_bucket_settings: [{ match: { prefix: '' }, buckets: [1, 'Infinity'] }],
    },
  };
  checkStatsConfig(bootstrap, (path, message) => problems.push(`${path}: ${message}`));
  t.match(problems, [
    'stats_flush_on_admin: Only one of stats_flush_interval or stats_flush_on_admin should be set!',
    "stats_config.stats_tags[2].tag_name: No regex specified for tag specifier and no default regex for name: 'foo'",
    /^stats_config\.stats_tags\[3\]\.regex: invalid regular expression/,
    'stats_config.stats_tags[4].tag_name: tag_name cannot be empty',
    "stats_config.stats_tags[5].tag_name: tag 'fixed' has a fixed value already, and keeps that one",
    'stats_config.stats_tags[6].regex: it has no capture group: put the value of the tag in parentheses',
    'stats_config.histogram_bucket_settings[0].buckets[1]: a bucket needs a finite bound',
  ]);
  t.equal(problems.length, 7);
});
