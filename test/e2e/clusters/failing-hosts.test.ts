// Hosts that fail their checks and the connections to them; TCP checks.

import t from 'tap';
import {
  bootstrap,
  type Config,
  connectRaw,
  freePort,
  startBaton,
  startTcpUpstream,
  tcpListener,
  waitFor,
} from '../harness/index.js';
import { answers, CheckedUpstream, checked, flags, http, startWith } from './checked-upstream.js';

t.test('without enough healthy hosts requests go to all hosts', async (t) => {
  const [a, b] = await Promise.all([CheckedUpstream.start(t, 'a'), CheckedUpstream.start(t, 'b')]);
  for (const host of [a, b]) host.answer = { status: 500 };
  const baton = await startWith(t, checked('api', [a.port, b.port], http(), { common_lb_config: {} }));
  t.same(await answers(baton), ['a', 'b']);
  t.ok((await baton.stat('cluster.api.lb_healthy_panic'))! > 0);
});

t.test('a TCP check connects, or looks for a response', async (t) => {
  let isWell = true;
  const asked: string[] = [];
  const redis = await startTcpUpstream(t, (socket) => {
    socket.on('data', (data) => {
      asked.push(String(data));
      socket.write(isWell ? '+PO' : '-ERR');
      setImmediate(() => isWell && socket.write('NG\r\n'));
    });
  });
  const open = await startTcpUpstream(t, (socket) => socket.on('end', () => socket.end()));
  const closed = await freePort();
  const hex = (text: string) => ({ text: Buffer.from(text).toString('hex') });
  const check = { tcp_health_check: { send: hex('PING\r\n'), receive: [hex('+P'), hex('NG')] }, timeout: '0.5s' };
  const baton = await startBaton(t, {
    config: bootstrap({
      listeners: [],
      clusters: [checked('redis', [redis.port], check), checked('tcp', [open.port, closed], { tcp_health_check: {} })],
    }),
  });
  t.same(await flags(baton, 'tcp'), { [open.port]: 'healthy', [closed]: '/failed_active_hc' });
  t.same(await flags(baton, 'redis'), { [redis.port]: 'healthy' });
  await waitFor(() => asked.length > 3);
  t.equal(asked[0], 'PING\r\n');
  t.equal(redis.accepted(), 1, 'one connection serves all checks');
  isWell = false;
  await baton.waitForStat('cluster.redis.health_check.healthy', 0);
  isWell = true;
  await baton.waitForStat('cluster.redis.health_check.healthy', 1);
  await waitFor(() => open.sockets.size <= 1);
});

t.test('an endpoint may be checked on another port, with another name, or not at all', async (t) => {
  const [a, b] = await Promise.all([CheckedUpstream.start(t, 'a'), CheckedUpstream.start(t, 'b')]);
  const endpoint = (port: number, health_check_config: Config) => ({
    endpoint: { address: { socket_address: { address: '127.0.0.1', port_value: port } }, health_check_config },
  });
  const closed = await freePort();
  const lb_endpoints = [
    endpoint(closed, { port_value: a.port, hostname: 'a.test' }),
    endpoint(b.port, { disable_active_health_check: true }),
  ];
  const load_assignment = { cluster_name: 'api', endpoints: [{ lb_endpoints }] };
  const baton = await startWith(t, checked('api', [], http(), { load_assignment }));
  t.same(await flags(baton), { [closed]: 'healthy', [b.port]: 'healthy' });
  t.equal(a.checks[0]!.headers.host, 'a.test');
  t.equal(b.checks.length, 0);
});

t.test('a response with x-envoy-immediate-health-check-fail takes its host out at once', async (t) => {
  const [a, b] = await Promise.all([CheckedUpstream.start(t, 'a'), CheckedUpstream.start(t, 'b')]);
  const check = { ...http(), interval: '1000s', no_traffic_interval: '1000s' };
  const baton = await startWith(t, checked('api', [a.port, b.port], check));
  b.headers = { 'x-envoy-immediate-health-check-fail': 'true' };
  t.same(await answers(baton), ['a', 'b']);
  await waitFor(async () => (await answers(baton)).length === 1);
  t.same(await flags(baton), { [a.port]: 'healthy', [b.port]: '/failed_active_hc/excluded_via_immediate_hc_fail' });
  t.ok((await baton.stat('cluster.api.health_check.passive_failure'))! > 0);
  t.match(baton.stderr, 'is unhealthy: a response to a request says so');
});

t.test('connections to a failed host are not reused, and TCP connections close where that is configured', async (t) => {
  const host = await startTcpUpstream(t, (socket) => {
    socket.on('data', (data) => socket.write(data));
    socket.on('end', () => socket.end());
  });
  const checks = await CheckedUpstream.start(t, 'checks');
  const cluster = (name: string, more: Config = {}) => {
    const health_check_config = { port_value: checks.port };
    const address = { socket_address: { address: '127.0.0.1', port_value: host.port } };
    const endpoints = [{ lb_endpoints: [{ endpoint: { address, health_check_config } }] }];
    return checked(name, [], http(), { load_assignment: { cluster_name: name, endpoints }, ...more });
  };
  const baton = await startBaton(t, {
    config: bootstrap({
      listeners: [tcpListener('ends', 0, { cluster: 'ends' }), tcpListener('stays', 0, { cluster: 'stays' })],
      clusters: [cluster('ends', { close_connections_on_host_health_failure: true }), cluster('stays')],
    }),
  });
  const clients = await Promise.all(
    ['ends', 'stays'].map(async (name) => connectRaw(t, await baton.listenerPort(name))),
  );
  for (const client of clients) {
    client.write('hello');
    await client.readUntil('hello');
  }
  checks.answer = { status: 500 };
  await clients[0]!.readToEnd();
  await baton.waitForStat('cluster.stays.membership_healthy', 0);
  clients[1]!.write('again');
  await clients[1]!.readUntil('again');
  t.equal(await baton.stat('cluster.ends.upstream_cx_active'), 0);
  t.equal(await baton.stat('cluster.stays.upstream_cx_active'), 1);
});
