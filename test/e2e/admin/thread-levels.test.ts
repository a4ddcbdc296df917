// POST /logging reaches every thread: the workers, and those that replace dead ones.

import t from 'tap';
import { bootstrap, httpListener, httpRequest, waitFor } from '../harness/index.js';
import { answering, managerOf } from '../http/proxy.js';
import { startBreakableBaton } from '../process/faults/fault-injection.js';

t.test('levels by file apply to workers, and to those that start later', async (t) => {
  const { baton, killWorker } = await startBreakableBaton(t, {
    config: bootstrap({
      listeners: [httpListener('main', 0, managerOf([answering({ prefix: '/' }, 'served')]))],
      clusters: [],
    }),
    args: ['--enable-fine-grain-logging', '--log-format', '%n [%l] %v'],
  });
  const port = await baton.listenerPort('main');
  const set = async (query: string) => (await baton.admin(`/logging?${query}`, { method: 'POST' })).body;
  const logged = (path: string) => baton.stderr.includes(`request GET ${path}`);
  // The response to a change of levels does not wait for the workers.
  const untilLogged = (path: string, what: string) =>
    waitFor(async () => (await httpRequest(port, path)) && logged(path), { what });

  const list = await set('');
  t.match(list, /^ {2}src\/http\/streams\/server-stream\.js: info$/m, 'files of workers are listed');
  t.match(list, /^ {2}src\/server\/serve\.js: info$/m);

  await httpRequest(port, '/before');
  t.match(await set('paths=server-stream:debug,src/http/*:off'), /^ {2}src\/http\/streams\/server-stream\.js: debug$/m);
  await untilLogged('/during', 'the line of the worker');
  t.notOk(logged('/before'));
  t.match(baton.stderr, /^src\/http\/streams\/server-stream\.js \[debug\] .*request GET \/during/m);

  await killWorker('throw');
  await waitFor(
    () =>
      httpRequest(port, '/after').then(
        () => true,
        () => false,
      ),
    { what: 'the replacement worker' },
  );
  await waitFor(() => logged('/after'), { what: 'the line of the replacement worker' });

  t.match(
    await set('serve=debug'),
    /^ {2}src\/http\/streams\/server-stream\.js: info$/m,
    'the other loggers are back at the default',
  );
  let probes = 0;
  const isQuiet = async () => {
    const path = `/probe-${++probes}`;
    await httpRequest(port, path);
    await baton.admin('/ready');
    return !logged(path);
  };
  await waitFor(isQuiet, { what: 'the default level on the worker' });
  await httpRequest(port, '/quiet');
  await set('group=http:debug');
  await untilLogged('/group', 'the line of the group');
  t.notOk(logged('/quiet'));
});
