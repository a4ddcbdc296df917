// Settings of the process, as the kernel reports them.

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

t.test('a process bound to one CPU counts one', { skip: !hasTaskset }, async (t) => {
  const list = /^Cpus_allowed_list:\s*(\d+)/m.exec(readFileSync('/proc/self/status', 'utf8'))!;
  const code = `const { loadShim } = await import('${SHIM}'); console.log(loadShim().allowedProcessors())`;
  t.equal(run('taskset', ['-c', list[1]!, process.execPath, '--input-type=module', '-e', code]), '1\n');
});

// The /proc files of a process that is not dumpable belong to root, whichever user runs it: so it is after a change of the
// user.
t.test('a process that has changed its user can be made dumpable again', { skip: !isRoot }, async (t) => {
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

t.test('garbage is collected at once, and its pages are returned to the kernel', async (t) => {
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

t.test('released pages leave the resident memory, and read as zeros; bytes around them stay', async (t) => {
  const code = `
    import { readFileSync } from 'node:fs';
    const { loadShim } = await import('${SHIM}');
    const resident = () => Number(/^RssAnon:\\s+(\\d+)/m.exec(readFileSync('/proc/self/status', 'utf8'))[1]) / 1024;
    const memory = new Uint8Array(new SharedArrayBuffer(96 * 2 ** 20)).fill(7);
    const before = resident();
    loadShim().releasePages(memory, 10, 64 * 2 ** 20);
    const fell = before - resident();
    const rest = [memory[9], memory[10], memory[32 * 2 ** 20], memory[64 * 2 ** 20 + 10], memory.at(-1)];
    console.log(fell > 60 && fell < 68, rest.join());
  `;
  // Partial pages stay.
  t.equal(run(process.execPath, ['--input-type=module', '-e', code]), 'true 7,7,0,7,7\n');
});

t.test('pages outside of the memory, or of memory that is not shared, are refused', async (t) => {
  const shim = loadShim();
  const memory = new Uint8Array(new SharedArrayBuffer(65_536));
  for (const [offset, length] of [
    [0, 65_537],
    [65_536, 1],
    [2 ** 31 - 1, 2 ** 31 - 1],
  ] as const)
    t.throws(() => shim.releasePages(memory, offset, length), RangeError);
  for (const [offset, length] of [
    [-1, 5],
    [0, -1],
    [2 ** 31, 1],
    [0.5, 1],
  ] as const)
    t.throws(() => shim.releasePages(memory, offset, length), TypeError);
  t.throws(() => shim.releasePages(new Uint8Array(65_536), 0, 1), TypeError);
  shim.releasePages(memory, 0, 0);
  shim.releasePages(memory, 65_536, 0);
  memory.fill(7);
  shim.releasePages(memory, 1, 4095);
  t.ok(
    memory.every((byte) => byte === 7),
    'not a whole page',
  );
});

function run(command: string, args: readonly string[]): string {
  const { stdout, stderr, status } = spawnSync(command, args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(stderr);
  return stdout;
}

/** Returns how many numbers a list such as `0-3,8` has. */
function lengthOf(list: string): number {
  return list
    .split(',')
    .map((range) => range.split('-').map(Number))
    .reduce((sum, [first, last]) => sum + (last ?? first!) - first! + 1, 0);
}
