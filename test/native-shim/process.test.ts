// The process's own knobs, as the kernel shows them.

import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import t from 'tap';
import { loadShim } from '../../src/io/shim.js';

const SHIM = new URL('../../src/io/shim.js', import.meta.url).href;
const isRoot = process.getuid!() === 0;
const hasTaskset = spawnSync('taskset', ['--version']).status === 0;

t.test('the affinity mask is that of the kernel', async (t) => {
  const list = /^Cpus_allowed_list:\s*(\S+)$/m.exec(readFileSync('/proc/self/status', 'utf8'))![1]!;
  t.equal(loadShim().allowedProcessors(), lengthOf(list));
});

t.test('a process that is bound to one CPU counts one', { skip: !hasTaskset }, async (t) => {
  const list = /^Cpus_allowed_list:\s*(\d+)/m.exec(readFileSync('/proc/self/status', 'utf8'))!;
  const code = `const { loadShim } = await import('${SHIM}'); console.log(loadShim().allowedProcessors())`;
  t.equal(run('taskset', ['-c', list[1]!, process.execPath, '--input-type=module', '-e', code]), '1\n');
});

// The files of a process that may not be dumped belong to root, whoever runs it: so it is after a change of the user.
t.test('a process that has changed its user can be dumped again', { skip: !isRoot }, async (t) => {
  const code = `
    import { statSync } from 'node:fs';
    const { loadShim } = await import('${SHIM}');
    const shim = loadShim();
    const owner = () => statSync('/proc/self/environ').uid;
    process.setgid(65534);
    process.setuid(65534);
    const before = owner();
    shim.enableCoreDump();
    console.log(before, owner());
  `;
  t.equal(run(process.execPath, ['--input-type=module', '-e', code]), '0 65534\n');
});

t.test('garbage is collected at once, and its pages go back to the kernel', async (t) => {
  const code = `
    import { getHeapStatistics } from 'node:v8';
    const { loadShim } = await import('${SHIM}');
    const physical = () => getHeapStatistics().total_physical_size;
    let held = Array.from({ length: 200000 }, (_, index) => ({ index }));
    const full = physical();
    const dropped = new WeakRef(held);
    held = undefined;
    setImmediate(() => {
      loadShim().collectGarbage();
      console.log(dropped.deref() === undefined, physical() < full - 4000000, process.memoryUsage().external < 2 ** 30);
    });
  `;
  t.equal(run(process.execPath, ['--input-type=module', '-e', code]), 'true true true\n');
});

function run(command: string, args: readonly string[]): string {
  const { stdout, stderr, status } = spawnSync(command, args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(stderr);
  return stdout;
}

/** How many numbers `0-3,8` names. */
function lengthOf(list: string): number {
  return list
    .split(',')
    .map((range) => range.split('-').map(Number))
    .reduce((sum, [first, last]) => sum + (last ?? first!) - first! + 1, 0);
}
