// The overload manager's actions and load shed points: each has a resource of its own, whose pressure a file injects. The expected results
// are those of Envoy 1.40.

import { renameSync, writeFileSync } from 'node:fs';
import { connect as connectHttp2 } from 'node:http2';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { besideEnvoy, type ProxyProgram } from '../harness/envoy.js';
import {
  type BatonProcess,
  bootstrap,
  type Config,
  connectRaw,
  fileAccessLog,
  httpListener,
  logLines,
  rawExchange,
  startBaton,
  startUpstream,
  staticCluster,
  tcpListener,
  tempDir,
  waitFor,
} from '../harness/index.js';
import { answering, managerOf } from '../http/proxy.js';

const ACTIONS = [
  'stop_accepting_requests',
  'disable_http_keepalive',
  'stop_accepting_connections',
  'reject_incoming_connections',
  'shrink_heap',
  'reduce_timeouts',
];
const POINTS = [
  'tcp_listener_accept',
  'http_connection_manager_decode_headers',
  'hcm_ondata_creating_codec',
  'http1_server_abort_dispatch',
  'http2_server_go_away_on_dispatch',
  'http2_server_go_away_and_close_on_dispatch',
  'http_downstream_filter_check',
  'connection_pool_new_connection',
  'tcp_proxy_on_data',
  'tcp_proxy_upstream_connect',
];
const TIMERS = ['HTTP_DOWNSTREAM_CONNECTION_IDLE', 'HTTP_DOWNSTREAM_STREAM_IDLE', 'HTTP_DOWNSTREAM_CONNECTION_MAX'];
const GET = (path: string) => `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`;

interface Rig {
  readonly baton: BatonProcess;
  readonly ports: { readonly http: number; readonly bypassing: number; readonly tcp: number };
  readonly log: string;
  readonly tcpLog: string;
  /** Sets the pressure of an action's or load shed point's own resource. */
  set(name: string, pressure: number | string): Promise<void>;
  /** Sends a request on a new connection. Returns everything that arrives until `until` or the end. */
  get(path: string, port?: number): Promise<string>;
}

async function start(t: Test, program: ProxyProgram): Promise<Rig> {
  const dir = tempDir(t);
  const file = (name: string) => join(dir, name);
  const write = (name: string, text: string) => {
    writeFileSync(file('next'), text);
    renameSync(file('next'), file(name));
  };
  for (const name of [...ACTIONS, ...POINTS]) write(name, '0');
  const injected = '@type';
  const monitors = [...ACTIONS, ...POINTS].map((name) => ({
    name: `r.${name}`,
    typed_config: {
      [injected]: 'type.googleapis.com/envoy.extensions.resource_monitors.injected_resource.v3.InjectedResourceConfig',
      filename: file(name),
    },
  }));
  const triggers = (name: string) => [
    { name: `r.${name}`, scaled: { scaling_threshold: 0.2, saturation_threshold: 0.6 } },
  ];
  const configs: Record<string, Config> = {
    reduce_timeouts: {
      '@type': 'type.googleapis.com/envoy.config.overload.v3.ScaleTimersOverloadActionConfig',
      timer_scale_factors: [
        ...TIMERS.map((timer) => ({ timer, min_timeout: '0.05s' })),
        { timer: 'TRANSPORT_SOCKET_CONNECT', min_scale: { value: 10 } },
      ],
    },
    shrink_heap: {
      '@type': 'type.googleapis.com/envoy.config.overload.v3.ShrinkHeapConfig',
      timer_interval: '1s',
    },
  };
  const upstream = await startUpstream(t, (request, response) => {
    if (request.url !== '/up/slow') response.end('hi');
  });
  const manager = {
    ...managerOf([
      { match: { prefix: '/up' }, route: { cluster: 'host' } },
      { match: { prefix: '/new' }, route: { cluster: 'new' } },
      answering({ prefix: '/' }, 'ok'),
    ]),
    access_log: [fileAccessLog(file('log'), '%RESPONSE_CODE% %RESPONSE_FLAGS% %RESPONSE_CODE_DETAILS%\n')],
  };
  const baton = await startBaton(t, {
    ...program,
    args: ['--concurrency', '1', '--file-flush-interval-msec', '50'],
    config: bootstrap({
      listeners: [
        httpListener('http', 0, manager),
        { ...httpListener('bypassing', 0, manager), bypass_overload_manager: true },
        tcpListener('tcp', 0, {
          cluster: 'host',
          access_log: [
            fileAccessLog(
              file('tcp.log'),
              '%RESPONSE_FLAGS% %CONNECTION_TERMINATION_DETAILS% %DOWNSTREAM_LOCAL_CLOSE_REASON% %BYTES_RECEIVED%\n',
            ),
          ],
        }),
      ],
      clusters: [staticCluster('host', upstream.port), staticCluster('new', upstream.port)],
      extra: {
        overload_manager: {
          refresh_interval: '0.02s',
          resource_monitors: monitors,
          actions: ACTIONS.map((name) => ({
            name: `envoy.overload_actions.${name}`,
            triggers: triggers(name),
            ...(configs[name] && { typed_config: configs[name] }),
          })),
          loadshed_points: POINTS.map((name) => ({
            name: `envoy.load_shed_points.${name}`,
            triggers: triggers(name),
          })),
        },
      },
    }),
  });
  const ports = {
    http: await baton.listenerPort('http'),
    bypassing: await baton.listenerPort('bypassing'),
    tcp: await baton.listenerPort('tcp'),
  };
  return {
    baton,
    ports,
    log: file('log'),
    tcpLog: file('tcp.log'),
    async set(name, pressure) {
      write(name, String(pressure));
      if (typeof pressure === 'number') await baton.waitForStat(`overload.r.${name}.pressure`, pressure * 100);
    },
    async get(path, port = ports.http) {
      const { text } = await rawExchange(port, GET(path), { until: /\r\n\r\n[\s\S]+$/ }).catch((error: Error) => ({
        text: error.message,
      }));
      return text;
    },
  };
}

