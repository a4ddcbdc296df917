// The endpoints of a running server, one after the other: their output and their effects.

import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect } from 'node:http2';
import { join } from 'node:path';
import t from 'tap';
import { decodesAs } from '../../admin/admin-messages.js';
import {
  bootstrap,
  connectRaw,
  fileAccessLog,
  httpListener,
  httpRequest,
  loopback,
  rawExchange,
  routeAllTo,
  startBaton,
  startEchoUpstream,
  staticCluster,
  tempDir,
  waitFor,
} from '../harness/index.js';

const LOG = join(tempDir(t), 'admin.log');
const echo = await startEchoUpstream(t);
const UNUSED = staticCluster('unused', [], {
  load_assignment: {
    cluster_name: 'unused',
    endpoints: [
      {
        locality: { zone: 'z2' },
        load_balancing_weight: 3,
        lb_endpoints: [9, 10].map((port) => ({ endpoint: { address: loopback(port) } })),
      },
      { load_balancing_weight: 4, lb_endpoints: [{ endpoint: { address: loopback(11) } }] },
    ],
  },
});
const baton = await startBaton(t, {
  config: bootstrap({
    listeners: [
      httpListener('main', 0, { route_config: routeAllTo('echo') }),
      httpListener('other', 0, { route_config: { ...routeAllTo('echo'), name: 'second' } }),
    ],
    clusters: [staticCluster('echo', echo.port), UNUSED],
    extra: {
      node: { id: 'n1', cluster: 'front' },
      admin: { address: loopback(0), access_log: [fileAccessLog(LOG)], access_log_path: '/dev/null' },
    },
  }),
  args: [
    ...['--concurrency', '2', '--service-zone', 'z1', '--file-flush-interval-msec', '50', '-l', 'info'],
    ...['--disable-extensions', 'envoy.filters.http/envoy.filters.http.buffer'],
  ],
});
const main = await baton.listenerPort('main');

const post = (path: string, headers = {}) => baton.admin(path, { method: 'POST', headers });

interface Dump {
  readonly configs: ({ readonly '@type': string } & Record<string, never>)[];
}

async function dump(query = ''): Promise<Dump> {
  const { status, headers, body } = await baton.admin(`/config_dump${query}`);
  if (status !== 200) throw new Error(`${status}: ${body}`);
  t.equal(headers['content-type'], 'application/json');
  return JSON.parse(body) as Dump;
}

t.test('/config_dump shows the running configuration', async (t) => {
  const { configs } = await dump('?include_eds');
  t.strictSame(
    configs.map((config) => config['@type'].replace(/^type\.googleapis\.com\/envoy\.admin\.v3\./, '')),
    [
      'BootstrapConfigDump',
      'ClustersConfigDump',
      'EndpointsConfigDump',
      'ListenersConfigDump',
      'ScopedRoutesConfigDump',
      'RoutesConfigDump',
      'SecretsConfigDump',
    ],
  );
  for (const { '@type': url, ...message } of configs) decodesAs(t, url.slice(url.lastIndexOf('.') + 1), message);
  const [bootstrapDump, clusters, endpoints, listeners, , routes] = configs;
  t.match(bootstrapDump, {
    bootstrap: { node: { id: 'n1', cluster: 'front', locality: { zone: 'z1' }, user_agent_name: 'baton' } },
    last_updated: /^20\d\d-.*Z$/,
  });
  t.match(clusters, { static_clusters: [{ cluster: { name: 'echo' } }, { cluster: { name: 'unused' } }] });
  t.match(endpoints, {
    static_endpoint_configs: [
      {
        endpoint_config: {
          cluster_name: 'echo',
          endpoints: [{ lb_endpoints: [{ endpoint: { address: loopback(echo.port) }, health_status: 'HEALTHY' }] }],
        },
      },
      {
        endpoint_config: {
          cluster_name: 'unused',
          endpoints: [{ load_balancing_weight: 3 }, { load_balancing_weight: 0 }],
        },
      },
    ],
  });
  t.match(listeners, { static_listeners: [{ listener: { name: 'main' } }, { listener: { name: 'other' } }] });
  t.match(routes, { static_route_configs: [{ route_config: { name: 'all' } }, { route_config: { name: 'second' } }] });
  t.equal((await dump()).configs.length, 6);
});

