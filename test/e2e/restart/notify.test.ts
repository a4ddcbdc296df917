// Messages to a service manager on NOTIFY_SOCKET from epochs that send them directly, as under a wrapper other than Baton's.

import { join } from 'node:path';
import t from 'tap';
import {
  type BatonOptions,
  type BatonProcess,
  bootstrap,
  connectRaw,
  EpochLine,
  httpListener,
  type Teardown,
  tempDir,
  waitFor,
  waitForLog,
} from '../harness/index.js';
import { Manager } from '../restarter/wrapper.js';

const ROUTE = { match: { prefix: '/' }, direct_response: { status: 200 } };
const CONFIG = bootstrap({
  listeners: [
    httpListener('web', 0, { route_config: { virtual_hosts: [{ name: 'a', domains: ['*'], routes: [ROUTE] }] } }),
  ],
  clusters: [],
});

/** Starts epochs that notify one manager. */
function service(t: Teardown, place = join(tempDir(t), 'notify'), more: Record<string, string> = {}) {
  const manager = new Manager(t, place);
  const line = new EpochLine(t);
  const env = { ...manager.env, ...more };
  const start = (epoch: number, args: string[] = [], wait: BatonOptions['wait'] = 'live') =>
    line.start(epoch, { config: CONFIG, env, args: ['--drain-time-s', '1', ...args], wait });
  /** Returns the assignments sent by this process that systemd acts on. */
  const sentBy = ({ pid }: BatonProcess) =>
    manager.messages
      .filter((_, index) => manager.pids[index] === pid)
      .flat()
      .filter((each) => !each.startsWith('X_') && each !== 'WATCHDOG=1');
  return { manager, sentBy, start };
}

t.test('a replaced epoch does not report its exit, the new one reports that it is the main process', async (t) => {
  for (const place of [undefined, `@baton-test-${process.pid}-notify`]) {
    const { manager, sentBy, start } = service(t, place, { WATCHDOG_USEC: '200000' });
    const parent = await start(0);
    await manager.receives('READY=1');
    await manager.receives('WATCHDOG=1');
    const child = await start(1, ['--parent-shutdown-time-s', '1']);
    await manager.receives('READY=1', `MAINPID=${child.pid}`, 'STATUS=live');
    const heard = manager.pids.length;
    t.same(await parent.exited, { code: 0, signal: null });
    await manager.receives('WATCHDOG=1');
    const signs = manager.pids.filter((_, index) => index > heard && manager.messages[index]!.includes('WATCHDOG=1'));
    t.same([...new Set(signs)], [child.pid], 'watchdog messages come from the serving epoch');
    t.same(sentBy(parent), ['STATUS=initializing', 'READY=1', 'STATUS=live']);
    await child.stop();
    await manager.receives('STOPPING=1', 'STATUS=shutting down');
    t.same(sentBy(child), ['READY=1', `MAINPID=${child.pid}`, 'STATUS=live', 'STOPPING=1', 'STATUS=shutting down']);
  }
});

t.test(
  'over five epochs a manager receives one READY, four changes of the main process, and one STOPPING',
  async (t) => {
    const { manager, start } = service(t);
    let parent = await start(0);
    const expected = ['STATUS=initializing', 'READY=1', 'STATUS=live'];
    for (let epoch = 1; epoch < 5; epoch++) {
      const child = await start(epoch, ['--parent-shutdown-time-s', '1']);
      t.same(await parent.exited, { code: 0, signal: null });
      expected.push('READY=1', `MAINPID=${child.pid}`, 'STATUS=live');
      parent = child;
    }
    await parent.stop();
    expected.push('STOPPING=1', 'STATUS=shutting down');
    await manager.receives('STOPPING=1');
    t.same(
      manager.messages.flat().filter((each) => !each.startsWith('X_')),
      expected,
    );
  },
);

t.test('a replaced epoch that drains after SIGTERM is silent too', async (t) => {
  const { manager, sentBy, start } = service(t);
  const parent = await start(0, ['--drain-on-sigterm']);
  await connectRaw(t, await parent.listenerPort('web'));
  await parent.waitForStat('http.web.downstream_cx_active', 1);
  const child = await start(1);
  await manager.receives('READY=1', `MAINPID=${child.pid}`);
  parent.child.kill('SIGTERM');
  t.same(await parent.exited, { code: 0, signal: null });
  t.same(sentBy(parent), ['STATUS=initializing', 'READY=1', 'STATUS=live']);
  await child.stop();
});

t.test('an epoch that never becomes live sends nothing: the service continues', async (t) => {
  const { manager, sentBy, start } = service(t);
  const parent = await start(0);
  const child = await start(1, ['--concurrency', '24'], 'spawned');
  await waitForLog(parent, 'a child process of epoch 1 initializes');
  child.child.kill('SIGTERM');
  t.same(await child.exited, { code: 0, signal: null });
  t.ok(manager.pids.includes(child.pid));
  t.same(sentBy(child), []);
  await parent.stop();
});

t.test('an epoch whose successor died is the main process again, and the last one reports STOPPING', async (t) => {
  const { manager, sentBy, start } = service(t);
  const parent = await start(0);
  const child = await start(1);
  await manager.receives('READY=1', `MAINPID=${child.pid}`);
  await child.kill();
  await manager.receives('READY=1', `MAINPID=${parent.pid}`, 'STATUS=live');
  await parent.stop();
  await manager.receives('STOPPING=1');
  t.same(sentBy(parent).slice(-2), ['STOPPING=1', 'STATUS=shutting down']);
});

t.test('under a wrapper that systemd has started, the wrapper stays the main process', async (t) => {
  const { manager, start } = service(t, undefined, { SYSTEMD_EXEC_PID: `${process.pid}` });
  const parent = await start(0);
  const child = await start(1, ['--parent-shutdown-time-s', '1']);
  await manager.receives('READY=1', `MAINPID=${process.pid}`);
  await waitFor(() => parent.exit !== undefined, { what: 'the exit of the parent' });
  await child.stop();
});
