// SkyWalking receives the same segments as from Envoy, and hosts the same sw8.

import t from 'tap';
import { besideEnvoy } from '../harness/envoy.js';
import { type Config, HTTP2_CLUSTER, staticCluster } from '../harness/index.js';
import { startGrpcCollector } from './collector.js';
import { decode } from './messages.js';
import { startTracedProxy, tracer } from './proxy.js';

interface Segment {
  readonly traceId: string;
  readonly traceSegmentId: string;
  readonly service: string;
  readonly serviceInstance: string;
  readonly spans: readonly Record<string, unknown>[];
}

const skyWalking = (fields: Config = {}) =>
  tracer('skywalking', 'SkyWalkingConfig', { grpc_service: { envoy_grpc: { cluster_name: 'collector' } }, ...fields });
const base64 = (text: string) => Buffer.from(text).toString('base64');
const plain = (text: string) => Buffer.from(text, 'base64').toString();

besideEnvoy('segments have the spans of a request and its tries', async (t, program) => {
  const collector = await startGrpcCollector(t, (message) => decode('Segment', message) as unknown as Segment);
  const proxy = await startTracedProxy(t, program, {
    tracing: {
      provider: skyWalking({
        client_config: { service_name: 'shop', instance_name: 'shop-1', backend_token: 'secret' },
      }),
      spawn_upstream_span: true,
      verbose: true,
    },
    others: { plain: { tracing: { provider: skyWalking(), random_sampling: { value: 0 } } } },
    clusters: [staticCluster('collector', collector.port, HTTP2_CLUSTER)],
  });
  await proxy.request('/a?b=c');
  const [segment] = await collector.collect(1, (message) => [message]);
  const { spans, traceId, traceSegmentId } = segment!;
  t.match(segment, { service: 'shop', serviceInstance: 'shop-1' });
  const [entry, exit] = spans.map(({ tags, logs, startTime, endTime, ...rest }) => ({
    ...rest,
    tags: (tags as { key: string; value?: string }[]).map(({ key, value = '' }) => `${key}=${value}`).sort(),
    events: (logs as { data: { value: string }[] }[]).length,
    isOrdered: Number(endTime) >= Number(startTime) && Number(startTime) > 0,
  }));
  t.match(entry, {
    parentSpanId: -1,
    operationName: '/a',
    peer: '127.0.0.1',
    spanLayer: 3,
    componentId: 9000,
    events: 7,
    isOrdered: true,
  });
  t.match(exit, { spanId: 1, operationName: '/a', peer: proxy.host, spanType: 1, events: 4, isOrdered: true });
  t.strictSame(
    entry!.tags.filter((tag) => !tag.startsWith('guid:')),
    [
      'component=proxy',
      'downstream_cluster=-',
      'http.method=GET',
      'http.protocol=HTTP/1.1',
      'node_id=node-1',
      'request_size=0',
      'response_flags=-',
      'response_size=5',
      'status_code=200',
      'upstream_cluster.name=host',
      'upstream_cluster=host',
      'url=http://w.x/a?b=c',
      'user_agent=-',
      'zone=z1',
    ],
  );
  const fields = (proxy.seen[0]!['sw8'] as string).split('-');
  t.strictSame(
    fields.map((field, index) => (index === 0 || index === 3 ? field : plain(field))),
    ['1', traceId, traceSegmentId, '1', 'shop', 'shop-1', '/a?b=c', proxy.host],
  );
  t.equal(collector.heads.find((head) => head['authentication'] === 'secret')?.[':path'], METHOD);
  const sw8 = [
    '0',
    base64('trace'),
    base64('segment'),
    '3',
    base64('s'),
    base64('i'),
    base64('/e'),
    base64('1.2.3.4:80'),
  ];
  await proxy.requestOf('plain', '/none');
  await proxy.requestOf('plain', '/in', { sw8: sw8.join('-') });
  const [, second] = await collector.collect(2, (message) => [message]);
  t.match(second, { traceId: 'trace', service: 'edge', serviceInstance: 'node-1' });
  t.match(second!.spans[0]!['refs'], [
    {
      traceId: 'trace',
      parentTraceSegmentId: 'segment',
      parentSpanId: 3,
      parentService: 's',
      parentServiceInstance: 'i',
      parentEndpoint: '/e',
      networkAddressUsedAtPeer: '1.2.3.4:80',
    },
  ]);
  t.equal(proxy.seen.at(-1)!['sw8'], sw8.join('-'));
  await proxy.baton.waitForStats({ 'tracing.skywalking.segments_sent': 2, 'tracing.skywalking.segments_dropped': 0 });
});

const METHOD = '/skywalking.v3.TraceSegmentReportService/collect';

t.test('segments beyond max_cache_size are dropped while there is no collector', async (t) => {
  const proxy = await startTracedProxy(
    t,
    { command: undefined },
    {
      tracing: { provider: skyWalking({ client_config: { max_cache_size: 2 } }) },
      clusters: [staticCluster('collector', 1, HTTP2_CLUSTER)],
    },
  );
  for (let i = 0; i < 5; i++) t.equal((await proxy.request('/')).status, 200);
  await proxy.baton.waitForStats({ 'tracing.skywalking.segments_dropped': 3, 'tracing.skywalking.segments_sent': 0 });
});
