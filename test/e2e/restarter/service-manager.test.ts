// baton-restarter: its messages to systemd, or another service manager, over NOTIFY_SOCKET.

import t from 'tap';
import { waitFor } from '../harness/index.js';
import { Manager, startWrapper } from './wrapper.js';

for (const place of ['path', 'abstract'] as const) {
  t.test(
    `the whole message sequence, with a manager at ${place === 'path' ? 'a path' : 'an abstract name'}`,
    async (t) => {
      const manager = place === 'path' ? Manager.inDirectory(t) : new Manager(t, `@baton-test-manager-${process.pid}`);
      const wrapper = await startWrapper(t, { env: manager.env });
      const pid = wrapper.process.pid!;
      const first = await wrapper.child(0);
      t.not(first.hello.notify, manager.env['NOTIFY_SOCKET'], 'children notify the wrapper');
      await manager.receives('STATUS=epoch 0 starting');
      t.notMatch(String(manager.messages), 'READY=1', 'not before a child is live');
      await first.ready();
      await manager.receives('READY=1', `MAINPID=${pid}`, 'STATUS=epoch 0 live');

      const before = process.hrtime.bigint() / 1000n;
      wrapper.kill('SIGHUP');
      await manager.receives('RELOADING=1');
      const line = manager.messages.flat().find((each) => each.startsWith('MONOTONIC_USEC='))!;
      const at = BigInt(line.slice('MONOTONIC_USEC='.length));
      t.ok(at >= before && at <= process.hrtime.bigint() / 1000n, 'between the signal and now, on the same clock');
      await manager.receives('STATUS=epoch 1 starting, epoch 0 live');
      await (await wrapper.child(1)).ready();
      await manager.receives('READY=1', `MAINPID=${pid}`, 'STATUS=epoch 1 live, epoch 0 draining');
      await first.command('notify STOPPING=1');
      await manager.receives('STATUS=epoch 1 live, epoch 0 leaving');
      await first.exit(0);
      await manager.receives('STATUS=epoch 1 live');

      wrapper.kill('SIGTERM');
      await manager.receives('STOPPING=1');
      t.equal(await wrapper.status(), 0);
      t.same([...new Set(manager.pids)], [pid], 'every message comes from the main process');
    },
  );
}

t.test('a failed reload is finished too, and the status reports it until one succeeds', async (t) => {
  const manager = Manager.inDirectory(t);
  const wrapper = await startWrapper(t, { env: manager.env });
  await (await wrapper.child(0)).ready();
  await manager.receives('READY=1');
  wrapper.kill('SIGHUP');
  await manager.receives('RELOADING=1');
  await (await wrapper.child(1)).exit(1);
  await manager.receives('READY=1', 'STATUS=epoch 0 live, epoch 1 failed to start');
  wrapper.kill('SIGHUP');
  await manager.receives('RELOADING=1');
  await (await wrapper.child(2)).ready();
  await manager.receives('READY=1', 'STATUS=epoch 1 live, epoch 0 draining');
  t.equal(await wrapper.end(), 0);
});

t.test('a program that sends no notification becomes ready for the manager too', async (t) => {
  const manager = Manager.inDirectory(t);
  const wrapper = await startWrapper(t, { env: manager.env, args: ['--silence-s', '0.1'] });
  await manager.receives('READY=1', 'STATUS=epoch 0 live');
  t.equal(await wrapper.end(), 0);
});

t.test(
  'watchdog messages are sent while the live child sends them, and while a child that sends none runs',
  async (t) => {
    const manager = Manager.inDirectory(t);
    const isAlive = (lines: string[]): boolean => lines.includes('WATCHDOG=1');
    const wrapper = await startWrapper(t, { env: { ...manager.env, WATCHDOG_USEC: '200000' } });
    const child = await wrapper.child(0);
    t.equal(child.hello.usec, '200000', 'the child is asked for them');
    t.notOk(manager.messages.some(isAlive), 'none before it is live');
    await child.ready();
    await manager.receives('WATCHDOG=1');
    await manager.receives('WATCHDOG=1');
    // From now on it is known to send them; and it sends no other.
    await child.command('notify WATCHDOG=1');
    const count = (): number => manager.messages.filter(isAlive).length;
    let last = -1;
    await waitFor(
      async () => {
        if (count() === last) return true;
        last = count();
        await new Promise((resolve) => setTimeout(resolve, 500));
        return false;
      },
      { what: 'the end of the watchdog messages' },
    );
    await child.command('notify WATCHDOG=1');
    await waitFor(() => count() > last, { what: 'further watchdog messages' });
    t.equal(await wrapper.end(), 0);
  },
);

t.test('a watchdog meant for another process is ignored', async (t) => {
  const manager = Manager.inDirectory(t);
  const env = { ...manager.env, WATCHDOG_USEC: '1000', WATCHDOG_PID: String(process.pid) };
  const wrapper = await startWrapper(t, { env });
  const child = await wrapper.child(0);
  t.equal(child.hello.usec, undefined);
  t.equal(child.hello.watchdogPid, undefined);
  await child.ready();
  await manager.receives('READY=1');
  t.equal(await wrapper.end(), 0);
  t.notMatch(String(manager.messages), 'WATCHDOG');
});

t.test('a missing manager, or an address that is not a socket, causes a warning', async (t) => {
  for (const path of ['/nonexistent/manager', '@baton-test-nobody', 'vsock:2:1234']) {
    const wrapper = await startWrapper(t, { env: { NOTIFY_SOCKET: path } });
    await (await wrapper.child(0)).ready();
    await wrapper.logs('epoch 0 is live');
    t.match(wrapper.stdout, '[warning]');
    t.equal(await wrapper.end(), 0);
  }
});
