// The UDP proxy: sessions, routes, limits, stats and logs. The expected results are those of Envoy 1.40.

import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { ResourceFile } from '../dynamic/resource-file.js';
import { besideEnvoy, type ProxyProgram } from '../harness/envoy.js';
import {
  bootstrap,
  type Config,
  fileAccessLog,
  freePort,
  startBaton,
  staticCluster,
  type Teardown,
  tempDir,
  waitFor,
} from '../harness/index.js';
import { freeUdpPort, routeTo, startUdpEcho, UdpClient, udpListener, udpProxy } from './peers.js';

const NETWORK = 'type.googleapis.com/envoy.extensions.matching.common_inputs.network.v3';
const SESSION =
  '%UPSTREAM_HOST% %RESPONSE_FLAGS% %BYTES_RECEIVED% %BYTES_SENT% %ACCESS_LOG_TYPE% %DYNAMIC_METADATA(udp.proxy.session)%\n';
const PROXY = '%BYTES_RECEIVED% %BYTES_SENT% %ACCESS_LOG_TYPE% %STREAM_ID% %DYNAMIC_METADATA(udp.proxy.proxy)%\n';

async function start(t: Teardown, program: ProxyProgram, listeners: Config[], clusters: Config[], workers = 1) {
  const baton = await startBaton(t, {
    ...program,
    args: ['--concurrency', String(workers), '--file-flush-interval-msec', '20'],
    // Envoy needs them to read endpoints from files.
    config: { ...bootstrap({ listeners, clusters }), node: { id: 'test', cluster: 'test' } },
  });
  return { baton, connect: async (name: string) => UdpClient.connect(t, await baton.listenerPort(name)) };
}

besideEnvoy('each client has a session with its own socket to a host', async (t, program) => {
  const host = await startUdpEcho(t, 'a');
  const { baton, connect } = await start(
    t,
    program,
    [udpListener('u', [udpProxy('up')])],
    [staticCluster('up', host.port)],
    2,
  );
  const clients = await Promise.all([1, 2, 3].map(() => connect('u')));
  for (const [index, client] of clients.entries()) {
    t.equal(await client.ask(`${index}`), `a:${index}`);
    t.equal(await client.ask(''), 'a:');
  }
  t.equal(host.peers.size, 3);
  await baton.waitForStats({
    'udp.foo.downstream_sess_total': 3,
    'udp.foo.downstream_sess_active': 3,
    'udp.foo.downstream_sess_rx_datagrams': 6,
    'udp.foo.downstream_sess_rx_bytes': 3,
    'udp.foo.downstream_sess_tx_datagrams': 6,
    'udp.foo.downstream_sess_tx_bytes': 15,
    'udp.foo.downstream_sess_no_route': 0,
    'cluster.up.udp.sess_tx_datagrams': 6,
    'cluster.up.udp.sess_rx_datagrams': 6,
    'cluster.up.udp.sess_tx_errors': 0,
    'cluster.up.upstream_cx_tx_bytes_total': 3,
    'cluster.up.upstream_cx_rx_bytes_total': 15,
    'cluster.up.upstream_cx_total': 0,
    'listener.u.udp.downstream_rx_datagram_dropped': 0,
  });
  t.match(JSON.parse((await baton.admin('/listeners?format=json')).body), {
    listener_statuses: [{ name: 'u', local_address: { socket_address: { address: '127.0.0.1' } } }],
  });
});

