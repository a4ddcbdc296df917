// envoy.filters.http.grpc_stats. All results are Envoy's.

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Test } from 'tap';
import t from 'tap';
import { besideEnvoy, type ProxyProgram } from '../../harness/envoy.js';
import {
  type Config,
  fileAccessLog,
  freePort,
  HTTP2_CLUSTER,
  ROUTER_FILTER,
  staticCluster,
  tempDir,
  waitFor,
} from '../../harness/index.js';
import { exchange, openSession } from '../h2/http2-client.js';
import { managerOf, routeTo, startProxy } from '../proxy.js';
import { frame, startGrpcHost } from './grpc-host.js';

const TYPE = 'type.googleapis.com/envoy.extensions.filters.http.grpc_stats.v3.FilterConfig';
const GRPC = { ':method': 'POST', 'content-type': 'application/grpc' };

/** Starts a proxy with one listener, and a cluster of its own, for each configuration of the filter. */
async function start(t: Test, program: ProxyProgram, configs: Record<string, Config>) {
  const host = await startGrpcHost(t);
  const log = join(tempDir(t), 'log');
  const format =
    '%REQ(:PATH)% %FILTER_STATE(envoy.filters.http.grpc_stats:TYPED)% %FILTER_STATE(envoy.filters.http.grpc_stats:PLAIN)% %FILTER_STATE(envoy.filters.http.grpc_stats:FIELD:request_message_count)%\n';
  const names = Object.keys(configs);
  const manager = (name: string, config: Config) =>
    managerOf(
      [
        { match: { prefix: '/local' }, direct_response: { status: 403, body: { inline_string: 'no' } } },
        routeTo({ prefix: '/down' }, 'down'),
        routeTo({ prefix: '/a.Shared/' }, names[0]!),
        routeTo({ prefix: '/' }, name),
      ],
      {
        access_log: [fileAccessLog(log, format)],
        http_filters: [{ name: 'stats', typed_config: { '@type': TYPE, ...config } }, ROUTER_FILTER],
      },
    );
  const proxy = await startProxy(t, {
    ...program,
    args: ['-l', 'warning', '--file-flush-interval-msec', '20'],
    listeners: Object.fromEntries(names.map((name) => [name, manager(name, configs[name]!)])),
    clusters: [
      staticCluster('down', await freePort()),
      ...names.map((name) => staticCluster(name, host.port, HTTP2_CLUSTER)),
    ],
  });
  const sessions = Object.fromEntries(names.map((name) => [name, openSession(t, proxy.ports[name]!)]));
  return {
    proxy,
    call: (name: string, path: string, headers = GRPC, body = frame('abc')) =>
      exchange(sessions[name]!, path, { headers, body }),
    logged: (path: string) =>
      waitFor(
        () =>
          existsSync(log) &&
          readFileSync(log, 'utf8')
            .split('\n')
            .find((line) => line.startsWith(`${path} `)),
        { what: path },
      ),
  };
}

besideEnvoy('calls are counted by status, without names of methods', async (t, program) => {
  const { call, proxy } = await start(t, program, { plain: {}, off: { stats_for_all_methods: false } });
  for (const name of ['plain', 'off']) {
    await call(name, '/a.B/Get?messages=3');
    await call(name, '/a.B/Get?status=14');
    await call(name, '/a.B/TrailersOnly?status=5');
    await call(name, '/a.B/Plain');
    await call(name, '/a.B/NoTrailers');
    await call(name, '/short');
    await call(name, '/a/b/c');
    await call(name, '/a.B/Get', { ...GRPC, 'content-type': 'application/json' });
    await call(name, '/a.B/Get', { ...GRPC, 'content-type': 'application/grpc-web' });
    await call(name, '//x//Get', GRPC, Buffer.concat([frame('a'), frame(''), frame('b')]));
    await call(name, '/local/Get');
    await call(name, '/down/Get');
    const stats = await proxy.baton.stats(`cluster.${name}.grpc.`);
    t.same(stats, {
      '0': 2,
      '14': 1,
      '5': 1,
      failure: 2,
      success: 2,
      total: 4,
      request_message_count: 8,
      response_message_count: 6,
    });
  }
  const down = { '14': 2, failure: 2, total: 2 };
  t.match(await proxy.baton.stats('cluster.down.grpc.'), down, 'local replies count too');
});

