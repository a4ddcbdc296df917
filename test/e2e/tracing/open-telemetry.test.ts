// Requests are traced, and an OpenTelemetry collector receives the same spans as from Envoy.

import { besideEnvoy } from '../harness/envoy.js';
import { type Config, HTTP2_CLUSTER, staticCluster, type Teardown } from '../harness/index.js';
import { type Collector, startGrpcCollector } from './collector.js';
import { decodeTraces, type TestSpan, type TestTrace } from './messages.js';
import { ROUTE_ALL, startTracedProxy, tracer } from './proxy.js';

const BY_GRPC: Config = { grpc_service: { envoy_grpc: { cluster_name: 'collector' }, timeout: '1s' } };
const otel = (fields: Config = BY_GRPC) => tracer('opentelemetry', 'OpenTelemetryConfig', fields);
const cluster = ({ port }: Pick<Collector<unknown>, 'port'>) => staticCluster('collector', port, HTTP2_CLUSTER);
const startCollector = (t: Teardown) => startGrpcCollector(t, decodeTraces);
const spansOf = (collector: Collector<TestTrace[]>, count: number) =>
  collector.collect(count, (traces) => traces.flatMap(({ spans }) => spans));

/** Tags that are the same in all tests, or differ at each run. */
const USUAL: readonly string[] = [
  'node_id',
  'zone',
  'guid:x-request-id',
  'component',
  'downstream_cluster',
  'user_agent',
  'http.method',
  'request_size',
  'upstream_cluster.name',
];

/** Returns a line that describes a span, with its tags in order of their names. */
function line({ events, flags, isError, kind, name, parent, tags }: TestSpan, host: string): string {
  const shown = Object.entries(tags)
    .filter(([key]) => !USUAL.includes(key) && !(kind === 'client' && key === 'peer.address'))
    .map(([key, value]) => `${key}=${value}`)
    .sort();
  const text = [
    name,
    kind,
    parent === '' ? 'root' : 'child',
    flags,
    ...(isError ? ['error'] : []),
    ...shown,
    ...events,
  ];
  return text.join(' ').replaceAll(host, 'HOST');
}

const EVENTS =
  'last_downstream_rx first_upstream_tx last_upstream_tx first_upstream_rx last_upstream_rx first_downstream_tx last_downstream_tx';

