// baton-restarter: its signals, and its exit.

import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { constants } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { tempDir, waitFor } from '../harness/index.js';
import { startWrapper } from './wrapper.js';

t.test('SIGHUP starts the next epoch, and passes its number to the program', async (t) => {
  const wrapper = await startWrapper(t, { programArgs: ['-c', 'my.yaml'] });
  for (const epoch of [0, 1, 2, 3]) {
    const child = await wrapper.child(epoch);
    t.equal(child.hello.epoch, epoch);
    t.same(child.hello.args, ['-c', 'my.yaml'], 'with the given arguments');
    await child.ready();
    await wrapper.logs(`epoch ${epoch} is live`);
    // Like a server that takes over and ends its parent.
    if (epoch > 0) await wrapper.children[epoch - 1]!.exit(0);
    if (epoch < 3) wrapper.kill('SIGHUP');
  }
  t.equal(wrapper.children.length, 4);
  t.equal(await wrapper.end(), 0);
});

t.test('several SIGHUPs while an epoch starts cause one more epoch', async (t) => {
  const wrapper = await startWrapper(t);
  const first = await wrapper.child(0);
  for (let times = 1; times <= 3; times++) {
    wrapper.kill('SIGHUP');
    await wrapper.logs('received SIGHUP', times);
  }
  t.equal(wrapper.children.length, 1);
  await first.ready();
  const second = await wrapper.child(1);
  await second.ready();
  await wrapper.logs('epoch 1 is live');
  wrapper.kill('SIGUSR1');
  await second.receives('SIGUSR1');
  t.notMatch(wrapper.stdout, 'epoch 2 started', 'three signals made one epoch');
  t.equal(await wrapper.end(), 0);
});

for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  t.test(`${signal} ends all children with SIGTERM, and the exit status is 0`, async (t) => {
    const wrapper = await startWrapper(t);
    await (await wrapper.child(0)).ready();
    wrapper.kill('SIGHUP');
    await (await wrapper.child(1)).ready();
    wrapper.kill('SIGHUP');
    await wrapper.child(2);
    wrapper.kill(signal);
    t.equal(await wrapper.status(), 0);
    for (const child of wrapper.children) t.same(child.received.at(-1), 'SIGTERM');
    t.same(readdirSync(wrapper.directory), [], 'the notify socket and its directory are removed');
    t.equal(wrapper.stderr, '');
  });
}

t.test('the leftovers of a killed wrapper are removed by the next one', async (t) => {
  const killed = await startWrapper(t);
  await (await killed.child(0)).ready();
  const own = await startWrapper(t, { env: { RUNTIME_DIRECTORY: killed.directory } });
  await (await own.child(0)).ready();
  t.equal(readdirSync(killed.directory).length, 2, 'a running wrapper keeps its own');
  killed.kill('SIGKILL');
  await waitFor(() => killed.process.signalCode !== null, { what: 'its exit' });
  mkdirSync(join(killed.directory, 'baton-restarter-new'), { mode: 0o700 });
  const left = () => readdirSync(killed.directory).filter((name) => name !== 'baton-restarter-new').length;
  // Anything younger than a second may be in use soon.
  await waitFor(
    async () => {
      const next = await startWrapper(t, { env: { RUNTIME_DIRECTORY: killed.directory } });
      await next.child(0);
      await next.end();
      return left() === 1;
    },
    { what: 'the directory to be removed' },
  );
  t.equal(await own.end(), 0);
  t.same(readdirSync(killed.directory), ['baton-restarter-new'], 'a directory that may be new stays');
});

t.test('children that do not exit are killed at the end of the time, and the exit status is 1', async (t) => {
  const wrapper = await startWrapper(t, { args: ['--end-timeout-s', '0.3'] });
  const child = await wrapper.child(0);
  await child.ready();
  await child.command('ignore-sigterm');
  wrapper.kill('SIGTERM');
  t.equal(await wrapper.status(), 1);
  await child.leaves();
  t.match(wrapper.stdout, 'not all have exited within 0.3 s');
});

t.test('a second SIGTERM is forwarded', async (t) => {
  const wrapper = await startWrapper(t);
  const child = await wrapper.child(0);
  await child.ready();
  await child.command('ignore-sigterm');
  wrapper.kill('SIGTERM');
  await child.receives('SIGTERM');
  wrapper.kill('SIGHUP');
  wrapper.kill('SIGTERM');
  await child.receives('SIGTERM', 2);
  await child.exit(0);
  t.equal(await wrapper.status(), 0);
  t.equal(wrapper.children.length, 1, 'no epoch starts during the exit');
});