besideEnvoy('routes, limits, sizes and timeouts are observed, and logged', async (t, program) => {
  const logs = tempDir(t);
  const host = await startUdpEcho(t, 'a');
  const other = await startUdpEcho(t, 'b');
  const logged = (name: string, more: Config = {}): Config => ({
    stat_prefix: name,
    access_log: [fileAccessLog(join(logs, name), SESSION)],
    proxy_access_log: [fileAccessLog(join(logs, `${name}-proxy`), PROXY)],
    ...more,
  });
  const matcher = {
    matcher_tree: {
      input: { name: 'port', typed_config: { '@type': `${NETWORK}.SourceIPInput` } },
      exact_match_map: { map: { '127.0.0.1': routeTo('one'), '1.2.3.4': routeTo('up') } },
    },
  };
  const nothing = { matcher_tree: { ...matcher.matcher_tree, exact_match_map: { map: { '1.2.3.4': routeTo('up') } } } };
  const { baton, connect } = await start(
    t,
    program,
    [
      udpListener('limited', [udpProxy('one', logged('limited', { matcher }))]),
      udpListener('lost', [udpProxy('none', logged('lost'))]),
      udpListener('unmatched', [udpProxy('up', logged('unmatched', { matcher: nothing }))]),
      udpListener('empty', [udpProxy('empty', logged('empty'))]),
      udpListener('idle', [
        udpProxy(
          'up',
          logged('idle', { idle_timeout: '0.2s', access_log_options: { access_log_flush_interval: '0.05s' } }),
        ),
      ]),
      udpListener('spread', [udpProxy('two', logged('spread', { use_per_packet_load_balancing: true }))]),
      udpListener('hashed', [udpProxy('hashed', logged('hashed', { hash_policies: [{ source_ip: true }] }))]),
      udpListener(
        'long',
        [udpProxy('up', logged('long', { upstream_socket_config: { max_rx_datagram_size: 9, prefer_gro: false } }))],
        {
          udp_listener_config: { downstream_socket_config: { max_rx_datagram_size: 8 } },
        },
      ),
    ],
    [
      staticCluster('up', host.port),
      staticCluster('empty', []),
      staticCluster('two', [host.port, other.port]),
      staticCluster('hashed', [host.port, other.port], { lb_policy: 'RING_HASH' }),
      staticCluster('one', host.port, { circuit_breakers: { thresholds: [{ max_connections: 1 }] } }),
    ],
  );
  const [first, second] = [await connect('limited'), await connect('limited')];
  t.equal(await first.ask('x'), 'a:x');
  second.send('y');
  await baton.waitForStats({ 'cluster.one.upstream_cx_overflow': 1, 'udp.limited.downstream_sess_total': 2 });
  t.equal(await first.ask('z'), 'a:z', 'known sessions continue');

  for (const name of ['lost', 'unmatched', 'empty']) (await connect(name)).send('x');
  await baton.waitForStats({
    'udp.lost.downstream_sess_no_route': 1,
    'udp.unmatched.downstream_sess_no_route': 1,
    'udp.empty.downstream_sess_no_route': 0,
    'udp.empty.downstream_sess_total': 0,
    'cluster.empty.upstream_cx_none_healthy': 1,
  });

  t.equal(await (await connect('idle')).ask('x'), 'a:x');
  await baton.waitForStats({ 'udp.idle.idle_timeout': 1, 'udp.idle.downstream_sess_active': 0 });

  const spread = await connect('spread');
  const answers = new Set<string>();
  for (let count = 0; count < 4; count++) answers.add(await spread.ask('x'));
  t.strictSame([...answers].sort(), ['a:x', 'b:x']);
  await baton.waitForStats({ 'udp.spread.downstream_sess_total': 2 });

  const hashed = new Set<string>();
  for (let count = 0; count < 4; count++) hashed.add(await (await connect('hashed')).ask('x'));
  t.equal(hashed.size, 1, 'clients of one address get one host');

  const long = await connect('long');
  long.send('123456789');
  await baton.waitForStats({ 'listener.long.udp.downstream_rx_datagram_dropped': 1 });
  t.equal(await long.ask('1234567'), 'a:1234567');
  long.send('12345678');
  await baton.waitForStats({ 'cluster.up.udp.sess_rx_datagrams_dropped': 1 });

  await baton.admin('/quitquitquit', { method: 'POST' });
  await baton.exited;
  const linesOf = (name: string) =>
    readFileSync(join(logs, name), 'utf8').replaceAll(`127.0.0.1:${host.port}`, 'HOST').split('\n').slice(0, -1);
  t.strictSame(linesOf('limited').sort(), [
    '- UO 0 0 UdpSessionEnd {"bytes_received":0,"bytes_sent":0,"cluster_name":"one","datagrams_received":0,"datagrams_sent":0,"errors_sent":0}',
    'HOST - 2 6 UdpSessionEnd {"bytes_received":2,"bytes_sent":6,"cluster_name":"one","datagrams_received":2,"datagrams_sent":2,"errors_sent":0}',
  ]);
  t.strictSame(linesOf('limited-proxy'), [
    '3 6 NotSet - {"bytes_received":2,"bytes_sent":6,"datagrams_received":2,"datagrams_sent":2,"errors_received":0,"errors_sent":0,"idle_timeout":0,"no_route":0,"session_total":2}',
  ]);
  t.strictSame(linesOf('lost-proxy'), [
    '1 0 NotSet - {"bytes_received":0,"bytes_sent":0,"datagrams_received":0,"datagrams_sent":0,"errors_received":0,"errors_sent":0,"idle_timeout":0,"no_route":1,"session_total":0}',
  ]);
  const idle = linesOf('idle').map((line) => line.split(' ')[4]);
  t.equal(idle.at(-1), 'UdpSessionEnd');
  t.ok(idle.length > 1 && idle.slice(0, -1).every((type) => type === 'UdpPeriodic'));
});

