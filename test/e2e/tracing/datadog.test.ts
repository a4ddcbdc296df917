// A Datadog agent receives the same traces as from Envoy, and hosts the same context.

import type { IncomingHttpHeaders } from 'node:http';
import { besideEnvoy } from '../harness/envoy.js';
import { staticCluster } from '../harness/index.js';
import { startHttpCollector } from './collector.js';
import { startTracedProxy, tracer } from './proxy.js';
import { readMsgpack } from './read-msgpack.js';

interface DatadogSpan {
  readonly service: string;
  readonly name: string;
  readonly resource: string;
  readonly type: string;
  readonly trace_id: bigint;
  readonly span_id: bigint;
  readonly parent_id: bigint;
  readonly start: bigint;
  readonly duration: bigint;
  readonly error: bigint;
  readonly meta: Readonly<Record<string, string>>;
  readonly metrics: Readonly<Record<string, number>>;
}

const datadog = (more = {}) =>
  tracer('datadog', 'DatadogConfig', { collector_cluster: 'agent', service_name: 'shop', ...more });
const caller = (more: Record<string, string> = {}) => ({
  'x-datadog-trace-id': '123',
  'x-datadog-parent-id': '456',
  ...more,
});

/** Returns the context that a host has received, with S for the ID of the span, in decimal or hexadecimal digits. */
function context(headers: IncomingHttpHeaders): string {
  const id = headers['x-datadog-parent-id'] as string;
  const names = ['x-datadog-trace-id', 'x-datadog-parent-id', 'x-datadog-sampling-priority', 'x-datadog-origin'];
  const values = [...names, 'x-datadog-tags', 'traceparent', 'tracestate'].map((name) => headers[name] ?? '');
  const hex = BigInt(id).toString(16).padStart(16, '0');
  return values.join(' ').replaceAll(id, 'S').replaceAll(hex, 'S');
}

besideEnvoy('an agent receives traces, and hosts their context', async (t, program) => {
  const agent = await startHttpCollector(t, (body) => readMsgpack(body) as DatadogSpan[][]);
  const proxy = await startTracedProxy(t, program, {
    tracing: { provider: datadog({ collector_hostname: 'agent.example' }), spawn_upstream_span: true },
    others: {
      plain: { tracing: { provider: datadog() } },
      off: { tracing: { provider: datadog(), random_sampling: { value: 0 } } },
    },
    clusters: [staticCluster('agent', agent.port)],
    routes: [
      { match: { prefix: '/503' }, direct_response: { status: 503 } },
      { match: { prefix: '/' }, route: { cluster: 'host' }, decorator: { operation: 'front' } },
    ],
  });
  await proxy.request('/a');
  await proxy.request('/503');
  const traces = await agent.collect(2, (all) => all);
  const [request, child] = traces[0] as [DatadogSpan, DatadogSpan];
  t.match(request, { service: 'shop', name: 'envoy.proxy', resource: 'front', type: 'web', parent_id: 0n, error: 0n });
  t.equal(request.span_id, request.trace_id);
  t.match(child, { resource: 'router host egress', trace_id: request.trace_id, parent_id: request.span_id });
  t.match(request.metrics, { _sampling_priority_v1: 1, '_dd.agent_psr': 1, process_id: Number });
  t.match(request.meta, {
    'http.url': 'http://w.x/a',
    'http.status_code': '200',
    node_id: 'node-1',
    zone: 'z1',
    '_dd.p.dm': '-0',
    '_dd.p.tid': /^[0-9a-f]{8}0{8}$/,
  });
  t.match(traces[1], [{ error: 1n, meta: { 'http.status_code': '503', error: undefined } }]);
  t.match(agent.heads[0], {
    ':method': 'POST',
    ':path': '/v0.4/traces',
    host: 'agent.example',
    'content-type': 'application/msgpack',
    'x-datadog-trace-count': String(agent.messages[0]!.length),
  });
  const high = request.meta['_dd.p.tid']!;
  const low = request.trace_id.toString(16).padStart(16, '0');
  const tags = `_dd.p.tid=${high},_dd.p.dm=-0`;
  t.equal(context(proxy.seen[0]!), `${request.trace_id} S 1  ${tags} 00-${high}${low}-S-01 dd=s:1;p:S;t.dm:-0`);
  const sent = async (headers: Record<string, string>, listener = 'plain') => {
    await proxy.requestOf(listener, '/', headers);
    return context(proxy.seen.at(-1)!);
  };
  const id = `00-${'0'.repeat(30)}7b-S`;
  t.equal(await sent(caller()), `123 S 1  _dd.p.dm=-0 ${id}-01 dd=s:1;p:S;t.dm:-0`);
  t.equal(await sent(caller({ 'x-datadog-sampling-priority': '0' })), `123 S 0   ${id}-00 dd=s:0;p:S`);
  const kept = caller({ 'x-datadog-sampling-priority': '2', 'x-datadog-origin': 'rum' });
  t.equal(await sent(kept, 'off'), `123 S 2 rum  ${id}-01 dd=s:2;p:S;o:rum`);
  t.match(await sent({}, 'off'), /^S S -1 {2}_dd\.p\.tid=([0-9a-f]{16}) 00-\1S-S-00 dd=s:-1;p:S$/);
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
  const tracestate = 'dd=s:2;o:rum;p:00f067aa0ba902b7;t.dm:-4;t.k:v,other=1';
  t.equal(
    await sent({ traceparent, tracestate }),
    '9532127138774266268 S 2 rum _dd.p.dm=-4,_dd.p.k=v,_dd.p.tid=0af7651916cd43dd ' +
      '00-0af7651916cd43dd8448eb211c80319c-S-01 dd=s:2;p:S;o:rum;t.dm:-4;t.k:v,other=1',
  );
  // Members of tracestate pass on, and characters that it uses itself do not leave Datadog's.
  const odd = 'dd=s:2;o:a~b;t.x:1~2;new:y;t.z:0,other=1';
  t.equal(
    await sent({ traceparent, tracestate: odd }),
    '9532127138774266268 S 2 a=b _dd.p.x=1=2,_dd.p.z=0,_dd.p.tid=0af7651916cd43dd ' +
      '00-0af7651916cd43dd8448eb211c80319c-S-01 dd=s:2;p:S;o:a~b;t.x:1~2;t.z:0;new:y,other=1',
  );
  t.equal(
    await sent(
      caller({
        'x-datadog-sampling-priority': '1',
        'x-datadog-origin': 'a;s:2,b=c',
        'x-datadog-tags': '_dd.p.a b=c;d~',
      }),
    ),
    `123 S 1 a;s:2,b=c _dd.p.a b=c;d~ ${id}-01 dd=s:1;p:S;o:a_s:2_b~c;t.a_b:c_d_`,
  );
  const long = caller({ 'x-datadog-sampling-priority': '1', 'x-datadog-origin': 'o'.repeat(300) });
  t.match(await sent(long), / dd=s:1;p:S$/);
  // Tracers of Datadog send both contexts.
  const both = caller({ traceparent: `00-${'0'.repeat(30)}7b-00000000000001c8-01`, tracestate: 'dd=s:1;n:x,other=1' });
  t.equal(await sent({ ...both, 'x-datadog-sampling-priority': '1' }), `123 S 1   ${id}-01 dd=s:1;p:S;n:x,other=1`);
  t.match(await sent({ 'x-datadog-trace-id': 'abc', 'x-datadog-parent-id': '4' }), /^S S 1/);
});
