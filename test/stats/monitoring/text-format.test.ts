import fc from 'fast-check';
import t from 'tap';
import type { StatsConfig } from '../../../src/config/generated/api.js';
import { defineLayout, PERCENT_SCALE } from '../../../src/stats/layout.js';
import { type MonitoringOptions, renderMonitoring } from '../../../src/stats/monitoring/render-monitoring.js';
import { statsSettings } from '../../../src/stats/settings/settings.js';
import { StatsStore } from '../../../src/stats/store.js';
import { decodeFamilies } from './metric-families.js';

const Cluster = defineLayout({ upstream_cx_total: 'counter', membership_total: 'own_gauge', 'lb.zone-x': 'counter' });
const Server = defineLayout({ live: 'own_gauge', state: 'text', took_ms: 'histogram', share: 'histogram_percent' });

const OPTIONS: MonitoringOptions = { isProtobuf: false, histograms: 'cumulative', maxBuckets: 20, textReadouts: false };

function textOf(store: StatsStore, options: Partial<MonitoringOptions> = {}): string {
  return Buffer.concat([...renderMonitoring(store.reader(), { ...OPTIONS, ...options })]).toString();
}

function newStore(config?: StatsConfig): StatsStore {
  return new StatsStore({ workers: 1, settings: statsSettings(config, []) });
}

t.test(
  'counters precede gauges, a family has the stats of all scopes in order, and braces are always written',
  async (t) => {
    const store = newStore();
    const b = store.addScope('cluster.b.', Cluster);
    store.addScope('cluster.a.', Cluster);
    store.addScope('server.', defineLayout({ live: 'own_gauge' }));
    store.scope(b).add(Cluster.at.upstream_cx_total, 2 ** 40);
    for (const [code, count] of [
      ['200', 3],
      ['503', 1],
    ] as const) {
      store.own.dynamicCounter('cluster.b.', `upstream_rq_${code}`).add(count);
    }
    store.own.dynamicCounter('cluster.b.', 'upstream_rq_5xx').add(1);
    t.equal(
      textOf(store),
      [
        '# TYPE envoy_cluster_lb_zone_x counter',
        'envoy_cluster_lb_zone_x{envoy_cluster_name="a"} 0',
        'envoy_cluster_lb_zone_x{envoy_cluster_name="b"} 0',
        '# TYPE envoy_cluster_upstream_cx_total counter',
        'envoy_cluster_upstream_cx_total{envoy_cluster_name="a"} 0',
        'envoy_cluster_upstream_cx_total{envoy_cluster_name="b"} 1099511627776',
        '# TYPE envoy_cluster_upstream_rq counter',
        'envoy_cluster_upstream_rq{envoy_response_code="200",envoy_cluster_name="b"} 3',
        'envoy_cluster_upstream_rq{envoy_response_code="503",envoy_cluster_name="b"} 1',
        '# TYPE envoy_cluster_upstream_rq_xx counter',
        'envoy_cluster_upstream_rq_xx{envoy_response_code_class="5",envoy_cluster_name="b"} 1',
        '# TYPE envoy_cluster_membership_total gauge',
        'envoy_cluster_membership_total{envoy_cluster_name="a"} 0',
        'envoy_cluster_membership_total{envoy_cluster_name="b"} 0',
        '# TYPE envoy_server_live gauge',
        'envoy_server_live{} 0',
        '',
      ].join('\n'),
    );
  },
);

t.test(
  'histograms cover the time since start, bounds are plain decimals, and unused histograms are all 0',
  async (t) => {
    const store = newStore({
      histogram_bucket_settings: [{ match: { prefix: 'server.' }, buckets: [0.5, 100, 1_800_000, 1e21] }],
    });
    const ref = store.addScope('server.', Server);
    store.scope(ref).record(Server.at.took_ms, 7);
    store.scope(ref).record(Server.at.took_ms, 115);
    store.flush();
    store.flush();
    t.equal(
      textOf(store, { type: 'histograms' }),
      [
        '# TYPE envoy_server_share histogram',
        'envoy_server_share_bucket{le="0.5"} 0',
        'envoy_server_share_bucket{le="100"} 0',
        'envoy_server_share_bucket{le="1800000"} 0',
        'envoy_server_share_bucket{le="1000000000000000000000"} 0',
        'envoy_server_share_bucket{le="+Inf"} 0',
        'envoy_server_share_sum{} 0',
        'envoy_server_share_count{} 0',
        '# TYPE envoy_server_took_ms histogram',
        'envoy_server_took_ms_bucket{le="0.5"} 0',
        'envoy_server_took_ms_bucket{le="100"} 1',
        'envoy_server_took_ms_bucket{le="1800000"} 2',
        'envoy_server_took_ms_bucket{le="1000000000000000000000"} 2',
        'envoy_server_took_ms_bucket{le="+Inf"} 2',
        'envoy_server_took_ms_sum{} 121.83225408572309333976591005921',
        'envoy_server_took_ms_count{} 2',
        '',
      ].join('\n'),
    );
  },
);

