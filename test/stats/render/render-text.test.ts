import fc from 'fast-check';
import t from 'tap';
import { defineLayout, PERCENT_SCALE } from '../../../src/stats/layout.js';
import { renderText, type TextOptions } from '../../../src/stats/render/render-text.js';
import { statsSettings } from '../../../src/stats/settings/settings.js';
import { StatsStore } from '../../../src/stats/store.js';

const Cluster = defineLayout({
  upstream_cx_total: 'counter',
  bind_errors: 'counter',
  membership_total: 'own_gauge',
  version_text: 'text',
  upstream_cx_length_ms: 'histogram',
  lb_share: 'histogram_percent',
});
const Breakers = defineLayout({ rq_open: 'gauge', cx_open: 'gauge' });

function textOf(store: StatsStore, options?: TextOptions): string {
  return Buffer.concat([...renderText(store.reader(), options)]).toString();
}

t.test('readouts precede counters and gauges, histograms come last, each sorted by full name', async (t) => {
  const store = new StatsStore({ workers: 1 });
  const ref = store.addScope('cluster.b.', Cluster);
  const breakers = store.addScope('cluster.b.circuit_breakers.default.', Breakers);
  store.addScope('cluster.a.', Breakers);
  store.setText(ref, Cluster.at.version_text, 'v"1"');
  store.scope(ref).set(Cluster.at.membership_total, 3);
  store.scope(breakers).set(Breakers.at.rq_open, 1);
  store.own.dynamicCounter('cluster.b.', 'upstream_rq_200').add(4_294_967_296);
  store.scope(ref).record(Cluster.at.upstream_cx_length_ms, 115);
  store.flush();
  t.equal(
    textOf(store),
    [
      'cluster.b.version_text: "v"1""',
      'cluster.a.cx_open: 0',
      'cluster.a.rq_open: 0',
      'cluster.b.bind_errors: 0',
      'cluster.b.circuit_breakers.default.cx_open: 0',
      'cluster.b.circuit_breakers.default.rq_open: 1',
      'cluster.b.membership_total: 3',
      'cluster.b.upstream_cx_total: 0',
      'cluster.b.upstream_rq_200: 4294967296',
      'cluster.b.lb_share: No recorded values',
      'cluster.b.upstream_cx_length_ms: P0(115,115) P25(115,115) P50(115,115) P75(115,115) P90(115,115) ' +
        'P99(115,115) P99.9(115,115) P100(115,115)',
      '',
    ].join('\n'),
  );
});

t.test('histograms have four modes; empty intervals and percentages are formatted', async (t) => {
  const settings = statsSettings(
    { histogram_bucket_settings: [{ match: { prefix: 'c.upstream' }, buckets: [250, 1, 10, 1_800_000] }] },
    [],
  );
  const store = new StatsStore({ workers: 1, settings });
  const ref = store.addScope('c.', Cluster);
  store.scope(ref).record(Cluster.at.upstream_cx_length_ms, 7);
  store.scope(ref).record(Cluster.at.upstream_cx_length_ms, 115);
  store.flush();
  store.scope(ref).record(Cluster.at.upstream_cx_length_ms, 115);
  store.scope(ref).record(Cluster.at.lb_share, 0.25 * PERCENT_SCALE);
  store.flush();
  const only = (name: string, options: TextOptions) =>
    textOf(store, { type: 'histograms', filter: (stat) => stat === name, ...options });
  const length = 'c.upstream_cx_length_ms';
  t.equal(only(length, { histogramBuckets: 'cumulative' }), `${length}: B1(0,0) B10(0,1) B250(1,3) B1.8e+06(1,3)\n`);
  t.equal(only(length, { histogramBuckets: 'disjoint' }), `${length}: B1(0,0) B10(0,1) B250(1,2) B1.8e+06(0,0)\n`);
  t.equal(only('c.lb_share', { histogramBuckets: 'cumulative' }).match(/B/g)!.length, 19);
  t.match(only('c.lb_share', {}), /^c\.lb_share: P0\(0\.255,0\.255\)/);
  store.flush();
  t.equal(
    only(length, { histogramBuckets: 'detailed' }),
    `${length}:\n  totals=7,0.1:1, 110,10:2\n  intervals=\n  summary=P0(nan,7.05) P25(nan,7.05) P50(nan,113.33333333333333) P75(nan,116.66666666666667) ` +
      'P90(nan,116.66666666666667) P95(nan,116.66666666666667) P99(nan,116.66666666666667) P99.5(nan,116.66666666666667) ' +
      'P99.9(nan,116.66666666666667) P100(nan,116.66666666666667)\n',
  );
  t.equal(only('c.lb_share', { histogramBuckets: 'detailed' }).split('\n')[1], '  totals=0.25,0.01:1');
});

t.test('values have as many digits as needed, bounds at most six', async (t) => {
  const store = new StatsStore({ workers: 1 });
  const ref = store.addScope('c.', Cluster);
  for (const value of [12_345_678, 1_049, 1_049]) store.scope(ref).record(Cluster.at.upstream_cx_length_ms, value);
  store.flush();
  t.match(
    textOf(store, { usedOnly: true }),
    'P25(1033.3333333333333,1033.3333333333333) P50(1066.6666666666667,1066.6666666666667) P75(12500000,12500000)',
  );
  t.match(
    textOf(store, { usedOnly: true, histogramBuckets: 'cumulative' }),
    ' B600000(2,2) B1.8e+06(2,2) B3.6e+06(2,2)\n',
  );
});

