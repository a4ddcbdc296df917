// baton-restarter: children that never become live, that die, and other processes that claim to be live.

import { once } from 'node:events';
import { readdirSync, rmSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import t from 'tap';
import { AddressKind, encodeAddress } from '../../../src/io/addresses/address.js';
import { loadShim } from '../../../src/io/shim.js';
import { withDeadline } from '../harness/index.js';
import { type Child, startWrapper, type Wrapper, type WrapperOptions } from './wrapper.js';

type Test = Parameters<typeof startWrapper>[0];

t.test('a child that never becomes live is killed, the old one keeps serving, and the number is reused', async (t) => {
  const { wrapper, first } = await startLive(t, { args: ['--live-timeout-s', '4'] });
  wrapper.kill('SIGHUP');
  const second = await wrapper.child(1);
  await second.command('ignore-sigterm');
  await second.command('notify STATUS=waiting');
  await second.leaves();
  t.notOk(second.received.includes('SIGTERM'), 'SIGTERM would end its parent too');
  await wrapper.logs('epoch 1 never became live: epoch 0 keeps serving');
  t.notOk(first.isGone);
  wrapper.kill('SIGHUP');
  const third = await wrapper.child(2);
  t.equal(third.hello.epoch, 1);
  await third.ready();
  await first.exit(0);
  t.equal(await wrapper.end(), 0);
});

t.test(
  'a child that dies before it is live changes nothing, and a restart requested meanwhile is attempted',
  async (t) => {
    const { wrapper, first } = await startLive(t);
    for (const [nth, status] of [1, 0, 139].entries()) {
      if (nth < 2) wrapper.kill('SIGHUP');
      const child = await wrapper.child(nth + 1);
      t.equal(child.hello.epoch, 1);
      if (nth === 1) {
        wrapper.kill('SIGHUP');
        await wrapper.logs('epoch 1 is starting: the next one waits for it');
      }
      await child.exit(status);
      await wrapper.logs(`(pid ${child.pid}) exited: status ${status}`);
    }
    t.notOk(first.isGone);
    t.equal(await wrapper.end(), 0);
  },
);

t.test('processes started by a launch script are killed with it', async (t) => {
  const wrapper = await startWrapper(t, {
    around: ['sh', '-c', 'trap "" TERM; "$@" & wait', 'sh'],
    args: ['--end-timeout-s', '0.3'],
  });
  const child = await wrapper.child(0);
  wrapper.kill('SIGTERM');
  await child.leaves();
  t.equal(await wrapper.status(), 1);
});

t.test('when the very first child does not become live, the exit status is 1', async (t) => {
  const late = await startWrapper(t, { args: ['--live-timeout-s', '4'] });
  await (await late.child(0)).command('notify STATUS=waiting');
  t.equal(await late.status(), 1);
  t.match(late.stdout, 'epoch 0 is not live after 4 s');
  const dead = await startWrapper(t);
  const child = await dead.child(0);
  await child.command('notify STATUS=starting');
  await child.exit(3);
  t.equal(await dead.status(), 1);
  for (const says of [true, false]) {
    const wrapper = await startWrapper(t);
    const child = await wrapper.child(0);
    if (says) await child.command('notify STATUS=starting');
    await child.exit(0);
    t.equal(await wrapper.status(), 1, 'also after a clean exit');
  }
});

t.test('a live child that dies is restarted without a parent, at once and then with a delay', async (t) => {
  const { wrapper, first } = await startLive(t);
  process.kill(first.pid, 'SIGKILL');
  const second = await wrapper.child(1);
  t.equal(second.hello.epoch, 0);
  await wrapper.logs('starts again in 0 s');
  await second.ready();
  await wrapper.logs('epoch 0 is live', 2);
  await second.exit(7);
  const third = await wrapper.child(2);
  t.equal(third.hello.epoch, 0);
  await wrapper.logs('starts again in 1 s');
  await third.exit(1);
  await wrapper.logs('starts again in 2 s');
  wrapper.kill('SIGHUP');
  const fourth = await wrapper.child(3);
  await fourth.ready();
  t.equal(await wrapper.end(), 0);
});

t.test(
  'without another serving process, a child that dies repeatedly after it was live is restarted soon',
  async (t) => {
    const { wrapper, first } = await startLive(t);
    let child = first;
    for (let death = 1; death <= 4; death++) {
      process.kill(child.pid, 'SIGKILL');
      child = await wrapper.child(death);
      await child.ready();
      await wrapper.logs('epoch 0 is live', death + 1);
    }
    t.same(
      [...wrapper.stdout.matchAll(/starts again in (\S+) s/g)].map(([, seconds]) => seconds),
      ['0', '1', '1', '1'],
    );
    // The same applies to one that dies with it before it is live: that has not failed repeatedly.
    wrapper.kill('SIGHUP');
    const next = await wrapper.child(5);
    await child.exit(1);
    await wrapper.logs('the serving epoch 0 has ended', 5);
    await next.exit(1);
    await wrapper.logs('never became live: none serves');
    await wrapper.logs('starts again in 2 s');
    await (await wrapper.child(6)).ready();
    t.equal(await wrapper.end(), 0);
  },
);

t.test('a live child that exits cleanly on its own is restarted', async (t) => {
  const { wrapper, first } = await startLive(t);
  await first.exit(0);
  await wrapper.logs('the serving epoch 0 has ended');
  const second = await wrapper.child(1);
  await second.ready();
  wrapper.kill('SIGHUP');
  const third = await wrapper.child(2);
  t.equal(third.hello.epoch, 1);
  await third.ready();
  await wrapper.logs('epoch 1 is live');
  // Like a Baton that gets SIGTERM: it ends its parent too.
  await second.command('notify X_BATON_EPOCH=leaving');
  await third.exit(0);
  const fourth = await wrapper.child(3);
  t.equal(fourth.hello.epoch, 0);
  t.notOk(second.isGone, 'it has released the names that the new one needs');
  t.notOk(second.received.includes('SIGTERM'));
  await fourth.ready();
  await second.exit(0);
  t.equal(await wrapper.end(), 0);
});

t.test('when the live child dies, the epoch that it replaced serves again, and another one follows', async (t) => {
  for (const order of ['the wrapper sees the death first', 'the old epoch does']) {
    const { wrapper, first } = await startLive(t);
    wrapper.kill('SIGHUP');
    const second = await wrapper.child(1);
    await second.ready();
    await wrapper.logs('epoch 1 is live');
    if (order !== 'the old epoch does') process.kill(second.pid, 'SIGKILL');
    else {
      await second.command('ignore-sigterm');
      await first.ready();
      await second.leaves();
    }
    const third = await wrapper.child(2);
    t.equal(third.hello.epoch, 1, order);
    if (order !== 'the old epoch does') await first.ready();
    await wrapper.logs('epoch 0 serves again');
    await third.exit(1);
    await wrapper.logs('epoch 1 never became live: epoch 0 keeps serving');
    const fourth = await wrapper.child(3);
    t.equal(fourth.hello.epoch, 1, 'the number is reused until an epoch is live');
    await fourth.ready();
    await wrapper.logs('epoch 1 is live', 2);
    t.notOk(first.received.includes('SIGTERM'));
    t.notOk(first.isGone);
    t.equal(await wrapper.end(), 0);
  }
});

t.test('an old epoch that does not serve again is killed when the next one cannot take over from it', async (t) => {
  const { wrapper, first } = await startLive(t);
  wrapper.kill('SIGHUP');
  const second = await wrapper.child(1);
  await second.ready();
  await wrapper.logs('epoch 1 is live');
  process.kill(first.pid, 'SIGSTOP');
  process.kill(second.pid, 'SIGKILL');
  const third = await wrapper.child(2);
  t.equal(third.hello.epoch, 1);
  await third.exit(1);
  await wrapper.logs('epoch 0 does not serve again: it is killed');
  await first.leaves();
  const fourth = await wrapper.child(3);
  t.equal(fourth.hello.epoch, 0);
  await fourth.ready();
  t.equal(await wrapper.end(), 0);
});

t.test('an epoch that dies while its parent reports that it serves again is restarted', async (t) => {
  const { wrapper, first } = await startLive(t);
  wrapper.kill('SIGHUP');
  const second = await wrapper.child(1);
  await first.command('notify X_BATON_EPOCH=replaced');
  process.kill(second.pid, 'SIGKILL');
  await wrapper.logs('epoch 1 died as it took over');
  await first.ready();
  await wrapper.logs('epoch 0 serves again');
  const third = await wrapper.child(2);
  t.equal(third.hello.epoch, 1);
  // Its death is seen before its parent's message.
  await third.exit(1);
  await wrapper.logs('epoch 1 never became live');
  const fourth = await wrapper.child(3);
  await fourth.ready();
  await wrapper.logs('epoch 1 is live');
  wrapper.kill('SIGHUP');
  const fifth = await wrapper.child(4);
  t.equal(fifth.hello.epoch, 2);
  process.kill(fifth.pid, 'SIGKILL');
  await wrapper.logs('epoch 2 never became live: epoch 1 keeps serving');
  await fourth.command('notify X_BATON_EPOCH=replaced');
  await fourth.ready();
  await wrapper.logs('epoch 1 serves again');
  t.equal((await wrapper.child(5)).hello.epoch, 2, 'without a request');
  t.equal(await wrapper.end(), 0);
});

t.test('of two epochs that serve because the one between them died, the older one exits', async (t) => {
  const { wrapper, first } = await startLive(t);
  wrapper.kill('SIGHUP');
  const second = await wrapper.child(1);
  await second.ready();
  await wrapper.logs('epoch 1 is live');
  wrapper.kill('SIGHUP');
  const third = await wrapper.child(2);
  process.kill(second.pid, 'SIGKILL');
  await wrapper.logs('the serving epoch 1 has ended');
  await third.ready();
  await wrapper.logs('epoch 2 is live');
  await first.leaves();
  t.ok(first.received.includes('SIGTERM'));
  wrapper.kill('SIGHUP');
  const fourth = await wrapper.child(3);
  await fourth.ready();
  await wrapper.logs('epoch 3 is live');
  wrapper.kill('SIGHUP');
  const fifth = await wrapper.child(4);
  process.kill(fourth.pid, 'SIGKILL');
  await third.ready();
  await wrapper.logs('epoch 2 serves again');
  await fifth.leaves();
  t.equal((await wrapper.child(5)).hello.epoch, 3, 'an epoch that is not live yet takes over from the serving one');
  t.equal(await wrapper.end(), 0);
});

t.test('when the live child dies as the next one takes over, the one before it does not serve as well', async (t) => {
  const { wrapper, first } = await startLive(t);
  wrapper.kill('SIGHUP');
  const second = await wrapper.child(1);
  await second.ready();
  await wrapper.logs('epoch 1 is live');
  wrapper.kill('SIGHUP');
  const third = await wrapper.child(2);
  await third.command('notify X_BATON_EPOCH=serving');
  process.kill(second.pid, 'SIGKILL');
  await first.ready();
  await first.leaves();
  t.notOk(third.isGone);
  await third.ready();
  await wrapper.logs('epoch 2 is live');
  t.notMatch(wrapper.stdout, 'serves again');
  t.equal(await wrapper.end(), 0);
});

t.test('when the live child dies while the next one starts, that one decides', async (t) => {
  const { wrapper, first } = await startLive(t);
  wrapper.kill('SIGHUP');
  const second = await wrapper.child(1);
  process.kill(first.pid, 'SIGKILL');
  await wrapper.logs('the serving epoch 0 has ended');
  await second.exit(1);
  const third = await wrapper.child(2);
  t.equal(third.hello.epoch, 0);
  await third.ready();
  wrapper.kill('SIGHUP');
  const fourth = await wrapper.child(3);
  process.kill(third.pid, 'SIGKILL');
  await third.leaves();
  await fourth.ready();
  await wrapper.logs('epoch 1 is live');
  wrapper.kill('SIGHUP');
  t.equal((await wrapper.child(4)).hello.epoch, 2);
  t.equal(await wrapper.end(), 0);
});

t.test('the death of a draining child is only logged', async (t) => {
  const { wrapper, first } = await startLive(t);
  wrapper.kill('SIGHUP');
  const second = await wrapper.child(1);
  await second.ready();
  await wrapper.logs('epoch 1 is live');
  process.kill(first.pid, 'SIGKILL');
  await wrapper.logs('exited: signal SIGKILL');
  wrapper.kill('SIGUSR1');
  await second.receives('SIGUSR1');
  t.equal(await wrapper.end(), 0);
});

t.test(
  '--strict: a non-zero status or a signal of any child kills all of them, and the exit status is 1',
  async (t) => {
    for (const death of ['status', 'signal', 'never live'] as const) {
      const args = ['--strict', ...(death === 'never live' ? ['--live-timeout-s', '4'] : [])];
      const { wrapper, first } = await startLive(t, { args });
      wrapper.kill('SIGHUP');
      const second = await wrapper.child(1);
      if (death === 'status') await second.exit(2);
      if (death === 'signal') process.kill(first.pid, 'SIGKILL');
      t.equal(await wrapper.status(), 1, death);
      for (const child of [first, second]) {
        await child.leaves();
        t.notOk(child.received.includes('SIGTERM'), 'by SIGKILL');
      }
    }
  },
);

t.test('--strict: a child that exits with 0 is accepted, and restarted if it served', async (t) => {
  const { wrapper, first } = await startLive(t, { args: ['--strict'] });
  wrapper.kill('SIGHUP');
  const second = await wrapper.child(1);
  await second.ready();
  await first.exit(0);
  await wrapper.logs(`(pid ${first.pid}) exited: status 0`);
  await second.exit(0);
  await (await wrapper.child(2)).ready();
  t.equal(await wrapper.end(), 0);
});

t.test('a program that sends no notification counts as live, and is treated as hot-restarter.py does', async (t) => {
  const wrapper = await startWrapper(t, { args: ['--silence-s', '0.2'] });
  const first = await wrapper.child(0);
  wrapper.kill('SIGUSR1');
  await first.receives('SIGUSR1');
  await wrapper.logs('epoch 0 sent nothing to NOTIFY_SOCKET, and counts as live');
  wrapper.kill('SIGHUP');
  const second = await wrapper.child(1);
  t.equal(second.hello.epoch, 1);
  await wrapper.logs('epoch 1 sent nothing to NOTIFY_SOCKET, and counts as live');
  await first.exit(0);
  await wrapper.logs('exited: status 0');
  wrapper.kill('SIGHUP');
  const third = await wrapper.child(2);
  t.equal(third.hello.epoch, 2);
  await third.exit(1);
  t.equal(await wrapper.status(), 1, 'whether it was live is unknown');
  await second.leaves();
  t.notOk(second.received.includes('SIGTERM'));
});

t.test('a message that is too long for the notify socket is lost, and nothing else', async (t) => {
  const { wrapper, first } = await startLive(t);
  const { createSocket } = createRequire(import.meta.url)('unix-dgram') as {
    createSocket(type: string): {
      send(bytes: Buffer, from: number, length: number, path: string): void;
      close(): void;
    };
  };
  const sender = createSocket('unix_dgram');
  sender.send(Buffer.alloc(100_000, 'x'), 0, 100_000, first.hello.notify);
  sender.close();
  await wrapper.logs(`a message of process ${process.pid} to the notify socket is lost`);
  wrapper.kill('SIGHUP');
  const second = await wrapper.child(1);
  await second.ready();
  await wrapper.logs('epoch 1 is live');
  t.equal(await wrapper.end(), 0);
});

t.test(
  'a notify socket whose file was removed is recreated: messages of the next child and of the old one arrive',
  async (t) => {
    const { wrapper, first } = await startLive(t);
    for (const name of readdirSync(wrapper.directory)) rmSync(join(wrapper.directory, name), { recursive: true });
    wrapper.kill('SIGHUP');
    const second = await wrapper.child(1);
    await second.ready();
    await wrapper.logs('epoch 1 is live');
    await first.command('notify READY=1');
    await wrapper.logs('epoch 0 serves again');
    // Without a start in between, too, a while later.
    for (const name of readdirSync(wrapper.directory)) rmSync(join(wrapper.directory, name), { recursive: true });
    await wrapper.logs('making it again', 2);
    t.equal(await wrapper.end(), 0);
    t.same(readdirSync(wrapper.directory), []);
  },
);

t.test('only the child itself can report that it is live', async (t) => {
  const wrapper = await startWrapper(t);
  const child = await wrapper.child(0);
  const { notify } = child.hello;
  t.equal(statSync(dirname(notify)).mode & 0o777, 0o700, 'other users cannot reach the socket');
  const shim = loadShim();
  const unix = (path: string) => encodeAddress({ kind: AddressKind.Unix, ip: '', port: 0, path });
  const own = shim.watchMessages(shim.openMeetingSocket(unix(`@baton-test-${process.pid}-stranger`)), {
    onMessage() {},
    onWritable() {},
    onEnd() {},
  });
  for (const text of ['READY=1', '', '\n=\n', '\0\xff'.repeat(1000), 'x'.repeat(60_000)]) {
    own.sendTo(unix(notify), Buffer.from(text), []);
  }
  // A received descriptor is closed: its other end sees that.
  const [here, there] = shim.socketPair();
  const returned = new Promise((resolve) => {
    shim.watchMessages(here, { onMessage() {}, onWritable() {}, onEnd: resolve });
  });
  own.sendTo(unix(notify), Buffer.from('BARRIER=1'), [there]);
  shim.closeDescriptor(there);
  await withDeadline(returned, 'the descriptor to be closed');
  await wrapper.logs(`process ${process.pid}, which is not a child, sent READY`);
  // However much other processes send, the log stays short, and has no control characters of theirs.
  const flood = Buffer.from(`READY=1\n${'\x1b[31m'.repeat(1000)}=1`);
  for (let count = 0; count < 2000; ) {
    if (own.sendTo(unix(notify), flood, [])) count++;
    else await setImmediate();
  }
  own.close();
  t.notMatch(wrapper.stdout, 'is live');
  await child.ready();
  await wrapper.logs('epoch 0 is live');
  t.ok(wrapper.stdout.length < 10_000, `${wrapper.stdout.length} characters`);
  t.notMatch(wrapper.stdout, '\x1b');
  t.equal(await wrapper.end(), 0);
});

t.test('the wrapper works when its log is not read', async (t) => {
  const { wrapper, first } = await startLive(t);
  wrapper.process.stdout!.destroy();
  wrapper.kill('SIGUSR1');
  await first.receives('SIGUSR1');
  wrapper.kill('SIGHUP');
  await (await wrapper.child(1)).ready();
  const exit = once(wrapper.process, 'exit');
  wrapper.kill('SIGTERM');
  t.equal((await withDeadline(exit, 'the end'))[0], 0);
});

async function startLive(t: Test, options?: WrapperOptions): Promise<{ wrapper: Wrapper; first: Child }> {
  const wrapper = await startWrapper(t, options);
  const first = await wrapper.child(0);
  await first.ready();
  await wrapper.logs('epoch 0 is live');
  return { wrapper, first };
}
