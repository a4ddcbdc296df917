// Monitoring systems accept Baton's stats: promtool checks them, and a Prometheus server scrapes text and protobuf.

import { spawn } from 'node:child_process';
import t from 'tap';
import {
  bootstrap,
  findPeer,
  httpListener,
  httpRequest,
  routeAllTo,
  startBaton,
  startEchoUpstream,
  staticCluster,
  waitFor,
} from '../../harness/index.js';
import { startPrometheus } from './prometheus.js';

const REQUESTS = 25;

const upstream = await startEchoUpstream(t);
const baton = await startBaton(t, {
  config: bootstrap({
    listeners: [httpListener('in', 0, { route_config: routeAllTo('api') })],
    clusters: [staticCluster('api', upstream.port), staticCluster('other', upstream.port)],
    extra: {
      stats_flush_interval: '0.1s',
      stats_config: { stats_tags: [{ tag_name: 'zone', fixed_value: 'a "b"\\c' }] },
    },
  }),
  args: ['--concurrency', '2'],
});
const port = await baton.listenerPort('in');
for (let i = 0; i < REQUESTS; i++) await httpRequest(port, i % 5 === 0 ? '/?status=503' : '/');
await waitFor(async () => {
  const { body } = await baton.admin('/stats?filter=^http.in.downstream_rq_time$&histogram_buckets=cumulative');
  return body.includes(`,${REQUESTS})`);
});

t.test('hidden stats of hosts are metric families with the host as a label', async (t) => {
  const { body } = await baton.admin('/stats/monitoring?hidden=only');
  t.same(body.match(/^# TYPE .*/gm), [
    ...['cx_connect_fail', 'cx_total', 'rq_error', 'rq_success', 'rq_timeout', 'rq_total'].map(
      (name) => `# TYPE envoy_cluster_endpoint_${name} counter`,
    ),
    ...['cx_active', 'rq_active', 'rq_pending_active'].map((name) => `# TYPE envoy_cluster_endpoint_${name} gauge`),
  ]);
  const labels = `zone="a \\"b\\"\\\\c",envoy_cluster_name="api",envoy_endpoint_address="127.0.0.1:${upstream.port}"`;
  t.match(body, `envoy_cluster_endpoint_rq_total{${labels}} ${REQUESTS}\n`);
});

const promtool = findPeer('promtool');
t.test('promtool finds no syntax error', { skip: promtool.path === undefined && promtool.skip }, async (t) => {
  for (const query of ['', 'histogram_buckets=summary&text_readouts', 'usedonly']) {
    const { body } = await baton.admin(`/stats/monitoring?${query}`);
    const child = spawn(promtool.path!, ['check', 'metrics']);
    let output = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk));
    const status = await new Promise((resolve) => {
      child.once('close', resolve);
      child.stdin.end(body);
    });
    // Status 3: all of it was parsed, with advice on names and help texts, which are fixed.
    t.ok(status === 0 || status === 3, `status ${status} for "${query}": ${status === 3 ? '' : output.slice(0, 500)}`);
    t.notMatch(output, 'error while linting');
  }
});

const prometheus = findPeer('prometheus');
const skip = prometheus.path === undefined && prometheus.skip;

t.test('Prometheus scrapes text: all series, with their values', { skip }, async (t) => {
  const server = await startPrometheus(t, {
    path: prometheus.path!,
    target: baton.adminPort,
    metricsPath: '/stats/prometheus',
  });
  const value = async (query: string) => (await server.query(query))[0]?.value?.[1];
  for (const [query, expected] of Object.entries({
    'sum(envoy_http_downstream_rq_total{envoy_http_conn_manager_prefix="in"})': REQUESTS,
    'envoy_cluster_membership_total{envoy_cluster_name="api"}': 1,
    'sum(envoy_cluster_upstream_rq_total)': REQUESTS,
    'count(envoy_cluster_upstream_rq_total)': 2,
    envoy_server_live: 1,
    'sum(envoy_http_downstream_rq_time_count{envoy_http_conn_manager_prefix="in"})': REQUESTS,
    'sum(envoy_http_downstream_rq_time_bucket{envoy_http_conn_manager_prefix="in",le="+Inf"})': REQUESTS,
    'count(envoy_server_live{zone="a \\"b\\"\\\\c"})': 1,
  })) {
    t.equal(await value(query), String(expected), query);
  }
  await waitFor(async () => {
    const { body } = await baton.admin('/stats/monitoring');
    const lines = body.split('\n').filter((line) => line !== '' && !line.startsWith('#')).length;
    return (await value('scrape_samples_post_metric_relabeling{job="baton"}')) === String(lines);
  });
  t.pass('no sample was dropped');
});

t.test('Prometheus scrapes protobuf: native histograms', { skip }, async (t) => {
  const server = await startPrometheus(t, {
    path: prometheus.path!,
    target: baton.adminPort,
    metricsPath: '/stats/monitoring',
    parameters: { histogram_buckets: ['monitoringnative'], native_histogram_max_buckets: ['40'] },
    args: ['--enable-feature=native-histograms'],
  });
  const labels = 'envoy_http_conn_manager_prefix="in"';
  const [time] = await server.query(`envoy_http_downstream_rq_time{${labels}}`);
  t.equal(time?.histogram?.[1].count, String(REQUESTS));
  const text = (await baton.admin('/stats/monitoring?filter=^http.in.downstream_rq_time$')).body;
  const sum = Number(/_sum\{.*\} (.*)/.exec(text)?.[1]);
  t.equal(Number(time?.histogram?.[1].sum), sum);
  const [median] = await server.query(`histogram_quantile(0.5, envoy_http_downstream_rq_time{${labels}})`);
  const json = JSON.parse((await baton.admin('/stats?format=json&filter=^http.in.downstream_rq_time$')).body);
  const own = json.stats[0].histograms.computed_quantiles[0].values[2].cumulative;
  t.ok(Math.abs(Number(median?.value?.[1]) - own) <= 0.5 + own * 0.1, `${median?.value?.[1]} is about ${own}`);
  t.equal((await server.query('sum(envoy_cluster_upstream_rq_total)'))[0]?.value?.[1], String(REQUESTS));
});
