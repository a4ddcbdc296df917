// Modules that are loaded on demand while descriptors are short.

import { execFileSync } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import t from 'tap';
import { lacksDescriptors } from '../../../src/common/errors/shortages.js';
import { onDemand } from '../../../src/common/package/on-demand.js';

// Enough for this process, and few enough to take them all.
execFileSync('prlimit', [`--pid=${process.pid}`, '--nofile=256:']);

t.test('a module that lacked descriptors is loaded when there are some again, and once', async (t) => {
  let loads = 0;
  const load = onDemand(async () => ++loads);
  await whenShort(() => t.rejects(load(), { code: 'EMFILE' }));
  t.equal(loads, 0, 'Node would keep the failure');
  t.equal(await load(), 1);
  await whenShort(async () => t.equal(await load(), 1, 'it needs none when it is there'));
});

t.test('a module that could not be loaded is loaded again', async (t) => {
  let loads = 0;
  const load = onDemand(async () => {
    if (++loads === 1) throw new Error('on purpose');
    return loads;
  });
  await t.rejects(load(), { message: 'on purpose' });
  t.equal(await load(), 2);
});

/** Does something while this process may open no descriptor. */
async function whenShort(act: () => Promise<unknown>): Promise<void> {
  const held: number[] = [];
  try {
    for (;;) held.push(openSync('/dev/null', 'r'));
  } catch (error) {
    if (!lacksDescriptors(error)) throw error;
  }
  try {
    await act();
  } finally {
    for (const descriptor of held) closeSync(descriptor);
  }
}
