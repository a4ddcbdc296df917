// Signals: two end the server cleanly, one reopens its files, the others are ignored.

import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { constants } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import type { Bootstrap } from '../../../src/config/generated/api.js';
import {
  type BatonProcess,
  bootstrap,
  type Config,
  connectRaw,
  fileAccessLog,
  httpListener,
  httpRequest,
  routeAllTo,
  startBaton,
  startEchoUpstream,
  startTcpUpstream,
  staticCluster,
  type Teardown,
  tcpListener,
  tempDir,
  waitFor,
  withDeadline,
} from '../harness/index.js';
import { listeningPorts } from './sockets.js';

/** The start of a response. */
const PART = 'HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\npart';

const echo = await startEchoUpstream(t);
const silent = await startTcpUpstream(t, (socket) => socket.resume());

for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  t.test(`${signal} ends the server at once with status 0, and closes its open connections`, async (t) => {
    const log = join(tempDir(t), 'access');
    // The flush interval is long: buffered lines must be written at exit.
    const baton = await serve(t, { access_log: [fileAccessLog(log)] }, ['--file-flush-interval-msec', '600000']);
    const [web, tcp] = [await baton.listenerPort('web'), await baton.listenerPort('tcp')];
    const { adminPort } = baton;
    t.equal((await httpRequest(web, '/')).status, 200);
    const idle = await connectRaw(t, web);
    const half = await connectRaw(t, web);
    half.write('GET / HTTP/1.1\r\nho');
    const raw = await connectRaw(t, tcp);
    raw.write('x');
    await waitFor(() => silent.sockets.size > 0, { what: 'the proxied connection' });

    const { code, signal: by } = await baton.kill(signal);
    t.equal(code, 0);
    t.equal(by, null);
    t.match(baton.stderr, new RegExp(`\\[warning\\].*caught \\S*${signal}`));
    t.match(baton.stderr, 'shutting down server instance');
    t.match(baton.stderr, /exiting\n$/);
    for (const connection of [idle, half, raw]) t.not((await connection.readToEnd()).closed, 'open');
    await waitFor(() => [...silent.sockets].every((socket) => socket.readableEnded), {
      what: 'the close of the upstream connection',
    });
    for (const socket of silent.sockets) socket.destroy();
    for (const port of [web, tcp, adminPort]) t.ok(await refuses(port), `port ${port} is closed`);
    t.match(readFileSync(log, 'utf8'), /^\[.*"GET \/ HTTP\/1\.1" 200/m, 'buffered log lines are written');
  });
}

t.test('requests and connections in progress at exit are aborted and logged', async (t) => {
  const upstream = await startTcpUpstream(t, (socket) => socket.on('data', () => socket.write(PART)));
  const log = join(tempDir(t), 'access');
  const logged = { access_log: [fileAccessLog(log, '%PROTOCOL% %BYTES_SENT%\n')] };
  const baton = await startBaton(t, {
    config: bootstrap({
      listeners: [
        httpListener('web', 0, { route_config: routeAllTo('upstream'), ...logged }),
        tcpListener('tcp', 0, { cluster: 'upstream', ...logged }),
      ],
      clusters: [staticCluster('upstream', upstream.port)],
    }),
  });
  const request = await connectRaw(t, await baton.listenerPort('web'));
  request.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n');
  await request.readUntil('part');
  const stream = await connectRaw(t, await baton.listenerPort('tcp'));
  stream.write('x');
  await stream.readUntil('part');
  await baton.stop();
  t.equal((await request.readToEnd()).closed, 'reset');
  t.not((await stream.readToEnd()).closed, 'open');
  t.same(readFileSync(log, 'utf8').trim().split('\n').sort(), [`- ${PART.length}`, 'HTTP/1.1 4']);
});

t.test('a second SIGTERM does not disturb the exit', async (t) => {
  const baton = await serve(t);
  for (let index = 0; index < 20; index++) baton.child.kill(index % 2 === 0 ? 'SIGTERM' : 'SIGINT');
  const { code, signal } = await baton.kill('SIGTERM');
  t.equal(code, 0);
  t.equal(signal, null);
});

