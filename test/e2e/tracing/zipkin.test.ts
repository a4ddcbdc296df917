// A Zipkin collector receives the same spans as from Envoy, and upstream hosts receive the same B3 context.

import type { IncomingHttpHeaders } from 'node:http';
import { besideEnvoy } from '../harness/envoy.js';
import { type Config, staticCluster } from '../harness/index.js';
import { startHttpCollector } from './collector.js';
import { decode, hex } from './messages.js';
import { startTracedProxy, tracer } from './proxy.js';

interface ZipkinSpan {
  readonly traceId: string;
  readonly parentId?: string;
  readonly id: string;
  readonly kind: string;
  readonly name: string;
  readonly timestamp: number;
  readonly duration: number;
  readonly shared?: boolean;
  readonly localEndpoint: Record<string, unknown>;
  readonly annotations: readonly { readonly value: string }[];
  readonly tags: Record<string, string>;
}

const BASE: Config = {
  collector_cluster: 'collector',
  collector_endpoint: '/api/v2/spans',
  collector_endpoint_version: 'HTTP_JSON',
};
const zipkin = (fields: Config = {}) => tracer('zipkin', 'ZipkinConfig', { ...BASE, ...fields });
/** A cluster name that is not a valid host name. */
const ISTIO = 'outbound|9411||zipkin.istio-system.svc.cluster.local';
const all = (spans: ZipkinSpan[]) => spans;
const json = (body: Buffer) => JSON.parse(body.toString()) as ZipkinSpan[];
const b3 = (more: Record<string, string> = {}) => ({
  'x-b3-traceid': '463ac35c9f6413ad',
  'x-b3-spanid': 'a2fb4a1d1a96d312',
  ...more,
});

/** Returns the trace fields that a host has received. */
function context(headers: IncomingHttpHeaders): string {
  const names = ['b3', 'x-b3-traceid', 'x-b3-spanid', 'x-b3-parentspanid', 'x-b3-sampled', 'traceparent'];
  return names
    .map((name) => headers[name])
    .filter((value) => value !== undefined)
    .join(' ');
}

besideEnvoy('spans are reported as JSON', async (t, program) => {
  const collector = await startHttpCollector(t, json, { status: 202 });
  const proxy = await startTracedProxy(t, program, {
    tracing: {},
    others: {
      plain: {
        tracing: { provider: zipkin({ trace_id_128bit: true, collector_cluster: ISTIO }), verbose: true },
      },
      tries: { tracing: { provider: zipkin(), spawn_upstream_span: true } },
    },
    clusters: [staticCluster('collector', collector.port), staticCluster(ISTIO, collector.port)],
  });
  await proxy.requestOf('plain', '/a?b=c', { 'user-agent': 'test/1' });
  const [span] = await collector.collect(1, all);
  const { annotations, tags, ...rest } = span!;
  t.match(rest, {
    traceId: /^[0-9a-f]{32}$/,
    id: rest.traceId.slice(16),
    kind: 'SERVER',
    name: 'w.x',
    shared: true,
    localEndpoint: { serviceName: 'edge', port: 0 },
    timestamp: Number,
    duration: Number,
  });
  t.equal(rest.parentId, undefined);
  const requestId = proxy.seen[0]!['x-request-id'];
  t.strictSame(tags, {
    node_id: 'node-1',
    zone: 'z1',
    'guid:x-request-id': requestId,
    'http.url': 'http://w.x/a?b=c',
    'http.method': 'GET',
    downstream_cluster: '-',
    user_agent: 'test/1',
    'http.protocol': 'HTTP/1.1',
    'peer.address': '127.0.0.1',
    request_size: '0',
    response_size: '5',
    component: 'proxy',
    upstream_cluster: 'host',
    'upstream_cluster.name': 'host',
    'http.status_code': '200',
    response_flags: '-',
  });
  t.strictSame(
    annotations.map(({ value }) => value.split('_')[0]),
    ['last', 'first', 'last', 'first', 'last', 'first', 'last', 'ss'],
  );
  t.equal(context(proxy.seen[0]!), `${rest.traceId} ${rest.id} 1`);
  t.match(collector.heads[0], { ':path': '/api/v2/spans', host: ISTIO, 'content-type': 'application/json' });
  await proxy.requestOf('tries', '/', b3({ 'x-b3-sampled': '1' }));
  const [, child, parent] = await collector.collect(3, all);
  t.match(parent, { traceId: '463ac35c9f6413ad', id: 'a2fb4a1d1a96d312', kind: 'SERVER', shared: true });
  t.match(child, { kind: 'CLIENT', name: 'router host egress', parentId: parent!.id, annotations: [{ value: 'cr' }] });
  t.equal(child!.shared, undefined);
  t.equal(context(proxy.seen[1]!), `${parent!.traceId} ${child!.id} ${parent!.id} 1`);
  await proxy.baton.waitForStats({ 'tracing.zipkin.spans_sent': 3 });
});