besideEnvoy('a refusal of the host is counted, and the session continues', async (t, program) => {
  const gone = await freeUdpPort();
  const { baton, connect } = await start(t, program, [udpListener('u', [udpProxy('up')])], [staticCluster('up', gone)]);
  const client = await connect('u');
  client.send('x');
  await baton.waitForStats({ 'cluster.up.udp.sess_rx_errors': 1 });
  client.send('y');
  await baton.waitForStats({ 'cluster.up.udp.sess_rx_errors': 2, 'udp.foo.downstream_sess_total': 1 });
});

besideEnvoy('answers come from the address that the client has sent to', async (t, program) => {
  const host = await startUdpEcho(t, 'a');
  const { baton } = await start(
    t,
    program,
    [udpListener('u', [udpProxy('up')], {}, '0.0.0.0')],
    [staticCluster('up', host.port)],
  );
  const port = await baton.listenerPort('u');
  // Connected sockets get datagrams of their peer's address only.
  for (const address of ['127.0.0.7', '127.0.0.8']) {
    const client = await UdpClient.connect(t, port, address);
    t.equal(await client.ask('x'), 'a:x');
  }
});

const ASSIGNMENT = 'envoy.config.endpoint.v3.ClusterLoadAssignment';

/** Returns a cluster whose hosts are in a file, and a function that sets them. */
function discovered(t: Teardown, ...ports: number[]): { cluster: Config; set: (...ports: number[]) => void } {
  const file = new ResourceFile(tempDir(t), 'eds');
  const set = (...hosts: number[]) =>
    void file.write(ASSIGNMENT, staticCluster('up', hosts)['load_assignment'] as Config);
  set(...ports);
  return { cluster: { name: 'up', type: 'EDS', eds_cluster_config: { eds_config: file.source } }, set };
}

besideEnvoy('a client whose host is removed gets another one', async (t, program) => {
  const [one, two] = [await startUdpEcho(t, 'a'), await startUdpEcho(t, 'b')];
  const { cluster, set } = discovered(t, one.port);
  const { baton, connect } = await start(t, program, [udpListener('u', [udpProxy('up')])], [cluster]);
  const client = await connect('u');
  t.equal(await client.ask('1'), 'a:1');
  set(two.port);
  await baton.waitForStats({
    'cluster.up.membership_change': 2,
    // Envoy does not let the host answer what it has been asked.
    'udp.foo.downstream_sess_active': program.command === undefined ? 1 : 0,
  });
  t.equal(await client.ask('2'), 'b:2');
  set(two.port, one.port);
  await baton.waitForStats({ 'cluster.up.membership_change': 3 });
  t.equal(await client.ask('3'), 'b:3', 'other changes of the hosts do not matter');
  await baton.waitForStats({ 'udp.foo.downstream_sess_total': 2, 'udp.foo.downstream_sess_active': 1 });
});

t.test('the session of a removed host ends, also while the host goes on to send', async (t) => {
  const host = createSocket('udp4');
  const timers: NodeJS.Timeout[] = [];
  host.on('message', (_, { address, port }) => {
    timers.push(setInterval(() => host.send('more', port, address), 10));
  });
  host.on('error', () => {});
  host.bind(0, '127.0.0.1');
  await once(host, 'listening');
  t.teardown(() => {
    for (const timer of timers) clearInterval(timer);
    host.close();
  });
  const { cluster, set } = discovered(t, host.address().port);
  const filter = udpProxy('up', { idle_timeout: '0.3s' });
  const { baton, connect } = await start(t, { command: undefined }, [udpListener('u', [filter])], [cluster]);
  const client = await connect('u');
  await client.ask('x');
  // More than the idle time.
  await waitFor(() => client.received.length > 60);
  await baton.waitForStats({ 'udp.foo.idle_timeout': 0, 'udp.foo.downstream_sess_active': 1 });
  set();
  await baton.waitForStats({ 'udp.foo.idle_timeout': 1, 'udp.foo.downstream_sess_active': 0 });
});

besideEnvoy('the hosts of an aggregate are used', async (t, program) => {
  const host = await startUdpEcho(t, 'a');
  const aggregate = {
    name: 'all',
    lb_policy: 'CLUSTER_PROVIDED',
    connect_timeout: '2s',
    cluster_type: {
      name: 'envoy.clusters.aggregate',
      typed_config: {
        '@type': 'type.googleapis.com/envoy.extensions.clusters.aggregate.v3.ClusterConfig',
        clusters: ['none', 'up'],
      },
    },
  };
  const { baton, connect } = await start(
    t,
    program,
    [udpListener('u', [udpProxy('all')])],
    [staticCluster('none', []), staticCluster('up', host.port), aggregate],
  );
  const client = await connect('u');
  t.equal(await client.ask('1'), 'a:1');
  t.equal(await client.ask('2'), 'a:2');
  await baton.waitForStats({
    'udp.foo.downstream_sess_total': 1,
    'cluster.all.udp.sess_tx_datagrams': 2,
    'cluster.all.upstream_cx_rx_bytes_total': 6,
  });
});

