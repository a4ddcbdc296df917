// Clients that pipeline many requests: responses that they do not read are not produced.

import t from 'tap';
import { connectRaw, waitFor } from '../../harness/index.js';
import { answering, managerOf, startProxy } from '../proxy.js';

/** Far more than the sockets on the way hold. */
const REQUESTS = 20_000;
const PAGE = 'x'.repeat(4096);
const MAX_BUFFERED = 512 * 1024;

const proxy = await startProxy(t, {
  listeners: { main: managerOf([answering({ path: '/page' }, PAGE), answering({ prefix: '/' }, 'other')]) },
  clusters: [],
});
const { baton } = proxy;

t.test('unread responses do not accumulate', async (t) => {
  const connection = await connectRaw(t, proxy.port);
  connection.socket.pause();
  connection.write('GET /page HTTP/1.1\r\nhost: a\r\n\r\n'.repeat(REQUESTS));
  let answered = -1;
  // Buffered bytes are sampled periodically.
  const isStuck = async (): Promise<boolean> => {
    const before = answered;
    answered = (await baton.stat('http.main.downstream_rq_2xx'))!;
    return answered === before && (await baton.stat('http.main.downstream_cx_tx_bytes_buffered'))! > 0;
  };
  await waitFor(isStuck, { what: 'the sockets to be full' });
  const waiting = (await baton.stat('http.main.downstream_cx_tx_bytes_buffered'))!;
  t.ok(answered < REQUESTS, `${answered} are answered`);
  t.ok(waiting < MAX_BUFFERED, `${waiting} bytes buffered`);
  t.match(await proxy.get('/'), { status: 200, body: 'other' }, 'other clients are served');
  connection.socket.resume();
  await baton.waitForStat('http.main.downstream_rq_2xx', REQUESTS + 1);
  t.pass('all are answered when the client resumes reading');
});
