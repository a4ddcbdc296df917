// HTTP counters are exact: for clients, listeners and clusters.

import t from 'tap';
import {
  bootstrap,
  connectRaw,
  freePort,
  httpListener,
  httpRequest,
  rawExchange,
  startBaton,
  staticCluster,
  waitFor,
} from '../harness/index.js';
import { answering, managerOf, routeTo, startProxy } from './proxy.js';
import { response, startRawUpstream } from './raw-upstream.js';

let failures = 1;
const upstream = await startRawUpstream(t, ({ path, socket }) => {
  if (path === '/hang' || path === '/wait') return;
  if (path === '/end') socket.end();
  else if (path === '/half') socket.end('HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf');
  else if (path === '/unended') socket.write('HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf');
  else if (path === '/garbage') socket.write('no HTTP\r\n\r\n');
  else if (path === '/close') socket.end(response(200, 'body', { connection: 'close' }));
  else if (path === '/retry' && failures-- > 0) socket.write(response(503));
  else socket.write(response(Number(/^\/(\d{3})$/.exec(path)?.[1] ?? 200), 'body'));
});
const retry = {
  retry_policy: { retry_on: '5xx', retry_back_off: { base_interval: '0.001s', max_interval: '0.001s' } },
};
const proxy = await startProxy(t, {
  listeners: {
    main: managerOf([
      answering({ path: '/direct' }, 'direct'),
      { match: { path: '/redirect' }, redirect: { path_redirect: '/' } },
      routeTo({ path: '/hang' }, 'host', { timeout: '0.1s' }),
      routeTo({ path: '/unended' }, 'host', { timeout: '0.1s' }),
      routeTo({ path: '/wait' }, 'host'),
      routeTo({ path: '/retry' }, 'host', retry),
      routeTo({ path: '/closed' }, 'closed'),
      ...['/200', '/201', '/404', '/503', '/end', '/close', '/half', '/garbage'].map((path) =>
        routeTo({ path }, 'host'),
      ),
    ]),
  },
  clusters: [staticCluster('host', upstream.port), staticCluster('closed', await freePort())],
  args: ['-l', 'warning', '--concurrency', '2'],
});

