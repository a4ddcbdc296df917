// Metrics services and OpenTelemetry collectors receive every count exactly once, through failures and restarts.

import t from 'tap';
import { type Config, HTTP2_CLUSTER, keepaliveSeconds, loopback, staticCluster, waitFor } from '../harness/index.js';
import { type GrpcPeer, startCollector, startDeafServer, startMetricsService } from './grpc-peers.js';
import { startTcpPeer, startUdpPeer } from './line-peers.js';
import { startSinkProxy } from './sink-proxy.js';

const METRICS_SERVICE = 'type.googleapis.com/envoy.config.metrics.v3.MetricsServiceConfig';
const STATSD = 'type.googleapis.com/envoy.config.metrics.v3.StatsdSink';
const OPEN_TELEMETRY = 'type.googleapis.com/envoy.extensions.stat_sinks.open_telemetry.v3.SinkConfig';
const REQUESTS = 'cluster.host.upstream_rq_total';

interface Family {
  readonly name: string;
  readonly type: string;
  readonly metric: readonly {
    readonly label?: readonly { readonly name: string; readonly value: string }[];
    readonly counter?: { readonly value: number };
    readonly gauge?: { readonly value: number };
    readonly histogram?: { readonly sample_count: number; readonly bucket: readonly object[] };
    readonly summary?: { readonly sample_count: number; readonly quantile: readonly object[] };
    readonly timestamp_ms: number;
  }[];
}

interface Metric {
  readonly name: string;
  readonly sum?: {
    readonly data_points: readonly {
      readonly as_int: number;
      readonly attributes?: readonly object[];
      readonly start_time_unix_nano: number;
      readonly time_unix_nano: number;
    }[];
    readonly aggregation_temporality: string;
    readonly is_monotonic: boolean;
  };
  readonly gauge?: object;
  readonly histogram?: {
    readonly data_points: readonly { readonly count: number; readonly bucket_counts: number[] }[];
  };
}

const families = (peer: GrpcPeer, name: string) =>
  peer.messages.flatMap((message) => (message['envoy_metrics'] as Family[]).filter((family) => family.name === name));
const counted = (peer: GrpcPeer, name: string) =>
  families(peer, name).reduce((sum, family) => sum + family.metric[0]!.counter!.value, 0);

function metrics(peer: GrpcPeer, name: string): Metric[] {
  type Scopes = { readonly scope_metrics: readonly { readonly metrics?: Metric[] }[] };
  const all = peer.messages.flatMap((message) => message['resource_metrics'] as Scopes[]);
  const found = all.flatMap((each) => each.scope_metrics).flatMap((scope) => scope.metrics ?? []);
  return found.filter((metric) => metric.name === name);
}

function grpcTo(cluster: string, more: Config = {}): Config {
  return { envoy_grpc: { cluster_name: cluster }, ...more };
}

t.test(
  'metrics service: the first message has the identifier, deltas add up, a broken stream is reopened',
  async (t) => {
    const first = await startMetricsService(t);
    const { baton, request } = await startSinkProxy(
      t,
      [
        {
          '@type': METRICS_SERVICE,
          transport_api_version: 'V3',
          report_counters_as_deltas: true,
          batch_size: 20,
          grpc_service: grpcTo('metrics', { initial_metadata: [{ key: 'x-tenant', value: 'a' }] }),
        },
      ],
      {
        clusters: [staticCluster('metrics', first.port, { ...HTTP2_CLUSTER, connect_timeout: '315576000000s' })],
        extra: { node: { id: 'edge-1', cluster: 'edge', metadata: { rack: 'r1' } } },
      },
    );
    await request(5);
    await waitFor(() => counted(first, REQUESTS) === 5, { what: '5 requests' });
    t.match(first.messages[0], { identifier: { node: { id: 'edge-1', cluster: 'edge' } } });
    t.ok(
      first.messages.slice(1).every((message) => message['identifier'] === undefined),
      'only the first message has the identifier',
    );
    t.ok(
      first.messages.every((message) => (message['envoy_metrics'] as Family[]).length <= 20),
      'messages have the configured size',
    );
    t.match(first.metadata[0], { 'x-tenant': 'a' });
    const times = () => families(first, 'cluster.host.upstream_rq_time');
    const histograms = () =>
      times()
        .filter((family) => family.type === 'HISTOGRAM')
        .map((family) => family.metric[0]!.histogram!);
    const samples = () => histograms().reduce((sum, each) => sum + each.sample_count, 0);
    await waitFor(() => samples() === 5, { what: 'all samples, each in one interval' });
    t.equal(histograms()[0]!.bucket.length, 19);
    t.ok(
      times().some((family) => family.type === 'SUMMARY'),
      'summaries too',
    );
    t.equal((await baton.admin('/reset_counters', { method: 'POST' })).status, 200);
    first.close();
    await waitFor(() => baton.stderr.includes("the metrics service over cluster 'metrics' accepts no stats"), {
      what: 'the log entry',
    });
    t.equal((await baton.admin('/ready')).status, 200);
    const second = await startMetricsService(t, { port: first.port });
    await waitFor(() => second.messages.length > 0, { what: 'another stream' });
    t.match(second.messages[0], { identifier: { node: { id: 'edge-1' } } });
    await request(2);
    await waitFor(() => counted(second, REQUESTS) === 2, { what: '2 requests' });
    await baton.stop();
  },
);