t.test('/config_dump filters by resource, mask and name', async (t) => {
  const element = { '@type': 'type.googleapis.com/envoy.admin.v3.ListenersConfigDump.StaticListener' };
  t.strictSame(await dump('?resource=static_listeners&mask=listener.name&name_regex=.*the.*'), {
    configs: [
      { ...element, listener: { '@type': 'type.googleapis.com/envoy.config.listener.v3.Listener', name: 'other' } },
    ],
  });
  t.match(await dump('?mask=bootstrap.node.id'), { configs: [{ bootstrap: { node: { id: 'n1' } } }] });
  t.strictSame(await dump('?resource=dynamic_listeners'), {});
  const { body } = await baton.admin('/config_dump?mask=bootstrap.node.id');
  t.match(body, /^\{\n "configs": \[\n {2}\{\n {3}"@type": [\s\S]*\n {2}\}\n \]\n\}\n$/, 'pretty, with a line end');
  t.match(await baton.admin('/config_dump?resource=nothing'), {
    status: 404,
    body: 'nothing not found in config dump',
  });
});

t.test('the uptimes of the first epoch are equal at any moment of a second', async (t) => {
  const seen = new Set<string>();
  const differences: unknown[] = [];
  await waitFor(
    async () => {
      const info = JSON.parse((await baton.admin('/server_info')).body) as Record<string, string>;
      const { uptime_current_epoch: current, uptime_all_epochs: all } = info;
      if (current !== all) differences.push([current, all]);
      return seen.add(current!).size === 3;
    },
    { what: 'a whole second' },
  );
  t.same(differences, []);
});

t.test(
  '/server_info, /listeners, /clusters, /memory, /certs and /init_dump decode as their protobuf messages',
  async (t) => {
    const json = async (path: string) =>
      JSON.parse((await baton.admin(path)).body) as Record<string, Record<string, unknown>>;
    const info = await json('/server_info');
    // The specification has this member; the protobuf message does not.
    const { hot_restart_version: _, ...options } = info['command_line_options'] as Record<string, unknown>;
    decodesAs(t, 'ServerInfo', { ...info, command_line_options: options });
    t.match(info, {
      state: 'LIVE',
      command_line_options: { concurrency: 2, mode: 'Serve', drain_time: '600s', socket_mode: 0, stats_tag: [] },
      node: {
        id: 'n1',
        user_agent_name: 'baton',
        client_features: [],
        listening_addresses: [],
        dynamic_parameters: {},
      },
    });
    const extensions = info['node']!['extensions'] as { name: string; disabled: boolean }[];
    t.match(
      extensions.filter(({ disabled }) => disabled),
      [{ name: 'envoy.filters.http.buffer', category: 'envoy.filters.http', type_urls: Array }],
    );
    const listeners = await json('/listeners?format=json');
    decodesAs(t, 'Listeners', listeners);
    t.match(listeners, { listener_statuses: [{ name: 'main', local_address: loopback(main) }, { name: 'other' }] });
    const clusters = await json('/clusters?format=json&filter=^un');
    decodesAs(t, 'Clusters', clusters);
    t.match(clusters, { cluster_statuses: [{ name: 'unused', host_statuses: [{}, {}] }] });
    const memory = await json('/memory');
    decodesAs(t, 'Memory', memory);
    t.ok(Object.values(memory).every((value) => /^\d+$/.test(String(value))));
    t.ok(Number(memory['total_physical_bytes']) > Number(memory['pageheap_free']));
    for (const [stat, field] of [
      ['memory_allocated', 'allocated'],
      ['memory_heap_size', 'heap_size'],
    ] as const) {
      const isNear = async () => {
        const value = (await baton.stat(`server.${stat}`))!;
        const shown = Number((await json('/memory'))[field]);
        return Math.abs(value - shown) < 0.2 * shown;
      };
      await waitFor(isNear, { what: `server.${stat} of all threads`, deadlineMs: 15_000 });
    }
    t.strictSame(await json('/certs'), { certificates: [] });
    t.strictSame(await json('/init_dump'), {});
    t.strictSame(await json('/init_dump?mask=listener'), {});
    for (const path of ['/memory/allocator', '/memory/tcmalloc']) {
      const { body } = await baton.admin(path);
      for (const thread of ['primary', 'worker_0', 'worker_1'])
        t.match(body, new RegExp(`^${thread}: \\d+ bytes in use`, 'm'));
    }
  },
);

t.test('/contention explains how to enable it', async (t) => {
  t.match(await baton.admin('/contention'), {
    status: 200,
    headers: { 'content-type': 'text/plain; charset=UTF-8' },
    body: /^Mutex contention tracing is not enabled\. .*--enable-mutex-tracing\.$/,
  });
});