t.test('every request is counted once in each scope', async (t) => {
  const paths = ['/200', '/200', '/201', '/404', '/503', '/hang', '/retry', '/end', '/closed'];
  for (const path of [...paths, '/direct', '/redirect', '/nowhere']) await proxy.get(path);
  await proxy.get('/200', { method: 'POST', body: 'x'.repeat(1000) });
  await httpRequest(proxy.port, '/200', { method: 'HEAD' });
  const listener = 'listener.main';
  const expected: Record<string, number> = {
    'http.main.downstream_rq_total': 14,
    'http.main.downstream_rq_http1_total': 14,
    'http.main.downstream_rq_completed': 14,
    'http.main.downstream_rq_2xx': 7,
    'http.main.downstream_rq_3xx': 1,
    'http.main.downstream_rq_4xx': 2,
    'http.main.downstream_rq_5xx': 4,
    'http.main.downstream_rq_active': 0,
    'http.main.downstream_cx_total': 14,
    'http.main.downstream_cx_http1_total': 14,
    'http.main.downstream_cx_active': 0,
    'http.main.downstream_cx_http1_active': 0,
    'http.main.downstream_cx_destroy': 14,
    'http.main.rq_total': 14,
    'cluster.host.upstream_cx_destroy_with_active_rq': 2,
    'cluster.host.upstream_cx_destroy_local_with_active_rq': 1,
    'cluster.host.upstream_cx_destroy_remote_with_active_rq': 1,
    // A redirect is one of them.
    'http.main.rq_direct_response': 2,
    'http.main.rq_redirect': 0,
    'http.main.no_route': 1,
    [`${listener}.downstream_cx_total`]: 14,
    [`${listener}.downstream_cx_active`]: 0,
    [`${listener}.http.main.downstream_rq_2xx`]: 7,
    [`${listener}.http.main.downstream_rq_5xx`]: 4,
    [`${listener}.http.main.downstream_rq_completed`]: 14,
    // Nine with a host's response or a local reply in its place, and one retry.
    'cluster.host.upstream_rq_total': 11,
    'cluster.host.upstream_rq_completed': 10,
    'cluster.host.upstream_rq_200': 5,
    'cluster.host.upstream_rq_201': 1,
    'cluster.host.upstream_rq_2xx': 6,
    'cluster.host.upstream_rq_404': 1,
    'cluster.host.upstream_rq_4xx': 1,
    'cluster.host.upstream_rq_503': 2,
    'cluster.host.upstream_rq_504': 1,
    'cluster.host.upstream_rq_5xx': 3,
    'cluster.host.upstream_rq_timeout': 1,
    'cluster.host.upstream_rq_retry': 1,
    'cluster.host.upstream_rq_retry_success': 1,
    'cluster.host.upstream_rq_retry_backoff_exponential': 1,
    'cluster.host.upstream_rq_tx_reset': 0,
    'cluster.host.upstream_rq_rx_reset': 0,
    'cluster.host.retry.upstream_rq_503': 1,
    'cluster.host.upstream_rq_active': 0,
    'cluster.host.upstream_rq_pending_active': 0,
    'cluster.host.upstream_cx_connect_fail': 0,
    'cluster.closed.upstream_cx_connect_fail': 1,
    'cluster.closed.upstream_rq_503': 1,
    'cluster.closed.upstream_rq_pending_failure_eject': 1,
    'cluster.closed.upstream_cx_active': 0,
  };
  await proxy.baton.waitForStats(expected);
  t.equal(await proxy.baton.stat('cluster.host.upstream_cx_active'), upstream.sockets.size);
  t.equal(await proxy.baton.stat('cluster.host.upstream_cx_total'), upstream.accepted());
  t.equal(await proxy.baton.stat('cluster.host.upstream_cx_http1_total'), upstream.accepted());
  t.ok((await proxy.baton.stat('http.main.downstream_cx_rx_bytes_total'))! > 1000);
  t.ok((await proxy.baton.stat('cluster.host.upstream_cx_tx_bytes_total'))! > 1000);
});

t.test('early ends are counted by the side that caused them', async (t) => {
  const { baton } = proxy;
  const cases: [what: string, act: () => Promise<unknown>, counts: Record<string, number>][] = [
    [
      'a client disconnects',
      async () => {
        const client = await connectRaw(t, proxy.port);
        client.write('GET /wait HTTP/1.1\r\nhost: a\r\n\r\n');
        await baton.waitForStat('http.main.downstream_rq_active', 1);
        client.reset();
      },
      {
        'http.main.downstream_rq_rx_reset': 1,
        'http.main.downstream_cx_destroy_active_rq': 1,
        'http.main.downstream_cx_destroy_remote': 1,
        'http.main.downstream_cx_destroy_remote_active_rq': 1,
        'http.main.downstream_cx_destroy_local_active_rq': 0,
        'cluster.host.upstream_cx_destroy_local_with_active_rq': 1,
        'cluster.host.upstream_rq_tx_reset': 0,
      },
    ],
    [
      'a client half-closes before the response',
      async () => {
        const client = await connectRaw(t, proxy.port);
        client.write('GET /wait HTTP/1.1\r\nhost: a\r\n\r\n');
        await baton.waitForStat('http.main.downstream_rq_active', 1);
        client.end();
      },
      {
        'http.main.downstream_rq_rx_reset': 1,
        'http.main.downstream_cx_destroy_active_rq': 1,
        'http.main.downstream_cx_destroy_remote': 1,
        'http.main.downstream_cx_destroy_remote_active_rq': 1,
        'http.main.downstream_cx_destroy_local_active_rq': 0,
        'cluster.host.upstream_cx_destroy_local_with_active_rq': 1,
      },
    ],
    [
      'a host disconnects during its response',
      () => rawExchange(proxy.port, 'GET /half HTTP/1.1\r\nhost: a\r\n\r\n'),
      {
        'http.main.downstream_rq_tx_reset': 1,
        'http.main.downstream_rq_rx_reset': 0,
        'http.main.rq_reset_after_downstream_response_started': 0,
        'cluster.host.upstream_cx_protocol_error': 1,
        'cluster.host.upstream_cx_destroy_remote_with_active_rq': 1,
        'cluster.host.upstream_rq_rx_reset': 0,
      },
    ],
    [
      'a timeout ends a response',
      () => rawExchange(proxy.port, 'GET /unended HTTP/1.1\r\nhost: a\r\n\r\n'),
      { 'http.main.downstream_rq_tx_reset': 1, 'http.main.downstream_rq_rx_reset': 1 },
    ],
    ['a host does not speak HTTP', () => proxy.get('/garbage'), { 'cluster.host.upstream_cx_protocol_error': 1 }],
    [
      'a request is answered before it is complete',
      () => rawExchange(proxy.port, 'POST /direct HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\n'),
      { 'http.main.downstream_rq_response_before_rq_complete': 1, 'http.main.downstream_rq_rx_reset': 1 },
    ],
  ];
  for (const [what, act, counts] of cases) {
    const before = await baton.stats();
    await act();
    const after = Object.entries(counts).map(([name, count]) => [name, before[name]! + count]);
    await t.resolves(baton.waitForStats(Object.fromEntries(after)), what);
  }
});

