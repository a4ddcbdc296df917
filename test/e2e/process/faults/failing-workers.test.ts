// Workers that fail to start, and threads that cannot be created.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import t from 'tap';
import { bootstrap, startBaton, type Teardown, tempDir, withDeadline } from '../../harness/index.js';
import { cannotFailCalls, failCalls } from '../../harness/system-calls.js';

t.test('when no worker can start, the server exits with status 1', async (t) => {
  const hook = join(tempDir(t), 'hook.mjs');
  // As on a machine without the memory that a worker reserves.
  writeFileSync(
    hook,
    `import { isMainThread } from 'node:worker_threads';
    const Original = SharedArrayBuffer;
    if (!isMainThread) globalThis.SharedArrayBuffer = class extends Original {
      constructor(length) {
        if (length > 1e7) throw new RangeError('Array buffer allocation failed');
        super(length);
      }
    };`,
  );
  const baton = await startBaton(t, {
    config: bootstrap({ listeners: [], clusters: [] }),
    nodeArgs: ['--import', pathToFileURL(hook).href],
    wait: 'spawned',
  });
  t.same(await withDeadline(baton.exited, 'the end'), { code: 1, signal: null });
  t.match(baton.stderr, /worker 0 died: Array buffer allocation failed/);
  t.match(
    baton.stderr,
    /error initializing configuration: workers have died 5 times during start-up: Array buffer allocation failed/,
  );
});

for (const [thread, file, shortage] of [
  ['the one that reads the configuration', 'config-thread', /^error: this process cannot start more threads .*\n$/],
  ['a worker', 'piscina', /worker 0 died: this process cannot start more threads \(EAGAIN\); raise the limit/],
] as const) {
  t.test(
    `when the system refuses a thread for ${thread}, the server reports the shortage and exits with status 1`,
    async (t) => {
      const baton = await startBaton(t, {
        config: bootstrap({ listeners: [], clusters: [] }),
        nodeArgs: refuseThreads(t, `String(file).includes('${file}')`),
        wait: 'spawned',
      });
      t.same(await withDeadline(baton.exited, 'the end'), { code: 1, signal: null });
      t.match(baton.stderr, shortage);
    },
  );
}

t.test(
  'an admin request that needs a thread reports that none can be created',
  { skip: cannotFailCalls },
  async (t) => {
    const baton = await startBaton(t, { config: bootstrap({ listeners: [], clusters: [] }) });
    const recover = await failCalls(t, baton.pid, 'clone,clone3', 'EAGAIN');
    const shortage = /this process cannot start more threads \(EAGAIN\); raise the limit/;
    t.match(await baton.admin('/config/reload', { method: 'POST' }), { status: 503, body: shortage });
    t.match(await baton.admin('/heap_dump'), { status: 500, body: shortage });
    await recover();
    t.match(await baton.admin('/config/reload', { method: 'POST' }), { status: 200 });
    await baton.stop();
  },
);

/**
 * Returns arguments for a process that gets no thread where this expression is true. The number of Node's own threads varies,
 * so no limit of the system would refuse the same thread everywhere.
 */
function refuseThreads(t: Teardown, condition: string): string[] {
  const hook = join(tempDir(t), 'hook.mjs');
  writeFileSync(
    hook,
    `import { syncBuiltinESMExports } from 'node:module';
    import threads from 'node:worker_threads';
    const Original = threads.Worker;
    threads.Worker = class extends Original {
      constructor(file, options) {
        if (${condition}) throw Object.assign(new Error('EAGAIN'), { code: 'ERR_WORKER_INIT_FAILED' });
        super(file, options);
      }
    };
    syncBuiltinESMExports();`,
  );
  return ['--import', pathToFileURL(hook).href];
}
