import t from 'tap';
import { defineLayout } from '../../src/stats/layout.js';
import { httpRequest } from '../e2e/harness/http-client.js';
import { startAdmin } from './fixture.js';

const Counts = defineLayout({ hits: 'counter', misses: 'counter', took_ms: 'histogram', state: 'text' });

const TEXT = 'text/plain; charset=UTF-8';
const PROTOBUF = 'application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited';

t.test('all aliases give the same answer', async (t) => {
  const { services, port } = await startAdmin(t);
  services.stats.scope(services.stats.addScope('cluster.web.', Counts)).add(Counts.at.hits, 4);
  const body = '# TYPE envoy_cluster_hits counter\nenvoy_cluster_hits{envoy_cluster_name="web"} 4\n';
  for (const path of [
    '/stats/monitoring?usedonly',
    '/stats/prometheus?usedonly',
    '/stats?format=monitoring&usedonly',
    '/stats?format=prometheus&usedonly',
  ]) {
    const answer = await httpRequest(port, path);
    t.same([answer.status, answer.headers['content-type'], answer.body], [200, TEXT, body], path);
  }
  const filtered = await httpRequest(port, '/stats/monitoring?filter=hits$&invert_filter&type=Counters&text_readouts');
  t.equal(filtered.body, '# TYPE envoy_cluster_misses counter\nenvoy_cluster_misses{envoy_cluster_name="web"} 0\n');
  t.match((await httpRequest(port, '/stats/monitoring?text_readouts')).body, 'text_value=""');
  const { body: help } = await httpRequest(port, '/help');
  t.match(help, '  /stats/monitoring: print server stats in monitoring format\n');
  t.notMatch(help, 'prometheus');
});

t.test('the first type in Accept selects protobuf or text, regardless of weights', async (t) => {
  const { port } = await startAdmin(t);
  const types: [accept: string | undefined, type: string][] = [
    [undefined, TEXT],
    ['*/*', TEXT],
    ['application/json', TEXT],
    ['application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited', PROTOBUF],
    ['application/openmetrics-text;version=1.0.0;q=0.8, application/vnd.google.protobuf;q=0.1,text/plain', PROTOBUF],
    ['text/plain;version=0.0.4;q=0.3,application/vnd.google.protobuf;q=0.7', TEXT],
  ];
  for (const [accept, type] of types) {
    const answer = await httpRequest(port, '/stats/monitoring', accept === undefined ? {} : { headers: { accept } });
    t.equal(answer.headers['content-type'], type, String(accept));
  }
  const forced = await httpRequest(port, '/stats/prometheus?prom_protobuf', { headers: { accept: 'text/plain' } });
  t.equal(forced.headers['content-type'], PROTOBUF);
});

t.test('unsupported parameters are refused', async (t) => {
  const { port } = await startAdmin(t);
  const native = 'unsupported prometheusnative histogram type when not using protobuf exposition format';
  const refusals = {
    'histogram_buckets=disjoint': 'unsupported prometheus histogram bucket mode',
    'histogram_buckets=detailed': 'unsupported prometheus histogram bucket mode',
    'histogram_buckets=monitoringnative': native,
    'histogram_buckets=prometheusnative': native,
    'histogram_buckets=all':
      'usage: /stats?histogram_buckets=(cumulative|disjoint|detailed|summary|prometheusnative)\n',
    'native_histogram_max_buckets=0': 'native_histogram_max_buckets must be a whole number from 1 to 999999999\n',
    'filter=(': 'Invalid re2 regex: missing ): (',
    'type=Counter': 'invalid &type= param',
    'hidden=bad': 'usage: /stats?hidden=(include|only|exclude)\n\n',
  };
  for (const [query, body] of Object.entries(refusals)) {
    for (const path of [`/stats/monitoring?${query}`, `/stats?format=monitoring&${query}`]) {
      const answer = await httpRequest(port, path);
      t.same([answer.status, answer.body], [400, body], path);
    }
  }
  const format = await httpRequest(port, '/stats/prometheus?format=yaml');
  t.match(format, { status: 400, body: /^usage: .*format=/ });
  for (const known of ['json', 'prometheus', 'text']) {
    const { status, body } = await httpRequest(port, `/stats/prometheus?format=${known}&filter=nothing`);
    t.same([status, body], [200, ''], known);
  }
  const text = await httpRequest(port, '/stats?histogram_buckets=monitoringnative');
  t.equal(text.status, 400, 'native histograms have no text form');
  for (const mode of ['monitoringnative', 'prometheusnative']) {
    const path = `/stats/monitoring?histogram_buckets=${mode}&native_histogram_max_buckets=8&prom_protobuf`;
    t.equal((await httpRequest(port, path)).status, 200, mode);
  }
});

t.test('with stats_flush_on_admin a sample is visible immediately', async (t) => {
  const { services, port } = await startAdmin(t);
  services.stats.scope(services.stats.addScope('web.', Counts)).record(Counts.at.took_ms, 7);
  t.match((await httpRequest(port, '/stats/monitoring')).body, 'envoy_web_took_ms_count{} 0');
  services.flushesStatsOnAdmin = true;
  t.match((await httpRequest(port, '/stats/monitoring')).body, 'envoy_web_took_ms_count{} 1');
});