t.test('stats are selected by use, kind, name and visibility', async (t) => {
  const store = new StatsStore({ workers: 1 });
  const ref = store.addScope('cluster.a.', Cluster);
  const host = store.addScope('cluster.a.host.1.', Breakers, { hidden: true });
  store.scope(ref).increment(Cluster.at.upstream_cx_total);
  store.scope(host).increment(Breakers.at.cx_open);
  const names = (options: TextOptions) =>
    textOf(store, options)
      .split('\n')
      .slice(0, -1)
      .map((line) => line.slice('cluster.a.'.length).replace(/:.*/, ''));
  t.same(names({ usedOnly: true }), ['upstream_cx_total']);
  t.same(names({ usedOnly: true, hidden: 'include' }), ['host.1.cx_open', 'upstream_cx_total']);
  t.same(names({ hidden: 'only' }), ['host.1.cx_open', 'host.1.rq_open']);
  t.same(names({ type: 'gauges' }), ['membership_total']);
  t.same(names({ type: 'counters' }), ['bind_errors', 'upstream_cx_total']);
  t.same(names({ type: 'textreadouts' }), ['version_text']);
  t.same(names({ type: 'histograms' }), ['lb_share', 'upstream_cx_length_ms']);
  t.same(names({ filter: (name) => name.startsWith('cluster.a.up') }), ['upstream_cx_total', 'upstream_cx_length_ms']);
  t.same(names({ filter: (name) => name.includes('e'), invertFilter: true, type: 'counters' }), []);
  t.same(names({ filter: (name) => name.includes('upstream'), invertFilter: true, type: 'counters' }), ['bind_errors']);
});

t.test('a hidden scope is visible between show() and as many calls of hide()', async (t) => {
  const store = new StatsStore({ workers: 1 });
  const host = store.addScope('cluster.a.host.1.', Breakers, { hidden: true });
  store.scope(host).increment(Breakers.at.cx_open);
  const lines = (options: TextOptions = {}) => textOf(store, options).split('\n').slice(0, -1);
  const shown = ['cluster.a.host.1.cx_open: 1', 'cluster.a.host.1.rq_open: 0'];
  t.same(lines(), []);
  store.show(host);
  store.show(host);
  t.same(lines(), shown);
  t.same(lines({ hidden: 'include' }), shown, 'once');
  store.hide(host);
  t.same(lines(), shown);
  store.hide(host);
  t.same(lines(), []);
  t.same(lines({ hidden: 'only' }), shown);
  store.removeScope(host);
  t.same(lines({ hidden: 'include' }), []);
});

t.test('for any prefixes, every name is written once and in order', async () => {
  const token = fc.constantFrom('a', 'b', 'a.b', 'b_', 'rq', 'rq_total', 'z');
  const stat = fc.tuple(fc.array(token, { maxLength: 3 }), token);
  fc.assert(
    fc.property(fc.array(stat, { maxLength: 30 }), (stats) => {
      const store = new StatsStore({ workers: 1 });
      const expected: string[] = [];
      const known = new Set<string>();
      for (const [tokens, name] of stats) {
        const prefix = tokens.map((part) => `${part}.`).join('');
        if (known.has(`${prefix} ${name}`)) continue;
        known.add(`${prefix} ${name}`);
        expected.push(prefix + name);
        if (name === 'rq') store.addScope(prefix, defineLayout({ rq: 'counter' }));
        else if (name === 'rq_total') store.addScope(prefix, defineLayout({ rq_total: 'gauge' }));
        else store.own.dynamicCounter(prefix, name);
      }
      const shown = textOf(store).split('\n').slice(0, -1);
      return JSON.stringify(shown) === JSON.stringify(expected.sort().map((name) => `${name}: 0`));
    }),
  );
});

t.test('a long answer is sent in pieces of bounded size', async (t) => {
  const store = new StatsStore({ workers: 1 });
  for (let i = 0; i < 5000; i++) store.addScope(`cluster.c${i}.`, Cluster);
  let bytes = 0;
  let largest = 0;
  for (const piece of renderText(store.reader())) {
    bytes += piece.length;
    largest = Math.max(largest, piece.length);
  }
  t.ok(largest < 64 * 1024, `${largest} bytes`);
  t.ok(bytes > 10 * largest, `${bytes} bytes in all`);
});

t.test('a long search for the next selected stat pauses, so that it does not block the thread', async (t) => {
  const store = new StatsStore({ workers: 1 });
  for (let i = 0; i < 1500; i++) store.addScope(`cluster.c${i}.`, Breakers);
  const pieces = [...renderText(store.reader(), { filter: (name) => name === 'cluster.c999.rq_open' })];
  t.equal(Buffer.concat(pieces).toString(), 'cluster.c999.rq_open: 0\n');
  t.ok(pieces.length > 2, 'other work can run between the pieces');
});

t.test('the walk pauses after each name that takes the filter long, selected or not', async (t) => {
  const store = new StatsStore({ workers: 1 });
  for (let i = 0; i < 20; i++) store.addScope(`cluster.c${i}.`, Breakers);
  const costly = (isMatch: boolean) => () => {
    const end = performance.now() + 3;
    while (performance.now() < end);
    return isMatch;
  };
  for (const isMatch of [true, false]) {
    const pieces = [...renderText(store.reader(), { filter: costly(isMatch) })];
    t.ok(pieces.length >= 40, `${pieces.length} pieces for 40 names`);
    t.equal(Buffer.concat(pieces).toString().split('\n').length - 1, isMatch ? 40 : 0);
  }
});