t.test('anomalies of requests, connections and threads are counted', async (t) => {
  const { baton } = proxy;
  await proxy.get('/close');
  await baton.waitForStat('cluster.host.upstream_cx_close_notify', 1);
  const { text } = await rawExchange(proxy.port, 'OPTIONS * HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n');
  t.match(text, /^HTTP\/1\.1 404 /);
  await baton.waitForStat('http.main.downstream_rq_non_relative_path', 1);
  const broken = 'http.main.downstream_cx_protocol_error';
  t.equal(await baton.stat(broken), 0);
  await rawExchange(proxy.port, 'no HTTP\r\n\r\n');
  await baton.waitForStat(broken, 1);
  const upload = await connectRaw(t, proxy.port);
  upload.write('POST /wait HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n');
  await baton.waitForStat('http.main.downstream_rq_active', 1);
  upload.write('no size\r\n');
  t.match(await upload.readUntil('\r\n\r\n'), /^HTTP\/1\.1 400 /);
  await baton.waitForStat(broken, 2);
  const cutOff = 'http.main.downstream_cx_destroy_local_active_rq';
  t.equal(await baton.stat(cutOff), 0, 'its request was answered');
  t.match((await rawExchange(proxy.port, 'GET / HTTP/1.1\r\n\r\n')).text, /^HTTP\/1\.1 400 /);
  t.equal(await baton.stat(broken), 2, 'a parsable request is not a protocol error, though it is refused');
  t.equal(await baton.stat('cluster.host.default.total_match_count'), 1, 'its one host');
  t.equal(await baton.stat('cluster.host.warming_state'), 0);
  for (const thread of ['main_thread', 'worker_0', 'worker_1']) {
    t.equal(await baton.stat(`thread_local_cluster_manager.${thread}.clusters_inflated`), 2, thread);
  }
  const accepts = 'listener.main.connections_accepted_per_socket_event';
  await waitFor(async () => (await baton.admin(`/stats?usedonly&filter=${accepts}`)).body.includes('P0('), {
    what: 'the histogram of accepts per turn at the next flush',
  });
});

t.test('connections of mobile clients are also counted by platform, from their first request', async (t) => {
  const { baton } = proxy;
  const request = (agent: string, path: string) => `GET ${path} HTTP/1.1\r\nhost: a\r\nuser-agent: ${agent}\r\n\r\n`;
  t.equal((await baton.admin('/stats?filter=user_agent')).body, '', 'no stats before the first request');
  for (const agent of ['app/1 (iOS 19)', 'okhttp android', 'Android', 'ios', 'iO androi', '']) {
    const client = await connectRaw(t, proxy.port);
    client.write(request(agent, '/direct'));
    await client.readUntil('direct');
    client.write(request('curl', '/hang'));
    await client.readUntil('504');
    client.write(request('curl', '/wait'));
    await baton.waitForStat('http.main.downstream_rq_active', 1);
    client.reset();
    await baton.waitForStat('http.main.downstream_rq_active', 0);
  }
  for (const device of ['ios', 'android']) {
    const prefix = `http.main.user_agent.${device}.downstream_`;
    t.equal(await baton.stat(`${prefix}cx_total`), 1);
    t.equal(await baton.stat(`${prefix}rq_total`), 3);
    t.equal(await baton.stat(`${prefix}cx_destroy_remote_active_rq`), 1);
    const metric = 'envoy_http_user_agent_downstream_cx_length_ms_count';
    const labels = `{envoy_http_user_agent="${device}",envoy_http_conn_manager_prefix="main"}`;
    await waitFor(
      async () => (await baton.admin('/stats/monitoring?filter=user_agent')).body.includes(`${metric}${labels} 1\n`),
      { what: `${metric} at the next flush` },
    );
  }
});

