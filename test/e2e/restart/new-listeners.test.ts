// Listeners that are added while a child starts, at addresses that two processes cannot both bind: one process serves them at
// every moment.

import { join } from 'node:path';
import t from 'tap';
import { ResourceFile } from '../dynamic/resource-file.js';
import { startControlPlane } from '../harness/control-plane.js';
import {
  bootstrap,
  type Config,
  EpochLine,
  freePort,
  httpListener,
  httpRequest,
  type Teardown,
  tempDir,
  waitFor,
  waitForLog,
} from '../harness/index.js';
import { answering, managerOf } from '../http/proxy.js';

const LISTENER = 'envoy.config.listener.v3.Listener';
const ARGS = ['-l', 'info', '--parent-shutdown-time-s', '1', '--drain-time-s', '1'];
const REQUESTS = 20;

t.test('a listener added to the parent is handed over to a child that has already requested sockets', async (t) => {
  const { both, childConfig, line, listeners, parentConfig, plane, serve } = await setUp(t);
  const parent = await line.start(0, { config: parentConfig, args: ARGS });
  const child = await line.start(1, { config: childConfig, args: ARGS, wait: 'spawned' });
  await waitForLog(parent, 'a child process of epoch 1 initializes');
  listeners.parent.write(LISTENER, ...both);
  await waitFor(serve, { what: 'the listeners in the parent' });
  listeners.child.write(LISTENER, listeners.slow, ...both);
  await waitForLog(child, "lds: add/update listener 'shared'");
  await waitForLog(child, "lds: add/update listener 'unix'");
  plane.set('route', [ROUTE]);
  plane.release();
  await waitForLog(parent, 'closing and draining listeners');
  for (let count = 0; count < REQUESTS; count++) t.ok(await serve());
  t.match(await parent.exited, { code: 0 });
  for (let count = 0; count < REQUESTS; count++) t.ok(await serve());
  await child.stop();
});

t.test('a listener that the child could not bind is served once the parent has released it', async (t) => {
  const { both, childConfig, line, listeners, parentConfig, plane, serve } = await setUp(t);
  const parent = await line.start(0, { config: parentConfig, args: ARGS });
  const child = await line.start(1, { config: childConfig, args: ARGS, wait: 'spawned' });
  await waitForLog(parent, 'a child process of epoch 1 initializes');
  // They are bound, and wait for routes that never arrive: their sockets are offered to no child.
  const waiting = both.map((listener) => ({ ...listener, ...chainsOf(listeners.slow) }));
  listeners.parent.write(LISTENER, ...waiting);
  await waitForLog(parent, "lds: add/update listener 'unix'");
  listeners.child.write(LISTENER, listeners.slow, ...both);
  await waitForLog(child, /listener 'unix' cannot be used: .* in use/);
  plane.set('route', [ROUTE]);
  plane.release();
  await waitForLog(parent, 'closing and draining listeners');
  await waitFor(serve, { what: 'the listeners in the child' });
  await child.stop();
});

t.test('sockets bound by a child stay with it, and return to the parent when the child is lost', async (t) => {
  const { both, childConfig, line, listeners, parentConfig, plane, serve, shared } = await setUp(t);
  const parent = await line.start(0, { config: parentConfig, args: ARGS });
  listeners.child.write(LISTENER, listeners.slow, ...both);
  const begin = async () => {
    const child = await line.start(1, { config: childConfig, args: ARGS, wait: 'spawned' });
    await waitForLog(child, "lds: add/update listener 'unix'");
    return child;
  };
  const lost = await begin();
  listeners.parent.write(LISTENER, ...both);
  await waitForLog(parent, /listener 'unix' cannot be used: .* in use/);
  await lost.kill();
  await waitFor(serve, { what: 'the listeners in the parent' });

  listeners.parent.write(LISTENER);
  await waitFor(async () => !(await serve()), { what: 'their close' });
  const child = await begin();
  listeners.parent.write(LISTENER, ...both);
  await waitFor(() => parent.stderr.split("'unix' cannot be used").length === 3, { what: 'a refusal' });
  await waitFor(shared, { what: "the parent's listener that both can bind" });
  plane.set('route', [ROUTE]);
  plane.release();
  // The child cannot listen on addresses it has bound already, and uses the offered sockets.
  let isServed = true;
  while (parent.exit === undefined && isServed) isServed = await shared();
  t.ok(isServed, 'no client is refused');
  t.match(await parent.exited, { code: 0 });
  for (let count = 0; count < REQUESTS; count++) t.ok(await serve());
  await child.stop();
});

const ROUTE = {
  name: 'late',
  virtual_hosts: [{ name: 'all', domains: ['*'], routes: [answering({ prefix: '/' }, 'late')] }],
};

/** A parent without listeners, and the configuration of a child that is not live before its routes arrive. */
async function setUp(t: Teardown) {
  const plane = await startControlPlane(t);
  plane.hold();
  const directory = tempDir(t);
  const port = await freePort();
  const path = join(directory, 'unix.sock');
  const manager = managerOf([answering({ prefix: '/' }, 'here')]);
  const both = [
    { ...httpListener('shared', port, manager), enable_reuse_port: false },
    { ...httpListener('unix', 0, manager), address: { pipe: { path } } },
  ];
  const source = { resource_api_version: 'V3', ads: {}, initial_fetch_timeout: '0s' };
  const { route_config: _, ...rest } = manager;
  const slow = httpListener('slow', 0, { ...rest, rds: { route_config_name: 'late', config_source: source } });
  const files = { parent: new ResourceFile(directory, 'parent'), child: new ResourceFile(directory, 'child') };
  files.parent.write(LISTENER);
  files.child.write(LISTENER, slow);
  const { dynamic_resources: ads, ...others } = plane.ads() as { dynamic_resources: { ads_config: Config } };
  const configOf = (file: ResourceFile) =>
    bootstrap({
      listeners: [],
      clusters: [plane.cluster()],
      extra: { ...others, dynamic_resources: { ads_config: ads.ads_config, lds_config: file.source } },
    });
  const serves = async (options: { socketPath?: string }) => {
    const answer = await httpRequest(port, '/', { deadlineMs: 5000, ...options }).catch(() => undefined);
    return answer?.body === 'here';
  };
  return {
    plane,
    both,
    listeners: { ...files, slow },
    line: new EpochLine(t),
    parentConfig: configOf(files.parent),
    childConfig: configOf(files.child),
    shared: () => serves({}),
    serve: async () => (await serves({})) && (await serves({ socketPath: path })),
  };
}

function chainsOf({ filter_chains }: Config): Config {
  return { filter_chains };
}
