// Internal listeners that are added, changed and removed at run time, and in a hot restart: what is in flight ends first.

import t from 'tap';
import { FileSource } from '../../dynamic/sources.js';
import { besideEnvoy, type ProxyProgram } from '../../harness/envoy.js';
import {
  type BatonProcess,
  type Config,
  connectRaw,
  EpochLine,
  freePort,
  httpListener,
  httpRequest,
  startBaton,
  startTcpUpstream,
  startUpstream,
  staticCluster,
  type Teardown,
  tcpListener,
  tempDir,
  waitFor,
} from '../../harness/index.js';
import { answering, managerOf, routeTo } from '../../http/proxy.js';
import { internal, internalBootstrap, internalCluster } from './config.js';

const answers = (text: string) => internal(httpListener('inner', 0, managerOf([answering({ prefix: '/' }, text)])));

/** Starts a listener in front of the internal listener `inner`, which is discovered. */
async function start(t: Teardown, program: ProxyProgram, drainSeconds: number, clusters: Config[] = []) {
  const source = new FileSource(tempDir(t));
  source.set('cluster', []);
  source.set('listener', []);
  const front = httpListener('front', 0, managerOf([routeTo({ prefix: '/' }, 'inner', { timeout: '30s' })]));
  const baton: BatonProcess = await startBaton(t, {
    ...program,
    args: ['-l', 'error', '--concurrency', '1', '--drain-time-s', `${drainSeconds}`],
    config: internalBootstrap([front], [internalCluster('inner', 'inner'), ...clusters], source.extra),
  });
  const port = await baton.listenerPort('front');
  return { baton, set: (...listeners: Config[]) => source.set('listener', listeners), get: () => httpRequest(port) };
}

besideEnvoy('an internal listener is added, changed and removed', async (t, program) => {
  const { get, set } = await start(t, program, 1);
  t.match(await get(), { status: 503 });
  set(answers('one'));
  await waitFor(async () => (await get()).body === 'one', { what: 'the added listener' });
  set(answers('two'));
  await waitFor(async () => (await get()).body === 'two', { what: 'the changed listener' });
  set();
  await waitFor(async () => (await get()).status === 503, { what: 'the removed listener' });
});

besideEnvoy('a request in flight at a removed internal listener is still answered', async (t, program) => {
  let answer = () => {};
  const host = await startUpstream(t, (_request, response) => {
    answer = () => void response.end('late');
  });
  const { baton, get, set } = await start(t, program, 30, [staticCluster('host', host.port)]);
  set(internal(httpListener('inner', 0, managerOf([routeTo({ prefix: '/' }, 'host', { timeout: '30s' })]))));
  await baton.waitForStats({ 'listener_manager.lds.update_success': 2, 'listener_manager.total_listeners_active': 2 });
  const response = get();
  await baton.waitForStats({ 'cluster.host.upstream_rq_active': 1 });
  set();
  await baton.waitForStats({ 'listener_manager.total_listeners_draining': 1 });
  answer();
  t.match(await response, { status: 200, body: 'late' });
});

const GET = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n';

for (const how of ['removed', 'stopped'] as const) {
  besideEnvoy(`a client that is connected still reaches an internal listener that is ${how}`, async (t, program) => {
    const { baton, set } = await start(t, program, 30);
    set(answers('inner'));
    await baton.waitForStats({
      'listener_manager.lds.update_success': 2,
      'listener_manager.total_listeners_active': 2,
    });
    const client = await connectRaw(t, await baton.listenerPort('front'));
    if (how === 'stopped') await baton.admin('/drain_listeners', { method: 'POST' });
    else set();
    await baton.waitForStats(
      how === 'stopped'
        ? { 'listener_manager.listener_stopped': 2 }
        : { 'listener_manager.total_listeners_draining': 1 },
    );
    client.write(GET);
    t.match(await client.readUntil(/inner|503/), /^HTTP\/1\.1 200/);
  });
}

t.test('an exit does not wait for idle connections to internal listeners, which have no client', async (t) => {
  const front = httpListener('front', 0, managerOf([routeTo({ prefix: '/' }, 'inner')]));
  const baton = await startBaton(t, {
    args: ['--drain-on-sigterm', '--drain-time-s', '600', '--concurrency', '1'],
    config: internalBootstrap([front, answers('inner')], [internalCluster('inner', 'inner')]),
  });
  t.match(await httpRequest(await baton.listenerPort('front')), { body: 'inner' });
  await baton.waitForStats({ 'listener.envoy_internal_inner.downstream_cx_active': 1 });
  baton.child.kill('SIGTERM');
  t.same(await baton.exited, { code: 0, signal: null });
  t.match(baton.stderr, 'the last connection has ended');
});

t.test('a listener in use by a discovered one needs the bootstrap extension', async (t) => {
  const source = new FileSource(tempDir(t));
  source.set('cluster', []);
  source.set('listener', [answers('one')]);
  const front = httpListener('front', 0, managerOf([answering({ prefix: '/' }, 'front')]));
  const config = internalBootstrap([front], [], { ...source.extra, bootstrap_extensions: [] });
  const baton = await startBaton(t, { args: ['-l', 'warning'], config });
  await baton.waitForStats({ 'listener_manager.lds.update_rejected': 1 });
  t.match(baton.stderr, /inner.*InternalListener bootstrap extension is mandatory/s);
});

for (const args of [[], ['--hand-over-connections']]) {
  t.test(`connections to internal listeners stay in their process in a hot restart ${args.join('')}`, async (t) => {
    const host = await startTcpUpstream(t, (socket) => void socket.pipe(socket));
    const line = new EpochLine(t);
    const port = await freePort();
    const options = {
      args: [
        '-l',
        'warning',
        '--concurrency',
        '1',
        '--drain-time-s',
        '600',
        '--parent-shutdown-time-s',
        '600',
        ...args,
      ],
      config: internalBootstrap(
        [tcpListener('front', port, { cluster: 'inner' }), internal(tcpListener('inner', 0, { cluster: 'host' }))],
        [internalCluster('inner', 'inner'), staticCluster('host', host.port)],
      ),
    };
    const parent = await line.start(0, options);
    const early = await connectRaw(t, port);
    early.write('early');
    await early.readUntil('early');
    const child = await line.start(1, options);
    await child.waitForStats({ 'server.live': 1 });
    early.write('again');
    await early.readUntil('again');
    t.equal(parent.exit, undefined);
    const late = await connectRaw(t, port);
    late.write('late');
    await late.readUntil('late');
    await child.waitForStats({ 'listener.envoy_internal_inner.downstream_cx_total': 2 });
    early.end();
    t.equal((await early.readToEnd()).closed, 'end');
    await parent.kill('SIGTERM');
    await child.kill('SIGTERM');
  });
}