t.test('a cluster can enable TCP keepalive on the connection to its service', async (t) => {
  const [peer, other] = [await startMetricsService(t), await startMetricsService(t)];
  const upstream_connection_options = { tcp_keepalive: { keepalive_time: 300 } };
  const sinks = ['metrics', 'other'].map((name) => ({ '@type': METRICS_SERVICE, grpc_service: grpcTo(name) }));
  const { baton } = await startSinkProxy(t, sinks, {
    clusters: [
      staticCluster('metrics', peer.port, { http2_protocol_options: {}, upstream_connection_options }),
      staticCluster('other', other.port, { http2_protocol_options: {} }),
    ],
  });
  await waitFor(() => peer.messages.length > 0 && other.messages.length > 0, { what: 'both are connected' });
  // The kernel's single timer is that of keepalive only when no data is unacknowledged.
  const seconds = await waitFor(() => keepaliveSeconds(peer.port)[0], { what: 'the timer of keepalive' });
  t.ok(seconds > 0 && seconds <= 300, `${seconds} s, where the kernel alone takes 7200`);
  t.same(keepaliveSeconds(other.port), []);
  const received = peer.messages.length;
  await waitFor(() => peer.messages.length > received, { what: 'further messages' });
  await baton.stop();
});

t.test('metrics service: totals, with tags as labels', async (t) => {
  const peer = await startMetricsService(t);
  const { baton, request } = await startSinkProxy(
    t,
    [
      {
        '@type': METRICS_SERVICE,
        emit_tags_as_labels: true,
        histogram_emit_mode: 'SUMMARY',
        grpc_service: grpcTo('metrics'),
      },
    ],
    { clusters: [staticCluster('metrics', peer.port, { http2_protocol_options: {} })] },
  );
  await request(3);
  const isHost = (family: Family) => family.metric[0]!.label?.some(({ value }) => value === 'host');
  const latest = () => families(peer, 'cluster.upstream_rq_total').filter(isHost).at(-1)?.metric[0]?.counter?.value;
  await waitFor(() => latest() === 3, { what: '3 requests' });
  t.equal((await baton.admin('/reset_counters', { method: 'POST' })).status, 200);
  await request(1);
  await waitFor(() => latest() === 4, { what: 'the total, in spite of the reset' });
  t.same(
    peer.messages.flatMap((message) =>
      (message['envoy_metrics'] as Family[]).filter(({ type }) => type === 'HISTOGRAM'),
    ),
    [],
  );
  await baton.stop();
});

t.test('OpenTelemetry: sums, gauges and histograms with attributes; a collector that is restarted', async (t) => {
  const first = await startCollector(t);
  const { baton, request } = await startSinkProxy(
    t,
    [
      {
        '@type': OPEN_TELEMETRY,
        report_counters_as_deltas: true,
        report_histograms_as_deltas: true,
        prefix: 'edge',
        grpc_service: grpcTo('collector', { timeout: '1s' }),
      },
    ],
    {
      clusters: [staticCluster('collector', first.port, HTTP2_CLUSTER)],
      extra: { node: { id: 'edge-1', cluster: 'edge' } },
    },
  );
  await request(6);
  // The exports count in the cluster of the collector.
  const isOfHost = (point: object) => JSON.stringify(point).includes('"host"');
  const points = (peer: GrpcPeer) =>
    metrics(peer, 'edge.cluster.upstream_rq_total').flatMap((each) => each.sum!.data_points.filter(isOfHost));
  const sum = (peer: GrpcPeer) => points(peer).reduce((all, point) => all + point.as_int, 0);
  await waitFor(() => sum(first) === 6, { what: '6 requests' });
  const metric = metrics(first, 'edge.cluster.upstream_rq_total').find(({ sum }) => sum!.data_points.some(isOfHost));
  t.match(metric, { sum: { aggregation_temporality: 'AGGREGATION_TEMPORALITY_DELTA', is_monotonic: true } });
  t.match(points(first)[0]!.attributes, [{ key: 'envoy.cluster_name', value: { string_value: 'host' } }]);
  const { start_time_unix_nano: begin, time_unix_nano: end } = metric!.sum!.data_points[0]!;
  t.ok(begin < end && Math.abs(end / 1e6 - Date.now()) < 60_000, 'the interval of the flush');
  t.match(first.messages[0], {
    resource_metrics: [{ resource: { attributes: [{ key: 'service.name', value: { string_value: 'edge' } }, {}] } }],
  });
  const samples = () =>
    metrics(first, 'edge.cluster.upstream_rq_time')
      .flatMap((each) => each.histogram!.data_points.filter(isOfHost))
      .map(({ count }) => count);
  await waitFor(() => samples().reduce((all, count) => all + count, 0) === 6, { what: '6 samples' });
  t.ok(metrics(first, 'edge.server.live').some((each) => each.gauge !== undefined));
  first.close();
  await waitFor(() => baton.stderr.includes("the OpenTelemetry collector over cluster 'collector' accepts no stats"), {
    what: 'the log entry',
  });
  t.equal((await baton.admin('/ready')).status, 200);
  const second = await startCollector(t, { port: first.port });
  await waitFor(() => second.messages.length > 0, { what: 'exports again' });
  await request(2);
  await waitFor(() => sum(second) === 2, { what: '2 requests' });
  await baton.stop();
});