t.test('/hot_restart_version prints the same as the command-line option', async (t) => {
  const { stderr } = spawnSync(
    process.execPath,
    [baton.child.spawnargs.find((arg) => arg.endsWith('/main.js'))!, '--hot-restart-version', '--disable-hot-restart'],
    {
      encoding: 'utf8',
    },
  );
  t.equal((await baton.admin('/hot_restart_version')).body, stderr);
});

t.test('/healthcheck/fail and /ok change the state that clients see', async (t) => {
  t.match(await baton.admin('/healthcheck/fail'), { status: 400, body: 'Method GET not allowed, POST required.' });
  t.match(await baton.admin('/ready'), { status: 200, body: 'LIVE\n' });
  t.match(await post('/healthcheck/fail'), { status: 200, body: 'OK\n' });
  t.match(await baton.admin('/ready'), { status: 503, body: 'DRAINING\n' });
  t.match(JSON.parse((await baton.admin('/server_info')).body), { state: 'DRAINING' });
  t.equal(await baton.stat('server.live'), 0);
  t.equal(await baton.stat('server.state'), 1);
  t.equal((await httpRequest(main, '/')).status, 200, 'requests are served');
  t.match(await post('/healthcheck/ok'), { status: 200, body: 'OK\n' });
  t.match(await baton.admin('/ready'), { status: 200, body: 'LIVE\n' });
  t.equal(await baton.stat('server.live'), 1);
});

t.test('while health checks are failed, connections close after their next response', async (t) => {
  const drained = (await baton.stat('http.main.downstream_cx_drain_close'))!;
  const GET = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n';
  const connection = await connectRaw(t, main);
  connection.write(GET);
  await waitFor(() => connection.received.includes('HTTP/1.1 200'), { what: 'the first response' });
  t.notMatch(connection.received, /connection: close/i);
  await post('/healthcheck/fail');
  t.equal(connection.closed, 'open', 'an idle connection stays');
  connection.write(GET);
  await waitFor(() => connection.closed !== 'open', { what: 'the end after the second response' });
  t.match(connection.received, /HTTP\/1\.1 200[\s\S]*HTTP\/1\.1 200[\s\S]*connection: close/i);
  await baton.waitForStat('http.main.downstream_cx_drain_close', drained + 1);
  await post('/healthcheck/ok');
  const after = await connectRaw(t, main);
  for (const count of [1, 2]) {
    after.write(GET);
    await waitFor(() => after.received.split('HTTP/1.1 200').length - 1 === count, { what: `response ${count}` });
  }
  t.equal(after.closed, 'open');
});

t.test('/reset_counters resets the counters of /stats, and leaves gauges and /clusters', async (t) => {
  await httpRequest(main, '/');
  t.ok((await baton.stat('http.main.downstream_rq_total'))! > 0);
  const ofHost = async () => Number(/^echo::.*::rq_total::(\d+)$/m.exec((await baton.admin('/clusters')).body)?.[1]);
  const before = await ofHost();
  t.ok(before > 0);
  t.match(await post('/reset_counters'), { status: 200, body: 'OK\n' });
  t.equal(await baton.stat('http.main.downstream_rq_total'), 0);
  t.equal(await baton.stat('server.concurrency'), 2);
  t.equal(await ofHost(), before);
  await httpRequest(main, '/');
  await baton.waitForStat('http.main.downstream_rq_total', 1);
});

t.test('/stats/recentlookups always counts, and lists names while it is enabled', async (t) => {
  const recent = async () => (await baton.admin('/stats/recentlookups')).body;
  t.match(
    await recent(),
    /^Lookup tracking is not enabled\. Use \/stats\/recentlookups\/enable to enable\.\n\ntotal: \d+\n$/,
  );
  t.equal((await post('/stats/recentlookups/enable')).body, 'OK\n');
  t.equal((await post('/stats/recentlookups/clear')).body, 'OK\n');
  t.equal(await recent(), '   Count Lookup\n\ntotal: 0\n');
  t.equal((await post('/stats/recentlookups/disable')).body, 'OK\n');
  t.match(await recent(), /not enabled/);
});