t.test(
  'each complete response has a duration sample, and each closed upstream connection a length sample',
  async (t) => {
    const routes = [routeTo({ path: '/closed' }, 'closed'), routeTo({ prefix: '/' }, 'host')];
    const baton = await startBaton(t, {
      config: bootstrap({
        listeners: [httpListener('timed', 0, managerOf(routes))],
        clusters: [staticCluster('host', upstream.port), staticCluster('closed', await freePort())],
        extra: { stats_flush_interval: '0.1s' },
      }),
    });
    const port = await baton.listenerPort('timed');
    const answered = ['GET /200', 'GET /closed', 'GET /200 and more', 'nonsense'];
    for (const line of answered) await rawExchange(port, `${line} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n`);
    await rawExchange(port, 'POST /wait HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\nno size\r\n');
    await rawExchange(port, 'GET /half HTTP/1.1\r\nhost: a\r\n\r\n');
    const client = await connectRaw(t, port);
    client.write('GET /wait HTTP/1.1\r\nhost: a\r\n\r\n');
    await baton.waitForStat('cluster.host.upstream_rq_active', 1);
    client.reset();
    await baton.waitForStats({ 'http.timed.downstream_rq_total': 7, 'http.timed.downstream_cx_destroy': 7 });
    const expected = [
      'envoy_http_downstream_rq_time_count{envoy_http_conn_manager_prefix="timed"} 6\n',
      'envoy_cluster_upstream_rq{envoy_response_code="201",envoy_cluster_name="host"} 1\n',
      'envoy_cluster_upstream_rq_time_count{envoy_cluster_name="host"} 1\n',
      'envoy_cluster_upstream_cx_length_ms_count{envoy_cluster_name="closed"} 1\n',
    ];
    // A request that is answered before it is complete has used no upstream time.
    const early = await connectRaw(t, port);
    early.write('POST /201 HTTP/1.1\r\nhost: a\r\ncontent-length: 10\r\n\r\nsome');
    await early.readToEnd();
    const areCounted = async () => {
      const { body } = await baton.admin('/stats/monitoring');
      return expected.every((line) => body.includes(line));
    };
    await t.resolves(waitFor(areCounted, { what: expected.join('') }));
    await baton.stop();
  },
);

t.test('a router with suppressed dynamic stats counts no status codes and times of its cluster', async (t) => {
  const router = {
    name: 'router',
    typed_config: {
      '@type': 'type.googleapis.com/envoy.extensions.filters.http.router.v3.Router',
      dynamic_stats: false,
      start_child_span: true,
    },
  };
  const quiet = await startProxy(t, {
    listeners: {
      quiet: managerOf([routeTo({ path: '/hang' }, 'host', { timeout: '0.1s' }), routeTo({ prefix: '/' }, 'host')], {
        http_filters: [router],
      }),
    },
    clusters: [staticCluster('host', upstream.port)],
  });
  for (const path of ['/200', '/404', '/hang']) await quiet.get(path);
  t.equal(await quiet.baton.stat('cluster.host.upstream_rq_total'), 3);
  t.equal(await quiet.baton.stat('cluster.host.upstream_rq_timeout'), 1);
  t.equal(await quiet.baton.stat('http.quiet.downstream_rq_2xx'), 1);
  const { body } = await quiet.baton.admin('/stats?filter=upstream_rq_(.xx|[0-9]{3}|completed|time:)');
  t.equal(body, 'cluster.host.upstream_rq_completed: 0\n');
  await quiet.baton.stop();
});
