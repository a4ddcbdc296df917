// Single checks of real hosts, over the primary's own connections.

import { createServer, type Socket } from 'node:net';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { Random } from '../../../../src/common/random.js';
import type {
  Cluster,
  Endpoint,
  HealthCheck,
  Http1ProtocolOptions,
  HttpProtocolOptions,
} from '../../../../src/config/generated/api.js';
import { EXTENSIONS } from '../../../../src/extensions/index.js';
import { ExtensionRegistry } from '../../../../src/extensions/registry.js';
import { loadShim } from '../../../../src/io/shim.js';
import { Runtime } from '../../../../src/runtime/runtime.js';
import type { CallTargets } from '../../../../src/server/clusters/call-targets.js';
import { PrimaryCheckThread } from '../../../../src/server/clusters/health-checks/primary-check-thread.js';
import { PrimaryCalls } from '../../../../src/server/clusters/primary-calls.js';
import type { Primary } from '../../../../src/server/primary.js';
import { StatsStore } from '../../../../src/stats/store.js';
import { clusterSpec } from '../../../../src/upstream/cluster-config.js';
import { endpointSpecs, staticEndpoint } from '../../../../src/upstream/discovery-config.js';
import { healthCheckSpec } from '../../../../src/upstream/health-checks/health-check-spec.js';
import { Outcome } from '../../../../src/upstream/health-checks/host-health.js';
import { serverPlace } from '../../../../src/upstream/server-place.js';
import { SharedWordsOwner } from '../../../../src/upstream/shared-words.js';
import { startBlackHole } from '../../../e2e/harness/black-hole.js';
import {
  freePort,
  loopback,
  startTcpUpstream,
  startUpstream,
  type Teardown,
  tempDir,
  type Upstream,
  waitFor,
} from '../../../e2e/harness/index.js';

const HAS_IP6 = Object.values(networkInterfaces()).some((list) => list?.some(({ address }) => address === '::1'));

const store = new StatsStore({ workers: 1 });
const runtime = new Runtime();
const faults: unknown[] = [];
const extensions = new ExtensionRegistry(EXTENSIONS);
const primary = {
  extensions,
  shim: loadShim(),
  store,
  words: new SharedWordsOwner(8192),
  internalError: (_what: string, error: unknown) => faults.push(error),
} as unknown as Primary;
const clusters = {
  byName: new Map(),
  reportEvents: () => {},
  reportFailedCheck: () => {},
  reportOutlier: () => {},
  requestHost: () => {},
};
const calls = new PrimaryCalls(primary, clusters, {
  ...{ runtime, place: serverPlace({}), reserve: 0, ip: '192.0.2.1' },
  targets: {} as CallTargets,
});
const thread = new PrimaryCheckThread({
  store,
  timers: { reschedule: () => {}, cancel: () => {} },
  random: new Random(1),
  runtime,
  calls: () => calls,
  failed: (_what, error) => faults.push(error),
});
t.teardown(() => calls.close());

function test(guarantee: string, body: (t: Test) => Promise<void>): void {
  t.test(guarantee, async (t) => {
    await body(t);
    t.same(faults.splice(0), []);
    // A remaining timer would end a later check, or keep a removed host in memory.
    t.equal(calls.begin().wheel.nextWakeMs(), Number.POSITIVE_INFINITY, 'no timer is left');
  });
}

/** Time limit within which hosts of this machine answer; hosts that must be late have less. */
const PATIENT: HealthCheck = { timeout: '100s', interval: '1s' };
const BRIEF: HealthCheck = { ...PATIENT, timeout: '0.05s' };
const HTTP: HealthCheck = { http_health_check: { path: '/' } };
const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n';

function options(http_protocol_options: Http1ProtocolOptions, common_http_protocol_options: HttpProtocolOptions = {}) {
  const name = 'envoy.extensions.upstreams.http.v3.HttpProtocolOptions';
  const config = { common_http_protocol_options, explicit_http_config: { http_protocol_options } };
  return { typed_extension_protocol_options: { [name]: { '@type': `type.googleapis.com/${name}`, ...config } } };
}

