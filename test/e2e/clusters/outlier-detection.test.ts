// Hosts that fail are ejected for a while, whichever worker observed the failures, and return.

import { existsSync, readFileSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import {
  bootstrap,
  type Config,
  freePort,
  httpListener,
  httpRequest,
  routeAllTo,
  startBaton,
  startTcpUpstream,
  startUpstream,
  staticCluster,
  tcpListener,
  tempDir,
  waitFor,
} from '../harness/index.js';
import { openStream } from '../tcp/stream.js';

/** Statuses that hosts answer with; 200 when there is none. */
const statuses = new Map<string, number>();
const upstreams = await Promise.all(
  ['a', 'b', 'c'].map((name) =>
    startUpstream(t, (request, response) => {
      if (request.url === '/cut') return void response.socket!.destroy();
      if (request.url === '/hang') return;
      if (request.url === '/grpc') response.setHeader('content-type', 'application/grpc').setHeader('grpc-status', 14);
      response.writeHead(statuses.get(name) ?? 200).end(name);
    }),
  ),
);
const ports = upstreams.map(({ port }) => port);
const closed = await freePort();
const flaky = await freePort();
const tcp = await startTcpUpstream(t, (socket) => socket.end('here'));

const eventLog = join(tempDir(t), 'events');

/** Ejected for the duration of a test: hosts return when runtime changes the time. */
const LONG_EJECTION = { base_ejection_time: '600s', max_ejection_time: '600s', max_ejection_percent: 100 };
/** A host is used only while it is healthy. */
const NO_PANIC = { common_lb_config: { healthy_panic_threshold: { value: 0 } } };

function watched(name: string, hosts: (number | Config)[], detection: Config, more: Config = {}): Config {
  return staticCluster(name, hosts, { outlier_detection: { ...LONG_EJECTION, ...detection }, ...NO_PANIC, ...more });
}

const clusters = [
  watched('rows', ports, { interval: '0.1s' }),
  watched('rotated', ports, {}),
  watched('alone', [ports[0]!], {}),
  watched('gateway', ports, { enforcing_consecutive_5xx: 0, enforcing_consecutive_gateway_failure: 100 }),
  watched('few', ports, { max_ejection_percent: 50 }),
  staticCluster('defaults', ports, { outlier_detection: {} }),
  watched('one', ports, { max_ejection_percent: 0, always_eject_one_host: true }),
  watched('split', [closed, ports[1]!], {
    split_external_local_origin_errors: true,
    enforcing_consecutive_5xx: 0,
    consecutive_local_origin_failure: 3,
  }),
  watched('breaking', [ports[0]!], { consecutive_5xx: 3, split_external_local_origin_errors: false }),
  watched('calls', [ports[0]!], {}),
  watched('slow', [ports[0]!], { consecutive_5xx: 2 }),
  watched('rates', ports, {
    interval: '0.1s',
    enforcing_consecutive_5xx: 0,
    success_rate_minimum_hosts: 3,
    success_rate_request_volume: 5,
    success_rate_stdev_factor: 1000,
  }),
  watched('wire', [closed, tcp.port], { consecutive_5xx: 2 }),
  watched('flaky-wire', [flaky], { consecutive_5xx: 2 }),
  watched('split-wire', [closed, tcp.port], {
    split_external_local_origin_errors: true,
    consecutive_local_origin_failure: 2,
  }),
];
const RETRIED = { retry_policy: { retry_on: '5xx', num_retries: 5 } };
const baton = await startBaton(t, {
  config: bootstrap({
    listeners: [
      ...clusters.map(({ name }) => httpListener(name as string, 0, { route_config: routeAllTo(name as string) })),
      httpListener('impatient', 0, { route_config: routeAllTo('slow', { timeout: '0.05s' }) }),
      httpListener('retried', 0, { route_config: routeAllTo('rows', RETRIED) }),
      tcpListener('tcp-wire', 0, { cluster: 'wire', max_connect_attempts: 5 }),
      tcpListener('tcp-flaky-wire', 0, { cluster: 'flaky-wire' }),
      tcpListener('tcp-split-wire', 0, { cluster: 'split-wire', max_connect_attempts: 5 }),
    ],
    clusters,
    extra: {
      layered_runtime: { layers: [{ name: 'admin', admin_layer: {} }] },
      cluster_manager: { outlier_detection: { event_log_path: eventLog } },
    },
  }),
  args: ['--concurrency', '2', '--file-flush-interval-msec', '20'],
});

t.beforeEach(() => statuses.clear());

t.test('a host is ejected after five consecutive failures, and returns when its ejection time is over', async (t) => {
  statuses.set('b', 500);
  const failures = await failUntilEjected('rows', 1);
  // Two workers have counted five failures together.
  t.ok(failures >= 5, `${failures} failures`);
  await waitForHosts('rows', ['a', 'c']);
  t.match(await stats('rows'), {
    ejections_enforced_total: 1,
    ejections_enforced_consecutive_5xx: 1,
    ejections_detected_consecutive_5xx: 1,
    ejections_detected_consecutive_gateway_failure: 0,
    ejections_total: 1,
    ejections_consecutive_5xx: 1,
    ejections_overflow: 0,
  });
  t.match(await baton.stats('cluster.rows.membership_'), { total: 3, healthy: 2 });
  t.same(await flags('rows'), ['healthy', '/failed_outlier_check', 'healthy']);

  statuses.clear();
  await setRuntime('base_ejection_time_ms', '1');
  await waitForStat('rows', 'ejections_active', 0);
  await setRuntime('base_ejection_time_ms', '');
  await waitForHosts('rows', ['a', 'b', 'c']);
  t.same(await flags('rows'), ['healthy', 'healthy', 'healthy']);
});

t.test('ejections and returns are logged, to a new file after a rotation', async (t) => {
  const logged = await waitFor(() => eventsOf('rows').length === 2 && eventsOf('rows'));
  t.match(logged, [
    {
      type: 'CONSECUTIVE_5XX',
      upstream_url: `127.0.0.1:${ports[1]}`,
      action: 'EJECT',
      num_ejections: 1,
      enforced: true,
      eject_consecutive_event: {},
    },
    { upstream_url: `127.0.0.1:${ports[1]}`, action: 'UNEJECT', secs_since_last_action: /^\d+$/ },
  ]);
  t.ok(Number.isFinite(Date.parse(logged[0]!['timestamp'] as string)));
  renameSync(eventLog, `${eventLog}.1`);
  await baton.admin('/reopen_logs', { method: 'POST' });
  await waitFor(() => existsSync(eventLog), { what: 'the next file' });
  statuses.set('a', 500);
  await failUntilEjected('rotated', 1);
  await waitFor(() => eventsOf('rotated').length === 1, { what: 'a line in it' });
  t.same(eventsOf('rows'), []);
});

t.test('a success between two failures resets the consecutive count', async (t) => {
  const port = await baton.listenerPort('alone');
  for (let request = 0; request < 50; request++) {
    statuses.set('a', request % 5 === 4 ? 200 : 500);
    await httpRequest(port);
  }
  statuses.set('a', 500);
  t.match(await stats('alone'), { ejections_detected_consecutive_5xx: 0, ejections_active: 0 });
  for (let request = 0; request < 5; request++) await httpRequest(port);
  await waitForStat('alone', 'ejections_detected_consecutive_5xx', 1);
});

t.test('responses replaced by a retry count', async (t) => {
  statuses.set('c', 503);
  const port = await baton.listenerPort('retried');
  await waitFor(async () => {
    t.equal((await httpRequest(port)).status, 200);
    return (await stats('rows'))['ejections_active'] === 1;
  });
  t.same(await flags('rows'), ['healthy', 'healthy', '/failed_outlier_check']);
});

t.test('gateway failures can be detected without other failures', async (t) => {
  statuses.set('a', 500);
  await failUntilDetected('gateway', 'ejections_detected_consecutive_5xx', 2);
  t.match(await stats('gateway'), { ejections_active: 0, ejections_detected_consecutive_gateway_failure: 0 });
  statuses.set('a', 502);
  await failUntilEjected('gateway', 1);
  t.equal((await stats('gateway'))['ejections_enforced_consecutive_gateway_failure'], 1);
  await waitForHosts('gateway', ['b', 'c']);
});

t.test('no more than max_ejection_percent of the hosts are ejected', async (t) => {
  for (const name of ['a', 'b', 'c']) statuses.set(name, 500);
  await failUntilEjected('few', 1);
  await failUntilDetected('few', 'ejections_overflow', 2);
  t.equal((await stats('few'))['ejections_active'], 1);
  t.equal((await flags('few')).filter((each) => each === 'healthy').length, 2);
});

t.test('the default of ten percent ejects none of a few hosts; always_eject_one_host does', async (t) => {
  for (const name of ['a', 'b', 'c']) statuses.set(name, 500);
  await failUntilDetected('defaults', 'ejections_overflow', 2);
  t.equal((await stats('defaults'))['ejections_active'], 0);
  await failUntilEjected('one', 1);
  await failUntilDetected('one', 'ejections_overflow', 1);
  t.equal((await stats('one'))['ejections_active'], 1);
});

t.test('broken connections and response timeouts are failures too', async (t) => {
  await failUntilEjected('breaking', 1, '/cut');
  t.equal((await httpRequest(await baton.listenerPort('breaking'))).body, 'no healthy upstream');
  const port = await baton.listenerPort('impatient');
  await waitFor(async () => {
    const { status } = await httpRequest(port, '/hang');
    return status === 503;
  });
  t.match(await stats('slow'), { ejections_enforced_consecutive_5xx: 1 });
});

t.test('a failed gRPC call is a failure although its HTTP status is 200', async (t) => {
  await failUntilEjected('calls', 1, '/grpc');
  t.match(await stats('calls'), { ejections_detected_consecutive_gateway_failure: 1 });
});

t.test('locally originated failures are distinguished from error responses', async (t) => {
  statuses.set('b', 503);
  await failUntilEjected('split', 1);
  t.match(await stats('split'), { ejections_enforced_consecutive_local_origin_failure: 1 });
  await failUntilDetected('split', 'ejections_detected_consecutive_5xx', 1);
  t.same(await flags('split'), ['/failed_outlier_check', 'healthy']);
  statuses.clear();
  await waitForHosts('split', ['b']);
});

t.test('a host whose success rate is below those of the others is ejected at the end of an interval', async (t) => {
  const port = await baton.listenerPort('rates');
  let requests = 0;
  await waitFor(async () => {
    statuses.set('a', ++requests % 2 === 0 ? 500 : 200);
    await Promise.all(Array.from({ length: 30 }, () => httpRequest(port)));
    return (await stats('rates'))['ejections_active'] === 1;
  });
  t.match(await stats('rates'), { ejections_enforced_success_rate: 1, ejections_success_rate: 1 });
  // Two hosts are too few to compare: the next interval finds no outlier.
  statuses.set('a', 200);
  const shown = async () => (await baton.admin('/clusters?filter=^rates$')).body;
  t.match(await shown(), /^rates::outlier::success_rate_average::/m);
  await waitFor(async () => /^rates::outlier::success_rate_average::-1$/m.test(await shown()));
  t.same(await flags('rates'), ['/failed_outlier_check', 'healthy', 'healthy']);
});

t.test('TCP: hosts that refuse connections are ejected', async (t) => {
  for (const name of ['wire', 'split-wire']) {
    await waitFor(async () => {
      const client = await openStream(t, await baton.listenerPort(`tcp-${name}`));
      await waitFor(() => client.closed !== 'open');
      return (await stats(name))['ejections_active'] === 1;
    });
    t.same(await flags(name), ['/failed_outlier_check', 'healthy'], name);
    const failed = () => baton.stat(`cluster.${name}.upstream_cx_connect_fail`);
    // Over both workers.
    const isAvoided = async () => {
      const before = await failed();
      for (let i = 0; i < 8; i++) {
        const client = await openStream(t, await baton.listenerPort(`tcp-${name}`));
        await waitFor(() => client.closed !== 'open');
      }
      return (await failed()) === before;
    };
    await waitFor(isAvoided, { what: 'connections to the other host only' });
  }
  t.equal((await stats('wire'))['ejections_enforced_consecutive_5xx'], 1);
  t.equal((await stats('split-wire'))['ejections_enforced_consecutive_local_origin_failure'], 1);
});

t.test('TCP: only consecutive failures count', async (t) => {
  const port = await baton.listenerPort('tcp-flaky-wire');
  const tryOnce = async () => {
    const client = await openStream(t, port);
    await waitFor(() => client.closed !== 'open');
    return client.head;
  };
  for (let i = 0; i < 3; i++) {
    t.equal(await tryOnce(), '', 'no listener');
    const host = await startTcpUpstream(t, (socket) => socket.end('here'), flaky);
    t.equal(await tryOnce(), 'here');
    await host.close();
  }
  t.equal((await stats('flaky-wire'))['ejections_active'], 0);
  for (let i = 0; i < 2; i++) await tryOnce();
  await waitFor(async () => (await stats('flaky-wire'))['ejections_active'] === 1);
});

/** Sends requests until `count` hosts of the cluster are ejected; returns how many requests failed. */
async function failUntilEjected(name: string, count: number, path = '/'): Promise<number> {
  const port = await baton.listenerPort(name);
  let failures = 0;
  await waitFor(async () => {
    if ((await httpRequest(port, path)).status >= 500) failures++;
    return (await stats(name))['ejections_active'] === count;
  });
  return failures;
}

async function failUntilDetected(name: string, stat: string, count: number): Promise<void> {
  const port = await baton.listenerPort(name);
  await waitFor(async () => {
    await httpRequest(port);
    return (await stats(name))[stat]! >= count;
  });
}

/** Waits until all workers use exactly these hosts. */
function waitForHosts(name: string, expected: readonly string[]): Promise<unknown> {
  const hasHosts = async () => {
    const port = await baton.listenerPort(name);
    const seen = new Set<string>();
    for (let i = 0; i < 24; i++) seen.add((await httpRequest(port)).body);
    return [...seen].sort().join() === expected.join();
  };
  return waitFor(hasHosts, { what: `${expected} of ${name}` });
}

/** Returns the lines of the event log about a cluster. */
function eventsOf(name: string): Record<string, unknown>[] {
  const lines = readFileSync(eventLog, 'utf8')
    .split('\n')
    .filter((line) => line !== '');
  return lines.map((line) => JSON.parse(line)).filter((event) => event.cluster_name === name);
}

function stats(name: string): Promise<Record<string, number>> {
  return baton.stats(`cluster.${name}.outlier_detection.`);
}

function waitForStat(name: string, stat: string, value: number): Promise<void> {
  return baton.waitForStat(`cluster.${name}.outlier_detection.${stat}`, value);
}

/** Returns the health flags of the hosts as /clusters shows them, in configuration order. */
async function flags(name: string): Promise<string[]> {
  const { body } = await baton.admin('/clusters');
  const lines = body.split('\n').filter((line) => line.startsWith(`${name}::`) && line.includes('::health_flags::'));
  return lines.map((line) => line.slice(line.lastIndexOf('::') + 2));
}

async function setRuntime(name: string, value: string): Promise<void> {
  await baton.admin(`/runtime_modify?outlier_detection.${name}=${value}`, { method: 'POST' });
}