besideEnvoy('a request has a span with its properties', async (t, program) => {
  const collector = await startCollector(t);
  const proxy = await startTracedProxy(t, program, {
    tracing: { provider: otel({ ...BY_GRPC, service_name: 'shop' }), max_path_tag_length: 10, verbose: true },
    clusters: [cluster(collector)],
    routes: [{ ...ROUTE_ALL, route: { cluster: 'host', prefix_rewrite: '/sent/' } }],
  });
  const before = BigInt(Date.now()) * 1_000_000n;
  const answer = await proxy.request('/path?query=1', { 'user-agent': 'test/1', 'x-client-trace-id': 'client' });
  const [span] = await spansOf(collector, 1);
  const id = proxy.seen[0]!['x-request-id'] as string;
  t.match(span!.tags, {
    node_id: 'node-1',
    zone: 'z1',
    'guid:x-request-id': id,
    'guid:x-client-trace-id': 'client',
    'http.url': 'http://w.x/path?quer',
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
  t.equal(Object.keys(span!.tags).length, 17);
  t.equal(span!.events.join(' ').replaceAll(/_byte_(sent|received)/g, ''), EVENTS);
  t.match(span, { name: 'ingress', kind: 'server', parent: '', flags: 257, isError: false });
  t.equal(id[14], 'b', 'the request ID has the reason');
  t.equal(proxy.seen[0]!['traceparent'], `00-${span!.traceId}-${span!.id}-01`);
  t.equal(proxy.seen[0]!['tracestate'], '');
  t.ok(span!.startNanos >= before - 1_000_000_000n && span!.endNanos >= span!.startNanos, 'its times are now');
  t.equal(answer.status, 200);
  const [{ resource, scope }] = collector.messages[0]! as [TestTrace];
  t.equal(resource['service.name'], 'shop');
  t.strictSame(Object.keys(resource).filter((key) => key.startsWith('telemetry.sdk.')).length, 3);
  t.equal(scope, program.command === undefined ? 'baton' : 'envoy');
  t.equal(collector.heads[0]![':path'], '/opentelemetry.proto.collector.trace.v1.TraceService/Export');
  await proxy.baton.waitForStats({ 'tracing.opentelemetry.spans_sent': 1, 'http.main.tracing.client_enabled': 1 });
});

const RETRY: Config = { retry_on: '5xx,reset', num_retries: 1, retry_back_off: { base_interval: '0.001s' } };

besideEnvoy('each try has a span', async (t, program) => {
  const collector = await startCollector(t);
  const proxy = await startTracedProxy(t, program, {
    tracing: { provider: otel(), spawn_upstream_span: true },
    clusters: [cluster(collector), staticCluster('dead', 1)],
    routes: [
      { match: { prefix: '/reset' }, route: { cluster: 'host', retry_policy: RETRY } },
      { match: { prefix: '/503' }, route: { cluster: 'host', retry_policy: RETRY } },
      { match: { prefix: '/late' }, route: { cluster: 'host', retry_policy: { ...RETRY, per_try_timeout: '0.1s' } } },
      { match: { prefix: '/slow' }, route: { cluster: 'host', timeout: '0.1s' } },
      { match: { prefix: '/dead' }, route: { cluster: 'dead' } },
      { match: { prefix: '/none' }, route: { cluster: 'none' } },
      { match: { prefix: '/direct' }, direct_response: { status: 200 } },
      ROUTE_ALL,
    ],
    upstream({ socket, url = '' }, response) {
      if (url === '/reset') socket.destroy();
      if (!/[0-9]/.test(url)) return;
      response.statusCode = Number(url.slice(1));
      response.end('text');
    },
  });
  const lines: string[] = [];
  let count = 0;
  for (const [path, spans] of [
    ['/200', 2],
    ['/404', 2],
    ['/reset', 3],
    ['/503', 3],
    ['/late', 3],
    ['/slow', 2],
    ['/dead', 2],
    ['/none', 1],
    ['/direct', 1],
  ] as const) {
    await proxy.request(path);
    const all = await spansOf(collector, count + spans);
    const own = all.slice(count);
    count += spans;
    t.ok(
      own.every(({ traceId }) => traceId === own[0]!.traceId),
      `${path}: one trace`,
    );
    const request = own.at(-1)!;
    t.ok(
      own.slice(0, -1).every(({ parent }) => parent === request.id),
      `${path}: children of the request`,
    );
    lines.push(...own.map((span) => line(span, proxy.host)));
  }
  t.strictSame(lines, EXPECTED_TRIES);
  t.equal(
    proxy.seen[0]!['traceparent'],
    `00-${(await spansOf(collector, 1))[0]!.traceId}-${(await spansOf(collector, 1))[0]!.id}-01`,
  );
});

const EXPECTED_TRIES: readonly string[] = [
  'router host egress client child 257 http.protocol=HTTP/1.1 http.status_code=200 response_flags=- upstream_address=HOST upstream_cluster=host',
  'ingress server root 257 http.protocol=HTTP/1.1 http.status_code=200 http.url=http://w.x/200 peer.address=127.0.0.1 response_flags=- response_size=4 upstream_cluster=host',
  'router host egress client child 257 error http.protocol=HTTP/1.1 http.status_code=404 response_flags=- upstream_address=HOST upstream_cluster=host',
  'ingress server root 257 http.protocol=HTTP/1.1 http.status_code=404 http.url=http://w.x/404 peer.address=127.0.0.1 response_flags=- response_size=4 upstream_cluster=host',
  'router host egress client child 257 error.reason=connection termination error=true http.protocol=HTTP/1.1 http.status_code=0 response_flags=UC upstream_address=HOST upstream_cluster=host',
  'router host egress client child 257 error.reason=connection termination error=true http.protocol=HTTP/1.1 http.status_code=0 response_flags=UC retry.count=1 upstream_address=HOST upstream_cluster=host',
  'ingress server root 257 error error=true http.protocol=HTTP/1.1 http.status_code=503 http.url=http://w.x/reset peer.address=127.0.0.1 response_flags=URX,UC response_size=118 upstream_cluster=host',
  'router host egress client child 257 error canceled=true error=true http.protocol=HTTP/1.1 http.status_code=503 response_flags=- upstream_address=HOST upstream_cluster=host',
  'router host egress client child 257 error error=true http.protocol=HTTP/1.1 http.status_code=503 response_flags=- retry.count=1 upstream_address=HOST upstream_cluster=host',
  'ingress server root 257 error error=true http.protocol=HTTP/1.1 http.status_code=503 http.url=http://w.x/503 peer.address=127.0.0.1 response_flags=URX response_size=4 upstream_cluster=host',
  'router host egress client child 257 canceled=true error=true http.protocol=HTTP/1.1 http.status_code=0 response_flags=UT upstream_address=HOST upstream_cluster=host',
  'router host egress client child 257 canceled=true error=true http.protocol=HTTP/1.1 http.status_code=0 response_flags=UT retry.count=1 upstream_address=HOST upstream_cluster=host',
  'ingress server root 257 error error=true http.protocol=HTTP/1.1 http.status_code=504 http.url=http://w.x/late peer.address=127.0.0.1 response_flags=URX,UT response_size=24 upstream_cluster=host',
  'router host egress client child 257 canceled=true error=true http.protocol=HTTP/1.1 http.status_code=0 response_flags=- upstream_address=HOST upstream_cluster=host',
  'ingress server root 257 error error=true http.protocol=HTTP/1.1 http.status_code=504 http.url=http://w.x/slow peer.address=127.0.0.1 response_flags=UT response_size=24 upstream_cluster=host',
  'router dead egress client child 257 error.reason=remote connection failure error=true http.protocol=- http.status_code=0 response_flags=UF upstream_address=127.0.0.1:1 upstream_cluster=dead',
  'ingress server root 257 error error=true http.protocol=HTTP/1.1 http.status_code=503 http.url=http://w.x/dead peer.address=127.0.0.1 response_flags=UF response_size=98 upstream_cluster=dead',
  'ingress server root 257 error error=true http.protocol=HTTP/1.1 http.status_code=503 http.url=http://w.x/none peer.address=127.0.0.1 response_flags=UH response_size=19 upstream_cluster=none',
  'ingress server root 257 http.protocol=HTTP/1.1 http.status_code=200 http.url=http://w.x/direct peer.address=127.0.0.1 response_flags=- response_size=0',
];

besideEnvoy('decorators, formats and custom tags name and describe spans', async (t, program) => {
  const collector = await startCollector(t);
  const proxy = await startTracedProxy(t, program, {
    tracing: {
      provider: otel(),
      custom_tags: [
        { tag: 'literal', literal: { value: 'L' } },
        { tag: 'variable', environment: { name: 'NO_SUCH_VARIABLE', default_value: 'unset' } },
        { tag: 'no variable', environment: { name: 'NO_SUCH_VARIABLE' } },
        { tag: 'header', request_header: { name: 'x-h', default_value: 'none' } },
        { tag: 'route', metadata: { kind: { route: {} }, metadata_key: { key: 'com.x', path: [{ key: 'a:b' }] } } },
        { tag: 'format', value: '%REQ(x-h)%/%RESPONSE_CODE%' },
        { tag: 'ids', value: '%TRACE_ID% %SPAN_ID%' },
        { tag: 'int', value: '42', value_type: 'INT' },
        { tag: 'no int', value: 'abc', value_type: 'INT' },
        { tag: 'double', literal: { value: '4.5' }, value_type: 'DOUBLE' },
        { tag: 'bool', value: 'true', value_type: 'BOOL' },
        { tag: 'component', literal: { value: 'own' } },
        { tag: 'literal', literal: { value: 'second' } },
      ],
    },
    clusters: [cluster(collector)],
    routes: [
      { match: { prefix: '/shown' }, route: { cluster: 'host' }, decorator: { operation: 'shown-op' } },
      { match: { prefix: '/kept' }, route: { cluster: 'host' }, decorator: { operation: 'kept', propagate: false } },
      {
        match: { prefix: '/format' },
        route: { cluster: 'host' },
        decorator: { operation: 'unused' },
        tracing: {
          custom_tags: [{ tag: 'literal', literal: { value: 'R' } }],
          operation: '%REQ(:METHOD)% %RESPONSE_CODE%',
        },
      },
      { match: { prefix: '/off' }, route: { cluster: 'host' }, tracing: { random_sampling: {} } },
      { ...ROUTE_ALL, metadata: { filter_metadata: { 'com.x': { 'a:b': { z: 1, y: 'two' } } } } },
    ],
    upstream: (_request, response) => {
      response.setHeader('x-envoy-decorator-operation', 'of-host');
      response.end();
    },
  });
  const told: unknown[] = [];
  for (const [path, operation] of [
    ['/off'],
    ['/shown'],
    ['/kept'],
    ['/format'],
    ['/'],
    ['/shown', 'of-client'],
  ] as const) {
    const answer = await proxy.request(
      path,
      operation === undefined ? {} : { 'x-envoy-decorator-operation': operation },
    );
    told.push(answer.headers['x-envoy-decorator-operation']);
  }
  t.strictSame(told, ['of-host', 'shown-op', 'of-host', 'of-host', 'of-host', 'of-host']);
  const spans = await spansOf(collector, 5);
  t.strictSame(
    spans.map(({ name, tags }) => [name, tags['literal']]),
    [
      ['shown-op', 'L'],
      ['kept', 'L'],
      ['GET 200', 'R'],
      ['ingress', 'L'],
      ['of-client', 'L'],
    ],
  );
  const { id, tags, traceId } = spans[3]!;
  const own = [
    'variable',
    'no variable',
    'header',
    'route',
    'format',
    'ids',
    'int',
    'no int',
    'double',
    'bool',
    'component',
  ];
  const values = own.map((name) => tags[name]);
  t.strictSame(values.toSpliced(3, 1), [
    'unset',
    undefined,
    'none',
    '/200',
    `${traceId} ${id}`,
    'int 42',
    'abc',
    'double 4.5',
    'bool true',
    'own',
  ]);
  t.strictSame(JSON.parse(tags['route'] as string), { z: 1, y: 'two' });
});

besideEnvoy(
  'an outbound listener names spans by their host and hears the name from the called service',
  async (t, program) => {
    const collector = await startCollector(t);
    const proxy = await startTracedProxy(t, program, {
      tracing: { provider: otel() },
      listener: { traffic_direction: 'OUTBOUND' },
      clusters: [cluster(collector)],
      routes: [{ match: { prefix: '/d' }, route: { cluster: 'host' }, decorator: { operation: 'op' } }, ROUTE_ALL],
      upstream: ({ url }, response) => {
        if (url === '/named') response.setHeader('x-envoy-decorator-operation', 'of-host');
        response.end();
      },
    });
    const told: unknown[] = [];
    for (const path of ['/', '/d', '/named'])
      told.push((await proxy.request(path)).headers['x-envoy-decorator-operation']);
    t.strictSame(told, [undefined, undefined, undefined]);
    t.strictSame(
      proxy.seen.map((headers) => headers['x-envoy-decorator-operation']),
      [undefined, 'op', undefined],
    );
    const spans = await spansOf(collector, 3);
    t.strictSame(
      spans.map(({ kind, name }) => `${kind} ${name}`),
      ['client egress w.x', 'client op', 'client of-host'],
    );
  },
);

const PARENT = '0af7651916cd43dd8448eb211c80319c';
const traceparent = (flags: string, id = PARENT, version = '00') => `${version}-${id}-b7ad6b7169203331-${flags}`;

besideEnvoy("a request continues its caller's trace", async (t, program) => {
  const collector = await startCollector(t);
  const proxy = await startTracedProxy(t, program, { tracing: { provider: otel() }, clusters: [cluster(collector)] });
  const sent = async (headers: Record<string, string>) => {
    await proxy.request('/', headers);
    const { traceparent: context = '', tracestate: state } = proxy.seen.at(-1)!;
    return [(context as string).replace(/-[0-9a-f]{16}-/, '-'), state];
  };
  const upper = traceparent('03', PARENT.toUpperCase());
  t.strictSame(await sent({ traceparent: traceparent('01'), tracestate: 'a=1,b=2' }), [`00-${PARENT}-01`, 'a=1,b=2']);
  t.strictSame(await sent({ traceparent: upper }), [`00-${PARENT}-01`, '']);
  t.strictSame(await sent({ traceparent: traceparent('00') }), [`00-${PARENT}-00`, '']);
  t.strictSame(await sent({ traceparent: traceparent('02', PARENT, 'cc') }), [`00-${PARENT}-00`, '']);
  // Contexts that cannot be read pass through.
  for (const invalid of ['00-abc', traceparent('01', '0'.repeat(32)), `${traceparent('01')}-x`, traceparent('0g')]) {
    await sent({ traceparent: invalid });
    t.equal(proxy.seen.at(-1)!['traceparent'], invalid);
    t.equal(proxy.seen.at(-1)!['tracestate'], undefined);
  }
  const spans = await spansOf(collector, 2);
  t.strictSame(
    spans.map(({ flags, parent, state, traceId }) => [traceId, parent, state, flags]),
    [
      [PARENT, 'b7ad6b7169203331', 'a=1,b=2', 0x301],
      [PARENT, 'b7ad6b7169203331', '', 0x301],
    ],
  );
});
