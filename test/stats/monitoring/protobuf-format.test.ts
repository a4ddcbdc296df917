import t from 'tap';
import { defineLayout } from '../../../src/stats/layout.js';
import { type MonitoringOptions, renderMonitoring } from '../../../src/stats/monitoring/render-monitoring.js';
import { StatsStore } from '../../../src/stats/store.js';
import { decodeFamilies } from './metric-families.js';

const Counts = defineLayout({ total: 'counter', active: 'gauge', state: 'text', took_ms: 'histogram' });

const OPTIONS: MonitoringOptions = { isProtobuf: true, histograms: 'cumulative', maxBuckets: 20, textReadouts: true };

function familiesOf(store: StatsStore, options: Partial<MonitoringOptions> = {}) {
  return decodeFamilies(Buffer.concat([...renderMonitoring(store.reader(), { ...OPTIONS, ...options })]));
}

function storeWithStats(): StatsStore {
  const store = new StatsStore({ workers: 1 });
  for (const name of ['größe', 'b']) {
    const ref = store.addScope(`cluster.${name}.`, Counts);
    store.scope(ref).add(Counts.at.total, 2 ** 53);
    store.setText(ref, Counts.at.state, 'on "x"\n');
    for (const value of [0, 0, 7, 115]) store.scope(ref).record(Counts.at.took_ms, value);
  }
  store.flush();
  return store;
}

t.test('every family has its type and the labels of its metrics', async (t) => {
  const [total, active, state, took, ...rest] = familiesOf(storeWithStats());
  t.same(rest, []);
  const labels = (name: string) => [{ name: 'envoy_cluster_name', value: name }];
  t.same(total, {
    name: 'envoy_cluster_total',
    type: 'COUNTER',
    metric: [
      { label: labels('b'), counter: { value: 2 ** 53 } },
      { label: labels('größe'), counter: { value: 2 ** 53 } },
    ],
  });
  t.match(active, { name: 'envoy_cluster_active', type: 'GAUGE', metric: [{ gauge: { value: 0 } }, {}] });
  t.match(state?.metric[1], {
    label: [...labels('größe'), { name: 'text_value', value: 'on "x"\n' }],
    gauge: { value: 0 },
  });
  t.match(took, { name: 'envoy_cluster_took_ms', type: 'HISTOGRAM' });
});

t.test('classic histograms have the configured buckets, without +Inf', async (t) => {
  const histogram = familiesOf(storeWithStats()).at(-1)!.metric[0]!.histogram!;
  t.match(histogram, { sampleCount: 4, sampleSum: 121.8322540857231 });
  t.equal(histogram.bucket?.length, 19);
  t.same(histogram.bucket?.[0], { cumulativeCount: 2, upperBound: 0.5 });
  t.same(histogram.bucket?.at(-1), { cumulativeCount: 4, upperBound: 3_600_000 });
  t.notOk(Object.hasOwn(histogram, 'schema'));
});

t.test('a summary covers the last interval', async (t) => {
  const store = storeWithStats();
  store.flush();
  const { type, metric } = familiesOf(store, { histograms: 'summary' }).at(-1)!;
  t.equal(type, 'SUMMARY');
  t.match(metric[0]!.summary, { sampleCount: 0, sampleSum: 0 });
  t.same(metric[0]!.summary!.quantile[9], { quantile: 1, value: Number.NaN });
});

t.test('native histograms have sparse buckets, and an empty one has an empty span', async (t) => {
  const store = storeWithStats();
  store.addScope('empty.', Counts);
  const families = familiesOf(store, { histograms: 'native' });
  t.match(families.find(({ name }) => name === 'envoy_empty_took_ms')?.metric[0]?.histogram, {
    sampleCount: 0,
    schema: 3,
    zeroCount: 0,
    positiveSpan: [{ offset: 0, length: 0 }],
  });
  const histogram = families.find(({ name }) => name === 'envoy_cluster_took_ms')!.metric[0]!.histogram!;
  // 7.05 lies in (2^(45/16), 2^(46/16)], 115 in (2^(109/16), 2^(110/16)].
  t.same(histogram, {
    sampleCount: 4,
    sampleSum: 121.8322540857231,
    schema: 4,
    zeroThreshold: 0.5,
    zeroCount: 2,
    positiveSpan: [
      { offset: 46, length: 1 },
      { offset: 63, length: 1 },
    ],
    positiveDelta: [1, 0],
  });
});

t.test('a family larger than a piece has one length', async (t) => {
  const store = new StatsStore({ workers: 1 });
  for (let i = 0; i < 5000; i++) store.addScope(`cluster.c${i}.`, Counts);
  const pieces = [...renderMonitoring(store.reader(), OPTIONS)];
  t.ok(pieces.length > 20);
  t.same(
    decodeFamilies(Buffer.concat(pieces)).map(({ metric }) => metric.length),
    [5000, 5000, 5000, 5000],
  );
});