for (const signal of ['SIGUSR1', 'SIGHUP', 'SIGTERM'] as const) {
  t.test(`${signal} that arrives until the last moment does not disturb the exit`, async (t) => {
    const baton = await serve(t);
    baton.child.kill('SIGTERM');
    while (baton.exit === undefined && baton.child.exitCode === null && baton.child.signalCode === null) {
      for (let count = 0; count < 10; count++) baton.child.kill(signal);
      await new Promise(setImmediate);
    }
    t.same(await baton.exited, { code: 0, signal: null });
  });
}

t.test('SIGHUP is ignored', async (t) => {
  const baton = await serve(t);
  baton.child.kill('SIGHUP');
  await waitFor(() => baton.stderr.includes('caught and eating SIGHUP'));
  t.match(baton.stderr, /\[warning\].*caught and eating SIGHUP/);
  t.equal((await httpRequest(await baton.listenerPort('web'), '/')).status, 200);
  await baton.stop();
});

t.test('SIGUSR1 reopens access logs and the log file without losing a line', async (t) => {
  const directory = tempDir(t);
  const [access, log] = [join(directory, 'access'), join(directory, 'log')];
  const baton = await serve(t, { access_log: [fileAccessLog(access, '%REQ(:PATH)%\n')] }, [
    '--log-path',
    log,
    '--file-flush-interval-msec',
    '20',
    '--concurrency',
    '2',
    '--component-log-level',
    'connection:debug',
  ]);
  const port = await baton.listenerPort('web');
  for (let index = 0; index < 20; index++) await httpRequest(port, `/before-${index}`);
  renameSync(access, `${access}.1`);
  renameSync(log, `${log}.1`);
  baton.child.kill('SIGUSR1');
  await waitFor(() => existsSync(access) && existsSync(log), { what: 'new files' });
  for (let index = 0; index < 20; index++) await httpRequest(port, `/after-${index}`);
  await baton.stop();
  t.match(readFileSync(`${log}.1`, 'utf8'), /\[info\].*caught SIGUSR1/, 'the old file has the line about the signal');
  t.match(readFileSync(log, 'utf8'), /exiting\n$/, 'the new file has the later lines');
  t.match(readFileSync(log, 'utf8'), 'new connection', 'lines of workers too');
  t.equal(baton.stderr, '', 'nothing went to stderr');
  const old = readFileSync(`${access}.1`, 'utf8');
  const now = readFileSync(access, 'utf8');
  for (let index = 0; index < 20; index++) {
    t.ok(`${old}${now}`.includes(`/before-${index}\n`));
    t.ok(now.includes(`/after-${index}\n`));
  }
});

t.test('SIGPIPE, and closed readers of stdout and stderr, do not end the server', async (t) => {
  const baton = await serve(t, { access_log: [fileAccessLog('/dev/stdout')] }, ['--file-flush-interval-msec', '10']);
  const port = await baton.listenerPort('web');
  baton.child.kill('SIGPIPE');
  await httpRequest(port, '/');
  await waitFor(() => baton.stdout.includes('GET /'), { what: 'a line on stdout' });
  baton.child.stdout!.destroy();
  baton.child.stderr!.destroy();
  for (let index = 0; index < 5; index++) {
    baton.child.kill('SIGHUP');
    t.equal((await httpRequest(port, '/')).status, 200);
  }
  t.equal((await baton.admin('/ready')).status, 200);
  baton.child.kill('SIGTERM');
  const code = await withDeadline(new Promise((resolve) => baton.child.once('exit', resolve)), 'the exit');
  t.equal(code, 0);
});

t.test('SIGUSR1 during the start does not open the debugger', async (t) => {
  const baton = await startBaton(t, { config: config(), wait: 'spawned' });
  await waitUntilHandled(baton, constants.signals.SIGUSR1);
  const hasStarted = () => {
    baton.child.kill('SIGUSR1');
    return baton.stderr.includes('starting workers') || baton.exit !== undefined;
  };
  await waitFor(hasStarted, { what: 'the server to start' });
  const port = await baton.loggedPort('web');
  t.equal((await httpRequest(port, '/')).status, 200);
  await waitFor(() => baton.stderr.includes('Reopening access logs'), { what: 'the signal to be handled' });
  const expected = new Set([port, await baton.listenerPort('tcp'), baton.adminPort]);
  await waitFor(() => listeningPorts(baton.pid).every((each) => expected.has(each)), { what: 'no other port' });
  await baton.stop();
});

