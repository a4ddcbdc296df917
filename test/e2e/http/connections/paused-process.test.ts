// A server that is stopped for longer than a timeout, as in a paused virtual machine: data that arrived meanwhile is not late.

import { readFileSync } from 'node:fs';
import t from 'tap';
import { connectRaw, staticCluster, waitFor } from '../../harness/index.js';
import { managerOf, routeTo, startProxy } from '../proxy.js';
import { response, startRawUpstream } from '../raw-upstream.js';

/** Reached only while the server is stopped. */
const TIMEOUT_MS = 3000;
const timeout = `${TIMEOUT_MS / 1000}s`;

t.test('a response that arrived is forwarded, and a request that arrived is answered', async (t) => {
  const upstream = await startRawUpstream(t, ({ path, socket }) => {
    if (path === '/at-once') socket.write(response(200, 'at once'));
  });
  const { baton, port } = await startProxy(t, {
    listeners: {
      web: managerOf([routeTo({ prefix: '/' }, 'raw', { timeout })], {
        common_http_protocol_options: { idle_timeout: timeout },
      }),
    },
    clusters: [staticCluster('raw', upstream.port)],
  });
  const waiting = await connectRaw(t, port);
  const idle = await connectRaw(t, port);
  waiting.write('GET /later HTTP/1.1\r\nHost: a\r\n\r\n');
  idle.write('GET /at-once HTTP/1.1\r\nHost: a\r\n\r\n');
  await idle.readUntil('at once');
  await waitFor(() => upstream.requests.length === 2, { what: 'both requests at the host' });
  baton.child.kill('SIGSTOP');
  await waitFor(() => /\) T /.test(readFileSync(`/proc/${baton.pid}/stat`, 'latin1')), {
    what: 'a stopped server',
  });
  const stoodAt = performance.now();
  upstream.requests.find(({ path }) => path === '/later')!.socket.write(response(200, 'later'));
  idle.write('GET /at-once HTTP/1.1\r\nHost: a\r\n\r\n');
  await waitFor(() => performance.now() - stoodAt > TIMEOUT_MS, { what: 'the timeouts' });
  baton.child.kill('SIGCONT');
  t.match(await waiting.readUntil('later'), /^HTTP\/1\.1 200/);
  t.match(await idle.readUntil('at once'), /^HTTP\/1\.1 200/);
  await baton.stop();
});
