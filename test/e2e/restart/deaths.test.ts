// Processes of a restart that are killed at the worst moments: the other process serves, and only what the killed one held is
// lost.

import t from 'tap';
import { type BatonProcess, EpochLine, freePort, type Teardown } from '../harness/index.js';
import { killHolding, startEcho, TrackedLoad, trackedConfig, waitForText } from './tracked-load.js';

/** Old processes stay as long as the test needs them. */
const LONG = ['--drain-time-s', '60', '--parent-shutdown-time-s', '60'];

/** What the parent logs at the moments of the kills. */
const STARTS = 'a child process of epoch';
const TAKES_OVER = 'shutting down admin due to child startup';
const DRAINS = 'draining all listeners for';

const CLIENTS = { fresh: 4, kept: 4, streams: 2 };

for (const args of [[], ['--hand-over-connections']]) {
  const how = args.length === 0 ? '' : ', connections handed over';
  t.test(`a child is killed at its start, during its take-over, or beside its draining parent${how}`, async (t) => {
    const line = await startLine(t, args);
    let parent = await line.start(0, 2);
    // Each moment also occurs in an epoch whose socket names were used by an earlier one.
    for (const [index, moments] of [[STARTS, TAKES_OVER, DRAINS], [TAKES_OVER], [DRAINS], [STARTS]].entries()) {
      const epoch = index + 1;
      const workers = [3, 1, 2, 2][index]!;
      const load = new TrackedLoad(t, line.ports, CLIENTS);
      for (const moment of moments) {
        const logged = waitForText(parent.child.stderr!, moment);
        const child = await line.start(epoch, workers);
        await logged;
        const held = await killHolding(child.pid, line.ports);
        await load.answers(50);
        t.same(load.takeFailures(held), [], `epoch ${epoch}, killed at: ${moment}`);
        t.equal((await parent.admin('/ready')).body, 'LIVE\n');
        t.equal(
          (await parent.admin('/drain_status')).body.includes('DRAINING'),
          false,
          'no connection is asked to close',
        );
      }
      const replaced = waitForText(parent.child.stderr!, DRAINS);
      const child = await line.start(epoch, workers);
      await replaced;
      await load.answers(50);
      await load.end();
      t.same(load.takeFailures(), [], 'the next child takes over');
      await parent.kill();
      parent = child;
    }
    await parent.stop();
  });

  t.test(`the parents of five epochs are killed after their child has taken over${how}`, async (t) => {
    const line = await startLine(t, args);
    let parent = await line.start(0, 2);
    const load = new TrackedLoad(t, line.ports, CLIENTS);
    await load.answers(20);
    for (const [index, moment] of [TAKES_OVER, DRAINS, DRAINS, TAKES_OVER, DRAINS].entries()) {
      const logged = waitForText(parent.child.stderr!, moment);
      const child = await line.start(index + 1, [3, 1, 2][index % 3]!);
      await logged;
      const held = await killHolding(parent.pid, line.ports);
      await load.answers(50);
      t.same(load.takeFailures(held), [], `epoch ${index}, killed at: ${moment}`);
      parent = child;
    }
    await load.end();
    await parent.stop();
  });
}

async function startLine(t: Teardown, args: readonly string[]) {
  const ports = { http: await freePort(), tcp: await freePort() };
  const config = trackedConfig(ports, await startEcho(t));
  const line = new EpochLine(t);
  const start = (epoch: number, workers: number): Promise<BatonProcess> =>
    line.start(epoch, {
      config,
      args: [...LONG, ...args, '--concurrency', String(workers)],
      wait: epoch === 0 ? 'live' : 'spawned',
    });
  return { ports, start };
}