t.test('SIGTERM during the start ends the server with status 0', async (t) => {
  for (const moment of ['initializing epoch', 'starting workers']) {
    const baton = await startBaton(t, { config: config(), wait: 'spawned', args: ['--concurrency', '3'] });
    await waitFor(() => baton.stderr.includes(moment), { what: moment });
    const { code, signal } = await baton.kill('SIGTERM');
    t.equal(code, 0, `at '${moment}'`);
    t.equal(signal, null);
    t.notMatch(baton.stderr, /\[(error|critical)\]/);
  }
});

t.test('SIGTERM while stats sinks are created ends the server with status 0', async (t) => {
  const http = { http_uri: { uri: 'http://collector', cluster: 'collector', timeout: '1s' } };
  const type = 'type.googleapis.com/envoy.extensions.stat_sinks.open_telemetry.v3.SinkConfig';
  const sink = { name: 'collector', typed_config: { '@type': type, http_service: http } };
  const config = bootstrap({
    listeners: [],
    clusters: [staticCluster('collector', 1)],
    extra: { stats_sinks: [sink] },
  });
  const baton = await startBaton(t, { config, wait: 'spawned' });
  await waitFor(() => baton.stderr.includes('statically linked extensions:'), {
    what: 'Their code is loaded after this line.',
  });
  t.match(await baton.kill('SIGTERM'), { code: 0, signal: null });
});

t.test('SIGTERM while the configuration is read ends the server with status 0', async (t) => {
  const path = join(tempDir(t), 'large.json');
  const { clusters, ...rest } = (config() as Bootstrap).static_resources!;
  // Takes about a second to read.
  const many = Array.from({ length: 10_000 }, (_, index) => ({ ...clusters![0]!, name: `service_${index}` }));
  writeFileSync(
    path,
    JSON.stringify({ ...config(), static_resources: { ...rest, clusters: [...clusters!, ...many] } }),
  );
  const baton = await startBaton(t, { wait: 'spawned', args: ['-c', path] });
  // It is the last signal that Baton listens for, and nothing else in the process handles it.
  await waitUntilHandled(baton, constants.signals.SIGPIPE);
  baton.child.kill('SIGTERM');
  t.notMatch(baton.stderr, 'initializing epoch', 'the configuration was not read');
  const { code, signal } = await withDeadline(baton.exited, 'the exit after SIGTERM');
  t.equal(code, 0);
  t.equal(signal, null);
  t.notMatch(baton.stderr, /\[(error|critical)\]/);
});

t.test('SIGTERM and SIGINT do not wait for a configuration that never arrives', async (t) => {
  const path = join(tempDir(t), 'bootstrap.yaml');
  execFileSync('mkfifo', [path]);
  for (const name of ['SIGTERM', 'SIGINT'] as const) {
    const baton = await startBaton(t, { wait: 'spawned', args: ['-c', path] });
    await waitUntilHandled(baton, constants.signals.SIGPIPE);
    // The disposition of these is not set yet, and they do not end the process.
    baton.child.kill('SIGHUP');
    baton.child.kill('SIGUSR1');
    const { code, signal } = await baton.kill(name);
    t.equal(code, 0);
    t.equal(signal, null);
    t.match(baton.stderr, `caught ${name}`);
    t.notMatch(baton.stderr, /\[(error|critical)\]/, 'the configuration was not waited for');
  }
});

function config(manager: Config = {}): Config {
  return bootstrap({
    listeners: [
      httpListener('web', 0, { route_config: routeAllTo('echo'), ...manager }),
      tcpListener('tcp', 0, { cluster: 'silent' }),
    ],
    clusters: [staticCluster('echo', echo.port), staticCluster('silent', silent.port)],
  });
}

function serve(t: Teardown, manager: Config = {}, args: string[] = []): Promise<BatonProcess> {
  return startBaton(t, { config: config(manager), args });
}

/** Waits until the process handles the signal, whose default action would end it. */
async function waitUntilHandled(baton: BatonProcess, signal: number): Promise<void> {
  const bit = 1n << BigInt(signal - 1);
  await waitFor(
    () => {
      const caught = /^SigCgt:\s+([0-9a-f]+)/m.exec(readFileSync(`/proc/${baton.pid}/status`, 'utf8'))![1]!;
      return (BigInt(`0x${caught}`) & bit) !== 0n;
    },
    { what: 'the signal to be handled' },
  );
}

function refuses(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy();
      resolve(false);
    });
    socket.once('error', () => resolve(true));
  });
}