t.test('the default bounds are those that dashboards expect', async (t) => {
  const store = newStore();
  store.addScope('server.', Server);
  const bounds = textOf(store, { type: 'histograms' }).matchAll(/took_ms_bucket{le="(.*?)"/g);
  t.equal(
    Array.from(bounds, ([, bound]) => bound).join(' '),
    '0.5 1 5 10 25 50 100 250 500 1000 2500 5000 10000 30000 60000 300000 600000 1800000 3600000 +Inf',
  );
});

t.test('a summary covers the last interval only', async (t) => {
  const store = newStore();
  const ref = store.addScope('http.in.', Server);
  store.scope(ref).record(Server.at.took_ms, 7);
  store.flush();
  store.scope(ref).record(Server.at.share, 0.25 * PERCENT_SCALE);
  store.flush();
  const text = textOf(store, { histograms: 'summary', type: 'histograms' });
  const label = 'envoy_http_conn_manager_prefix="in"';
  const quantiles = ['0', '0.25', '0.5', '0.75', '0.9', '0.95', '0.99', '0.995', '0.999', '1'];
  const took = text.slice(text.indexOf('# TYPE envoy_http_took_ms'));
  t.equal(
    took,
    [
      '# TYPE envoy_http_took_ms summary',
      ...quantiles.map((quantile) => `envoy_http_took_ms{${label},quantile="${quantile}"} nan`),
      `envoy_http_took_ms_sum{${label}} 0`,
      `envoy_http_took_ms_count{${label}} 0`,
      '',
    ].join('\n'),
  );
  t.match(text, `envoy_http_share{${label},quantile="0"} 0.25500000000000000444089209850063\n`);
  t.match(text, `envoy_http_share_count{${label}} 1\n`);
});

t.test(
  'text readouts are written on request, as gauges of value 0 with the escaped text as the last label',
  async (t) => {
    const store = newStore();
    store.setText(store.addScope('cluster.a.', Server), Server.at.state, 'C:\\ "x"\ny');
    t.notMatch(textOf(store), 'state');
    t.match(
      textOf(store, { textReadouts: true }),
      '# TYPE envoy_cluster_state gauge\nenvoy_cluster_state{envoy_cluster_name="a",text_value="C:\\\\ \\"x\\"\\ny"} 0\n',
    );
  },
);

t.test('filters, used stats, types and hidden stats are selected', async (t) => {
  const store = newStore();
  store.scope(store.addScope('cluster.a.', Cluster)).increment(Cluster.at.upstream_cx_total);
  store.addScope('cluster.b.', Cluster, { hidden: true });
  const line = 'envoy_cluster_upstream_cx_total{envoy_cluster_name="a"} 1';
  t.equal(textOf(store, { usedOnly: true }), `# TYPE envoy_cluster_upstream_cx_total counter\n${line}\n`);
  t.notMatch(textOf(store, { filter: (name) => name.includes('cx') }), 'membership');
  t.notMatch(textOf(store, { type: 'gauges' }), 'counter');
  t.match(textOf(store, { hidden: 'only' }), 'envoy_cluster_name="b"');
  t.equal(textOf(store, { filter: () => false }), '');
});

t.test(
  'for any names, each family is written once, sorted, with all its metrics in the order of full names',
  async (t) => {
    const token = fc.constantFrom('cluster', 'http', 'a', 'b', 'c-c', 'rq_2xx', 'rq_404', 'x_y', 'ä');
    const name = fc.array(token, { minLength: 1, maxLength: 5 }).map((tokens) => tokens.join('.'));
    fc.assert(
      fc.property(fc.uniqueArray(name, { maxLength: 60 }), (names) => {
        const store = newStore();
        for (const name of names) {
          const dot = name.lastIndexOf('.') + 1;
          store.own.dynamicCounter(name.slice(0, dot), name.slice(dot)).add(1);
        }
        const reader = store.reader();
        const expected = new Map<string, string[]>();
        const tagged = names.toSorted().map((full) => {
          const { section, table, index } = reader.find(full)!;
          return reader.tagged(section, table, index);
        });
        const metric = (text: string) => `envoy_${text.replace(/[^a-zA-Z0-9_]/g, '_')}`;
        const firsts = new Map<string, string>();
        for (const { name } of tagged) firsts.set(metric(name), firsts.get(metric(name)) ?? name);
        const order = [...firsts].toSorted((a, b) => (a[1] < b[1] ? -1 : 1));
        for (const [family] of order) expected.set(family, [`# TYPE ${family} counter`]);
        for (const { name, tags } of tagged) {
          const labels = tags.map((tag) => `${tag.name.replace('.', '_')}="${tag.value}"`).join(',');
          expected.get(metric(name))!.push(`${metric(name)}{${labels}} 1`);
        }
        t.strictSame(textOf(store).split('\n').slice(0, -1), [...expected.values()].flat());
      }),
      { numRuns: 60 },
    );
  },
);

t.test('many stats are sent in pieces, without those removed meanwhile', async (t) => {
  const store = newStore();
  const refs = Array.from({ length: 3000 }, (_, i) => store.addScope(`cluster.c${i}.`, Cluster));
  const pieces = renderMonitoring(store.reader(), OPTIONS);
  let text = '';
  for (let i = 0; text === ''; i++) {
    const { value } = pieces.next();
    text += Buffer.from(value!).toString();
    t.ok(i < 100);
  }
  for (const ref of refs) store.removeScope(ref);
  for (const piece of pieces) {
    t.ok(piece.length < 64 * 1024);
    text += Buffer.from(piece).toString();
  }
  const lines = text.split('\n');
  t.ok(lines.filter((line) => line.startsWith('#')).length >= 2);
  t.ok(lines.length < 3 * refs.length, 'the last family was rendered after its scopes were removed');
});

t.test('no metric has a label twice or a label __name__, whatever the names of its tags', async (t) => {
  const tags = { 'a.b': '1', a_b: '2', '7up': '3', le: '4', quantile: '5', text_value: '6', '__name-_': '7' };
  const store = newStore({
    use_all_default_tags: false,
    stats_tags: Object.entries(tags).map(([tag_name, fixed_value]) => ({ tag_name, fixed_value })),
    histogram_bucket_settings: [{ match: { prefix: '' }, buckets: [1] }],
  });
  const server = store.addScope('', Server);
  store.setText(server, Server.at.state, 'up');
  const common = 'a_b="1",_7up="3"';
  t.equal(
    textOf(store, { textReadouts: true, filter: (name) => name !== 'share' }),
    [
      '# TYPE envoy_live gauge',
      `envoy_live{${common},le="4",quantile="5",text_value="6"} 0`,
      '# TYPE envoy_state gauge',
      `envoy_state{${common},le="4",quantile="5",text_value="up"} 0`,
      '# TYPE envoy_took_ms histogram',
      `envoy_took_ms_bucket{${common},quantile="5",text_value="6",le="1"} 0`,
      `envoy_took_ms_bucket{${common},quantile="5",text_value="6",le="+Inf"} 0`,
      `envoy_took_ms_sum{${common},quantile="5",text_value="6"} 0`,
      `envoy_took_ms_count{${common},quantile="5",text_value="6"} 0`,
      '',
    ].join('\n'),
  );
  t.match(
    textOf(store, { type: 'histograms', histograms: 'summary' }),
    `envoy_took_ms{${common},le="4",text_value="6",quantile="0.5"} nan\n`,
  );
  const options = { ...OPTIONS, isProtobuf: true, textReadouts: true };
  for (const { name, metric } of decodeFamilies(Buffer.concat([...renderMonitoring(store.reader(), options)]))) {
    const names = metric[0]!.label!.map((label) => label.name);
    t.same(names, [...new Set(names)], name);
    t.notOk(names.includes('__name__'), name);
    if (metric[0]!.histogram) t.notOk(names.includes('le'), name);
  }
});
