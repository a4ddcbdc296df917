// Epochs under baton-restarter that are killed at the worst moments: somebody serves at every moment, only what the killed one held is
// lost, and the wrapper brings the next epoch by itself.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { freePort, type Teardown, tempDir, waitFor } from '../harness/index.js';
import {
  killHolding,
  startEcho,
  TrackedLoad,
  type TrackedPorts,
  textComes,
  trackedConfig,
} from '../restart/tracked-load.js';
import { startWrapper, type Wrapper } from './wrapper.js';

const MAIN = fileURLToPath(new URL('../../../baton/main.js', import.meta.url));
const CLIENTS = { fresh: 4, kept: 4, streams: 2 };

for (const args of ['', '--hand-over-connections']) {
  t.test(`children and parents that are killed ${args}`, async (t) => {
    const { wrapper, ports } = await serve(t, args);
    const load = new TrackedLoad(t, ports, CLIENTS);
    await load.answers(20);
    const check = async (held: ReadonlySet<number>, what: string) => {
      await load.answers(50);
      t.same(load.takeFailures(held), [], what);
    };

    const takesOver = textComes(wrapper.process.stderr!, 'shutting down admin due to child startup');
    wrapper.kill('SIGHUP');
    await takesOver;
    await check(await killHolding(pidOf(wrapper, 1), ports), 'a child that takes over');
    await wrapper.logs('epoch 0 serves again');
    await live(wrapper, 1, 2);
    await check(new Set(), 'the next one');

    // A parent whose connections have moved is gone by now.
    if (args === '') {
      await check(await killHolding(pidOf(wrapper, 1), ports), 'a child whose parent drains');
      await wrapper.logs('epoch 0 serves again', 2);
      await live(wrapper, 1, 3);
      await check(new Set(), 'the next one');
      // Otherwise that one serves again, as it should.
      await check(await killHolding(pidOf(wrapper, 0), ports), 'a parent that drains');
    }
    await wrapper.logs(/epoch 0 \(pid \d+\) left/);

    const begins = textComes(wrapper.process.stderr!, 'a child process of epoch 2 initializes');
    wrapper.kill('SIGHUP');
    await begins;
    await check(await killHolding(pidOf(wrapper, 1), ports), 'a parent whose child begins');
    await wrapper.logs('epoch 2 is live');
    t.match(wrapper.stderr, 'this one goes on');
    await load.end();
    t.same(load.takeFailures(), []);
    t.equal(await wrapper.end(), 0);
  });
}

t.test('a child that finds its parent dead serves at once, and the wrapper goes on with its number', async (t) => {
  const { wrapper, ports } = await serve(t, '');
  const begins = textComes(wrapper.process.stdout!, 'epoch 1 started');
  wrapper.kill('SIGHUP');
  await begins;
  process.kill(pidOf(wrapper, 0), 'SIGKILL');
  await wrapper.logs('epoch 1 is live');
  const load = new TrackedLoad(t, ports, CLIENTS);
  await load.answers(20);
  wrapper.kill('SIGHUP');
  await wrapper.logs('epoch 2 is live');
  await load.end();
  t.same(load.takeFailures(), []);
  t.equal(await wrapper.end(), 0);
});

t.test('a server that ends in order, because a stranger asks it to, is started again', async (t) => {
  const { wrapper, ports } = await serve(t, '');
  wrapper.kill('SIGHUP');
  await wrapper.logs('epoch 1 is live');
  process.kill(pidOf(wrapper, 1), 'SIGTERM');
  await wrapper.logs('epoch 1 was the one that served');
  await waitFor(() => wrapper.stdout.split(/epoch \d is live/).length > 3, { what: 'another one' });
  const load = new TrackedLoad(t, ports, CLIENTS);
  await load.answers(20);
  await load.end();
  t.equal(await wrapper.end(), 0);
});

/** Baton under the wrapper, when it is live. */
async function serve(t: Teardown & Parameters<typeof startWrapper>[0], args: string) {
  const ports: TrackedPorts = { http: await freePort(), tcp: await freePort() };
  const configPath = join(tempDir(t), 'config.yaml');
  writeFileSync(configPath, JSON.stringify(trackedConfig(ports, await startEcho(t))));
  const socket = `@baton-test-${process.pid}-deaths-${lines++}`;
  const times = '--drain-time-s 60 --parent-shutdown-time-s 60';
  const script = `exec "$@" --restart-epoch "$RESTART_EPOCH" --socket-path ${socket} --concurrency 2 ${times} ${args}`;
  const wrapper = await startWrapper(t, {
    command: ['sh', '-c', script, 'sh', process.execPath, MAIN, '-c', configPath],
  });
  await wrapper.logs('epoch 0 is live');
  return { wrapper, ports };
}

let lines = 0;

/** Of the newest process of an epoch. */
function pidOf({ stdout }: Wrapper, epoch: number): number {
  return Number([...stdout.matchAll(new RegExp(`epoch ${epoch} started \\(pid (\\d+)\\)`, 'g'))].at(-1)![1]);
}

/** Waits until the process of an epoch that is started for the `nth` time is live. */
async function live(wrapper: Wrapper, epoch: number, nth: number): Promise<void> {
  await wrapper.logs(`epoch ${epoch} started`, nth);
  const isLive = () =>
    wrapper.stdout.lastIndexOf(`epoch ${epoch} is live`) > wrapper.stdout.lastIndexOf(`epoch ${epoch} started`);
  await waitFor(isLive, { what: `epoch ${epoch}` });
}