t.test('SIGUSR1 is forwarded to all children, to a starting one as soon as it is live', async (t) => {
  const wrapper = await startWrapper(t);
  const first = await wrapper.child(0);
  wrapper.kill('SIGUSR1');
  await wrapper.logs('received SIGUSR1');
  await first.command('notify STATUS=starting');
  t.notOk(first.received.includes('SIGUSR1'), 'not forwarded yet');
  await first.ready();
  await first.receives('SIGUSR1');
  wrapper.kill('SIGHUP');
  const second = await wrapper.child(1);
  wrapper.kill('SIGUSR1');
  await first.receives('SIGUSR1', 2);
  t.notOk(second.received.includes('SIGUSR1'));
  await second.ready();
  await second.receives('SIGUSR1');
  wrapper.kill('SIGUSR1');
  await second.receives('SIGUSR1', 2);
  await first.receives('SIGUSR1', 3);
  t.equal(await wrapper.end(), 0);
});

t.test('SIGUSR1 while the wrapper loads does not open the debugger', async (t) => {
  const wrapper = await startWrapper(t);
  await waitFor(() => handlesUsr1(wrapper.process.pid!), { what: 'SIGUSR1 to be handled' });
  await waitFor(() => wrapper.kill('SIGUSR1') ?? wrapper.stdout !== '', { what: 'the first line of the log' });
  const child = await wrapper.child(0);
  await child.ready();
  await child.receives('SIGUSR1');
  t.equal(await wrapper.end(), 0);
  t.equal(wrapper.stderr.replace(/^Debugger.*\n|^For help.*\n/gm, ''), '');
});

t.test('a script in the working directory is found, as hot-restarter.py finds it', async (t) => {
  const wrapper = await startWrapper(t, { command: ['./hello.sh'] });
  t.equal(await wrapper.status(), 1, 'a missing program cannot be started');
  t.match(wrapper.stdout, /epoch 0 .* exited: spawn .*hello.sh ENOENT/);
  const write = 'printf "#!/bin/sh\\necho epoch \\$RESTART_EPOCH\\n" >hello.sh; chmod +x hello.sh; exec "$@"';
  const second = await startWrapper(t, { wrapper: ['sh', '-c', write, 'sh'], command: ['hello.sh'] });
  t.equal(await second.status(), 1, 'it was never live, and the wrapper was not terminated');
  t.match(second.stdout, 'epoch 0\n');
});

t.test('without a program, or with unknown options, it prints its usage and exits with 1', async (t) => {
  for (const [args, text] of [
    [[], 'there is no program to run'],
    [['--strick', 'true'], 'unknown option --strick'],
    [['--strict=0', 'true'], 'option --strict takes no value'],
    [['--live-timeout-s', 'soon', 'true'], 'option --live-timeout-s takes one number of seconds'],
    [['--silence-s', '1', '--silence-s', '2', 'true'], 'option --silence-s takes one number of seconds'],
  ] as const) {
    const wrapper = await startWrapper(t, { args, command: [] });
    t.equal(await wrapper.status(), 1);
    t.match(wrapper.stderr, text);
    t.match(wrapper.stderr, 'usage: baton-restarter');
  }
  const help = await startWrapper(t, { args: ['--help'], command: [] });
  t.equal(await help.status(), 0);
  t.match(help.stdout, 'usage: baton-restarter');
});

t.test('when no notify socket can be created it reports that and exits with 1', async (t) => {
  for (const directory of ['/nonexistent', longDirectory(t)]) {
    const wrapper = await startWrapper(t, { env: { RUNTIME_DIRECTORY: directory } });
    t.equal(await wrapper.status(), 1);
    t.match(wrapper.stdout, `[error][restarter] no notify socket can be made in ${directory}`);
    t.equal(wrapper.stderr, '');
  }
});

/** An existing directory whose name does not fit in a socket address. */
function longDirectory(t: Parameters<typeof tempDir>[0]): string {
  const directory = join(tempDir(t), 'x'.repeat(100));
  mkdirSync(directory);
  return directory;
}

/** Whether the process handles SIGUSR1, whose default action would end it. */
function handlesUsr1(pid: number): boolean {
  const caught = /^SigCgt:\s+([0-9a-f]+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]!;
  return (BigInt(`0x${caught}`) & (1n << BigInt(constants.signals.SIGUSR1 - 1))) !== 0n;
}