besideEnvoy('methods are counted by name, all of them or those of a list', async (t, program) => {
  const services = [{ name: 'a.B', method_names: ['Get'] }];
  const { call, proxy } = await start(t, program, {
    all: { stats_for_all_methods: true, enable_upstream_stats: true },
    replaced: { stats_for_all_methods: true, replace_dots_in_grpc_service_name: true },
    some: { individual_method_stats_allowlist: { services }, replace_dots_in_grpc_service_name: true },
  });
  for (const name of ['all', 'replaced', 'some']) {
    await call(name, '/a.B/Get?query=1');
    await call(name, '/a.B/Other?status=77');
  }
  const ok = { '0': 1, success: 1, total: 1, request_message_count: 1, response_message_count: 1 };
  const failed = { '77': 1, failure: 1, total: 1, request_message_count: 1, response_message_count: 1 };
  const under = (prefix: string, stats: object) =>
    Object.fromEntries(Object.entries(stats).map(([name, value]) => [prefix + name, value]));
  const dotted = { ...under('a.B.Get.', ok), ...under('a.B.Other.', failed) };
  t.same(await proxy.baton.stats('cluster.all.grpc.'), dotted);
  const replaced = { ...under('a_B.Get.', ok), ...under('a_B.Other.', failed) };
  t.same(await proxy.baton.stats('cluster.replaced.grpc.'), replaced);
  t.same(await proxy.baton.stats('cluster.some.grpc.'), { ...under('a.B.Get.', ok), ...failed });
  const { body } = await proxy.baton.admin('/stats?filter=grpc.*upstream_rq_time');
  t.match(body, /^cluster\.all\.grpc\.a\.B\.Get\.upstream_rq_time: /m);
  t.notMatch(body, /replaced\.grpc/);
});

besideEnvoy('the filter state has the numbers of messages', async (t, program) => {
  const { call, logged } = await start(t, program, { state: { emit_filter_state: true }, none: {} });
  await call('state', '/a.B/Get?messages=2', GRPC, Buffer.concat([frame('a'), frame('b'), frame('c')]));
  t.equal(
    await logged('/a.B/Get?messages=2'),
    '/a.B/Get?messages=2 {"requestMessageCount":"3","responseMessageCount":"2"} 3,2 -',
  );
  await call('state', '/a.B/TrailersOnly');
  t.equal(await logged('/a.B/TrailersOnly'), '/a.B/TrailersOnly {"requestMessageCount":"1"} 1,0 -');
  await call('state', '/json', { ...GRPC, 'content-type': 'application/json' });
  t.equal(await logged('/json'), '/json {"responseMessageCount":"1"} 0,1 -');
  await call('none', '/c.D/Get');
  t.equal(await logged('/c.D/Get'), '/c.D/Get - - -');
});

besideEnvoy('the router can leave gRPC calls out of the counts of HTTP statuses', async (t, program) => {
  const host = await startGrpcHost(t);
  const router = {
    name: 'router',
    typed_config: {
      '@type': 'type.googleapis.com/envoy.extensions.filters.http.router.v3.Router',
      suppress_grpc_request_failure_code_stats: true,
    },
  };
  const routes = [routeTo({ prefix: '/down' }, 'down'), routeTo({ prefix: '/' }, 'host')];
  const { baton, port } = await startProxy(t, {
    ...program,
    listeners: { main: managerOf(routes, { http_filters: [router] }) },
    clusters: [staticCluster('down', await freePort()), staticCluster('host', host.port, HTTP2_CLUSTER)],
  });
  const session = openSession(t, port);
  const call = (path: string, type: string) =>
    exchange(session, path, { headers: { ':method': 'POST', 'content-type': type }, body: frame('abc') });
  await call('/a.B/Get', 'application/grpc');
  await call('/a.B/Plain', 'application/grpc');
  await call('/a.B/Plain', 'text/plain');
  await call('/down', 'application/grpc');
  const counts = { upstream_rq_completed: 3, upstream_rq_200: undefined, upstream_rq_503: 1, upstream_rq_5xx: 1 };
  t.match(await baton.stats('cluster.host.'), { ...counts, 'external.upstream_rq_503': 2 });
  t.match(await baton.stats('cluster.down.'), { upstream_rq_completed: 1, upstream_rq_503: undefined });
});

t.test('clients and hosts cannot create stats without limit', async (t) => {
  const config = { stats_for_all_methods: true };
  const { call, proxy } = await start(t, { command: undefined }, { all: config, other: config });
  await call('all', `/${'s'.repeat(300)}/Long`);
  await call('all', '/a.B/Get?status=text');
  for (let index = 0; index < 1010; index++) await call(index % 2 === 0 ? 'all' : 'other', `/a.Shared/M${index}/`);
  const stats = await proxy.baton.stats('cluster.all.grpc.');
  t.ok(Object.keys(stats).length <= 1001 * 5, String(Object.keys(stats).length));
  t.equal(stats['total'], 1 + 12, 'further methods are counted without their names');
  t.match(stats, {
    'a.B.Get.failure': 1,
    'a.B.Get.total': 1,
    'a.Shared.M0.total': 1,
    'a.Shared.M1009.total': undefined,
  });
});