/** Runs `act` until its result matches. */
async function expectText(act: () => Promise<string>, pattern: RegExp): Promise<string> {
  let text = '';
  await waitFor(async () => pattern.test((text = await act())), { what: `${pattern}` }).catch((error) => {
    throw new Error(`${error}, but: ${text}`);
  });
  return text;
}

const SERVED = /^HTTP\/1\.1 200 /;
const OVERLOADED = /^HTTP\/1\.1 503 [\s\S]*\r\n\r\nenvoy overloaded$/;
const CLOSED = /^$|reset|ECONNRESET|closed/i;

besideEnvoy('the overload manager', async (t, program) => {
  const { baton, get, log, ports, set, tcpLog } = await start(t, program);
  const stat = async (name: string) => (await baton.stat(name)) ?? Number.NaN;
  const action = (name: string, kind: string) => stat(`overload.envoy.overload_actions.${name}.${kind}`);
  /** Expects that the bytes of a refused request are counted. */
  const expectCounted = async () => {
    const received = 'http.http.downstream_cx_rx_bytes_total';
    const before = await stat(received);
    await get('/');
    await baton.waitForStat(received, before + GET('/').length);
  };
  const shed = (name: string) => stat(`overload.envoy.load_shed_points.${name}.shed_load_count`);

  await t.test('all stats exist, and nothing is refused without pressure', async (t) => {
    for (const name of ACTIONS)
      t.strictSame([await action(name, 'active'), await action(name, 'scale_percent')], [0, 0]);
    for (const name of POINTS) t.equal(await shed(name), 0);
    t.equal(await action('shrink_heap', 'shrink_count'), 0);
    t.match(await get('/'), SERVED);
    t.match(await get('/up'), SERVED);
  });

  await t.test('scaled triggers, and values that are not pressures', async (t) => {
    await set('stop_accepting_requests', 0.4);
    t.strictSame(
      [await action('stop_accepting_requests', 'active'), await action('stop_accepting_requests', 'scale_percent')],
      [0, 50],
    );
    await set('stop_accepting_requests', '2');
    await waitFor(async () => (await stat('overload.r.stop_accepting_requests.failed_updates')) > 0);
    t.equal(await action('stop_accepting_requests', 'scale_percent'), 50, 'the last pressure counts');
    await set('stop_accepting_requests', 0);
  });

  await t.test('stop_accepting_requests', async (t) => {
    await set('stop_accepting_requests', 0.7);
    await expectText(() => get('/'), OVERLOADED);
    t.match(await get('/', ports.bypassing), SERVED);
    t.equal(await action('stop_accepting_requests', 'active'), 1);
    t.ok((await stat('http.http.downstream_rq_overload_close')) > 0);
    await waitFor(() => logLines(log).includes('503 - overload'));
    await set('stop_accepting_requests', 0);
    await expectText(() => get('/'), SERVED);
  });

  await t.test('disable_http_keepalive', async (t) => {
    await set('disable_http_keepalive', 0.7);
    await expectText(() => get('/'), /^HTTP\/1\.1 200 [\s\S]*\r\nconnection: close\r\n/);
    t.notMatch(await get('/', ports.bypassing), /connection: close/);
    t.ok((await stat('http.http.downstream_cx_overload_disable_keepalive')) > 0);
    await set('disable_http_keepalive', 0);
    await waitFor(async () => !/connection: close/.test(await get('/')));
  });

  await t.test('reject_incoming_connections', async (t) => {
    await set('reject_incoming_connections', 0.7);
    await expectText(() => get('/'), CLOSED);
    t.match(await get('/', ports.bypassing), SERVED);
    t.ok((await stat('listener.http.downstream_cx_overload_reject')) > 0);
    await set('reject_incoming_connections', 0);
    await expectText(() => get('/'), SERVED);
  });

  await t.test('stop_accepting_connections: they wait', async (t) => {
    const before = await connectRaw(t, ports.http);
    before.write(GET('/'));
    await before.readUntil('ok');
    await set('stop_accepting_connections', 0.7);
    await baton.waitForStat('overload.envoy.overload_actions.stop_accepting_connections.active', 1);
    before.write(GET('/'));
    t.match(await before.readUntil('ok'), SERVED, 'open connections go on');
    // A connection that is accepted while the state is on its way is served.
    const waiting = await waitFor(async () => {
      const connection = await connectRaw(t, ports.http);
      connection.write(GET('/'));
      t.match(await get('/', ports.bypassing), SERVED);
      return connection.received === '' && connection;
    });
    await set('stop_accepting_connections', 0);
    t.match(await (waiting as Awaited<ReturnType<typeof connectRaw>>).readUntil('ok'), SERVED);
  });

  await t.test('shrink_heap', async () => {
    await set('shrink_heap', 0.7);
    await baton.waitForStat('overload.envoy.overload_actions.shrink_heap.shrink_count', 1);
    await set('shrink_heap', 0);
    await expectText(() => get('/'), SERVED);
  });

  await t.test('reduce_timeouts ends connections that are idle already', async (t) => {
    const idle = await connectRaw(t, ports.http);
    idle.write(GET('/'));
    await idle.readUntil('ok');
    const unused = await connectRaw(t, ports.http);
    await baton.waitForStat('http.http.downstream_cx_active', 2);
    await set('reduce_timeouts', 0.7);
    await unused.readToEnd();
    await baton.waitForStat('http.http.downstream_cx_idle_timeout', 2);
    await set('reduce_timeouts', 0);
    idle.destroy();
    await expectText(() => get('/'), SERVED);
    const slow = await connectRaw(t, ports.http);
    slow.write(GET('/up/slow'));
    await baton.waitForStat('http.http.downstream_rq_active', 1);
    const incomplete = await connectRaw(t, ports.http);
    incomplete.write('GET / HTTP/1.1\r\n');
    await baton.waitForStat('http.http.downstream_cx_http1_active', 2);
    await set('reduce_timeouts', 0.7);
    t.match(await slow.readUntil('stream timeout'), /^HTTP\/1\.1 504 /);
    t.match(await incomplete.readUntil('timeout'), /^HTTP\/1\.1 408 /);
    await set('reduce_timeouts', 0);
    await expectText(() => get('/'), SERVED);
  });

  await t.test('tcp_listener_accept', async (t) => {
    await set('tcp_listener_accept', 0.7);
    await expectText(() => get('/'), CLOSED);
    t.match(await get('/', ports.bypassing), SERVED);
    t.ok((await shed('tcp_listener_accept')) > 0);
    await set('tcp_listener_accept', 0);
    await expectText(() => get('/'), SERVED);
  });

  await t.test('http_connection_manager_decode_headers', async (t) => {
    await set('http_connection_manager_decode_headers', 0.7);
    await expectText(() => get('/up'), OVERLOADED);
    t.match(await get('/up', ports.bypassing), SERVED);
    t.ok((await shed('http_connection_manager_decode_headers')) > 0);
    await set('http_connection_manager_decode_headers', 0);
    await expectText(() => get('/'), SERVED);
  });

  await t.test('hcm_ondata_creating_codec', async (t) => {
    const before = await connectRaw(t, ports.http);
    before.write(GET('/'));
    await before.readUntil('ok');
    await set('hcm_ondata_creating_codec', 0.7);
    await expectText(() => get('/'), CLOSED);
    before.write(GET('/'));
    t.match(await before.readUntil('ok'), SERVED);
    t.match(await get('/', ports.bypassing), SERVED);
    t.ok((await shed('hcm_ondata_creating_codec')) > 0);
    await expectCounted();
    await set('hcm_ondata_creating_codec', 0);
    await expectText(() => get('/'), SERVED);
  });

  await t.test('http1_server_abort_dispatch', async (t) => {
    await set('http1_server_abort_dispatch', 0.7);
    const text = await expectText(() => get('/'), /^HTTP\/1\.1 500 [\s\S]*\r\n\r\nInternal Server Error$/);
    t.match(text, /connection: close/);
    t.match(await get('/', ports.bypassing), SERVED);
    await waitFor(() => logLines(log).includes('500 DPE overload'));
    const errors = await stat('http.http.downstream_cx_protocol_error');
    t.equal(errors, 0);
    t.ok((await shed('http1_server_abort_dispatch')) > 0);
    await expectCounted();
    await set('http1_server_abort_dispatch', 0);
    await expectText(() => get('/'), SERVED);
  });

  await t.test('http2_server_go_away_on_dispatch', async (t) => {
    await set('http2_server_go_away_on_dispatch', 0.7);
    await expectText(() => get('/'), /^HTTP\/1\.1 200 [\s\S]*\r\nconnection: close\r\n/);
    const session = connectHttp2(`http://127.0.0.1:${ports.http}`);
    t.teardown(() => session.destroy());
    let hasEnded = false;
    session.on('goaway', () => (hasEnded = true)).on('error', () => {});
    const status = await new Promise<unknown>((resolve) =>
      session.request({ ':path': '/' }).on('response', (head) => resolve(head[':status'])),
    );
    t.equal(status, 200);
    await waitFor(() => hasEnded);
    await set('http2_server_go_away_on_dispatch', 0);
    await waitFor(async () => !/connection: close/.test(await get('/')));
  });

  await t.test('http2_server_go_away_and_close_on_dispatch', async (t) => {
    await set('http2_server_go_away_and_close_on_dispatch', 0.7);
    await expectText(() => get('/'), CLOSED);
    t.match(await get('/', ports.bypassing), SERVED);
    t.ok((await shed('http2_server_go_away_and_close_on_dispatch')) > 0);
    const session = connectHttp2(`http://127.0.0.1:${ports.http}`).on('error', () => {});
    t.teardown(() => session.destroy());
    session.request({ ':path': '/' }).on('error', () => {});
    await new Promise((resolve) => session.on('close', resolve));
    await set('http2_server_go_away_and_close_on_dispatch', 0);
    await expectText(() => get('/'), SERVED);
  });

  await t.test('http_downstream_filter_check', async (t) => {
    await set('http_downstream_filter_check', 0.7);
    await expectText(() => get('/up'), OVERLOADED);
    t.match(await get('/'), SERVED, 'direct responses are not refused');
    t.ok((await stat('http.http.rq_overload_local_reply')) > 0);
    await set('http_downstream_filter_check', 0);
    await expectText(() => get('/up'), SERVED);
  });

  await t.test('tcp_proxy_upstream_connect and tcp_proxy_on_data', async (t) => {
    for (const name of ['tcp_proxy_upstream_connect', 'tcp_proxy_on_data']) {
      await expectText(() => get('/', ports.tcp), SERVED);
      const before = await stat('tcp.tcp.downstream_cx_overload_close');
      await set(name, 0.7);
      await expectText(() => get('/', ports.tcp), CLOSED);
      t.ok((await stat('tcp.tcp.downstream_cx_overload_close')) > before);
      t.ok((await shed(name)) > 0);
      const received = name === 'tcp_proxy_on_data' ? GET('/').length : 0;
      await waitFor(() => logLines(tcpLog).includes(`OM - overload_manager_close ${received}`));
      await set(name, 0);
    }
    await expectText(() => get('/', ports.tcp), SERVED);
  });

  // Last: it ends the connections to the host.
  await t.test('connection_pool_new_connection', async (t) => {
    await set('connection_pool_new_connection', 0.7);
    await expectText(() => get('/', ports.tcp), CLOSED);
    t.ok((await shed('connection_pool_new_connection')) > 0);
    await waitFor(() => logLines(tcpLog).includes('URX - tcp_initializion_failure:0 0'));
    t.ok((await stat('cluster.host.upstream_cx_connect_attempts_exceeded')) > 0);
    const text = await get('/new');
    t.match(text, /^HTTP\/1\.1 503 [\s\S]*\r\nx-envoy-overloaded: true\r\n[\s\S]*reset reason: overflow$/);
    await waitFor(() => logLines(log).includes('503 UO upstream_reset_before_response_started{overflow}'));
    await baton.waitForStats({
      'cluster.new.upstream_cx_total': 0,
      'cluster.new.upstream_cx_overflow': 0,
      'cluster.new.upstream_rq_cancelled': 1,
      'cluster.new.upstream_rq_pending_active': 0,
      'cluster.new.upstream_rq_pending_overflow': 0,
      'cluster.new.upstream_rq_pending_total': 1,
    });
    await set('connection_pool_new_connection', 0);
    await expectText(() => get('/', ports.tcp), SERVED);
  });
});