t.test('metrics service: unaccepted counts are lost, and the service recovers', async (t) => {
  const hole = await startTcpPeer(t, 0, true);
  const peer = await startUdpPeer(t);
  const { baton } = await startSinkProxy(
    t,
    [
      { '@type': METRICS_SERVICE, batch_size: 10, grpc_service: grpcTo('metrics', { timeout: '0.2s' }) },
      { '@type': STATSD, address: loopback(peer.port) },
    ],
    { clusters: [staticCluster('metrics', hole.port, HTTP2_CLUSTER)] },
  );
  const flushes = () => peer.lines.values('envoy.server.live', '|g').length;
  await waitFor(() => baton.stderr.includes("'metrics' accepts no stats"), { what: 'the first stream to be given up' });
  const before = flushes();
  await waitFor(() => flushes() > before + 20, { what: 'further flushes' });
  t.notMatch(baton.stderr, 'accepts stats again');
  await hole.close();
  const service = await startMetricsService(t, { port: hole.port });
  await waitFor(() => service.messages.length > 0, { what: 'the restarted service' });
  await waitFor(() => baton.stderr.includes('accepts stats again'), { what: 'the log entry' });
  const lost = Number(/accepts stats again; (\d+) message/.exec(baton.stderr)![1]);
  t.ok(lost >= 2 * perFlush(service), `all queued messages are lost: ${lost}`);
  await baton.stop();
});

/** Returns the number of messages per flush. */
function perFlush({ messages }: GrpcPeer): number {
  const isFirst = (message: GrpcPeer['messages'][number]) =>
    (message['envoy_metrics'] as Family[]).some(({ name }) => name === 'server.live');
  const starts = messages.flatMap((message, i) => (isFirst(message) ? [i] : []));
  return starts.length > 1 ? starts[1]! - starts[0]! : messages.length;
}

t.test('the log says why a collector without hosts gets no stats', async (t) => {
  const sinks = [{ '@type': OPEN_TELEMETRY, grpc_service: grpcTo('collector') }];
  const { baton } = await startSinkProxy(t, sinks, { clusters: [staticCluster('collector', [], HTTP2_CLUSTER)] });
  await waitFor(() => baton.stderr.includes("'collector' accepts no stats: 14, the cluster has no host;"), {
    what: 'the log entry',
  });
  await baton.stop();
});

t.test('services that never read or answer block nothing', async (t) => {
  const service = await startDeafServer(t);
  const collector = await startCollector(t, { isDeaf: true });
  const { baton, request } = await startSinkProxy(
    t,
    [
      { '@type': METRICS_SERVICE, grpc_service: grpcTo('metrics', { timeout: '0.5s' }) },
      { '@type': OPEN_TELEMETRY, grpc_service: grpcTo('collector') },
    ],
    {
      clusters: [
        staticCluster('metrics', service.port, HTTP2_CLUSTER),
        staticCluster('collector', collector.port, HTTP2_CLUSTER),
      ],
    },
  );
  await waitFor(() => baton.stderr.includes("'collector' accepts no stats: it does not answer"), {
    what: 'the log entry of the collector',
  });
  await waitFor(() => baton.stderr.includes("'metrics' accepts no stats"), {
    what: 'the log entry of the metrics service',
  });
  await request(2);
  await waitFor(async () => (await baton.stat(REQUESTS)) === 2, { what: 'traffic and admin to continue' });
  t.ok(collector.messages.length <= 32, 'the number of pending exports is bounded');
  await baton.stop();
});

t.test('counts since the last flush are sent when the server exits', async (t) => {
  const service = await startMetricsService(t);
  const collector = await startCollector(t);
  const { baton, request } = await startSinkProxy(
    t,
    [
      {
        '@type': METRICS_SERVICE,
        transport_api_version: 'V3',
        report_counters_as_deltas: true,
        grpc_service: grpcTo('metrics'),
      },
      { '@type': OPEN_TELEMETRY, report_counters_as_deltas: true, grpc_service: grpcTo('collector') },
    ],
    {
      clusters: [
        staticCluster('metrics', service.port, HTTP2_CLUSTER),
        staticCluster('collector', collector.port, HTTP2_CLUSTER),
      ],
      extra: { stats_flush_interval: '60s' },
    },
  );
  await request(3);
  await baton.stop();
  t.equal(counted(service, REQUESTS), 3);
  t.equal(metrics(collector, 'cluster.upstream_rq_total').length, 1);
});