t.test('/logging lists loggers and sets their levels, each time starting from the defaults', async (t) => {
  const { body } = await post('/logging');
  t.match(body, /^active loggers:\n {2}a2a: info\n {2}admin: info\n/);
  t.ok(body.endsWith('\n\n'));
  t.match(
    (await post('/logging?paths=http:debug,upstream:warn')).body,
    /\n {2}http: debug\n[\s\S]*\n {2}upstream: warning\n/,
  );
  t.match(
    (await post('/logging?dns=trace')).body,
    /\n {2}dns: trace\n[\s\S]*\n {2}http: info\n[\s\S]*\n {2}upstream: info\n/,
  );
  const refused = await post('/logging?level=loud');
  t.equal(refused.status, 400);
  t.match(
    refused.body,
    /^error: unknown logger level\n\nusage: .*\nusage: .*\nusage: .*\nusage: .*\nlevels: trace debug/,
  );
  t.match(refused.body, /\nactive loggers:\n[\s\S]*\n {2}dns: trace\n/, 'nothing has changed');
  t.match((await post('/logging?level=&paths=')).body, /\n {2}dns: trace\n/, 'an empty form changes nothing');
  t.match((await post('/logging?level=info')).body, /\n {2}dns: info\n/);
});

t.test('requests from pages of other sites are refused, all other clients may change state', async (t) => {
  const refused = { status: 403, body: /^A web page of another site \(http:\/\/evil\.example\) may not send POST/ };
  t.match(await post('/quitquitquit', { origin: 'http://evil.example' }), refused);
  t.match(await post('/quitquitquit', { origin: 'http://evil.example', 'sec-fetch-site': 'cross-site' }), refused);
  const own = { origin: `http://127.0.0.1:${baton.adminPort}` };
  t.match(await post('/reset_counters', own), { status: 200 });
  t.match(await post('/reset_counters', { 'sec-fetch-site': 'same-origin' }), { status: 200 });
  t.match(await baton.admin('/stats?usedonly', { headers: { origin: 'http://evil.example' } }), { status: 200 });
});

t.test('the client that changes something is logged, and every request is in the access log', async (t) => {
  await waitFor(() => /info\]\[admin\].* 127\.0\.0\.1:\d+ sent POST \/reset_counters: 200/.test(baton.stderr), {
    what: 'the line of the change',
  });
  t.match(baton.stderr, /sent POST \/quitquitquit: 403/);
  t.match(baton.stderr, /admin path "\/healthcheck\/fail" mutates state, method=GET rather than POST/);
  const line =
    /^\[20[^\]]*Z\] "GET \/config_dump\?include_eds HTTP\/1\.1" 200 - 0 \d{4,} \d+ - "[\da-f.:]+" "-" "-" "127\.0\.0\.1:\d+" "-"$/m;
  await waitFor(() => line.test(readFileSync(LOG, 'utf8')), { what: 'the line of the request' });
  await rawExchange(baton.adminPort, 'GET http://evil/ready?a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
  const ofWhole = /"GET \/ready\?a HTTP\/1\.1" 200 /;
  await waitFor(() => ofWhole.test(readFileSync(LOG, 'utf8')), { what: 'the path of a whole URL' });
});

t.test('requests to the admin interface are counted', async (t) => {
  const before = (await baton.stat('http.admin.downstream_rq_4xx'))!;
  await baton.admin('/nothing');
  t.equal(await baton.stat('http.admin.downstream_rq_4xx'), before + 1);
  t.equal(await baton.stat('listener.admin.http.admin.downstream_rq_4xx'), before + 1);
  t.equal(await baton.stat('http.admin.downstream_rq_active'), 1, 'this request');
  await baton.waitForStat('listener.admin.downstream_cx_active', 1);
  await baton.waitForStat('listener.admin.main_thread.downstream_cx_active', 1);
});

t.test('connections and requests over HTTP/2 are counted as HTTP/2', async (t) => {
  const counts = (connections: number, requests: number, active: number) =>
    baton.waitForStats({
      'http.admin.downstream_cx_http2_total': connections,
      'http.admin.downstream_cx_http2_active': active,
      'http.admin.downstream_rq_http2_total': requests,
      // The request for the stats itself.
      'http.admin.downstream_cx_http1_active': 1,
    });
  await counts(0, 0, 0);
  const client = connect(`http://127.0.0.1:${baton.adminPort}`);
  t.teardown(() => client.destroy());
  for (const path of ['/ready', '/nothing']) {
    const stream = client.request({ ':path': path });
    await once(stream.resume(), 'close');
  }
  await counts(1, 2, 1);
  client.close();
  await counts(1, 2, 0);
});

t.test('/quitquitquit ends the server with status 0 after its response', async (t) => {
  t.match(await post('/quitquitquit'), { status: 200, body: 'OK\n' });
  t.match(await baton.exited, { code: 0 });
});
