// For random operations at random times, on connections between two transports and with Node's own sockets: each end sees what
// it may see (model.ts), no event arrives for a released id, and nothing is left at the end. BATON_TEST_SEED=1,2 selects other
// seeds, BATON_TEST_STEPS more steps.

import { readdirSync, readlinkSync } from 'node:fs';
import t from 'tap';
import { Event } from '../../src/io/shim.js';
import { until } from './harness/harness.js';
import { World } from './harness/world.js';

const SEEDS = process.env['BATON_TEST_SEED']?.split(',').map(Number) ?? [1, 2, 3, 4, 5, 6];
const STEPS = Number(process.env['BATON_TEST_STEPS'] ?? 2500);
const EVENTS = [Event.Accept, Event.Data, Event.End, Event.Reset, Event.Connected, Event.Blocked, Event.Drained];

for (const seed of SEEDS) {
  t.test(`random operations obey the model, seed ${seed}`, { timeout: 120_000 }, async (t) => {
    const before = descriptors();
    const world = new World(seed);
    t.teardown(() => world.close());
    await world.start();
    await world.run(STEPS);
    await world.settle();
    await world.close();
    await until(() => descriptors() <= before, 'every descriptor to be closed');
    t.same(world.wrong, []);
    for (const kind of EVENTS) t.ok(world.counted[kind]! > 0, `event ${kind} happened`);
  });
}

/** Returns the number of open sockets and epoll instances of this process. */
function descriptors(): number {
  let count = 0;
  for (const fd of readdirSync('/proc/self/fd')) {
    try {
      if (/^socket:|eventpoll/.test(readlinkSync(`/proc/self/fd/${fd}`))) count++;
    } catch {
      // The directory's own, which is closed by now.
    }
  }
  return count;
}