/** Checks of one host, one after the other. */
function checks(t: Teardown, at: number | Endpoint, check: HealthCheck, more: Cluster = {}) {
  const endpoint = typeof at === 'number' ? { address: loopback(at) } : at;
  const cluster: Cluster = {
    ...{ name: 'api', type: 'STATIC', connect_timeout: '100s' },
    load_assignment: { endpoints: [{ lb_endpoints: [{ endpoint }] }] },
    health_checks: [{ ...PATIENT, ...check }],
    ...more,
  };
  const outcomes: [Outcome, string][] = [];
  const checker = thread.checker({
    spec: healthCheckSpec(cluster)!,
    cluster: clusterSpec(cluster, extensions),
    endpoint: staticEndpoint(endpointSpecs(cluster.load_assignment)[0]!)!,
    onVerified: () => {},
    onChecked: (outcome, reason) => outcomes.push([outcome, reason]),
  });
  t.teardown(() => checker.close());
  return {
    checker,
    outcomes,
    /** The outcome of a check, and its reason. */
    async next(): Promise<[Outcome, string]> {
      const { length } = outcomes;
      checker.begin();
      await waitFor(() => outcomes.length > length);
      return outcomes[length]!;
    },
  };
}

/** A host that handles what it receives with these functions, one after the other; the last one is repeated. */
function host(t: Teardown, ...steps: ((socket: Socket, received: string) => void)[]): Promise<Upstream> {
  return startTcpUpstream(t, (socket) => {
    socket.on('data', (data) => (steps.length > 1 ? steps.shift()! : steps[0]!)(socket, String(data)));
    socket.on('end', () => socket.end());
  });
}

const answer = (text: string) => (socket: Socket) => void socket.write(text);
const cut = (socket: Socket) => void socket.destroy();

test('HTTP: one connection serves all checks', async (t) => {
  const upstream = await host(t, answer(OK), answer('HTTP/1.1 503 No\r\ncontent-length: 2\r\n\r\nno'), answer(OK));
  const limits = { idle_timeout: '50s', max_connection_duration: '50s' };
  const { checker, next } = checks(t, upstream.port, HTTP, options({}, limits));
  t.same(await next(), [Outcome.Passed, 'it has answered 200']);
  t.equal(calls.begin().wheel.nextWakeMs(), Number.POSITIVE_INFINITY, 'however long it is idle');
  t.same(await next(), [Outcome.Failed, 'it has answered 503']);
  t.same(await next(), [Outcome.Passed, 'it has answered 200']);
  t.equal(upstream.accepted(), 1);
  checker.close();
  await waitFor(() => upstream.sockets.size === 0);
});

test('HTTP: a check is retried when a kept connection ends, once, and only before an answer', async (t) => {
  const upstream = await host(t, answer(OK), cut, answer(OK), cut, cut, answer(OK), (socket) => {
    socket.end('HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhel');
  });
  const { next } = checks(t, upstream.port, HTTP);
  const closed = [Outcome.NetworkFailure, 'it has closed the connection without an answer'];
  t.same(await next(), [Outcome.Passed, 'it has answered 200']);
  t.same(await next(), [Outcome.Passed, 'it has answered 200']);
  t.equal(upstream.accepted(), 2);
  t.same(await next(), closed);
  t.equal(upstream.accepted(), 3);
  t.same(await next(), [Outcome.Passed, 'it has answered 200']);
  t.same(await next(), closed, 'a truncated answer has begun');
  t.equal(upstream.accepted(), 4);
});

test('HTTP: a host has answered only when its answer is complete', async (t) => {
  const chunked = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n';
  const upstream = await host(t, answer(chunked));
  for (const enable_trailers of [true, false]) {
    const { checker, outcomes } = checks(t, upstream.port, HTTP, options({ enable_trailers }));
    checker.begin();
    await waitFor(() => upstream.sockets.size === 1);
    t.same(outcomes, []);
    const [socket] = upstream.sockets;
    await waitFor(() => socket!.bytesWritten > 0);
    t.same(outcomes, []);
    socket!.write('0\r\nx: y\r\n\r\n');
    await waitFor(() => outcomes.length === 1);
    t.equal(outcomes[0]![0], Outcome.Passed);
    checker.close();
    await waitFor(() => upstream.sockets.size === 0);
  }
});

