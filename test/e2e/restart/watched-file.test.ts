// --watch-config in a hot restart: the serving process watches its file, and the replaced one does not.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { startControlPlane } from '../harness/control-plane.js';
import {
  type BatonProcess,
  bootstrap,
  type Config,
  connectRaw,
  EpochLine,
  freePort,
  httpListener,
  httpRequest,
  tempDir,
  waitFor,
  waitForLog,
} from '../harness/index.js';
import { answering, managerOf } from '../http/proxy.js';

const ARGS = ['-l', 'info', '--concurrency', '1', '--parent-shutdown-time-s', '600', '--drain-time-s', '600'];

t.test('a process watches its configuration until another one has taken over', async (t) => {
  const path = join(tempDir(t), 'config.yaml');
  const write = (text: string) => {
    const listener = httpListener('web', 0, managerOf([answering({ prefix: '/' }, text)]));
    writeFileSync(path, JSON.stringify(bootstrap({ listeners: [listener], clusters: [] })));
  };
  write('first');
  const line = new EpochLine(t);
  const args = ['-c', path, '--watch-config', ...ARGS];
  const parent = await line.start(0, { args });
  const port = await parent.listenerPort('web');
  const answers = (text: string) =>
    waitFor(async () => (await httpRequest(port)).body === text, { what: `the answer ${text}` });
  // Keeps it alive while it drains.
  await connectRaw(t, port);

  const lost = await line.start(1, { args, wait: 'spawned' });
  await waitForLog(parent, 'a child process of epoch 1 initializes');
  lost.child.kill('SIGKILL');
  await waitForLog(parent, 'this one keeps serving');
  write('second');
  await answers('second');
  const before = changesSeen(parent);

  const child = await line.start(1, { args });
  await waitForLog(parent, 'closing and draining listeners');
  write('third');
  await answers('third');
  await child.stop();
  await parent.exited;
  t.equal(changesSeen(parent), before);
  t.equal(changesSeen(child), 1);
});

t.test('a change that arrives while a child starts is applied when the child is gone', async (t) => {
  const plane = await startControlPlane(t);
  plane.hold();
  const path = join(tempDir(t), 'config.yaml');
  const configured = (text: string, more: Config = {}) => {
    const listener = httpListener('web', 0, managerOf([answering({ prefix: '/' }, text)]));
    return bootstrap({ listeners: [listener], clusters: [plane.cluster()], extra: more });
  };
  writeFileSync(path, JSON.stringify(configured('first')));
  const line = new EpochLine(t);
  const parent = await line.start(0, { args: ['-c', path, '--watch-config', ...ARGS] });
  const port = await parent.listenerPort('web');
  const child = await line.start(1, { config: configured('child', plane.ads()), args: ARGS, wait: 'spawned' });
  await waitForLog(parent, 'a child process of epoch 1 initializes');
  writeFileSync(path, JSON.stringify(configured('second')));
  await waitForLog(parent, `${path} has changed`);
  // Refused while another process starts.
  await waitFor(async () => (await parent.admin('/config/reload', { method: 'POST' })).status === 200);
  t.equal((await httpRequest(port)).body, 'first');
  await child.kill();
  await waitFor(async () => (await httpRequest(port)).body === 'second', { what: 'the change' });
  t.notMatch(parent.stderr, '[error]');
  await parent.stop();
});

t.test('a reload interrupted by a take-over is not a failure, and reopens no listener', async (t) => {
  const plane = await startControlPlane(t);
  plane.hold();
  const web = httpListener('web', 0, managerOf([answering({ prefix: '/' }, 'here')]));
  const config_source = plane.source('sotw', { initial_fetch_timeout: '0s' });
  const waits = httpListener('waits', await freePort(), { rds: { route_config_name: 'routes', config_source } });
  const configured = (...listeners: Config[]) => {
    return bootstrap({ listeners, clusters: [plane.cluster()], extra: { node: { id: 'id', cluster: 'cluster' } } });
  };
  const line = new EpochLine(t);
  const parent = await line.start(0, { config: configured(web), args: ARGS });
  const port = await parent.listenerPort('web');
  // Keeps it alive while it drains.
  await connectRaw(t, port);
  writeFileSync(parent.configPath, JSON.stringify(configured(web, waits)));
  const reload = parent.admin('/config/reload?apply=true', { method: 'POST' });
  await plane.waitFor('a request for routes', ({ type }) => type === 'route');
  const child = await line.start(1, { config: configured(web), args: ARGS });
  await waitForLog(parent, 'closing and draining listeners');
  plane.set('route', [{ name: 'routes', virtual_hosts: [] }]);
  plane.release();
  t.match(await reload, { status: 500, body: /another process has taken over from this one/ });
  t.notMatch(parent.stderr, '[error]');
  t.match(parent.stderr, 'configuration not reloaded: another process takes over from this one');
  t.notMatch(parent.stderr, "listener 'waits' listens");
  await child.stop();
  await parent.exited;
});

function changesSeen({ stderr }: BatonProcess): number {
  return stderr.split(' has changed').length - 1;
}
