// A collector that is absent, refuses, or never answers costs spans, which are counted, and nothing else.

import t from 'tap';
import { besideEnvoy } from '../harness/envoy.js';
import { type Config, HTTP2_CLUSTER, staticCluster, waitFor } from '../harness/index.js';
import { startGrpcCollector, startHttpCollector } from './collector.js';
import { decodeTraces } from './messages.js';
import { startTracedProxy, tracer } from './proxy.js';

const BATON = { command: undefined };
const otel = (fields: Config) => tracer('opentelemetry', 'OpenTelemetryConfig', fields);
const BY_GRPC: Config = { grpc_service: { envoy_grpc: { cluster_name: 'collector' }, timeout: '0.2s' } };
const BY_HTTP: Config = {
  http_service: {
    http_uri: { uri: 'http://otlp.example/v1/traces?a=b', cluster: 'collector', timeout: '1s' },
    request_headers_to_add: [{ header: { key: 'x-token', value: 'secret' } }],
  },
};

besideEnvoy('spans are exported over HTTP', async (t, program) => {
  const collector = await startHttpCollector(t, decodeTraces);
  const proxy = await startTracedProxy(t, program, {
    tracing: { provider: otel(BY_HTTP) },
    clusters: [staticCluster('collector', collector.port)],
  });
  await proxy.request('/');
  const [span] = await collector.collect(1, (traces) => traces.flatMap(({ spans }) => spans));
  t.equal(span!.name, 'ingress');
  t.match(collector.heads[0], {
    ':method': 'POST',
    ':path': '/v1/traces?a=b',
    host: 'otlp.example',
    'content-type': 'application/x-protobuf',
    'x-token': 'secret',
  });
});

besideEnvoy('spans beyond max_cache_size are dropped', async (t, program) => {
  const collector = await startGrpcCollector(t, decodeTraces);
  const proxy = await startTracedProxy(t, program, {
    tracing: { provider: otel({ ...BY_GRPC, max_cache_size: 2 }) },
    clusters: [staticCluster('collector', collector.port, HTTP2_CLUSTER)],
    runtime: { 'tracing.opentelemetry.min_flush_spans': 100, 'tracing.opentelemetry.flush_interval_ms': 100_000 },
  });
  for (let i = 0; i < 4; i++) await proxy.request('/');
  await proxy.baton.waitForStats({ 'tracing.opentelemetry.spans_dropped': 1, 'tracing.opentelemetry.spans_sent': 2 });
});

t.test('lost spans are counted and logged once', async (t) => {
  const refusing = await startHttpCollector(t, decodeTraces, { status: 503 });
  const deaf = await startGrpcCollector(t, decodeTraces, { isDeaf: true });
  const places = [
    ['absent', BY_GRPC, staticCluster('absent', 1, HTTP2_CLUSTER)],
    ['empty', BY_GRPC, staticCluster('empty', [], HTTP2_CLUSTER)],
    ['deaf', BY_GRPC, staticCluster('deaf', deaf.port, HTTP2_CLUSTER)],
    ['refusing', BY_HTTP, staticCluster('refusing', refusing.port)],
  ] as const;
  const provider = (service: Config, name: string) =>
    otel(JSON.parse(JSON.stringify(service).replaceAll('"collector"', JSON.stringify(name))));
  const proxy = await startTracedProxy(t, BATON, {
    tracing: {},
    others: Object.fromEntries(
      places.map(([name, service]) => [name, { tracing: { provider: provider(service, name) } }]),
    ),
    clusters: places.map(([, , cluster]) => cluster),
  });
  for (const [name] of places)
    for (let i = 0; i < 20; i++) t.equal((await proxy.requestOf(name, '/')).status, 200, name);
  await proxy.baton.waitForStats({ 'tracing.opentelemetry.spans_dropped': 20 * places.length });
  for (const [name] of places) {
    const text = `'${name}' accepts no spans`;
    await waitFor(() => proxy.baton.stderr.includes(text), { what: `${name}: a log line` });
    t.equal(proxy.baton.stderr.split(text).length, 2, `${name}: one line`);
  }
});
