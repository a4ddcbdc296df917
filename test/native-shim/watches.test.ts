// Without epoll watches (fs.epoll.max_user_watches) connects fail individually, and accepting pauses until some are available.

import { fork } from 'node:child_process';
import { connect } from 'node:net';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { cannotFailCalls, failCalls } from '../e2e/harness/system-calls.js';
import { until } from './harness/harness.js';
import type { UnwatchedMessage, UnwatchedRequest } from './harness/unwatched-server.js';

const ENOSPC = 28;
t.test('a connect fails, and a removed listener loses no queued connection', { skip: cannotFailCalls }, async (t) => {
  const server = fork(fileURLToPath(new URL('./harness/unwatched-server.js', import.meta.url)));
  t.teardown(() => server.kill('SIGKILL'));
  const messages: UnwatchedMessage[] = [];
  server.on('message', (message: UnwatchedMessage) => messages.push(message));
  const ask = (request: UnwatchedRequest) => server.send(request);
  const count = (what: UnwatchedMessage['what']) => messages.filter((message) => message.what === what).length;
  await until(() => count('listening') === 1, 'the server');
  const { port } = messages[0] as Extract<UnwatchedMessage, { what: 'listening' }>;
  ask('connect');
  await until(() => count('connected') === 1 && count('accepted') === 1, 'a connection to itself');

  const recover = await failCalls(t, server.pid!, 'epoll_ctl', 'ENOSPC');
  ask('connect');
  await until(() => count('reset') === 1, 'the connect to fail');
  t.same(messages.at(-1), { what: 'reset', errno: ENOSPC });

  // Connections accepted while no watch is available are lost, one at each attempt.
  const clients = Array.from({ length: 40 }, () => connect(port, '127.0.0.1'));
  for (const client of clients) {
    client.on('error', () => undefined);
    t.teardown(() => client.destroy());
  }
  await until(() => count('failed') === 1, 'the accept to fail');
  t.same(messages.at(-1), { what: 'failed', errno: ENOSPC });
  ask('leave');
  ask('connect');
  await until(() => count('reset') === 2, 'the requested reset');
  await recover();
  const accepted = () => count('accepted') - 1;
  const lost = () => clients.filter(({ destroyed }) => destroyed).length;
  await until(() => accepted() + lost() >= clients.length, 'all queued connections');
  t.ok(accepted() > 0, `${accepted()} were accepted, ${lost()} lost`);

  ask('end');
  t.equal(await new Promise((resolve) => server.once('exit', resolve)), 0);
});
