// OpenTelemetry collectors receive every count exactly once over HTTP, through their cluster, and through failures and
// restarts.

import t from 'tap';
import { type Config, staticCluster, type Teardown, waitFor } from '../harness/index.js';
import { type HttpCollector, startHttpCollector } from './http-collector.js';
import { type SinkProxy, startSinkProxy } from './sink-proxy.js';

const OPEN_TELEMETRY = 'type.googleapis.com/envoy.extensions.stat_sinks.open_telemetry.v3.SinkConfig';
const REQUESTS = 'cluster.upstream_rq_total';
const ACCEPTS_NONE = "the OpenTelemetry collector over cluster 'collector' accepts no stats: ";
const ACCEPTS_AGAIN = "the OpenTelemetry collector over cluster 'collector' accepts stats again";

interface Options {
  readonly sink?: Config;
  readonly service?: Config;
  readonly cluster?: Config;
  readonly extra?: Config;
  readonly timeout?: string;
}

function startExporter(t: Teardown, port: number, options: Options = {}): Promise<SinkProxy> {
  const uri = `http://collector.test:4318/v1/metrics?key=a`;
  const service = { http_uri: { uri, cluster: 'collector', timeout: options.timeout ?? '5s' }, ...options.service };
  const sink = { '@type': OPEN_TELEMETRY, report_counters_as_deltas: true, http_service: service, ...options.sink };
  const clusters = [staticCluster('collector', port, options.cluster)];
  return startSinkProxy(t, [sink], { clusters, ...(options.extra && { extra: options.extra }) });
}

/**
 * Returns the number of requests by clients of the proxy, from the exports: the proxy's own calls are counted in other
 * clusters.
 */
function clientRequests(collector: HttpCollector): number {
  const all = collector.exports.flatMap((each) => each.metrics).filter((metric) => metric.name === REQUESTS);
  const points = all.flatMap((metric) => metric.sum!.data_points as readonly Point[]);
  return points
    .filter(({ attributes }) => attributes.some(({ value }) => value.string_value === 'host'))
    .reduce((sum, point) => sum + point.as_int, 0);
}

interface Point {
  readonly as_int: number;
  readonly attributes: readonly { readonly key: string; readonly value: { readonly string_value: string } }[];
}

t.test('each flush is a POST of the same message, on connections of the cluster', async (t) => {
  const collector = await startHttpCollector(t);
  const { baton, request } = await startExporter(t, collector.port, {
    service: {
      request_headers_to_add: [
        { header: { key: 'X-Token', value: '100%secret%' } },
        { header: { key: 'user-agent', value: 'edge' }, append_action: 'OVERWRITE_IF_EXISTS_OR_ADD' },
      ],
    },
    extra: { node: { id: 'edge-1', cluster: 'edge' } },
  });
  await request(5);
  await waitFor(() => clientRequests(collector) === 5, { what: '5 requests' });
  const [first] = collector.exports;
  t.match(first, {
    method: 'POST',
    path: '/v1/metrics?key=a',
    headers: {
      host: 'collector.test:4318',
      'content-type': 'application/x-protobuf',
      'x-token': '100%secret%',
      'user-agent': 'edge',
    },
    resource: { attributes: [{ key: 'service.name', value: { string_value: 'edge' } }, {}] },
  });
  t.ok(first!.metrics.some(({ name, gauge }) => name === 'server.live' && gauge !== undefined));
  await waitFor(async () => (await baton.stat('cluster.collector.internal.upstream_rq_2xx'))! > 10, {
    what: "the cluster's response counters",
  });
  t.ok((await baton.stat('cluster.collector.upstream_cx_total'))! <= 4, 'connections are reused');
  await baton.stop();
  t.notMatch(baton.stderr, 'accepts no stats');
});

t.test('a flush is split into requests of the configured size, and nothing is lost or sent twice', async (t) => {
  const collector = await startHttpCollector(t);
  const { baton, request } = await startExporter(t, collector.port, { sink: { max_data_points_per_request: 40 } });
  await request(4);
  await waitFor(() => clientRequests(collector) === 4, { what: '4 requests' });
  t.ok(collector.exports.every(({ metrics }) => metrics.length <= 40));
  t.ok(collector.exports.some(({ metrics }) => metrics.length === 40));
  await request(3);
  await waitFor(() => clientRequests(collector) === 7, { what: '7 requests' });
  await baton.stop();
});

