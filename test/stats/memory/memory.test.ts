// What the primary allocates for the stats of all threads.

import t from 'tap';
import { StatsMemory } from '../../../src/stats/memory/memory.js';

/** More than a range has room for. */
const MANY_HISTOGRAMS = 100_000;

class NoMemory {
  constructor() {
    throw new RangeError('Array buffer allocation failed');
  }
}

t.test('a block for which there is no memory takes nothing', (t) => {
  const memory = new StatsMemory(1);
  const { base } = memory.newBlock(10, 1);
  const { version } = memory;
  const allocations = t.intercept(globalThis, 'SharedArrayBuffer', { value: NoMemory });
  for (let tries = 0; tries < 3; tries++) {
    t.throws(() => memory.newBlock(10, MANY_HISTOGRAMS), { message: 'Array buffer allocation failed' });
  }
  allocations.restore();
  t.equal(memory.newBlock(10, 1).base, base + 10, 'no slots');
  t.equal(memory.version, version, 'no room for histograms');
  t.end();
});