t.test('mistakes are reported with their places', async (t) => {
  const type = (name: string) => ({ '@type': `type.googleapis.com/${name}` });
  const monitors = 'envoy.extensions.resource_monitors';
  const once = [{ name: 'heap', threshold: { value: 1 } }];
  const action = (name: string, more: Config = {}) => ({
    name: `envoy.overload_actions.${name}`,
    triggers: once,
    ...more,
  });
  const scale = 'envoy.config.overload.v3.ScaleTimersOverloadActionConfig';
  const baton = await startBaton(t, {
    args: ['--mode', 'validate'],
    wait: 'spawned',
    config: bootstrap({
      listeners: [],
      clusters: [],
      extra: {
        overload_manager: {
          resource_monitors: [
            { name: 'heap', typed_config: type(`${monitors}.fixed_heap.v3.FixedHeapConfig`) },
            {
              name: 'file',
              typed_config: {
                ...type(`${monitors}.injected_resource.v3.InjectedResourceConfig`),
                filename: '/nonexistent',
              },
            },
          ],
          actions: [
            action('reset_high_memory_stream'),
            action('reduce_timeouts', { triggers: [...once, ...once] }),
            action('stop_accepting_requests', {
              triggers: [{ name: 'heap', scaled: { scaling_threshold: 0.5, saturation_threshold: 0.5 } }],
              typed_config: type('envoy.config.overload.v3.ShrinkHeapConfig'),
            }),
            action('shrink_heap', {
              typed_config: { ...type('envoy.config.overload.v3.ShrinkHeapConfig'), max_unfreed_memory_bytes: 1 },
            }),
            {
              ...action('reduce_timeouts'),
              typed_config: {
                ...type(scale),
                timer_scale_factors: [{ timer: 'HTTP_DOWNSTREAM_STREAM_FLUSH', min_timeout: '1s' }],
              },
            },
          ],
        },
      },
    }),
  });
  t.match(await baton.exited, { code: 1 });
  for (const problem of [
    'resource_monitors[0].typed_config: the maximum heap size must be above 0',
    "resource_monitors[1].typed_config.filename: '/nonexistent' does not exist",
    "actions[0].name: the action 'envoy.overload_actions.reset_high_memory_stream' is not implemented: ",
    "actions[1]: overload action 'envoy.overload_actions.reduce_timeouts' requires typed_config",
    "actions[1].triggers[1].name: duplicate trigger resource 'heap'",
    "actions[2].typed_config: the overload action 'envoy.overload_actions.stop_accepting_requests' conflicts with its typed_config",
    'actions[2].triggers[0].scaled: scaling_threshold must be less than saturation_threshold',
    "actions[3].typed_config.max_unfreed_memory_bytes: field 'max_unfreed_memory_bytes' of envoy.config.overload.v3.ShrinkHeapConfig is not implemented",
    "actions[4].typed_config.timer_scale_factors[0].timer: 'HTTP_DOWNSTREAM_STREAM_FLUSH'",
    "actions[4].name: duplicate overload action 'envoy.overload_actions.reduce_timeouts'",
  ])
    t.ok(baton.stderr.includes(problem), `${problem} in ${baton.stderr}`);
});
