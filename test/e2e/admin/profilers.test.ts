// Profiles of a server under load cover all its threads, and the profilers answer requests in any order.

import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import { Agent, get } from 'node:http';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import t from 'tap';
import {
  type BatonProcess,
  bootstrap,
  httpListener,
  loopback,
  routeAllTo,
  startBaton,
  startUpstream,
  staticCluster,
  type Teardown,
  tempDir,
  waitFor,
} from '../harness/index.js';
import { startBreakableBaton } from '../process/faults/fault-injection.js';
import { hasFrame, readProfile, threadsOf, totalOf } from './pprof-reader.js';

const THREADS = ['primary', 'worker_0', 'worker_1'];
const CLIENTS = 8;

const upstream = await startUpstream(t, (_request, response) => response.end('hello'));
const path = join(tempDir(t), 'baton.prof');
const config = configWith({ profile_path: path });
const args = ['--concurrency', '2'];

t.test('profilers of a server under load', async (t) => {
  const baton = await startBaton(t, { config, args });
  const port = await baton.listenerPort('web');
  const load = startLoad(t, port);
  const post = (target: string) => ask(baton, target);

  await t.test('the profilers explain their parameters', async (t) => {
    for (const name of ['cpuprofiler', 'heapprofiler', 'allocprofiler']) {
      for (const query of ['', '?enable', '?enable=', '?enable=yes', '?enable=y&seconds=5', '?seconds=5']) {
        t.same(await post(`/${name}${query}`), [400, '?enable=<y|n>\n'], `${name}${query}`);
      }
      t.equal((await baton.admin(`/${name}?enable=y`)).status, 400, 'a GET starts nothing');
    }
  });

  await t.test('only a started profiler can be stopped', async (t) => {
    t.same(await post('/cpuprofiler?enable=n'), [200, 'OK\n']);
    t.same(await post('/heapprofiler?enable=n'), [400, 'Fail to stop heap profiler: not started']);
    t.same(await post('/allocprofiler?enable=n'), [400, 'Fail to stop allocation profiler: not started']);
  });

  await t.test('heap dumps work before a profiler was started', async (t) => {
    const { status, body, headers } = await baton.admin('/heap_dump');
    t.equal(status, 200);
    t.equal(headers['content-type'], 'application/octet-stream');
    const profile = readProfile(body);
    t.same(profile.types, ['samples/count', 'inuse_space/bytes']);
    t.equal(profile.defaultType, 'inuse_space');
    t.same(threadsOf(profile), THREADS);
    t.ok(hasFrame(profile, /worker_1/, /^\(old_space\)/));
    t.match(profile.comments.join(), /heapprofiler\?enable=y/, 'the profile explains how to get more detail');
    // Garbage may be allocated and collected between the two.
    const { allocated } = JSON.parse((await baton.admin('/memory')).body);
    const ratio = totalOf(profile) / Number(allocated);
    t.ok(ratio > 0.5 && ratio < 2, `all memory in use, as /memory reports it (${ratio})`);
    const peak = await baton.admin('/peak_heap_dump');
    t.same([peak.status, peak.body.includes('no peak yet')], [503, true]);
  });

  await t.test('the CPU profiler samples all threads', async (t) => {
    await waitFor(
      async () => {
        const started = await post('/cpuprofiler?enable=y');
        t.same(started, [200, 'OK\n']);
        const again = await post('/cpuprofiler?enable=y');
        t.same(again, [500, 'failure to start the profiler']);
        for (let index = 0; index < 20; index++) await baton.admin('/stats?format=json');
        const stopped = await post('/cpuprofiler?enable=n');
        t.same(stopped, [200, 'OK\n']);
        const profile = readProfile(readFileSync(path));
        t.same(profile.types, ['samples/count', 'cpu/nanoseconds']);
        t.equal(profile.defaultType, 'cpu');
        t.equal(profile.period, 5_000_000);
        t.notOk(
          profile.samples.some(({ stack }) => stack[0]!.startsWith('(idle)')),
          'idle time does not count',
        );
        // One round may miss code that runs only briefly.
        return (
          hasFrame(profile, /^worker_/, /^\S+ src\/http\/.*\.ts:[1-9]/) &&
          hasFrame(profile, /^worker_/, /^\(transport and kernel\)/) &&
          hasFrame(profile, /^primary$/, /dist\/src\/|node:internal/)
        );
      },
      { what: 'samples of the data plane and of the primary', deadlineMs: 60_000 },
    );
    t.match(baton.stderr, /\[error\].*the CPU profiler does not start: already started/);
  });

  await t.test('the heap profiler records live allocations', async (t) => {
    t.same(await post('/heapprofiler?enable=y'), [200, 'Starting heap profiler']);
    t.same(await post('/heapprofiler?enable=y'), [400, 'Fail to start heap profiler: already started']);
    const excluded = [400, 'Fail to start allocation profiler: the heap profiler is running'];
    t.same(await post('/allocprofiler?enable=y'), excluded);
    const sockets = await openConnections(t, port, 400);
    const before = readProfile((await baton.admin('/heap_dump')).body);
    t.same(threadsOf(before), THREADS);
    t.ok(hasFrame(before, /^worker_/, /^\S+ src\//), 'the allocation sites of connections');
    t.ok(hasFrame(before, /^primary$/, /^\(allocated before sampling began\)/));
    for (const socket of sockets) socket.destroy();
    await waitFor(async () => (await baton.stat('http.web.downstream_cx_active'))! <= CLIENTS);
    const peak = readProfile((await baton.admin('/peak_heap_dump')).body);
    t.ok(totalOf(peak) >= totalOf(before), 'the peak stays after the connections have closed');
    t.same(await post('/heapprofiler?enable=n'), [200, `Heap profiler stopped and data written to ${path}`]);
    const written = readProfile(readFileSync(path));
    t.equal(written.defaultType, 'inuse_space');
    t.same(threadsOf(written), THREADS);
    const later = readProfile((await baton.admin('/peak_heap_dump')).body);
    t.ok(totalOf(later) >= totalOf(peak), 'and after the profiler has stopped');
  });

  await t.test('the allocation profiler records all allocations', async (t) => {
    t.same(await post('/allocprofiler?enable=y'), [200, 'Starting allocation profiler']);
    t.same(await post('/allocprofiler?enable=y'), [400, 'Fail to start allocation profiler: already started']);
    const excluded = [400, 'Fail to start heap profiler: the allocation profiler is running'];
    t.same(await post('/heapprofiler?enable=y'), excluded);
    t.equal((await baton.admin('/heap_dump')).status, 200, 'and heap dumps still work');
    for (const socket of await openConnections(t, port, 400)) socket.destroy();
    await baton.admin('/stats');
    const { status, body } = await baton.admin('/allocprofiler?enable=n', { method: 'POST' });
    t.equal(status, 200);
    const profile = readProfile(body);
    t.same(profile.types, ['samples/count', 'alloc_space/bytes']);
    t.ok(hasFrame(profile, /^worker_/, /^\S+ src\/http\//), 'allocations of requests are short-lived, and count');
    t.ok(hasFrame(profile, /^primary$/, /./));
    t.ok(readFileSync(path).equals(Buffer.from(body, 'latin1')), 'the file has it too');
  });

  await t.test('requests are served throughout', async (t) => {
    t.equal(load.failed(), 0, `of ${load.answered()} requests`);
  });

  await t.test('a running profiler writes its profile when the server exits', async (t) => {
    await post('/cpuprofiler?enable=y');
    rmSync(path);
    await baton.stop();
    t.equal(readProfile(readFileSync(path)).defaultType, 'cpu');
  });
});

t.test('a profile file that cannot be written is reported at the start of the profiler', async (t) => {
  const missing = join(tempDir(t), 'missing', 'baton.prof');
  const baton = await startBaton(t, { config: configWith({ profile_path: missing }) });
  t.same(await ask(baton, '/cpuprofiler?enable=y'), [500, 'failure to start the profiler']);
  t.match(baton.stderr, new RegExp(`does not start: ${missing} cannot be written: ENOENT.*admin.profile_path`));
  for (const [name, sentence] of [
    ['heapprofiler', 'Fail to start heap profiler'],
    ['allocprofiler', 'Fail to start allocation profiler'],
  ]) {
    const [status, body] = await ask(baton, `/${name}?enable=y`);
    t.equal(status, 500);
    t.match(body, new RegExp(`^${sentence}: ${missing} cannot be written: ENOENT`));
    t.equal((await ask(baton, `/${name}?enable=n`))[0], 400, 'nothing runs');
  }
  t.equal((await baton.admin('/heap_dump')).status, 200, 'dumps need no file');
});

t.test('a profile file that is no longer writable is reported in one line at the end', async (t) => {
  const directory = join(tempDir(t), 'profiles');
  mkdirSync(directory);
  const path = join(directory, 'baton.prof');
  const baton = await startBaton(t, { config: configWith({ profile_path: path }) });
  t.same(await ask(baton, '/cpuprofiler?enable=y'), [200, 'OK\n']);
  rmSync(directory, { recursive: true });
  const [status, body] = await ask(baton, '/cpuprofiler?enable=n');
  t.equal(status, 500);
  t.match(body, /^\/cpuprofiler failed: \S+ cannot be written: ENOENT.*admin\.profile_path/);
  t.match(baton.stderr, /admin path "\/cpuprofiler" failed: \S+ cannot be written: ENOENT.*admin\.profile_path/);
  t.notMatch(baton.stderr, /\] {5}at /, 'without a stack');
});

t.test('a worker that dies is left out of the profile', async (t) => {
  const { baton, killWorker } = await startBreakableBaton(t, { config, args });
  t.same(await ask(baton, '/cpuprofiler?enable=y'), [200, 'OK\n']);
  const dead = await killWorker('throw');
  await waitFor(async () => threadsOf(readProfile((await baton.admin('/heap_dump')).body)).length === THREADS.length);
  t.same(await ask(baton, '/cpuprofiler?enable=n'), [200, 'OK\n']);
  const { comments } = readProfile(readFileSync(path));
  t.match(comments, [new RegExp(`^worker_${dead} is left out`)]);
  t.match(baton.stderr, new RegExp(`worker_${dead} is left out of the profile of the CPU profiler`));
  t.same(await ask(baton, '/cpuprofiler?enable=y'), [200, 'OK\n'], 'the next profile includes it again');
  await ask(baton, '/cpuprofiler?enable=n');
  t.same(readProfile(readFileSync(path)).comments, []);
});

function configWith(admin: Record<string, unknown>) {
  return bootstrap({
    listeners: [httpListener('web', 0, { route_config: routeAllTo('hello') })],
    clusters: [staticCluster('hello', upstream.port)],
    extra: { admin: { address: loopback(0), ...admin } },
  });
}

async function ask(baton: BatonProcess, target: string): Promise<[status: number, body: string]> {
  const { status, body } = await baton.admin(target, { method: 'POST' });
  return [status, body];
}

/** Clients that send one request after the other on separate connections, until the test ends. */
function startLoad(t: Teardown, port: number) {
  const agent = new Agent({ keepAlive: true, maxSockets: CLIENTS });
  let isEnded = false;
  let answered = 0;
  let failed = 0;
  const request = () =>
    new Promise<void>((resolve) => {
      const sent = get({ port, host: '127.0.0.1', agent, timeout: 10_000 }, (response) => {
        if (response.statusCode === 200) answered++;
        else failed++;
        response.resume().on('end', resolve);
      });
      sent.on('timeout', () => sent.destroy());
      sent.on('error', () => {
        if (!isEnded) failed++;
        resolve();
      });
    });
  const client = async () => {
    while (!isEnded) await request();
  };
  const clients = Promise.all(Array.from({ length: CLIENTS }, client));
  const end = async () => {
    isEnded = true;
    agent.destroy();
    await clients;
  };
  t.teardown(end);
  return { answered: () => answered, failed: () => failed };
}

/** Opens connections on which one request has been answered each. */
async function openConnections(t: Teardown, port: number, count: number): Promise<Socket[]> {
  const sockets: Socket[] = [];
  t.teardown(() => {
    for (const socket of sockets) socket.destroy();
  });
  for (let index = 0; index < count; index++) {
    const socket = connect(port, '127.0.0.1').on('error', () => {});
    sockets.push(socket);
    socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
    await new Promise((resolve) => socket.once('data', resolve));
  }
  return sockets;
}
