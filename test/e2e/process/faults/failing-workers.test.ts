// Workers that cannot even begin.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import t from 'tap';
import { bootstrap, startBaton, tempDir, withDeadline } from '../../harness/index.js';

t.test('when no worker can begin, the server ends with status 1', async (t) => {
  const hook = join(tempDir(t), 'hook.mjs');
  // As on a machine that has no room for what a worker reserves.
  writeFileSync(
    hook,
    `import { isMainThread } from 'node:worker_threads';
    const Original = SharedArrayBuffer;
    if (!isMainThread) globalThis.SharedArrayBuffer = class extends Original {
      constructor(length) {
        if (length > 1e8) throw new RangeError('Array buffer allocation failed');
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
  t.match(baton.stderr, /error initializing configuration: workers have died 5 times as they began/);
});
