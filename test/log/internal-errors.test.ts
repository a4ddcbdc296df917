// Uncaught exceptions neither end the thread nor fill the disk, and fail the domain that caused them.

import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import t from 'tap';
import { StackLimit } from '../../src/log/stack-limit.js';
import { endsWithTest } from '../e2e/harness/environment.js';

const source = new URL('../../src/log/internal-errors.js', import.meta.url).href;

/** Runs a script with the module as `errors`; returns its output, its log and its exit status. */
async function run(script: string): Promise<{ out: string; log: string; status: number | null }> {
  const code = `
    const errors = await import(${JSON.stringify(source)});
    const counts = { internal: 0, uncaught: 0 };
    errors.countInternalErrors({ internal: () => counts.internal++, uncaught: () => counts.uncaught++ });
    ${script}
    setTimeout(() => console.log(JSON.stringify(counts)), 100);`;
  const child = endsWithTest(t, spawn(process.execPath, ['--input-type=module', '-e', code]));
  const status = new Promise<number | null>((resolve) => child.once('close', resolve));
  const [out, log] = await Promise.all([text(child.stdout!), text(child.stderr!)]);
  return { out, log, status: await status };
}

t.test('an uncaught exception is counted and logged, and the thread continues', async (t) => {
  const { out, log, status } = await run(`
    errors.guardThread(() => false);
    setTimeout(() => { throw new Error('in a timer'); });
    setImmediate(() => { throw undefined; });
    Promise.reject(new Error('in a promise'));`);
  t.equal(status, 0);
  t.equal(out, '{"internal":3,"uncaught":3}\n');
  t.match(log, /\[critical\]\[main\].*internal error: uncaught exception: Error: in a timer\n.* at /);
  t.match(log, /\[critical\]\[main\].*internal error: uncaught exception: undefined\n/);
  t.match(log, /\[critical\]\[main\].*internal error: unhandled promise rejection: Error: in a promise\n.* at /);
});

t.test('mustEnd decides whether an uncaught exception ends the thread', async (t) => {
  const { out, status } = await run(`
    errors.guardThread((error) => error.message === 'fatal' && process.exit(7));
    setTimeout(() => { throw new Error('harmless'); }, 1);
    setTimeout(() => { throw new Error('fatal'); }, 10);`);
  t.equal(status, 7);
  t.equal(out, '');
});

t.test('an exception fails the domain that caused it, wherever it is thrown', async (t) => {
  const { out, log } = await run(`
    errors.guardThread(() => process.exit(1));
    const domain = (name) => ({ name, fail: (error) => console.log(name, 'fails:', error.message) });
    errors.inDomain(domain('one'), () => { throw new Error('at once'); });
    errors.inDomain(domain('two'), () => void setTimeout(() => { throw new Error('in a timer'); }, 1));
    errors.inDomain(domain('three'), () => void Promise.resolve().then(() => { throw new Error('in a promise'); }));
    errors.inDomain(domain('four'), () => errors.outsideDomains(() => Promise.reject(new Error('outside all domains'))));
    const broken = { name: 'five', fail() { throw new Error('in fail()'); } };
    errors.inDomain(broken, () => { throw new Error('at once'); });`);
  const lines = out.trim().split('\n').sort();
  t.same(lines, [
    'one fails: at once',
    'three fails: in a promise',
    'two fails: in a timer',
    '{"internal":6,"uncaught":3}',
  ]);
  t.match(log, /internal error: the one is ended: Error: at once/);
  t.match(log, /the five cannot be ended: Error: in fail\(\)/);
});

t.test('a repeating fault is counted each time and logged at a limited rate', async (t) => {
  const { out, log } = await run(`
    errors.guardThread(() => false);
    const fail = (text) => setImmediate(() => { throw new Error(text); });
    for (let times = 0; times < 10_000; times++) fail('again and again ' + times);
    fail('x'.repeat(100_000));
    setImmediate(() => { throw new Error('another one'); });`);
  t.equal(out, '{"internal":10002,"uncaught":10002}\n');
  t.equal(log.split('again and again').length - 1, 30);
  t.match(log, 'another one');
  t.ok(log.length < 100_000, `${log.length} bytes`);
});

t.test('the next logged fault reports how many were suppressed', async (t) => {
  const limit = new StackLimit();
  const fault = new Error('a fault');
  for (let times = 0; times < 30; times++) t.equal(limit.admit(fault, 0), 0);
  t.equal(limit.admit(fault, 0), undefined);
  t.equal(limit.admit(fault, 59_000), undefined);
  t.equal(limit.admit(new Error('elsewhere'), 59_000), 0);
  t.equal(limit.admit(fault, 61_000), 2);
  t.equal(limit.admit(fault, 62_000), undefined);
  t.equal(limit.admit(fault, 4_000_000), 1);
});

t.test('the total of many different faults is limited too', async (t) => {
  const limit = new StackLimit();
  let logged = 0;
  for (let place = 0; place < 10_000; place++) {
    const fault = new Error('a fault');
    fault.stack = `Error: a fault\n    at place${place} (file.js:1:1)`;
    if (limit.admit(fault, 0) !== undefined) logged++;
  }
  t.equal(logged, 64 + 30);
});