test('HTTP: a connection that has ended between checks is replaced', async (t) => {
  const upstream = await host(t, answer(OK), (socket) => socket.end(OK.replace('\r\n', '\r\nconnection: close\r\n')));
  const { next } = checks(t, upstream.port, HTTP);
  for (let check = 0; check < 4; check++) {
    t.equal((await next())[0], Outcome.Passed);
    if (check > 0) await waitFor(() => upstream.sockets.size === 0);
  }
  t.equal(upstream.accepted(), 3);
});

test('HTTP: without reuse_connection each check has its own connection', async (t) => {
  const upstream = await host(t, answer(OK));
  const { next } = checks(t, upstream.port, { ...HTTP, reuse_connection: false });
  for (let check = 0; check < 2; check++) {
    t.equal((await next())[0], Outcome.Passed);
    await waitFor(() => upstream.sockets.size === 0);
  }
  t.equal(upstream.accepted(), 2);
});

test('HTTP: the connection of a host that does not answer in time is closed', async (t) => {
  const upstream = await host(t, answer('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n'));
  const { next, outcomes } = checks(t, upstream.port, { ...HTTP, ...BRIEF });
  for (let check = 0; check < 2; check++) {
    t.same(await next(), [Outcome.Timeout, 'it does not answer in time']);
    await waitFor(() => upstream.sockets.size === 0);
  }
  t.same([upstream.accepted(), outcomes.length], [2, 2]);
});

test('an abandoned check reports no outcome', async (t) => {
  for (const check of [HTTP, { tcp_health_check: { receive: [{ text: '00' }] } }]) {
    const upstream = await host(t, answer(''));
    const { checker, outcomes } = checks(t, upstream.port, check);
    checker.begin();
    await waitFor(() => upstream.sockets.size === 1);
    checker.close();
    await waitFor(() => upstream.sockets.size === 0);
    t.same(outcomes, []);
  }
});

test('a failed connect is reported differently from a missing answer', async (t) => {
  const [closed, hole] = await Promise.all([freePort(), startBlackHole(t)]);
  for (const check of [HTTP, { tcp_health_check: {} }]) {
    const refused = checks(t, closed, check);
    for (let round = 0; round < 2; round++) {
      const [outcome, reason] = await refused.next();
      t.equal(outcome, Outcome.NetworkFailure);
      t.match(reason, /Connection refused/);
    }
    // The connect_timeout of the cluster applies to requests.
    const swallowed = checks(t, hole, { ...check, ...BRIEF });
    t.equal((await swallowed.next())[0], Outcome.Timeout);
    const patient = checks(t, hole, check, { connect_timeout: '0.01s' });
    patient.checker.begin();
    t.equal((await swallowed.next())[0], Outcome.Timeout);
    t.same(patient.outcomes, []);
    patient.checker.close();
  }
});

test('hosts are checked at IPv6 addresses, at Unix sockets, and at separate check addresses', async (t) => {
  const path = join(tempDir(t), 'host');
  const upstream = await host(t, answer(OK));
  const unix = createServer((socket) => {
    socket.on('data', () => socket.end(OK));
  });
  await new Promise<void>((resolve) => unix.listen(path, resolve));
  t.teardown(() => unix.close());
  const socket = (address: string, port_value: number) => ({ socket_address: { address, port_value } });
  const nobody = loopback(await freePort());
  const endpoints: Endpoint[] = [
    { address: { pipe: { path } } },
    { address: nobody, health_check_config: { address: { pipe: { path } } } },
    { address: nobody, health_check_config: { address: loopback(upstream.port) } },
    { address: nobody, health_check_config: { address: socket('127.0.0.1', 1), port_value: upstream.port } },
  ];
  if (HAS_IP6) {
    const { port } = await startUpstream(t, (_request, response) => response.end(), 0, '::1');
    endpoints.push({ address: socket('::1', port) });
    endpoints.push({ address: socket('::1', 1), health_check_config: { port_value: port } });
  }
  for (const check of [HTTP, { tcp_health_check: {} }]) {
    for (const endpoint of endpoints) t.equal((await checks(t, endpoint, check).next())[0], Outcome.Passed);
  }
  const absent = { address: { pipe: { path: `${path}-not` } } };
  t.match(await checks(t, absent, HTTP).next(), [Outcome.NetworkFailure, /No such file/]);
});

