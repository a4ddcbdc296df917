// Baton under baton-restarter, and Baton's own messages on NOTIFY_SOCKET.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import {
  bootstrap,
  type Config,
  freePort,
  httpListener,
  httpRequest,
  Load,
  loopback,
  startBaton,
  tempDir,
  waitFor,
} from '../harness/index.js';
import { Manager, startWrapper, type Wrapper } from './wrapper.js';

const MAIN = fileURLToPath(new URL('../../../baton/main.js', import.meta.url));

interface Wrapped {
  readonly wrapper: Wrapper;
  readonly manager: Manager;
  readonly port: number;
  readonly configPath: string;
}

t.test('repeated SIGHUPs fail no request, and the manager receives STOPPING only at the end', async (t) => {
  const { wrapper, manager, port } = await serve(t);
  const clients = new Load(t, 2, async () => {
    const { status } = await httpRequest(port, '/');
    if (status !== 204) throw new Error(`status ${status}`);
  });
  for (let epoch = 1; epoch <= 4; epoch++) {
    const before = clients.answered;
    wrapper.kill('SIGHUP');
    await manager.receives('RELOADING=1');
    await manager.receives('READY=1', `STATUS=epoch ${epoch} live, epoch ${epoch - 1} draining`);
    await waitFor(() => clients.answered > before + 20, { what: 'responses of the new epoch' });
    await manager.receives(`STATUS=epoch ${epoch} live`);
  }
  await clients.end();
  t.same(clients.failures, []);
  t.equal(await wrapper.end(), 0);
  t.equal(wrapper.stdout.split('exited: status 0').length - 1, 5, 'every epoch exited cleanly');
  t.same([...new Set(manager.pids)], [wrapper.process.pid]);
  const lines = manager.messages.flat();
  const states = lines.filter((line) => /^(READY|RELOADING|STOPPING)=/.test(line));
  t.same(states, ['READY=1', ...Array.from({ length: 4 }, () => ['RELOADING=1', 'READY=1']).flat(), 'STOPPING=1']);
  t.same([...new Set(lines.filter((line) => line.startsWith('MAINPID=')))], [`MAINPID=${wrapper.process.pid}`]);
  t.notMatch(wrapper.stderr, /\[(error|critical)\]/);
});

t.test('a reload with an invalid configuration changes nothing, and one with a valid one works again', async (t) => {
  const { wrapper, manager, port, configPath } = await serve(t);
  writeFileSync(configPath, 'static_resources: [');
  wrapper.kill('SIGHUP');
  await manager.receives('READY=1', 'STATUS=epoch 0 live, epoch 1 failed to start');
  t.equal((await httpRequest(port, '/')).status, 204);
  writeFileSync(configPath, JSON.stringify(config(port, 202)));
  wrapper.kill('SIGHUP');
  await manager.receives('READY=1', 'STATUS=epoch 1 live, epoch 0 draining');
  // Connections in the backlog of the old process are answered there.
  await waitFor(async () => (await httpRequest(port, '/')).status === 202, {
    what: 'a response of the new configuration',
  });
  t.equal(await wrapper.end(), 0);
});

t.test('a killed server is replaced', async (t) => {
  const { wrapper, manager, port } = await serve(t);
  process.kill(Number(/epoch 0 started \(pid (\d+)\)/.exec(wrapper.stdout)![1]), 'SIGKILL');
  await manager.receives('READY=1', 'STATUS=epoch 0 live');
  t.equal((await httpRequest(port, '/')).status, 204);
  t.equal(await wrapper.end(), 0);
});

t.test('when the wrapper is killed, the server gets SIGTERM and exits', async (t) => {
  const { wrapper } = await serve(t);
  wrapper.kill('SIGKILL');
  // Also waits for the end of its output, which the server has inherited.
  t.equal(await wrapper.status(), null);
  t.match(wrapper.stderr, /caught \w*SIGTERM/);
  t.match(wrapper.stderr, /exiting\n$/);
});

t.test('without the wrapper Baton notifies the service manager itself', async (t) => {
  const manager = Manager.inDirectory(t);
  const env = { ...manager.env, WATCHDOG_USEC: '200000' };
  const baton = await startBaton(t, { config: config(0, 204), env });
  await manager.receives('STATUS=initializing');
  await manager.receives('READY=1', 'STATUS=live');
  await manager.receives('WATCHDOG=1');
  await manager.receives('WATCHDOG=1');
  await baton.stop();
  await manager.receives('STOPPING=1', 'STATUS=shutting down');
  t.same([...new Set(manager.pids)], [baton.pid]);
  const alone = await startBaton(t, { config: config(0, 204), env: { NOTIFY_SOCKET: '/nonexistent/manager' } });
  t.match(alone.stderr, /\[warning\].*NOTIFY_SOCKET/);
  await alone.stop();
});

/** Returns one listener that answers with a status. */
function config(port: number, status: number): Config {
  const virtualHost = {
    name: 'all',
    domains: ['*'],
    routes: [{ match: { prefix: '/' }, direct_response: { status } }],
  };
  const manager = { route_config: { name: 'all', virtual_hosts: [virtualHost] } };
  return {
    ...bootstrap({ listeners: [httpListener('web', port, manager)], clusters: [] }),
    admin: { address: loopback(0) },
  };
}

/** Starts Baton under the wrapper, and waits until it is live. */
async function serve(t: Parameters<typeof startWrapper>[0]): Promise<Wrapped> {
  const manager = Manager.inDirectory(t);
  const port = await freePort();
  const configPath = join(tempDir(t), 'config.yaml');
  writeFileSync(configPath, JSON.stringify(config(port, 204)));
  const socket = `@baton-test-${process.pid}-${lines++}`;
  const times = '--drain-time-s 1 --parent-shutdown-time-s 1';
  const script = `exec "$@" --restart-epoch "$RESTART_EPOCH" --socket-path ${socket} --concurrency 1 ${times}`;
  const wrapper = await startWrapper(t, {
    env: manager.env,
    command: ['sh', '-c', script, 'sh', process.execPath, MAIN, '-c', configPath],
  });
  await manager.receives('READY=1', 'STATUS=epoch 0 live').catch((error: unknown) => {
    throw new Error(`it did not become live:\n${wrapper.stdout}${wrapper.stderr}`, { cause: error });
  });
  return { wrapper, manager, port, configPath };
}

let lines = 0;