besideEnvoy('spans are reported as protobuf', async (t, program) => {
  const collector = await startHttpCollector(
    t,
    (body) => (decode('ZipkinSpans', body) as { spans: Record<string, unknown>[] }).spans,
    { status: 202 },
  );
  const proxy = await startTracedProxy(t, program, {
    tracing: { provider: zipkin({ collector_endpoint_version: 'HTTP_PROTO', collector_hostname: 'zipkin.example' }) },
    clusters: [staticCluster('collector', collector.port)],
  });
  await proxy.request('/', { ...b3({ 'x-b3-sampled': '1' }) });
  const [span] = await collector.collect(1, (spans) => spans);
  t.equal(hex(span!['trace_id']), '463ac35c9f6413ad');
  // Envoy reverses the bytes of this one.
  const id = Buffer.from('a2fb4a1d1a96d312', 'hex');
  t.equal(hex(span!['id']), hex(program.command === undefined ? id : id.reverse()));
  t.match(span, {
    kind: 2,
    name: 'w.x',
    shared: true,
    local_endpoint: { service_name: 'edge' },
    annotations: [{ value: 'ss' }],
  });
  t.match(collector.heads[0], { host: 'zipkin.example', 'content-type': 'application/x-protobuf' });
});

besideEnvoy("the caller's trace context is propagated", async (t, program) => {
  const collector = await startHttpCollector(t, json, { status: 202 });
  const untraced = { random_sampling: { value: 0 } };
  const proxy = await startTracedProxy(t, program, {
    tracing: {},
    others: {
      shared: { tracing: { provider: zipkin(), ...untraced } },
      own: { tracing: { provider: zipkin({ shared_span_context: false }) } },
      w3c: { tracing: { provider: zipkin({ trace_context_option: 'USE_B3_WITH_W3C_PROPAGATION' }) } },
    },
    clusters: [staticCluster('collector', collector.port)],
  });
  const sent = async (listener: string, headers: Record<string, string>) => {
    await proxy.requestOf(listener, '/', headers);
    return context(proxy.seen.at(-1)!);
  };
  const ids = '463ac35c9f6413ad a2fb4a1d1a96d312';
  const single = '80f198ee56343ba8-e457b5a2e4d86bd1';
  const cases: [headers: Record<string, string>, expected: string][] = [
    [b3(), `${ids} 0`],
    [b3({ 'x-b3-sampled': '1', 'x-b3-parentspanid': '20000000000001' }), `${ids} 0020000000000001 1`],
    [b3({ 'x-b3-sampled': 'true' }), `${ids} 1`],
    [b3({ 'x-b3-sampled': 'x' }), `${ids} 0`],
    [b3({ 'x-b3-flags': '1' }), `${ids} 0`],
    [{ 'x-b3-traceid': '1', 'x-b3-spanid': 'A', 'x-b3-sampled': '1' }, '0000000000000001 000000000000000a 1'],
    [b3({ 'x-b3-traceid': 'xyz' }), 'xyz a2fb4a1d1a96d312'],
    [b3({ 'x-b3-spanid': 'xyz' }), '463ac35c9f6413ad xyz'],
    [{ b3: `80f198ee56343ba8${single}-1-05e3ac9a4f6e3b90` }, `80f198ee56343ba8${single}-1-05e3ac9a4f6e3b90`],
    [{ b3: single }, `${single}-0`],
    [{ b3: `${single}-d` }, `${single}-1`],
    [{ b3: 'zz' }, 'zz'],
  ];
  for (const [headers, expected] of cases) t.equal(await sent('shared', headers), expected, JSON.stringify(headers));
  t.match(await sent('shared', {}), /^([0-9a-f]{16}) \1 0$/);
  t.match(await sent('shared', { b3: '1' }), /^([0-9a-f]{16})-\1-1$/);
  t.match(await sent('shared', { 'x-b3-sampled': '1' }), /^([0-9a-f]{16}) \1 1$/);
  t.match(await sent('own', b3({ 'x-b3-sampled': '1' })), /^463ac35c9f6413ad (?!a2fb)[0-9a-f]{16} a2fb4a1d1a96d312 1$/);
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
  t.equal(await sent('w3c', { traceparent }), `0af7651916cd43dd8448eb211c80319c b7ad6b7169203331 1 ${traceparent}`);
  t.equal(
    await sent('w3c', { traceparent, ...b3() }),
    `${ids} 1 00-0000000000000000463ac35c9f6413ad-a2fb4a1d1a96d312-01`,
  );
});