const hex = (text: string) => ({ text: Buffer.from(text).toString('hex') });

test('TCP: without an expected answer a connect is enough', async (t) => {
  const received: string[] = [];
  const upstream = await host(t, (_socket, data) => received.push(data));
  const { next } = checks(t, upstream.port, { tcp_health_check: { send: hex('bye') } });
  for (let check = 1; check <= 2; check++) {
    t.same(await next(), [Outcome.Passed, 'it can be connected to']);
    await waitFor(() => upstream.sockets.size === 0 && received.length === check);
  }
  t.same([upstream.accepted(), received], [2, ['bye', 'bye']]);
});

test('TCP: everything sent arrives, on one connection unless connections are not reused', async (t) => {
  const large = `${'x'.repeat(40_000)}end`;
  for (const reuse_connection of [true, false]) {
    let text = '';
    const upstream = await host(t, (socket, data) => {
      text += data;
      if (!text.endsWith('end')) return;
      if (text !== large) t.fail(`${text.length} bytes have come`);
      text = '';
      socket.write('OK');
    });
    const check = { tcp_health_check: { send: hex(large), receive: [hex('OK')] }, reuse_connection };
    const { next } = checks(t, upstream.port, check);
    for (let round = 0; round < 3; round++) t.same(await next(), [Outcome.Passed, 'it sends what is expected']);
    t.equal(upstream.accepted(), reuse_connection ? 1 : 3);
    await waitFor(() => upstream.sockets.size === (reuse_connection ? 1 : 0));
  }
});

test('TCP: a host that speaks first has a connection for each check', async (t) => {
  const upstream = await startTcpUpstream(t, (socket) => {
    socket.on('end', () => socket.end());
    socket.write('220 hello\r\n');
  });
  const { next } = checks(t, upstream.port, { tcp_health_check: { receive: [hex('220')] } });
  for (let check = 0; check < 2; check++) t.same(await next(), [Outcome.Passed, 'it sends what is expected']);
  t.equal(upstream.accepted(), 2);
});

t.test(
  'TCP: a check is retried when a kept connection ends, once, and only before the host has sent anything',
  async (t) => {
    const partly = (socket: Socket) => void socket.write('O', () => socket.end());
    const upstream = await host(t, answer('OK'), cut, answer('OK'), cut, cut, answer('OK'), partly);
    const { next } = checks(t, upstream.port, { tcp_health_check: { send: hex('?'), receive: [hex('OK')] } });
    const outcomes: Outcome[] = [];
    for (let check = 0; check < 3; check++) outcomes.push((await next())[0]);
    t.same(outcomes, [Outcome.Passed, Outcome.Passed, Outcome.NetworkFailure]);
    t.equal(upstream.accepted(), 3);
    t.equal((await next())[0], Outcome.Passed);
    t.same(await next(), [Outcome.NetworkFailure, 'it has closed the connection']);
    t.equal(upstream.accepted(), 4);
  },
);

test('TCP: a host that sends other bytes fails at the timeout, and its connection is closed', async (t) => {
  const upstream = await host(t, answer('ERR'));
  const check = { ...BRIEF, tcp_health_check: { send: hex('?'), receive: [hex('OK')] } };
  const { next } = checks(t, upstream.port, check);
  for (let round = 0; round < 2; round++) {
    t.same(await next(), [Outcome.Timeout, 'it does not send what is expected in time']);
    await waitFor(() => upstream.sockets.size === 0);
  }
});
