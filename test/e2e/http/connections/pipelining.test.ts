// Clients that send many requests at once: answers that they do not read are not made.

import t from 'tap';
import { connectRaw, waitFor } from '../../harness/index.js';
import { answering, managerOf, startProxy } from '../proxy.js';

/** Far more than the sockets on the way hold. */
const REQUESTS = 20_000;
const PAGE = 'x'.repeat(4096);
const MOST_WAITING = 512 * 1024;

const proxy = await startProxy(t, {
  listeners: { main: managerOf([answering({ path: '/page' }, PAGE), answering({ prefix: '/' }, 'other')]) },
  clusters: [],
});
const { baton } = proxy;

t.test('answers that a client does not read do not pile up', async (t) => {
  const connection = await connectRaw(t, proxy.port);
  connection.socket.pause();
  connection.write('GET /page HTTP/1.1\r\nhost: a\r\n\r\n'.repeat(REQUESTS));
  let answered = -1;
  // What is buffered is counted once in a while.
  const isStuck = async (): Promise<boolean> => {
    const before = answered;
    answered = (await baton.stat('http.main.downstream_rq_2xx'))!;
    return answered === before && (await baton.stat('http.main.downstream_cx_tx_bytes_buffered'))! > 0;
  };
  await waitFor(isStuck, { what: 'the sockets to be full' });
  const waiting = (await baton.stat('http.main.downstream_cx_tx_bytes_buffered'))!;
  t.ok(answered < REQUESTS, `${answered} are answered`);
  t.ok(waiting < MOST_WAITING, `${waiting} bytes wait`);
  t.match(await proxy.get('/'), { status: 200, body: 'other' }, 'others are served');
  connection.socket.resume();
  await baton.waitForStat('http.main.downstream_rq_2xx', REQUESTS + 1);
  t.pass('all are answered when it reads on');
});
