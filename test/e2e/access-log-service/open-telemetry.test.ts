// OpenTelemetry collectors receive access logs, as from Envoy.

import t from 'tap';
import { besideEnvoy } from '../harness/envoy.js';
import { type Config, HTTP2_CLUSTER, ROUTER_FILTER, staticCluster } from '../harness/index.js';
import { startGrpcCollector, startHttpCollector } from '../tracing/collector.js';
import { attributes, decode, hex, shownValue } from '../tracing/messages.js';
import { startTracedProxy, tracer } from '../tracing/proxy.js';

interface TestRecord {
  readonly resource: Readonly<Record<string, unknown>>;
  readonly body: unknown;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly trace: string;
  readonly span: string;
  readonly nanos: bigint;
}

function decodeLogs(bytes: Uint8Array): TestRecord[] {
  const { resource_logs: all } = decode('Logs', bytes) as {
    resource_logs: { resource?: { attributes: unknown }; scope_logs: { log_records: Record<string, unknown>[] }[] }[];
  };
  return all.flatMap(({ resource, scope_logs: scopes }) =>
    scopes.flatMap(({ log_records: records }) =>
      records.map((record) => ({
        resource: attributes(resource?.attributes),
        body: record['body'] === undefined ? undefined : shownValue(record['body'] as Record<string, unknown>),
        attributes: attributes(record['attributes']),
        trace: hex(record['trace_id']),
        span: hex(record['span_id']),
        nanos: BigInt(record['time_unix_nano'] as string),
      })),
    ),
  );
}

const TYPE = 'type.googleapis.com/envoy.extensions.access_loggers.open_telemetry.v3.OpenTelemetryAccessLogConfig';
const DETECTORS = 'type.googleapis.com/envoy.extensions.tracers.opentelemetry.resource_detectors.v3';
const text = (value: string) => ({ string_value: value });
const log = (fields: Config): Config => ({
  access_log: [{ name: 'log', typed_config: { '@type': TYPE, buffer_flush_interval: '0.05s', ...fields } }],
});
const SET_FILTER_STATE: Config = {
  name: 'envoy.filters.http.set_filter_state',
  typed_config: {
    '@type': 'type.googleapis.com/envoy.extensions.filters.http.set_filter_state.v3.Config',
    on_request_headers: [
      {
        object_key: 'my.key',
        factory_key: 'envoy.string',
        format_string: { text_format_source: { inline_string: 'v' } },
      },
    ],
  },
};
const BY_GRPC: Config = { grpc_service: { envoy_grpc: { cluster_name: 'collector' }, timeout: '1s' } };

