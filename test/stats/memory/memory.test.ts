// Allocation of stats memory by the primary.

import t from 'tap';
import { StatsMemory } from '../../../src/stats/memory/memory.js';

/** More than the initial range holds. */
const MANY_HISTOGRAMS = 100_000;

class NoMemory {
  constructor() {
    throw new RangeError('Array buffer allocation failed');
  }
}

t.test('a block that cannot be allocated takes nothing', (t) => {
  const memory = new StatsMemory(1);
  const { base } = memory.newBlock(10, 1);
  const { version } = memory;
  const allocations = t.intercept(globalThis, 'SharedArrayBuffer', { value: NoMemory });
  for (let tries = 0; tries < 3; tries++) {
    t.throws(() => memory.newBlock(10, MANY_HISTOGRAMS), { message: 'Array buffer allocation failed' });
  }
  allocations.restore();
  t.equal(memory.newBlock(10, 1).base, base + 10, 'no slots were taken');
  t.equal(memory.version, version, 'no room for histograms was taken');
  t.end();
});
