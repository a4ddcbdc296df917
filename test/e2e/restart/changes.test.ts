// Listeners that change while a child starts and holds copies of their sockets: no client is left waiting.

import t from 'tap';
import { ResourceFile } from '../dynamic/resource-file.js';
import { startControlPlane } from '../harness/control-plane.js';
import {
  type BatonProcess,
  bootstrap,
  type Config,
  EpochLine,
  freePort,
  httpListener,
  httpRequest,
  isRefused,
  tempDir,
  waitFor,
  waitForLog,
} from '../harness/index.js';
import { answering, managerOf } from '../http/proxy.js';

const LISTENER = 'envoy.config.listener.v3.Listener';
const ARGS = ['-l', 'info', '--parent-shutdown-time-s', '1', '--drain-time-s', '1'];
const REQUESTS = 20;

t.test('every client is answered when listeners are removed and added again while a child starts', async (t) => {
  const plane = await startControlPlane(t);
  const ports = { stays: await freePort(), goes: await freePort(), again: await freePort() };
  const listener = (name: keyof typeof ports, text = name as string) =>
    httpListener(name, ports[name], managerOf([answering({ prefix: '/' }, text)]));
  const listeners = new ResourceFile(tempDir(t), 'listeners');
  const all = [listener('stays'), listener('goes'), listener('again')];
  listeners.write(LISTENER, ...all);
  const dynamic = { lds_config: listeners.source };
  const config = bootstrap({
    listeners: [],
    clusters: [],
    extra: { node: { id: 'test-node', cluster: 'test-cluster' }, dynamic_resources: dynamic },
  });
  const answers = async (name: keyof typeof ports, text = name as string) => {
    for (let count = 0; count < REQUESTS; count++) {
      t.equal((await httpRequest(ports[name], '/', { deadlineMs: 5000 })).body, text);
    }
  };

  const line = new EpochLine(t);
  const parent = await line.start(0, { config, args: ARGS });
  plane.hold();
  const waiting = waitingFor(plane.ads(), config, plane.cluster());
  const first = await line.start(1, { config: waiting, args: ARGS, wait: 'spawned' });
  await waitForLog(parent, 'a child process of epoch 1 initializes');
  listeners.write(LISTENER, listener('stays'));
  await waitForLog(parent, "lds: remove listener 'goes'");
  await answers('goes');
  await answers('again');
  listeners.write(LISTENER, listener('stays'), listener('again', 'new'));
  await waitFor(async () => (await httpRequest(ports.again, '/')).body === 'new', { what: 'the new version' });
  await waitFor(async () => (await parent.admin('/listeners')).body.includes('again'), { what: 'the new version' });
  await answers('stays');
  t.match(await parent.admin('/config/reload?apply=true', { method: 'POST' }), {
    body: /another process takes over from this one/,
  });

  await first.kill();
  await waitForLog(parent, 'the child process was lost before it was live');
  const refused = (name: keyof typeof ports) => isRefused(ports[name]);
  await waitFor(() => refused('goes'), { what: 'the close of the removed listener' });
  await answers('again', 'new');

  const second = await line.start(1, { config: waiting, args: ARGS, wait: 'spawned' });
  await waitFor(() => parent.stderr.split('a child process of epoch 1 initializes').length === 3, {
    what: 'the second child',
  });
  listeners.write(LISTENER, listener('stays'));
  await waitFor(() => parent.stderr.split("lds: remove listener 'again'").length === 3, { what: 'a removal' });
  await answers('again', 'new');
  plane.set('cluster', []);
  plane.release();
  await waitForLog(parent, 'closing and draining listeners');
  await waitFor(() => refused('again'), { what: 'the close of the removed listener' });
  await answers('stays');
  t.match(await parent.exited, { code: 0 });
  await second.stop();
});

t.test('listeners stopped while a child starts accept until it has taken over, or has exited', async (t) => {
  const plane = await startControlPlane(t);
  const config = bootstrap({
    listeners: [httpListener('web', await freePort(), managerOf([answering({ prefix: '/' }, 'here')]))],
    clusters: [],
    extra: { node: { id: 'test-node', cluster: 'test-cluster' } },
  });
  const line = new EpochLine(t);
  plane.hold();
  const waiting = waitingFor(plane.ads(), config, plane.cluster());
  const begin = async (parent: BatonProcess) => {
    const child = await line.start(1, { config: waiting, args: ARGS, wait: 'spawned' });
    await waitForLog(parent, 'a child process of epoch 1 initializes');
    return child;
  };
  const serves = async (port: number) => {
    for (let count = 0; count < REQUESTS; count++) {
      t.equal((await httpRequest(port, '/', { deadlineMs: 5000 })).body, 'here');
    }
  };

  for (const path of ['/drain_listeners', '/drain_listeners?graceful']) {
    const parent = await line.start(0, { config, args: ARGS });
    const port = await parent.listenerPort('web');
    const child = await begin(parent);
    const drained = parent.admin(path, { method: 'POST', deadlineMs: 30_000 });
    await waitForLog(parent, 'listeners are stopped when the child process has taken over or ended');
    await serves(port);
    await child.kill();
    t.match(await drained, { status: 200, body: 'OK\n' });
    await waitFor(() => isRefused(port), { what: 'the close of the listener' });
    await parent.stop();
  }

  const parent = await line.start(0, { config, args: ARGS });
  const port = await parent.listenerPort('web');
  const child = await begin(parent);
  const drained = parent.admin('/drain_listeners', { method: 'POST', deadlineMs: 30_000 });
  await waitForLog(parent, 'listeners are stopped when the child process has taken over or ended');
  await serves(port);
  plane.set('cluster', []);
  plane.set('listener', []);
  plane.release();
  t.match(await drained, { status: 200, body: 'OK\n' });
  await serves(port);
  t.match(await parent.exited, { code: 0 });
  await serves(port);
  await child.stop();
});

/** Returns the configuration of a child that is not live until a management server has sent it clusters. */
function waitingFor(ads: Config, config: Config, cluster: Config): Config {
  const { dynamic_resources: resources, ...rest } = ads as { dynamic_resources: Config };
  const known = config as { dynamic_resources: Config; static_resources: Config };
  const source = { resource_api_version: 'V3', ads: {}, initial_fetch_timeout: '0s' };
  return {
    ...config,
    ...rest,
    static_resources: { ...known.static_resources, clusters: [cluster] },
    dynamic_resources: { ...resources, ...known.dynamic_resources, cds_config: source },
  };
}
