// The memory in which a worker buffers requests.

import { totalmem } from 'node:os';
import t from 'tap';
import { workerMemory } from '../../src/cli/worker-memory.js';
import { usableMemory } from '../../src/common/process/usable-memory.js';

const MB = 1024 * 1024;

t.test('the requested size, or half of the memory divided among the workers, within bounds', (t) => {
  t.equal(workerMemory(100, 4, 8192 * MB), 100 * MB);
  t.equal(workerMemory(undefined, 4, 8192 * MB), 1024 * MB);
  t.equal(workerMemory(undefined, 3, 1000 * MB), 166 * MB, 'rounded down to megabytes');
  t.equal(workerMemory(undefined, 16, 512 * MB), 64 * MB);
  t.equal(workerMemory(undefined, 1, 65_536 * MB), 2032 * MB);
  t.end();
});

t.test('usable memory does not exceed the memory of the machine', (t) => {
  t.ok(usableMemory() > 64 * MB && usableMemory() <= totalmem());
  t.end();
});