besideEnvoy('records describe requests', async (t, program) => {
  const collector = await startGrpcCollector(t, decodeLogs);
  const byHttp = await startHttpCollector(t, decodeLogs);
  const http_uri = { uri: 'http://otlp.example/v1/logs', cluster: 'http', timeout: '1s' };
  const proxy = await startTracedProxy(t, program, {
    tracing: {},
    others: {
      full: {
        tracing: {
          provider: tracer('opentelemetry', 'OpenTelemetryConfig', {
            grpc_service: { envoy_grpc: { cluster_name: 'none' } },
          }),
        },
        http_filters: [SET_FILTER_STATE, ROUTER_FILTER],
        ...log({
          ...BY_GRPC,
          log_name: 'web',
          stat_prefix: 'full.',
          body: text('%REQ(:METHOD)% %RESPONSE_CODE% %REQ(x-none)%'),
          attributes: {
            values: [
              { key: 'a', value: text('%REQ(x-a)%') },
              { key: 'list', value: { kvlist_value: { values: [{ key: 'b', value: text('%PROTOCOL%') }] } } },
              { key: 'array', value: { array_value: { values: [text('x'), text('%RESPONSE_CODE%')] } } },
            ],
          },
          resource_attributes: { values: [{ key: 'r', value: text('%PROTOCOL%') }] },
          filter_state_objects_to_log: ['my.key', 'absent'],
          custom_tags: [
            { tag: 'header', request_header: { name: 'x-a' } },
            { tag: 'int', value: '42', value_type: 'INT' },
            { tag: 'none', request_header: { name: 'x-none' } },
          ],
        }),
      },
      bare: log({
        ...BY_GRPC,
        disable_builtin_labels: true,
        body: { kvlist_value: { values: [{ key: 'm', value: text('%REQ(:METHOD)%') }] } },
        resource_detectors: [
          {
            name: 'd',
            typed_config: { '@type': `${DETECTORS}.StaticConfigResourceDetectorConfig`, attributes: { d: 'e' } },
          },
        ],
      }),
      http: log({ http_service: { http_uri }, log_name: 'by-http' }),
      old: log({ common_config: { ...BY_GRPC, log_name: 'old', transport_api_version: 'V3' }, body: text('b') }),
    },
    clusters: [staticCluster('collector', collector.port, HTTP2_CLUSTER), staticCluster('http', byHttp.port)],
  });
  const all = (records: TestRecord[]) => records;
  await proxy.requestOf('full', '/', { 'x-a': 'A' });
  const [full] = await collector.collect(1, all);
  const [, trace, span] = (proxy.seen[0]!['traceparent'] as string).split('-');
  t.match(full, { trace, span, body: 'GET 200 -' });
  t.strictSame(full!.resource, {
    log_name: 'web',
    zone_name: 'z1',
    cluster_name: 'edge',
    node_name: 'node-1',
    r: '%PROTOCOL%',
  });
  t.strictSame(full!.attributes, {
    a: 'A',
    list: { b: 'HTTP/1.1' },
    array: ['x', '200'],
    'my.key': '"v"',
    header: 'A',
    int: '42',
  });
  t.ok(full!.nanos > 10n ** 18n, 'it has a time');
  await proxy.requestOf('bare', '/');
  const [, bare] = await collector.collect(2, all);
  t.match(bare, { body: { m: 'GET' }, trace: '', span: '' });
  t.strictSame([bare!.resource, bare!.attributes], [{ d: 'e' }, {}]);
  await proxy.requestOf('http', '/');
  const [viaHttp] = await byHttp.collect(1, all);
  t.match(viaHttp, { body: undefined, resource: { log_name: 'by-http' } });
  t.match(byHttp.heads[0], { ':path': '/v1/logs', host: 'otlp.example', 'content-type': 'application/x-protobuf' });
  await proxy.requestOf('old', '/');
  const [, , old] = await collector.collect(3, all);
  t.match(old, { body: 'b', resource: { log_name: 'old' } });
  t.equal(collector.heads[0]![':path'], '/opentelemetry.proto.collector.logs.v1.LogsService/Export');
  const prefix = 'access_logs.open_telemetry_access_log.';
  await proxy.baton.waitForStats({ [`${prefix}full.logs_written`]: 1, [`${prefix}logs_dropped`]: 0 });
});

t.test('lost records are counted', async (t) => {
  const refusing = await startHttpCollector(t, decodeLogs, { status: 503 });
  const http_uri = { uri: 'http://otlp.example/v1/logs', cluster: 'refusing', timeout: '1s' };
  const proxy = await startTracedProxy(
    t,
    { command: undefined },
    {
      tracing: {},
      others: {
        absent: log({ grpc_service: { envoy_grpc: { cluster_name: 'absent' } }, body: text('b') }),
        refused: log({ http_service: { http_uri }, body: text('b') }),
      },
      clusters: [staticCluster('absent', 1, HTTP2_CLUSTER), staticCluster('refusing', refusing.port)],
    },
  );
  for (const listener of ['absent', 'refused'])
    for (let i = 0; i < 3; i++) t.equal((await proxy.requestOf(listener, '/')).status, 200);
  await proxy.baton.waitForStats({ 'access_logs.open_telemetry_access_log.logs_dropped': 6 });
});
