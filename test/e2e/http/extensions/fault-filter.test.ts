// The fault filter: selected requests are delayed or aborted, up to the maximum of active faults, and others are unaffected.

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import {
  bootstrap,
  type Config,
  connectRaw,
  type EchoedRequest,
  fileAccessLog,
  httpListener,
  ROUTER_FILTER,
  startBaton,
  startEchoUpstream,
  staticCluster,
  tempDir,
  waitFor,
} from '../../harness/index.js';
import { answering, headerOption, managerOf, routeConfig, routeTo, startProxy } from '../proxy.js';

const TYPE = { '@type': 'type.googleapis.com/envoy.extensions.filters.http.fault.v3.HTTPFault' };
const ALL = { numerator: 100 };
const BY_HEADER: Config = {
  delay: { header_delay: {}, percentage: ALL },
  abort: { header_abort: {}, percentage: ALL },
};

const host = await startEchoUpstream(t);
const logFile = join(tempDir(t), 'log');
const toHost = [routeTo({ prefix: '/' }, 'host')];
const proxy = await startProxy(t, {
  listeners: {
    abort: faulty({ abort: { http_status: 418, percentage: ALL } }, toHost),
    grpc: faulty({ abort: { grpc_status: 5, percentage: ALL } }, toHost),
    texts: faulty({ abort: { grpc_status: 5, percentage: ALL, response_body: 'out of\nservice' } }, toHost),
    asked: faulty(BY_HEADER, toHost, {
      access_log: [fileAccessLog(logFile, '%REQ(:PATH)% %RESPONSE_CODE% %RESPONSE_FLAGS% %RESPONSE_CODE_DETAILS%\n')],
    }),
    few: faulty({ delay: { header_delay: {}, percentage: ALL }, max_active_faults: 3 }, toHost),
    quiet: faulty({ ...BY_HEADER, disable_downstream_cluster_stats: true }, toHost),
    runtime: faulty({ abort: { http_status: 500 } }, toHost),
    routes: faulty({}, [
      answering({ prefix: '/fails' }, 'fine', perRoute({ abort: { http_status: 503, percentage: ALL } })),
      answering({ prefix: '/' }, 'fine', { response_headers_to_add: [headerOption('x-route', 'other')] }),
    ]),
    levels: {
      ...faulty({}, []),
      route_config: routeConfig([
        {
          name: 'all',
          domains: ['*'],
          routes: [
            answering({ prefix: '/route' }, 'fine', perRoute({ abort: { http_status: 502, percentage: ALL } })),
            answering({ prefix: '/' }, 'fine'),
          ],
          ...perRoute({ abort: { http_status: 501, percentage: ALL } }),
        },
      ]),
    },
    some: faulty(
      {
        abort: { http_status: 503, percentage: ALL },
        upstream_cluster: 'host',
        headers: [{ name: 'x-test', present_match: true }],
        downstream_nodes: ['n1'],
      },
      [routeTo({ prefix: '/other' }, 'other'), ...toHost],
    ),
  },
  clusters: [staticCluster('host', host.port), staticCluster('other', host.port)],
  extra: { layered_runtime: { layers: [{ name: 'admin', admin_layer: {} }] } },
  args: ['-l', 'warning', '--concurrency', '3', '--file-flush-interval-msec', '20'],
});

t.test('an aborted request gets its status, and reaches no host', async (t) => {
  t.same(await proxy.baton.stats('http.abort.fault.'), {
    aborts_injected: 0,
    active_faults: 0,
    delays_injected: 0,
    faults_overflow: 0,
    response_rl_injected: 0,
  });
  t.match(await proxy.on('abort', '/'), { status: 418, body: 'fault filter abort' });
  t.match(await proxy.baton.stats('http.abort.fault.'), { aborts_injected: 1, active_faults: 0 });
  t.equal(await proxy.baton.stat('cluster.host.upstream_rq_total'), 0);
});

t.test('aborts of gRPC requests have a grpc-status and HTTP status 200', async (t) => {
  const answer = await proxy.on('grpc', '/', { headers: { 'content-type': 'application/grpc' } });
  t.match(answer, { status: 200, headers: { 'grpc-status': '5', 'grpc-message': 'fault filter abort' } });
  const plain = await proxy.on('grpc', '/');
  t.match(plain, { status: 200, body: 'fault filter abort' });
  t.notOk('grpc-status' in plain.headers);
});

t.test('a gRPC abort can carry a message', async (t) => {
  t.match(await proxy.on('texts', '/'), { status: 200, body: 'out of\nservice' });
  const answer = await proxy.on('texts', '/', { headers: { 'content-type': 'application/grpc' } });
  t.match(answer, { body: '', headers: { 'grpc-status': '5', 'grpc-message': 'out of%0Aservice' } });
});

