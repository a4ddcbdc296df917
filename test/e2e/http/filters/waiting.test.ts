// A filter that waits for something of Node, such as a timer or an answer to fetch(): nothing else need happen on the worker meanwhile,
// and what it does then is done at that time.

import t from 'tap';
import { response } from '../raw-upstream.js';
import { startScriptedProxy } from './scripted-proxy.js';

const TIMEOUT_MS = 3000;
const proxy = await startScriptedProxy(t, { route: { timeout: `${TIMEOUT_MS / 1000}s` } });

t.test('the route has its whole timeout behind a filter that waits for longer', async (t) => {
  const request = await proxy.send({ b: { decodeHeaders: `node:${TIMEOUT_MS + 100}:continueDecoding stop` } });
  (await proxy.host(request)).write(response(200, 'in time', { connection: 'close' }));
  t.match(await request.answer(), { status: 200, rest: 'in time' });
  await proxy.settle();
});

t.test('a timer that is set behind such a wait has its whole time', async (t) => {
  const request = await proxy.send({ b: { decodeHeaders: 'node:1500:race stop' } });
  t.match(await request.answer(), { status: 200, rest: 'reply of b' });
  t.same(await request.events(), ['b decodeHeaders / end', 'b race of Node', 'b timer reply:200', 'b onDestroy']);
  request.client.destroy();
});
