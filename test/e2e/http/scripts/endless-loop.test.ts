// Filters in TypeScript: an endless loop costs one worker, and the log says where it is.

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { tempDir } from '../../harness/environment.js';
import { fileAccessLog, waitFor } from '../../harness/index.js';
import { startScriptProxy } from './script-proxy.js';

t.test('a worker in an endless loop is replaced, others serve, and what it had logged is not lost', async (t) => {
  const log = join(tempDir(t), 'access.log');
  const linesOf = () => (existsSync(log) ? readFileSync(log, 'utf8').split('\n').filter(Boolean) : []);
  const { baton, get } = await startScriptProxy(t, {
    // Nothing but the end of a worker writes its lines within the test.
    args: ['--concurrency', '2', '-l', 'warning', '--file-flush-interval-msec', '3600000'],
    manager: { access_log: [fileAccessLog(log, '%REQ(:PATH)%\n')] },
    extra: { watchdogs: { worker_watchdog: { kill_timeout: '1s' } } },
    files: {
      'filter.ts': `import { defineHttpFilter } from 'baton';
function spin(): void {
  for (;;);
}
export default defineHttpFilter({ onRequest(request) { if (request.path === '/spin') spin(); } });`,
    },
  });
  // The first request: the worker has had no time for a heartbeat.
  await t.rejects(get('/spin'), { code: 'ECONNRESET' });
  await waitFor(() =>
    /worker \d is blocked since 1 s: spin .*filter\.ts:3:\d+, called at onRequest/.test(baton.stderr),
  );
  await waitFor(() => /worker \d died/.test(baton.stderr));
  for (let i = 0; i < 10; i++) t.equal((await get(`/${i}`)).status, 200);
  t.same(linesOf(), []);
  // Until each worker that has lines was hit.
  for (let deaths = 2; linesOf().length < 10; deaths++) {
    await t.rejects(get('/spin'), { code: 'ECONNRESET' });
    await waitFor(() => (baton.stderr.match(/worker \d died/g) ?? []).length === deaths);
  }
  t.same(
    linesOf().sort(),
    Array.from({ length: 10 }, (_, i) => `/${i}`),
  );
});

t.test('a worker whose heap a module fills is replaced before it is full, and the log says where', async (t) => {
  const { baton, get } = await startScriptProxy(t, {
    args: ['--concurrency', '2', '-l', 'warning'],
    nodeArgs: ['--max-old-space-size=1000'],
    files: {
      'filter.ts': `import { defineHttpFilter } from 'baton';
const kept: unknown[] = [];
export default defineHttpFilter({
  onRequest(request) {
    if (request.path === '/fill') for (;;) kept.push({ a: [1, 2, 3] });
  },
});`,
    },
  });
  await t.rejects(get('/fill'), { code: 'ECONNRESET' });
  await waitFor(() =>
    /worker \d is blocked and takes more and more memory: onRequest .*filter\.ts:5:\d+.*; it is terminated/.test(
      baton.stderr,
    ),
  );
  for (let i = 0; i < 10; i++) t.equal((await get(`/${i}`)).status, 200);
});
