// How much memory a worker may hold requests in.

import { totalmem } from 'node:os';
import t from 'tap';
import { workerMemory } from '../../src/cli/worker-memory.js';
import { usableMemory } from '../../src/common/process/usable-memory.js';

const MB = 1024 * 1024;

t.test('what is asked for, otherwise half of what there is, shared by the workers, within bounds', (t) => {
  t.equal(workerMemory(100, 4, 8192 * MB), 100 * MB);
  t.equal(workerMemory(undefined, 4, 8192 * MB), 1024 * MB);
  t.equal(workerMemory(undefined, 3, 1000 * MB), 166 * MB, 'in whole megabytes');
  t.equal(workerMemory(undefined, 16, 512 * MB), 64 * MB);
  t.equal(workerMemory(undefined, 1, 65_536 * MB), 2032 * MB);
  t.end();
});

t.test('there is no more memory than the machine has', (t) => {
  t.ok(usableMemory() > 64 * MB && usableMemory() <= totalmem());
  t.end();
});
