// A working directory that is removed, as that of a former release is: no thread of Node begins in it.

import { mkdirSync, readFileSync, rmdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import {
  bootstrap,
  fileAccessLog,
  httpListener,
  httpRequest,
  routeAllTo,
  startBaton,
  startEchoUpstream,
  staticCluster,
  waitFor,
} from '../harness/index.js';
import { startBreakableBaton } from './faults/fault-injection.js';

const echo = await startEchoUpstream(t);
const config = bootstrap({
  listeners: [httpListener('web', 0, { route_config: routeAllTo('echo') })],
  clusters: [staticCluster('echo', echo.port)],
});

t.test('a server begins in one', async (t) => {
  const wrapper = ['sh', '-c', 'mkdir gone && cd gone && rmdir ../gone && exec "$@"', 'sh'];
  const baton = await startBaton(t, { config, wrapper });
  t.equal((await httpRequest(await baton.listenerPort('web'), '/')).status, 200);
  await baton.stop();
});

t.test('a server goes on in one: reload, profiles, and a worker that takes the place of another', async (t) => {
  const wrapper = ['sh', '-c', 'mkdir gone && cd gone && exec "$@"', 'sh'];
  const { baton, killWorker } = await startBreakableBaton(t, { config, wrapper });
  const port = await baton.listenerPort('web');
  rmdirSync(join(baton.directory, 'gone'));
  t.match(await baton.admin('/config/reload', { method: 'POST' }), { status: 200, body: /^nothing differs/ });
  t.equal((await baton.admin('/heap_dump')).status, 200);
  await killWorker('throw');
  await waitFor(async () => (await httpRequest(port, '/').catch(() => undefined))?.status === 200, {
    what: 'the worker that takes the place of the dead one',
  });
  await baton.stop();
});

t.test('logs of relative paths are opened anew where they were, when the directory is there again', async (t) => {
  const accessLog = fileAccessLog('removed-directory-access.log', '%REQ(:path)%\n');
  const listener = httpListener('web', 0, { route_config: routeAllTo('echo'), access_log: [accessLog] });
  const baton = await startBaton(t, {
    config: bootstrap({ listeners: [listener], clusters: [staticCluster('echo', echo.port)] }),
    args: ['--log-path', 'removed-directory-process.log', '--file-flush-interval-msec', '10'],
    wrapper: ['sh', '-c', 'mkdir gone && cd gone && exec "$@"', 'sh'],
  });
  const port = await baton.listenerPort('web');
  const gone = join(baton.directory, 'gone');
  rmSync(gone, { recursive: true });
  // For its thread the process leaves the directory.
  t.equal((await baton.admin('/config/reload', { method: 'POST' })).status, 200);
  mkdirSync(gone);
  t.equal((await baton.admin('/reopen_logs', { method: 'POST' })).status, 200);
  const isLogged = async () => {
    await httpRequest(port, '/logged');
    return readFileSync(join(gone, 'removed-directory-access.log'), 'utf8').startsWith('/logged\n');
  };
  await waitFor(isLogged, { what: 'a line in the new access log' });
  await baton.stop();
  t.match(readFileSync(join(gone, 'removed-directory-process.log'), 'utf8'), /exiting\n$/);
});