t.test(
  'a collector that answers with errors, stops and restarts: each change is one log line, and traffic continues',
  async (t) => {
    const first = await startHttpCollector(t);
    first.answer = (response) => response.writeHead(500).end('no');
    const { baton, request } = await startExporter(t, first.port);
    await waitFor(() => baton.stderr.includes(`${ACCEPTS_NONE}it answers with status 500`), { what: 'the log entry' });
    const before = first.exports.length;
    await waitFor(() => first.exports.length > before + 3, { what: 'further attempts' });
    t.equal(count(baton.stderr, ACCEPTS_NONE), 1, 'logged once');
    first.answer = (response) => response.writeHead(204).end();
    await waitFor(() => baton.stderr.includes(ACCEPTS_AGAIN), { what: 'the collector to recover' });
    first.close();
    await waitFor(() => count(baton.stderr, ACCEPTS_NONE) === 2, { what: 'the failure of the stopped collector' });
    await waitFor(async () => (await baton.stat('cluster.collector.upstream_cx_connect_fail'))! > 0, {
      what: "the cluster's counter of failed connects",
    });
    await waitFor(async () => (await baton.stat('cluster.collector.internal.upstream_rq_503'))! > 0, {
      what: "the cluster's counter of failed calls",
    });
    t.equal((await baton.admin('/ready')).status, 200);
    const second = await startHttpCollector(t, first.port);
    await waitFor(() => count(baton.stderr, ACCEPTS_AGAIN) === 2, { what: 'the recovery of the restarted collector' });
    await request(2);
    await waitFor(() => clientRequests(second) === 2, { what: '2 requests' });
    await baton.stop();
  },
);

t.test('a collector that never answers has a bounded number of pending exports, and recovers', async (t) => {
  const collector = await startHttpCollector(t);
  collector.answer = () => {};
  const { baton, request } = await startExporter(t, collector.port, { timeout: '0.3s' });
  await waitFor(() => baton.stderr.includes(`${ACCEPTS_NONE}it does not answer in time`), { what: 'the timeout' });
  t.ok((await baton.stat('cluster.collector.upstream_rq_active'))! <= 4, 'few calls at once');
  t.ok((await baton.stat('cluster.collector.upstream_rq_timeout'))! > 0);
  t.ok((await baton.stat('cluster.collector.upstream_rq_504'))! > 0);
  await request(2);
  collector.answer = (response) => response.writeHead(200).end();
  await waitFor(() => baton.stderr.includes(ACCEPTS_AGAIN), { what: 'the collector to recover' });
  await waitFor(async () => (await baton.stat('cluster.host.upstream_rq_total')) === 2, {
    what: 'traffic to continue',
  });
  await baton.stop();
});

t.test('a collector that does not read blocks nothing, and large exports arrive when it reads', async (t) => {
  const collector = await startHttpCollector(t);
  collector.isDeaf = true;
  // Enough stats that an export exceeds the socket buffers.
  const many = Array.from({ length: 500 }, (_, i) => staticCluster(`a-cluster-with-a-long-name-${i}`, 1));
  const service = { http_uri: { uri: 'http://collector/', cluster: 'collector', timeout: '2s' } };
  const { baton, request } = await startSinkProxy(t, [{ '@type': OPEN_TELEMETRY, http_service: service }], {
    clusters: [staticCluster('collector', collector.port), ...many],
    extra: { stats_flush_interval: '0.3s' },
  });
  await waitFor(() => collector.begun > 0, { what: 'the start of an export' });
  await request(2);
  await waitFor(() => baton.stderr.includes(`${ACCEPTS_NONE}it does not answer in time`), { what: 'the timeout' });
  t.equal((await baton.admin('/ready')).status, 200);
  collector.isDeaf = false;
  const isWhole = () => collector.exports.some(({ metrics }) => metrics.length > 1500);
  await waitFor(isWhole, { what: 'a complete export', deadlineMs: 30_000 });
  await baton.stop();
});

t.test('rejected metrics in a response are logged', async (t) => {
  const collector = await startHttpCollector(t);
  // partial_success { rejected_data_points: 3 error_message: "full" }
  const body = Buffer.from([10, 8, 8, 3, 18, 4, ...Buffer.from('full')]);
  collector.answer = (response) => response.writeHead(200, { 'content-type': 'application/x-protobuf' }).end(body);
  const { baton } = await startExporter(t, collector.port);
  await waitFor(() => baton.stderr.includes(`${ACCEPTS_NONE}it rejects metrics: full`), { what: 'the log entry' });
  await baton.stop();
});

t.test('the circuit breakers of the cluster apply to exports', async (t) => {
  const collector = await startHttpCollector(t);
  const { baton } = await startExporter(t, collector.port, {
    cluster: { circuit_breakers: { thresholds: [{ max_requests: 0 }] } },
  });
  await waitFor(() => baton.stderr.includes(`${ACCEPTS_NONE}the cluster's circuit breaker is open`), {
    what: 'the log entry',
  });
  t.equal(collector.begun, 0);
  const { upstream_rq_503, upstream_rq_active_overflow } = await baton.stats('cluster.collector.');
  t.equal(upstream_rq_503, upstream_rq_active_overflow);
  await baton.stop();
});

function count(text: string, part: string): number {
  return text.split(part).length - 1;
}

t.test('counts since the last flush are exported when the server exits', async (t) => {
  const collector = await startHttpCollector(t);
  const { baton, request } = await startExporter(t, collector.port, {
    sink: { max_data_points_per_request: 20 },
    extra: { stats_flush_interval: '60s' },
  });
  await request(4);
  await baton.stop();
  t.equal(clientRequests(collector), 4);
});
