// A worker that dies loses its connections, and nothing else: it is replaced, its listening sockets stay open, its stats stay.

import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import {
  type BatonProcess,
  bootstrap,
  type Config,
  connectRaw,
  fileAccessLog,
  httpListener,
  httpRequest,
  routeAllTo,
  startBlackHole,
  startEchoUpstream,
  startUpstream,
  staticCluster,
  tcpListener,
  tempDir,
  waitFor,
} from '../../harness/index.js';
import { cannotFailCalls, failCalls } from '../../harness/system-calls.js';
import { routeTo } from '../../http/proxy.js';
import { openStream, type Stream, startPeers } from '../../tcp/stream.js';
import { startBreakableBaton } from './fault-injection.js';

const CONNECTIONS = 24;

const echo = await startEchoUpstream(t);
const peers = await startPeers(t);
const config = bootstrap({
  listeners: [
    tcpListener('wire', 0, { cluster: 'peers' }),
    httpListener('web', 0, { route_config: routeAllTo('echo') }),
    { ...httpListener('shared', 0, { route_config: routeAllTo('echo') }), enable_reuse_port: false },
  ],
  clusters: [
    // Every slot is taken before the death: afterwards those of the dead worker must be free again.
    staticCluster('peers', peers.port, { circuit_breakers: { thresholds: [{ max_connections: CONNECTIONS }] } }),
    staticCluster('echo', echo.port),
  ],
});

t.test('a worker dies', async (t) => {
  const { baton, killWorker } = await startBreakableBaton(t, { config, args: ['--concurrency', '2'] });
  const ports = {
    wire: await baton.listenerPort('wire'),
    web: await baton.listenerPort('web'),
    shared: await baton.listenerPort('shared'),
  };
  const clients: Stream[] = [];
  const servers: Stream[] = [];
  for (let index = 0; index < CONNECTIONS; index++) {
    clients.push(await openStream(t, ports.wire));
    servers.push(await peers.next());
  }
  for (let index = 0; index < 20; index++) await httpRequest(ports.web, '/before');
  const listener = 'listener.wire';
  await baton.waitForStat(`${listener}.downstream_cx_active`, CONNECTIONS);
  const before = await counters(baton);
  const onWorker = [
    (await baton.stat(`${listener}.worker_0.downstream_cx_active`))!,
    (await baton.stat(`${listener}.worker_1.downstream_cx_active`))!,
  ];
  t.comment(`connections of the workers: ${onWorker.join(' and ')}`);

  const dead = await killWorker('throw');
  const diedAt = performance.now();
  // Connections opened now wait for the new worker: none is refused, none is lost.
  await Promise.all(Array.from({ length: 40 }, () => httpRequest(ports.web, '/after')));
  t.comment(`all listening sockets are served again ${Math.round(performance.now() - diedAt)} ms after the death`);
  await Promise.all(Array.from({ length: 40 }, () => httpRequest(ports.shared, '/after')));

  await t.test('it loses its connections, on both sides, and no others are lost', async () => {
    const survivors = CONNECTIONS - onWorker[dead]!;
    await waitFor(() => clients.filter((client) => client.closed === 'open').length === survivors, {
      what: `the close of ${onWorker[dead]} connections`,
    });
    for (const [index, client] of clients.entries()) {
      if (client.closed !== 'open') {
        // Its server has the other end, in one of the streams.
        continue;
      }
      void client.write(`still here ${String(index).padStart(3)}`);
    }
    await waitFor(() => servers.filter((server) => server.head.startsWith('still here')).length === survivors, {
      what: 'bytes on the remaining connections',
    });
    await waitFor(() => servers.filter((server) => server.closed !== 'open').length === onWorker[dead], {
      what: 'the close of the upstream connections',
    });
  });

  await t.test('its share of gauges and limits is released', async (t) => {
    const survivors = CONNECTIONS - onWorker[dead]!;
    await baton.waitForStat(`${listener}.downstream_cx_active`, survivors);
    t.equal(await baton.stat(`${listener}.worker_${dead}.downstream_cx_active`), 0);
    t.equal(await baton.stat('cluster.peers.upstream_cx_active'), survivors);
    t.equal(await baton.stat('cluster.peers.circuit_breakers.default.cx_open'), 0);
    for (let index = survivors; index < CONNECTIONS; index++) {
      const client = await openStream(t, ports.wire);
      const server = await peers.next();
      void server.write('welcome');
      await client.receives(7);
    }
    await baton.waitForStat('cluster.peers.upstream_cx_active', CONNECTIONS);
  });

  await t.test('its counters stay', async (t) => {
    const after = await counters(baton);
    for (const [name, value] of before) t.ok(after.get(name)! >= value, `${name}: ${value}, then ${after.get(name)}`);
    t.equal(await baton.stat('http.web.downstream_rq_total'), 60);
    t.equal(await baton.stat('cluster.echo.upstream_rq_total'), 100);
    t.equal(await baton.stat('cluster.echo.upstream_rq_200'), 100, 'a counter created by traffic');
    const cluster = await baton.stats('cluster.echo.upstream_');
    t.equal(
      cluster['cx_total']! - cluster['cx_destroy']!,
      cluster['cx_active'],
      'its idle connections to hosts count as closed',
    );
  });

  await t.test('its death is logged with a stack trace', async (t) => {
    await waitFor(() => /at .*faults\.js:\d+/.test(baton.stderr), { what: 'the stack in the log' });
    t.match(baton.stderr, /\[critical\].*injected exception/);
  });
  t.equal((await baton.admin('/ready')).status, 200);
  await baton.stop();
});

