import { spawn } from 'node:child_process';
import { once } from 'node:events';
import t from 'tap';
import type { NativeShim } from '../../src/io/shim.js';
import { reapOrphans } from '../../src/restarter/orphans.js';
import { endsWithTest } from '../e2e/harness/environment.js';

t.test("the status of the wrapper's own children is left to libuv", async (t) => {
  const others = new Set<number>();
  const own = endsWithTest(t, spawn('sleep', ['100']));
  const other = endsWithTest(t, spawn('sleep', ['100']));
  t.teardown(() => process.removeAllListeners('SIGCHLD'));
  await Promise.all([once(own, 'spawn'), once(other, 'spawn')]);
  reapOrphans({ reap: (pid: number) => others.add(pid) } as unknown as NativeShim, (pid) => pid === own.pid);
  t.ok(others.has(other.pid!));
  t.notOk(others.has(own.pid!));
});