t.test('configurations that cannot work are refused', async (t) => {
  const proxyType = 'type.googleapis.com/envoy.extensions.filters.udp.udp_proxy.v3.UdpProxyConfig';
  const route = udpProxy('up');
  const input = (name: string) => ({
    matcher: {
      matcher_tree: {
        input: { name: 'i', typed_config: { '@type': `${NETWORK}.${name}` } },
        exact_match_map: { map: { x: routeTo('up') } },
      },
    },
  });
  const inspector = {
    name: 'tls',
    typed_config: { '@type': 'type.googleapis.com/envoy.extensions.filters.listener.tls_inspector.v3.TlsInspector' },
  };
  const cases: [Config, RegExp][] = [
    [
      udpListener('u', [route], { filter_chains: [{ filters: [] }] }),
      /1 filter chain\(s\) specified for connection-less UDP listener/,
    ],
    [udpListener('u', [inspector]), /Didn't find a registered implementation for 'tls'/],
    [udpListener('u', [udpProxy('up', input('ServerNameInput'))]), /ServerNameInput' is not an input of datagrams/],
    [udpListener('u', [route], { udp_listener_config: { quic_options: {} } }), /the OpenSSL of Node has no QUIC/],
    [
      udpListener('u', [
        udpProxy('up', { tunneling_config: { proxy_host: 'a', target_host: 'b', default_target_port: 1 } }),
      ]),
      /datagrams are not tunneled/,
    ],
    [
      {
        ...udpListener('u', [{ name: 'x', typed_config: { '@type': proxyType, stat_prefix: 'a', cluster: 'up' } }]),
        address: { socket_address: { address: '127.0.0.1', port_value: 0 } },
        filter_chains: [{}],
      },
      /'envoy.filters.udp_listener.udp_proxy' is not a filter of TCP listeners/,
    ],
  ];
  for (const [listener, expected] of cases) {
    const config = bootstrap({ listeners: [listener], clusters: [staticCluster('up', 1)] });
    const baton = await startBaton(t, { config, args: ['--mode', 'validate'], wait: 'spawned' });
    t.match(await baton.exited, { code: 1 });
    t.match(baton.stderr, expected);
  }
  const shared = udpListener('u', [route], { enable_reuse_port: false });
  const config = bootstrap({ listeners: [shared], clusters: [staticCluster('up', 1)] });
  const baton = await startBaton(t, { config, args: ['--concurrency', '2'], wait: 'spawned' });
  t.match(await baton.exited, { code: 1 });
  t.match(baton.stderr, /Listening on UDP when concurrency is > 1 without the SO_REUSEPORT socket option/);
});

t.test('TCP and UDP listeners share a port, and updates of a UDP listener lose no datagrams', async (t) => {
  const host = await startUdpEcho(t, 'a');
  const file = new ResourceFile(tempDir(t), 'lds');
  const LISTENER = 'envoy.config.listener.v3.Listener';
  const port = await freePort();
  const at = (listener: Config, protocol: string): Config => ({
    ...listener,
    address: { socket_address: { address: '127.0.0.1', port_value: port, protocol } },
  });
  const udp = (prefix: string) => at(udpListener('u', [udpProxy('up', { stat_prefix: prefix })]), 'UDP');
  const echo = {
    name: 'echo',
    typed_config: { '@type': 'type.googleapis.com/envoy.extensions.filters.network.echo.v3.Echo' },
  };
  const tcp = at({ name: 't', filter_chains: [{ filters: [echo] }] }, 'TCP');
  file.write(LISTENER, udp('one'), tcp);
  const baton = await startBaton(t, {
    config: {
      ...bootstrap({ listeners: [], clusters: [staticCluster('up', host.port)] }),
      dynamic_resources: { lds_config: file.source },
    },
    args: ['--concurrency', '2'],
  });
  const client = await UdpClient.connect(t, port);
  t.equal(await client.ask('1'), 'a:1');
  file.write(LISTENER, udp('two'), tcp);
  let asked = 1;
  await waitFor(
    async () => {
      t.equal(await client.ask(`${++asked}`), `a:${asked}`);
      const { body } = await baton.admin('/stats?filter=udp.two.downstream_sess_total');
      return body.includes(': 1');
    },
    { what: 'the new version' },
  );
  await baton.waitForStats({ 'listener_manager.total_listeners_active': 2 });
});