t.test('requests and connections of a dying worker are aborted and logged', async (t) => {
  const web = await startUpstream(t, (_request, response) => {
    response.write('a beginning');
  });
  const log = join(tempDir(t), 'access.log');
  const logged = { access_log: [fileAccessLog(log, '%PROTOCOL% %BYTES_SENT%\n')] };
  const { baton, killWorker } = await startBreakableBaton(t, {
    config: bootstrap({
      listeners: [
        tcpListener('wire', 0, { cluster: 'peers', ...logged }),
        httpListener('web', 0, { route_config: routeAllTo('web'), ...logged }),
      ],
      clusters: [staticCluster('peers', peers.port), staticCluster('web', web.port)],
    }),
  });
  const client = await openStream(t, await baton.listenerPort('wire'));
  const server = await peers.next();
  void server.write('part of a stream');
  await client.receives(16);
  const request = await connectRaw(t, await baton.listenerPort('web'));
  request.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n');
  await request.readUntil('a beginning');
  await killWorker('throw');
  t.equal(await client.isClosed(), 'reset');
  t.equal(await server.isClosed(), 'reset');
  t.equal((await request.readToEnd()).closed, 'reset');
  await waitFor(() => existsSync(log) && readFileSync(log, 'utf8').split('\n').length === 3, { what: 'two lines' });
  t.same(readFileSync(log, 'utf8').trim().split('\n').sort(), ['- 16', 'HTTP/1.1 11']);
  await baton.waitForStat('cluster.peers.upstream_cx_destroy', 1);
  await baton.waitForStat('http.web.downstream_cx_destroy', 1);
  await baton.waitForStat('filesystem.write_buffered', 2);
  t.equal(await baton.stat('filesystem.write_completed'), 1, 'both in one write');
  t.equal(await baton.stat('filesystem.write_total_buffered'), 0);
  await baton.stop();
});

for (const death of ['exit', 'exhaust-memory'] as const) {
  t.test(`a worker that dies by ${death} is replaced`, async (t) => {
    const nodeArgs = death === 'exhaust-memory' ? ['--max-old-space-size=48'] : [];
    const { baton, killWorker } = await startBreakableBaton(t, { config, nodeArgs, args: ['--concurrency', '2'] });
    const port = await baton.listenerPort('web');
    for (let index = 0; index < 10; index++) await httpRequest(port, '/');
    await killWorker(death);
    for (let index = 0; index < 20; index++) t.equal((await httpRequest(port, '/')).status, 200);
    await baton.waitForStat('http.web.downstream_rq_total', 30);
    await baton.waitForStat('http.web.downstream_cx_active', 0);
    await baton.stop();
  });
}

