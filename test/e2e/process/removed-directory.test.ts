// A removed working directory, such as that of an old release, in which Node starts no threads.

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

t.test('a server starts in a removed directory', async (t) => {
  const wrapper = ['sh', '-c', 'mkdir gone && cd gone && rmdir ../gone && exec "$@"', 'sh'];
  const baton = await startBaton(t, { config, wrapper });
  t.equal((await httpRequest(await baton.listenerPort('web'), '/')).status, 200);
  await baton.stop();
});

t.test('a server continues in a removed directory: reload, profiles, and a replacement worker', async (t) => {
  const wrapper = ['sh', '-c', 'mkdir gone && cd gone && exec "$@"', 'sh'];
  const { baton, killWorker } = await startBreakableBaton(t, { config, wrapper });
  const port = await baton.listenerPort('web');
  rmdirSync(join(baton.directory, 'gone'));
  t.match(await baton.admin('/config/reload', { method: 'POST' }), { status: 200, body: /^nothing differs/ });
  t.equal((await baton.admin('/heap_dump')).status, 200);
  await killWorker('throw');
  await waitFor(async () => (await httpRequest(port, '/').catch(() => undefined))?.status === 200, {
    what: 'the replacement worker',
  });
  await baton.stop();
});

t.test('logs with relative paths are reopened at their place when the directory exists again', async (t) => {
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
  // To start its thread the process leaves the directory.
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
