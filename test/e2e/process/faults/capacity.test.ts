// Many connections, and fewer descriptors than connections.

import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import t from 'tap';
import {
  bootstrap,
  connectRaw,
  httpListener,
  httpRequest,
  routeAllTo,
  startBaton,
  startEchoUpstream,
  staticCluster,
  type Teardown,
  takeReserve,
  waitFor,
} from '../../harness/index.js';
import { openStream, type Stream } from '../../tcp/stream.js';

const upstream = await startEchoUpstream(t);
const web = httpListener('web', 0, { route_config: routeAllTo('echo') });
const config = bootstrap({
  listeners: [web],
  clusters: [staticCluster('echo', upstream.port)],
});

t.test('ten thousand idle connections use little memory each, and are released completely', async (t) => {
  const count = Math.min(10_000, descriptorLimit() - 500);
  t.comment(`${count} connections`);
  const baton = await startBaton(t, { config });
  const port = await baton.listenerPort('web');
  for (let index = 0; index < 200; index++) await httpRequest(port, '/');
  const before = residentBytes(baton.pid);
  const sockets = await openIdle(t, port, count);
  await baton.waitForStat('http.web.downstream_cx_active', count);
  const grown = residentBytes(baton.pid) - before;
  t.comment(
    `resident memory ${mib(before)} MiB, then ${mib(before + grown)} MiB: ${Math.round(grown / count)} bytes each`,
  );
  t.equal((await httpRequest(port, '/')).status, 200, 'the next client is served');
  t.equal((await baton.admin('/ready')).status, 200);
  for (const socket of sockets) socket.destroy();
  await baton.waitForStat('http.web.downstream_cx_active', 0);
  t.equal(await baton.stat('http.web.downstream_cx_destroy'), await baton.stat('http.web.downstream_cx_total'));
  await baton.stop();
});

t.test('the process exits cleanly with thousands of open connections', async (t) => {
  const baton = await startBaton(t, { config, args: ['--concurrency', '2'] });
  const sockets = await openIdle(t, await baton.listenerPort('web'), Math.min(3000, descriptorLimit() - 500));
  await baton.waitForStat('http.web.downstream_cx_active', sockets.length);
  await baton.stop();
  await waitFor(() => sockets.every((socket) => socket.destroyed), { what: 'the close of every connection' });
});

t.test('accepting pauses when descriptors run out, and resumes when some are free', async (t) => {
  const baton = await startBaton(t, { config, wrapper: ['sh', '-c', 'ulimit -n 120; exec "$@"', 'sh'] });
  const port = await baton.listenerPort('web');
  const held: Stream[] = [];
  for (let index = 0; index < 150; index++) held.push(await openStream(t, port));
  await waitFor(() => /\[warning\].*no more connections are accepted/.test(baton.stderr), { what: 'the warning' });
  const lines = baton.stderr.split('\n').length;
  const busy = cpuSeconds(baton.pid);
  // Accepted connections can get local replies, though no upstream connection can be opened.
  for (const stream of held) if (stream.closed === 'open') stream.socket.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n');
  await waitFor(() => held.filter((stream) => stream.length > 0).length > 10, {
    what: 'responses on accepted connections',
  });
  for (const stream of held.slice(0, 100)) stream.socket.destroy();
  await waitFor(() => held.slice(100).every((stream) => stream.length > 0), { what: 'responses on the others' });
  for (const stream of held) stream.socket.destroy();
  await waitFor(async () => (await httpRequest(port, '/')).status === 200, { what: 'normal service' });
  await baton.waitForStat('http.web.downstream_cx_active', 0);
  t.ok(baton.stderr.split('\n').length - lines < 50, 'the log is not flooded');
  t.comment(`${(cpuSeconds(baton.pid) - busy).toFixed(2)} s of processor time meanwhile`);
  t.notMatch(baton.stderr, /\[critical\]|internal error/);
  await baton.stop();
});

t.test('without a free descriptor, and without /proc, stats and memory are still reported', async (t) => {
  const limit = 120;
  const full = await startBaton(t, { config, wrapper: ['sh', '-c', `ulimit -n ${limit}; exec "$@"`, 'sh'] });
  const admin = await connectRaw(t, full.adminPort);
  const ask = async (path: string) => {
    admin.write(`GET ${path} HTTP/1.1\r\nhost: a\r\n\r\n`);
    const head = await admin.readUntil('\r\n\r\n');
    await admin.readUntil('\r\n0\r\n\r\n');
    return head.slice(0, 15);
  };
  t.equal(await ask('/ready'), 'HTTP/1.1 200 OK');
  const port = await full.listenerPort('web');
  const held: Stream[] = [];
  for (let index = 0; index < limit; index++) held.push(await openStream(t, port));
  await waitFor(() => /\[warning\].*no more connections are accepted/.test(full.stderr), {
    what: 'the shortage of descriptors',
  });
  await takeReserve(t, full, limit - 1);
  for (const path of MEASURING) t.equal(await ask(path), 'HTTP/1.1 200 OK', path);
  t.equal(held.filter(({ closed }) => closed !== 'open').length, 0, 'no worker has died');
  t.notMatch(full.stderr, /died|failed: Error/);
  for (const stream of held) stream.socket.destroy();
  await full.stop();

  const wrapper = ['unshare', '--mount', 'sh', '-c', 'mount -t tmpfs none /proc && exec "$@"', 'sh'];
  if (spawnSync(wrapper[0]!, [...wrapper.slice(1), 'true']).status !== 0) return;
  const bare = await startBaton(t, { config, wrapper });
  for (const path of MEASURING) t.equal((await bare.admin(path)).status, 200, path);
  t.notMatch(bare.stderr, /died|failed: Error/);
  await bare.stop();
});

const MEASURING = ['/stats', '/memory', '/memory/allocator'];

/** Opens connections on which nothing is sent. */
async function openIdle(t: Teardown, port: number, count: number): Promise<Socket[]> {
  const sockets: Socket[] = [];
  t.teardown(() => {
    for (const socket of sockets) socket.destroy();
  });
  while (sockets.length < count) {
    const some = Array.from({ length: Math.min(200, count - sockets.length) }, () => connect(port, '127.0.0.1'));
    sockets.push(...some);
    await Promise.all(
      some.map(
        (socket) =>
          new Promise<void>((resolve, reject) => {
            socket.once('connect', resolve);
            socket.once('error', reject);
          }),
      ),
    );
  }
  for (const socket of sockets) socket.on('error', () => {}).resume();
  return sockets;
}

/** Returns the descriptor limit of this process. */
function descriptorLimit(): number {
  return Number(/^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))![1]);
}

function residentBytes(pid: number): number {
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) * 1024;
}

function cpuSeconds(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1]!.split(' ');
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

function mib(bytes: number): string {
  return (bytes / 1024 / 1024).toFixed(1);
}
