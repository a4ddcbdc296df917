// Epochs under baton-restarter that are killed at the worst moments: one process serves at every moment, only what the killed
// one held is lost, and the wrapper starts the next epoch on its own.

import t from 'tap';
import { waitFor } from '../harness/index.js';
import { killHolding, TrackedLoad, waitForText } from '../restart/tracked-load.js';
import { TrackedLine } from './tracked-line.js';

const CLIENTS = { fresh: 4, kept: 4, streams: 2 };

/** Whether connections are handed over, and the epoch that serves when the first process is killed. */
for (const [args, first] of [
  ['', 0],
  ['--hand-over-connections', 3],
] as const) {
  t.test(`children and parents are killed ${args}, from epoch ${first} on`, async (t) => {
    const line = await TrackedLine.start(t, args);
    const { wrapper } = line;
    for (let epoch = 1; epoch <= first; epoch++) {
      wrapper.kill('SIGHUP');
      await line.live(epoch);
    }
    const load = new TrackedLoad(t, line.ports, CLIENTS);
    await load.answers(20);
    const second = first + 1;
    const check = async (held: ReadonlySet<number>, what: string) => {
      await load.answers(50);
      t.same(load.takeFailures(held), [], what);
    };
    const kill = async (epoch: number, what: string) => check(await killHolding(line.pidOf(epoch), line.ports), what);

    await line.next('takes over');
    await kill(second, 'a child that takes over');
    await wrapper.logs(`epoch ${first} serves again`);
    await line.live(second, 2);

    // At once: a parent whose connections have moved exits soon.
    await kill(second, 'a child whose parent drains');
    await wrapper.logs(`epoch ${first} serves again`, 2);
    await line.live(second, 3);
    // Otherwise that one serves again, as expected.
    await kill(first, 'a parent that drains');
    await wrapper.logs(new RegExp(`epoch ${first} \\(pid \\d+\\) exited: signal SIGKILL`));

    await line.next('starts');
    await kill(second, 'a parent whose child begins');
    await line.live(second + 1);
    t.match(wrapper.stderr, /the parent process was lost.*this one keeps serving/);
    await load.end();
    t.same(load.takeFailures(), []);
    t.equal(await wrapper.end(), 0);
  });
}

t.test('a child that finds its parent dead serves at once, and the wrapper continues with its number', async (t) => {
  const line = await TrackedLine.start(t, '');
  const { wrapper } = line;
  const starts = waitForText(wrapper.process.stdout!, 'epoch 1 started');
  wrapper.kill('SIGHUP');
  await starts;
  process.kill(line.pidOf(0), 'SIGKILL');
  await line.live(1);
  const load = new TrackedLoad(t, line.ports, CLIENTS);
  await load.answers(20);
  wrapper.kill('SIGHUP');
  await line.live(2);
  await load.end();
  t.same(load.takeFailures(), []);
  t.equal(await wrapper.end(), 0);
});

t.test('a server that exits cleanly at the request of another process is restarted', async (t) => {
  const line = await TrackedLine.start(t, '');
  const { wrapper } = line;
  wrapper.kill('SIGHUP');
  await line.live(1);
  process.kill(line.pidOf(1), 'SIGTERM');
  await wrapper.logs('the serving epoch 1 has ended');
  await waitFor(() => wrapper.stdout.split(/epoch \d is live/).length > 3, { what: 'another live epoch' });
  const load = new TrackedLoad(t, line.ports, CLIENTS);
  await load.answers(20);
  await load.end();
  t.equal(await wrapper.end(), 0);
});
