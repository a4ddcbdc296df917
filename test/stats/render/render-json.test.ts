import t from 'tap';
import type { StatsConfig } from '../../../src/config/generated/api.js';
import { defineLayout, PERCENT_SCALE } from '../../../src/stats/layout.js';
import { renderJson } from '../../../src/stats/render/render-json.js';
import type { TextOptions } from '../../../src/stats/render/render-text.js';
import { statsSettings } from '../../../src/stats/settings/settings.js';
import { StatsStore } from '../../../src/stats/store.js';

const Scope = defineLayout({
  total: 'counter',
  active: 'gauge',
  state: 'text',
  took_ms: 'histogram',
  share: 'histogram_percent',
});

function jsonOf(store: StatsStore, options?: TextOptions) {
  return JSON.parse(Buffer.concat([...renderJson(store.reader(), options)]).toString()).stats;
}

function storeWithStats(config?: StatsConfig): StatsStore {
  const store = new StatsStore({ workers: 1, settings: statsSettings(config, []) });
  const ref = store.addScope('a.', Scope);
  store.setText(ref, Scope.at.state, 'say "hé"\n');
  store.scope(ref).add(Scope.at.total, 2 ** 40);
  store.scope(ref).record(Scope.at.took_ms, 7);
  store.flush();
  store.scope(ref).record(Scope.at.share, 0.25 * PERCENT_SCALE);
  store.scope(ref).record(Scope.at.share, 0.75 * PERCENT_SCALE);
  store.flush();
  return store;
}

const ALL_NULL = Array.from({ length: 10 }, () => null);

t.test(
  'readouts are strings, counters and gauges are numbers, and the last entry is one object with all histograms',
  async (t) => {
    const store = storeWithStats();
    store.addScope('b.', defineLayout({ never_ms: 'histogram' }));
    const [state, active, total, { histograms }, ...rest] = jsonOf(store);
    t.same(
      [state, active, total, rest],
      [
        { name: 'a.state', value: 'say "hé"\n' },
        { name: 'a.active', value: 0 },
        { name: 'a.total', value: 1_099_511_627_776 },
        [],
      ],
    );
    t.same(histograms.supported_quantiles, [0, 25, 50, 75, 90, 95, 99, 99.5, 99.9, 100]);
    const [share, took, never] = histograms.computed_quantiles;
    const column = (histogram: { values: { [column: string]: unknown }[] }, name: string) =>
      histogram.values.map((value) => value[name]);
    t.same(took.name, 'a.took_ms');
    t.same(column(took, 'interval'), ALL_NULL, 'no samples in this interval');
    t.equal(column(took, 'cumulative')[9], 7.05);
    t.equal(column(share, 'interval')[9], 0.755);
    t.same([never.name, column(never, 'interval'), column(never, 'cumulative')], ['b.never_ms', ALL_NULL, ALL_NULL]);
  },
);

t.test('histograms as cumulative and disjoint buckets', async (t) => {
  const store = storeWithStats({
    histogram_bucket_settings: [{ match: { safe_regex: { regex: 'a\\..*' } }, buckets: [0.5, 1, 10] }],
  });
  const buckets = (histogramBuckets: 'cumulative' | 'disjoint') => {
    const [{ histograms }] = jsonOf(store, { histogramBuckets, type: 'histograms' });
    return histograms;
  };
  const bucket = (upper_bound: number, interval: number, cumulative: number) => ({ upper_bound, interval, cumulative });
  t.same(buckets('cumulative'), [
    { name: 'a.share', buckets: [bucket(0.5, 1, 1), bucket(1, 2, 2), bucket(10, 2, 2)] },
    { name: 'a.took_ms', buckets: [bucket(0.5, 0, 0), bucket(1, 0, 0), bucket(10, 0, 1)] },
  ]);
  t.same(buckets('disjoint')[0], {
    name: 'a.share',
    buckets: [bucket(0.5, 1, 1), bucket(1, 1, 1), bucket(10, 0, 0)],
  });
});

t.test('detailed histograms list their bins', async (t) => {
  const [{ histograms }] = jsonOf(storeWithStats(), { histogramBuckets: 'detailed', type: 'histograms' });
  t.same(histograms.supported_percentiles, [0, 25, 50, 75, 90, 95, 99, 99.5, 99.9, 100]);
  const [share, took] = histograms.details;
  t.same(took.totals, [{ lower_bound: 7, width: 0.1, count: 1 }]);
  t.same(took.intervals, []);
  t.equal(took.percentiles.length, 10);
  t.same(share.intervals, [
    { lower_bound: 0.25, width: 0.01, count: 1 },
    { lower_bound: 0.75, width: 0.01, count: 1 },
  ]);
});

t.test('every selection is one JSON object', async (t) => {
  const store = storeWithStats();
  for (const type of ['all', 'counters', 'gauges', 'histograms', 'textreadouts'] as const) {
    for (const histogramBuckets of ['summary', 'cumulative', 'disjoint', 'detailed'] as const) {
      t.ok(jsonOf(store, { type, histogramBuckets }).length > 0);
      t.same(jsonOf(store, { type, histogramBuckets, filter: () => false }), []);
    }
  }
  t.same(jsonOf(new StatsStore({ workers: 1 })), []);
});
