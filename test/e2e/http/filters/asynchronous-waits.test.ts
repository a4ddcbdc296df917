// A filter that waits for a Node API such as a timer or fetch(): nothing else need happen on the worker meanwhile, and its
// later actions use the current time.

import t from 'tap';
import { response } from '../raw-upstream.js';
import { startScriptedProxy } from './scripted-proxy.js';

const TIMEOUT_MS = 3000;
const proxy = await startScriptedProxy(t, { route: { timeout: `${TIMEOUT_MS / 1000}s` } });

t.test("the route timeout starts after the filter's wait", async (t) => {
  const request = await proxy.send({ b: { decodeHeaders: `node:${TIMEOUT_MS + 100}:continueDecoding stop` } });
  (await proxy.host(request)).write(response(200, 'in time', { connection: 'close' }));
  t.match(await request.answer(), { status: 200, rest: 'in time' });
  await proxy.settle();
});

t.test('a timer set after such a wait has its full duration', async (t) => {
  const request = await proxy.send({ b: { decodeHeaders: 'node:1500:race stop' } });
  t.match(await request.answer(), { status: 200, rest: 'reply of b' });
  t.same(await request.events(), ['b decodeHeaders / end', 'b race of Node', 'b timer reply:200', 'b onDestroy']);
  request.client.destroy();
});
