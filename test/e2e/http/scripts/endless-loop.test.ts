// Filters in TypeScript: an endless loop costs one worker, and the log says where it is.

import t from 'tap';
import { waitFor } from '../../harness/index.js';
import { startScriptProxy } from './script-proxy.js';

t.test('a worker in an endless loop is replaced, and others serve', async (t) => {
  const { baton, get } = await startScriptProxy(t, {
    args: ['--concurrency', '2', '-l', 'warning'],
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
  for (let i = 0; i < 10; i++) t.equal((await get('/')).status, 200);
});