t.test('a delayed request is forwarded completely, or aborted afterwards', async (t) => {
  const wait = { 'x-envoy-fault-delay-request': '30' };
  const body = 'x'.repeat(300_000);
  const answer = await proxy.on('asked', '/slow', { method: 'POST', headers: wait, body });
  t.equal((JSON.parse(answer.body) as EchoedRequest).body.length, body.length);
  t.match(await proxy.on('asked', '/both', { headers: { ...wait, 'x-envoy-fault-abort-request': '503' } }), {
    status: 503,
    body: 'fault filter abort',
  });
  t.match(await proxy.on('asked', '/none'), { status: 200 });
  t.match(await proxy.baton.stats('http.asked.fault.'), { delays_injected: 2, aborts_injected: 1, active_faults: 0 });
  const lines = await waitFor(
    () =>
      existsSync(logFile) && readFileSync(logFile, 'utf8').split('\n').length === 4 && readFileSync(logFile, 'utf8'),
    { what: 'lines in the log' },
  );
  t.equal(lines, '/slow 200 DI via_upstream\n/both 503 DI,FI fault_filter_abort\n/none 200 - via_upstream\n');
});

t.test('all workers together inject no more active faults than the maximum', async (t) => {
  const clients = [];
  for (let index = 0; index < 3; index++) {
    const client = await connectRaw(t, proxy.ports['few']!);
    client.write('GET / HTTP/1.1\r\nhost: a\r\nx-envoy-fault-delay-request: 3600000\r\n\r\n');
    await proxy.baton.waitForStat('http.few.fault.active_faults', index + 1);
    clients.push(client);
  }
  const headers = { 'x-envoy-fault-delay-request': '3600000' };
  for (let index = 0; index < 6; index++) t.match(await proxy.on('few', '/', { headers }), { status: 200 });
  t.match(await proxy.baton.stats('http.few.fault.'), { delays_injected: 3, faults_overflow: 6, active_faults: 3 });
  for (const client of clients) client.destroy();
  await proxy.baton.waitForStat('http.few.fault.active_faults', 0);
});

t.test('faults are counted per downstream cluster, unless that is disabled', async (t) => {
  const headers = { 'x-envoy-downstream-service-cluster': 'shop:1', 'x-envoy-fault-abort-request': '503' };
  await proxy.on('asked', '/', { headers: { ...headers, 'x-envoy-fault-delay-request': '1' } });
  t.match(await proxy.baton.stats('http.asked.fault.shop_1.'), { delays_injected: 1, aborts_injected: 1 });
  await proxy.on('quiet', '/', { headers });
  t.equal(await proxy.baton.stat('http.quiet.fault.aborts_injected'), 1);
  t.same(await proxy.baton.stats('http.quiet.fault.shop'), {});
});

t.test('runtime starts and stops faults', async (t) => {
  const set = (query: string) => proxy.baton.admin(`/runtime_modify?${query}`, { method: 'POST' });
  t.match(await proxy.on('runtime', '/'), { status: 200 });
  await set('fault.http.abort.abort_percent=100&fault.http.abort.http_status=429');
  await waitFor(async () => (await proxy.on('runtime', '/')).status === 429, { what: 'faults' });
  await set('fault.http.abort.abort_percent=&fault.http.abort.http_status=');
  await waitFor(async () => (await proxy.on('runtime', '/')).status === 200, { what: 'the end of faults' });
});

t.test('a route has its own faults', async (t) => {
  t.match(await proxy.on('routes', '/fails'), { status: 503, body: 'fault filter abort' });
  t.match(await proxy.on('routes', '/'), { status: 200, body: 'fine' });
  t.match(await proxy.on('levels', '/'), { status: 501 });
  t.match(await proxy.on('levels', '/route'), { status: 502 }, 'the most specific level applies');
});

t.test('faults apply only to matching requests', async (t) => {
  const headers = { 'x-test': '1', 'x-envoy-downstream-service-node': 'n1' };
  t.match(await proxy.on('some', '/', { headers }), { status: 503 });
  t.match(await proxy.on('some', '/other', { headers }), { status: 200 });
  t.match(await proxy.on('some', '/', { headers: { ...headers, 'x-envoy-downstream-service-node': 'n2' } }), {
    status: 200,
  });
  t.match(await proxy.on('some', '/'), { status: 200 });
});

t.test('unsupported configurations are refused', async (t) => {
  const manager = faulty(
    {
      response_rate_limit: { fixed_limit: { limit_kbps: 1 }, percentage: ALL },
      headers: [{ name: 'a b', present_match: true }],
      filter_metadata: { a: 1 },
    },
    [answering({ prefix: '/' }, 'a')],
  );
  const baton = await startBaton(t, {
    config: bootstrap({ listeners: [httpListener('a', 0, manager)], clusters: [] }),
    wait: 'spawned',
  });
  t.match(await baton.exited, { code: 1 });
  for (const mistake of ["field 'response_rate_limit'", "headers[0].name: 'a b'", "field 'filter_metadata'"])
    t.match(baton.stderr, mistake);
});

function faulty(fault: Config, routes: Config[], more: Config = {}): Config {
  return managerOf(routes, {
    http_filters: [{ name: 'fault', typed_config: { ...TYPE, ...fault } }, ROUTER_FILTER],
    ...more,
  });
}

function perRoute(fault: Config): Config {
  return { typed_per_filter_config: { fault: { ...TYPE, ...fault } } };
}