t.test('an uncaught exception closes no connection of a worker', async (t) => {
  const runtime = { layered_runtime: { layers: [{ name: 'admin', admin_layer: {} }] } };
  const { baton, disturbWorker } = await startBreakableBaton(t, { config: { ...config, ...runtime } });
  const port = await baton.listenerPort('wire');
  const clients: Stream[] = [];
  for (let index = 0; index < 8; index++) {
    clients.push(await openStream(t, port));
    await peers.next();
  }
  const web = await baton.listenerPort('web');
  let faults = 0;
  for (const stray of ['stray-immediate', 'stray-timer', 'stray-promise', 'stray-message'] as const) {
    disturbWorker(stray);
    faults++;
    const isCounted = async () => {
      // A change of the runtime is a message to the worker.
      await baton.admin(`/runtime_modify?x=${performance.now()}`, { method: 'POST' });
      return (await baton.stat('server.envoy_bug_failures')) === faults;
    };
    await waitFor(isCounted, { what: `${stray} to be counted` });
    t.equal((await httpRequest(web, '/')).status, 200);
  }
  t.equal(await baton.stat('server.uncaught_exceptions'), 3);
  t.equal(clients.filter((client) => client.closed === 'open').length, 8);
  t.notMatch(baton.stderr, 'died');
  t.match(baton.stderr, /\[critical\]\[main\].*the primary's message 'runtime' could not be handled: Error: injected/);
  await baton.stop();
});

t.test('every limit is free again after the death of a worker that had reached it', async (t) => {
  const upstream = await startUpstream(t, ({ url }, response) => {
    if (url === '/retries') response.writeHead(503).end();
  });
  const limited = (name: string, port: number, thresholds: Config) =>
    staticCluster(name, port, { connect_timeout: '100s', circuit_breakers: { thresholds: [thresholds] } });
  const seldom = { retry_on: '5xx', retry_back_off: { base_interval: '1000s', max_interval: '1000s' } };
  const routes = [
    routeTo({ prefix: '/retries' }, 'retries', { retry_policy: seldom }),
    ...['requests', 'pending'].map((name) => routeTo({ prefix: `/${name}` }, name)),
  ];
  const { baton, killWorker } = await startBreakableBaton(t, {
    config: bootstrap({
      listeners: [httpListener('web', 0, { route_config: { virtual_hosts: [{ name: 'v', domains: ['*'], routes }] } })],
      clusters: [
        limited('requests', upstream.port, { max_requests: 2 }),
        limited('pending', await startBlackHole(t), { max_pending_requests: 2 }),
        limited('retries', upstream.port, { max_retries: 1 }),
      ],
      extra: {
        layered_runtime: {
          layers: [{ name: 'limits', static_layer: { 'envoy.resource_limits.listener.web.connection_limit': 5 } }],
        },
      },
    }),
    args: ['--concurrency', '1'],
  });
  const port = await baton.listenerPort('web');
  const listener = 'listener.web';
  const breakers = ['requests.*.rq_open', 'pending.*.rq_pending_open', 'retries.*.rq_retry_open'].map(
    (name) => `cluster.${name.replace('*', 'circuit_breakers.default')}`,
  );
  const gauges = (open: number, connections: number) => ({
    ...Object.fromEntries(breakers.map((name) => [name, open])),
    [`${listener}.downstream_cx_active`]: connections,
  });
  for (let round = 1; round <= 2; round++) {
    const clients = await Promise.all(
      ['/requests', '/requests', '/pending', '/pending', '/retries'].map(async (path) => {
        const client = await connectRaw(t, port);
        client.write(`GET ${path} HTTP/1.1\r\nhost: a\r\n\r\n`);
        return client;
      }),
    );
    await t.resolves(baton.waitForStats(gauges(1, 5)), 'all limits are reached');
    await killWorker('exit');
    for (const client of clients) t.equal((await client.readToEnd()).text, '', 'no connection was refused');
    await t.resolves(baton.waitForStats(gauges(0, 0)), 'all limits are free');
  }
  t.equal(await baton.stat(`${listener}.downstream_cx_overflow`), 0);
  await baton.stop();
});

t.test('workers that die repeatedly leak no descriptor, and are replaced each time', async (t) => {
  const { baton, killWorker } = await startBreakableBaton(t, { config, args: ['--concurrency', '2'] });
  const port = await baton.listenerPort('web');
  const load = async (): Promise<void> => {
    await Promise.all(Array.from({ length: 16 }, () => httpRequest(port, '/')));
  };
  await killWorker('throw');
  await load();
  const descriptors = await settledDescriptors(baton.pid);
  for (let index = 0; index < 4; index++) {
    await killWorker('throw');
    await load();
  }
  const after = await settledDescriptors(baton.pid);
  // Idle pooled connections vary.
  t.ok(after <= descriptors + 16, `${descriptors} descriptors before, ${after} after four deaths`);
  t.equal(await baton.stat('http.web.downstream_rq_total'), 80);
  // The next one is being restarted when the process exits.
  await killWorker('throw');
  await baton.stop();
});

t.test(
  'a worker is replaced later when no thread is available, and nothing else fails',
  { skip: cannotFailCalls },
  async (t) => {
    const { baton, killWorker } = await startBreakableBaton(t, { config, args: ['--concurrency', '2'] });
    const port = await baton.listenerPort('wire');
    const clients: Stream[] = [];
    for (let index = 0; index < 8; index++) {
      clients.push(await openStream(t, port));
      await peers.next();
    }
    const recover = await failCalls(t, baton.pid, 'clone,clone3', 'EAGAIN');
    const dead = await killWorker('throw');
    const deaths = () => baton.stderr.split(`worker ${dead} died`).length - 1;
    await waitFor(() => deaths() > 2 || baton.exit, { what: 'two failed attempts' });
    t.match(baton.stderr, `worker ${dead} died: this process cannot start more threads (EAGAIN)`);
    await recover();
    const survivors = await baton.stat(`listener.wire.worker_${1 - dead}.downstream_cx_active`);
    t.equal(clients.filter((client) => client.closed === 'open').length, survivors);
    const web = await baton.listenerPort('web');
    for (let index = 0; index < 20; index++) t.equal((await httpRequest(web, '/')).status, 200);
    await baton.stop();
  },
);

t.test('a replacement worker serves the file bodies of routes that the others have', async (t) => {
  const page = join(tempDir(t), 'page');
  writeFileSync(page, 'a page');
  const route = { match: { prefix: '/' }, direct_response: { status: 200, body: { filename: page } } };
  const web = httpListener('web', 0, {
    route_config: { virtual_hosts: [{ name: 'all', domains: ['*'], routes: [route] }] },
  });
  const { baton, killWorker } = await startBreakableBaton(t, { config: bootstrap({ listeners: [web], clusters: [] }) });
  const port = await baton.listenerPort('web');
  t.equal((await httpRequest(port, '/')).body, 'a page');
  rmSync(page);
  await killWorker('throw');
  t.equal((await httpRequest(port, '/')).body, 'a page');
  const { body } = await baton.admin('/config_dump');
  t.ok(body.includes(JSON.stringify(page)), 'the configuration is shown unchanged');
});

t.test('a worker without descriptors for its listening sockets is replaced by one that has them', async (t) => {
  const names = Array.from({ length: 12 }, (_, index) => `web${index}`);
  const listeners = names.map((name) => httpListener(name, 0, { route_config: routeAllTo('echo') }));
  const { baton, killWorker } = await startBreakableBaton(t, {
    config: bootstrap({ listeners, clusters: [staticCluster('echo', echo.port)] }),
  });
  const ports = await Promise.all(names.map((name) => baton.listenerPort(name)));
  const limit = (count: number) => execFileSync('prlimit', ['--pid', `${baton.pid}`, `--nofile=${count}:`]);
  limit((await settledDescriptors(baton.pid)) - names.length / 2);
  await killWorker('throw');
  await waitFor(() => /worker 0 died: addListener: too many open files/.test(baton.stderr), {
    what: 'the shortage of descriptors',
  });
  limit(1000);
  const answers = await Promise.all(ports.map((port) => httpRequest(port, '/')));
  for (const { status } of answers) t.equal(status, 200);
  await baton.stop();
});

t.test('a listener that the replacement worker cannot build is built when possible', async (t) => {
  const directory = join(tempDir(t), 'logs');
  mkdirSync(directory);
  const logged = httpListener('web', 0, {
    route_config: routeAllTo('echo'),
    access_log: [fileAccessLog(join(directory, 'access.log'))],
  });
  const { baton, killWorker } = await startBreakableBaton(t, {
    config: bootstrap({ listeners: [logged], clusters: [staticCluster('echo', echo.port)] }),
    args: ['--concurrency', '2'],
  });
  const port = await baton.listenerPort('web');
  rmSync(directory, { recursive: true });
  await killWorker('throw');
  await waitFor(() => /listener 'web' cannot be built: .*ENOENT/.test(baton.stderr), { what: 'a failure' });
  mkdirSync(directory);
  const isWhole = async () => {
    for (let count = 0; count < 20; count++) await httpRequest(port, '/', { deadlineMs: 500 });
    return true;
  };
  await waitFor(isWhole, { what: 'every socket to be served' });
  await baton.stop();
});

/** Returns all counters; histograms and gauges are left out. */
async function counters(baton: BatonProcess): Promise<Map<string, number>> {
  const { body } = await baton.admin('/stats');
  const all = new Map<string, number>();
  for (const line of body.split('\n')) {
    const match = /^(\S+(?:_total|_destroy|_success|_\dxx|_\d{3})): (\d+)$/.exec(line);
    if (match !== null) all.set(match[1]!, Number(match[2]));
  }
  return all;
}

/** Returns the number of descriptors of the process once it is stable. */
async function settledDescriptors(pid: number): Promise<number> {
  let last = -1;
  let same = 0;
  await waitFor(
    () => {
      const now = readdirSync(`/proc/${pid}/fd`).length;
      same = now === last ? same + 1 : 0;
      last = now;
      return same >= 20;
    },
    { what: 'descriptors to settle' },
  );
  return last;
}
