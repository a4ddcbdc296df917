// Modules loaded on demand while descriptors are short.

import { execFileSync } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import t from 'tap';
import { isDescriptorShortage } from '../../../src/common/errors/shortages.js';
import { onDemand } from '../../../src/common/package/on-demand.js';

// Enough for this process, and few enough to open them all.
execFileSync('prlimit', [`--pid=${process.pid}`, '--nofile=256:']);

t.test('a module that could not be loaded for lack of descriptors is loaded later, once', async (t) => {
  let loads = 0;
  const load = onDemand(async () => ++loads);
  await whenShort(() => t.rejects(load(), { code: 'EMFILE' }));
  t.equal(loads, 0, 'no import has begun, whose failure Node would keep');
  t.equal(await load(), 1);
  await whenShort(async () => t.equal(await load(), 1, 'a loaded module needs no descriptors'));
});

t.test('a module that failed to load is loaded again', async (t) => {
  let loads = 0;
  const load = onDemand(async () => {
    if (++loads === 1) throw new Error('on purpose');
    return loads;
  });
  await t.rejects(load(), { message: 'on purpose' });
  t.equal(await load(), 2);
});

/** Calls `act` while this process cannot open a descriptor. */
async function whenShort(act: () => Promise<unknown>): Promise<void> {
  const held: number[] = [];
  try {
    for (;;) held.push(openSync('/dev/null', 'r'));
  } catch (error) {
    if (!isDescriptorShortage(error)) throw error;
  }
  try {
    await act();
  } finally {
    for (const descriptor of held) closeSync(descriptor);
  }
}
