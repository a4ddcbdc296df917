// The start of a server with a management server: order of subscriptions, reported states, and timeouts.

import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { type ControlPlane, startControlPlane } from '../harness/control-plane.js';
import {
  type BatonProcess,
  bootstrap,
  type Config,
  EpochLine,
  freePort,
  httpListener,
  httpRequest,
  ROUTER_FILTER,
  startBaton,
  staticCluster,
  tempDir,
  waitFor,
  waitForLog,
} from '../harness/index.js';
import { answering, managerOf } from '../http/proxy.js';
import { ResourceFile } from './resource-file.js';

const MARKER = 'type.googleapis.com/envoy.extensions.filters.http.header_mutation.v3.HeaderMutation';

/** Returns a bootstrap that takes a runtime layer, clusters, a filter configuration and listeners from the aggregated stream. */
function dynamic(plane: ControlPlane, ads: Config = {}, port = 0): Config {
  const source = { resource_api_version: 'V3', ads: {}, ...ads };
  const { dynamic_resources, ...rest } = plane.ads() as { dynamic_resources: Config };
  const filter = { name: 'marker', config_discovery: { config_source: source, type_urls: [MARKER] } };
  const manager = { ...managerOf([answering({ prefix: '/' }, 'static')]), http_filters: [filter, ROUTER_FILTER] };
  return bootstrap({
    listeners: [httpListener('static', port, manager)],
    clusters: [plane.cluster(), staticCluster('other', 1)],
    extra: {
      ...rest,
      dynamic_resources: { ...dynamic_resources, lds_config: source, cds_config: source },
      layered_runtime: {
        layers: [
          { name: 'remote', rtds_layer: { name: 'front', rtds_config: source } },
          { name: 'admin', admin_layer: {} },
        ],
      },
    },
  });
}

/** Returns the server's state from every place that reports it. */
async function states(baton: BatonProcess): Promise<string> {
  const [ready, info, gauge] = await Promise.all([
    baton.admin('/ready'),
    baton.admin('/server_info'),
    baton.stat('server.state'),
  ]);
  return `${ready.status} ${ready.body.trim()} ${JSON.parse(info.body).state} ${gauge}`;
}

async function waitsFor(baton: BatonProcess): Promise<Record<string, string[]>> {
  const { body } = await baton.admin('/init_dump');
  const { unready_targets_dumps: dumps = [] } = JSON.parse(body) as {
    unready_targets_dumps?: { name: string; target_names: string[] }[];
  };
  return Object.fromEntries(dumps.map(({ name, target_names }) => [name, target_names]));
}

t.test('a server waits for one source after the other, and reports which', async (t) => {
  const port = await freePort();
  const plane = await startControlPlane(t);
  const baton = await startBaton(t, { config: dynamic(plane, {}, port), args: ['-l', 'info'], wait: 'admin' });
  const target = (name: string) =>
    waitFor(
      async () =>
        Object.values(await waitsFor(baton))
          .flat()
          .includes(`target ${name}`),
      { what: name },
    );

  await target('RTDS front');
  t.equal(await states(baton), '503 PRE_INITIALIZING PRE_INITIALIZING 2');
  t.strictSame(await waitsFor(baton), { 'init manager RTDS': ['target RTDS front'] });
  t.match(await baton.admin('/ready'), { status: 503, body: 'PRE_INITIALIZING\n' });
  plane.set('runtime', [{ name: 'front', layer: { key: 'value' } }]);

  await waitForLog(baton, 'cm init: initializing cds');
  const version = async () => (await baton.admin('/clusters')).body.split('\n')[0];
  t.equal(await version(), 'version_info::', 'no update has arrived yet');
  t.equal(await states(baton), '503 PRE_INITIALIZING PRE_INITIALIZING 2');
  t.match(JSON.parse((await baton.admin('/runtime')).body), { entries: { key: { final_value: 'value' } } });
  plane.set('cluster', [staticCluster('discovered', 1)]);

  await target('ECDS marker');
  t.equal(await version(), 'version_info::1');
  t.match(baton.stderr, /cm init: all clusters initialized.*all clusters initialized. initializing init manager/s);
  t.equal(await states(baton), '503 INITIALIZING INITIALIZING 3');
  t.equal(await baton.stat('listener_manager.workers_started'), 0);
  t.strictSame(JSON.parse((await baton.admin('/init_dump?mask=server')).body), {});
  const ofListeners = await baton.admin('/init_dump?mask=listener');
  t.match(JSON.parse(ofListeners.body), { unready_targets_dumps: [{ name: 'init manager Server' }] });
  await t.rejects(httpRequest(port), { code: 'ECONNREFUSED' }, 'no connection queues in a backlog');
  const { http_filters: _, ...plain } = managerOf([answering({ prefix: '/' }, 'discovered')]) as Config;
  plane.set('listener', [httpListener('discovered', 0, plain)]);
  const dumped = await waitFor(
    async () => {
      const { body } = await baton.admin('/config_dump?resource=dynamic_listeners');
      return (JSON.parse(body) as { readonly configs?: readonly Config[] }).configs?.[0];
    },
    { what: 'the listener in the dump' },
  );
  t.match(dumped, { name: 'discovered', warming_state: { version_info: '1' }, client_status: 'REQUESTED' });
  t.notOk(dumped['active_state'], 'it does not listen yet');
  plane.set('extension-config', [
    {
      name: 'marker',
      typed_config: {
        '@type': MARKER,
        mutations: { response_mutations: [{ append: { header: { key: 'x-marker', value: 'set' } } }] },
      },
    },
  ]);

  await waitFor(async () => (await states(baton)) === '200 LIVE LIVE 0', { what: 'LIVE' });
  t.match(baton.stderr, /all dependencies initialized. starting workers/);
  t.equal(await baton.stat('listener_manager.workers_started'), 1);
  t.strictSame(await waitsFor(baton), {});
  t.match(await httpRequest(port), { body: 'static', headers: { 'x-marker': 'set' } });
  t.match(await httpRequest(await baton.listenerPort('discovered')), { body: 'discovered' });
  await baton.stop();
});

t.test('the wait for a silent management server ends with its timeout', async (t) => {
  const plane = await startControlPlane(t);
  plane.hold();
  const config = dynamic(plane, { initial_fetch_timeout: '0.2s' });
  const baton = await startBaton(t, { config, args: ['-l', 'info'] });
  t.equal(await states(baton), '200 LIVE LIVE 0');
  t.match(await httpRequest(await baton.listenerPort('static')), { status: 500 }, 'its filter is not configured');
  for (const prefix of [
    'runtime.',
    'cluster_manager.cds.',
    'listener_manager.lds.',
    'extension_config_discovery.http_filter.marker.',
  ])
    t.equal(await baton.stat(`${prefix}init_fetch_timeout`), 1, prefix);
  plane.set('runtime', [{ name: 'front', layer: { key: 'late' } }]);
  plane.release();
  await waitFor(async () => JSON.parse((await baton.admin('/runtime')).body).entries.key?.final_value === 'late', {
    what: 'the late configuration',
  });
  await baton.stop();
});

t.test('a waiting server can be ended at once', async (t) => {
  const plane = await startControlPlane(t);
  plane.hold();
  const ends: [string, (baton: BatonProcess) => unknown][] = [
    ['SIGTERM', (baton) => baton.child.kill('SIGTERM')],
    ['/quitquitquit', (baton) => baton.admin('/quitquitquit', { method: 'POST' })],
  ];
  for (const [name, end] of ends) {
    const baton = await startBaton(t, {
      config: dynamic(plane, { initial_fetch_timeout: '0s' }),
      args: ['-l', 'info'],
      wait: 'admin',
    });
    await plane.waitFor('the subscription to the layer', ({ type }) => type === 'runtime');
    await waitFor(async () => (await waitsFor(baton))['init manager RTDS'], { what: 'the wait of the server' });
    await end(baton);
    t.match(await baton.exited, { code: 0 }, name);
    t.notMatch(baton.stderr, /starting workers/);
  }
});

t.test('a parent serves until its child has its resources', async (t) => {
  const plane = await startControlPlane(t);
  plane.set('runtime', [{ name: 'front', layer: { key: 'value' } }]);
  plane.set('cluster', []);
  plane.set('listener', []);
  plane.set('extension-config', [
    {
      name: 'marker',
      typed_config: {
        '@type': MARKER,
        mutations: { response_mutations: [{ append: { header: { key: 'x-marker', value: 'set' } } }] },
      },
    },
  ]);
  const line = new EpochLine(t);
  const args = ['-l', 'info', '--parent-shutdown-time-s', '1', '--drain-time-s', '1'];
  const parent = await line.start(0, { config: dynamic(plane), args });
  const port = await parent.loggedPort('static');
  plane.hold();
  const known = plane.requests.length;
  const child = await line.start(1, { config: dynamic(plane), args, wait: 'spawned' });
  await waitFor(() => plane.requests.slice(known).some(({ type }) => type === 'runtime'), {
    what: "the child's subscription",
  });
  t.match(await parent.admin('/ready'), { status: 200 });
  t.match(await httpRequest(port), { body: 'static' });
  t.notMatch(parent.stderr, /shutting down admin/);
  plane.release();
  await waitForLog(child, 'starting main dispatch loop');
  await waitForLog(parent, 'closing and draining listeners');
  t.match(await parent.exited, { code: 0 });
  t.match(await httpRequest(port), { body: 'static' });
  await child.stop();
});

t.test('a listener that is removed while workers start does not stop them from starting', async (t) => {
  const directory = tempDir(t);
  const file = (name: string) => join(directory, name);
  // Threads that start while a file asks for it are held before they take their data; they are released by another file.
  const hook = `data:text/javascript,
    import { existsSync, rmSync, writeFileSync } from 'node:fs';
    import { isMainThread } from 'node:worker_threads';
    const at = (name) => ${JSON.stringify(`${directory}/`)} + name;
    const turn = new Int32Array(new SharedArrayBuffer(4));
    if (!isMainThread && existsSync(at('hold'))) {
      writeFileSync(at('held'), '');
      while (existsSync(at('hold'))) Atomics.wait(turn, 0, 0, 5);
      setInterval(() => { if (existsSync(at('die'))) { rmSync(at('die')); process.exit(3); } }, 5).unref();
    }`;
  const listeners = new ResourceFile(directory, 'listeners');
  const named = (...names: string[]) =>
    listeners.write(
      'envoy.config.listener.v3.Listener',
      ...names.map((name) => httpListener(name, 0, managerOf([answering({ prefix: '/' }, name)]))),
    );
  named();
  const plane = await startControlPlane(t);
  plane.hold();
  const { dynamic_resources, ...ads } = plane.ads() as { dynamic_resources: Config };
  const baton = await startBaton(t, {
    config: bootstrap({
      listeners: [],
      clusters: [plane.cluster()],
      extra: {
        ...ads,
        dynamic_resources: {
          ...dynamic_resources,
          cds_config: { resource_api_version: 'V3', ads: {} },
          lds_config: listeners.source,
        },
      },
    }),
    args: ['-l', 'info'],
    nodeArgs: ['--import', hook],
    wait: 'admin',
  });
  const removeDuringStart = async (name: string, ...left: string[]) => {
    await waitFor(() => existsSync(file('held')), { what: 'a starting worker' });
    named(...left);
    await waitForLog(baton, `lds: remove listener '${name}'`);
    rmSync(file('hold'));
    rmSync(file('held'));
  };

  // The threads that read the configuration have started by now: threads held from here on are workers.
  await plane.waitFor('the subscription to clusters', ({ type }) => type === 'cluster');
  named('stays', 'first', 'second');
  writeFileSync(file('hold'), '');
  plane.release();
  plane.set('cluster', []);
  await removeDuringStart('first', 'stays', 'second');
  await waitForLog(baton, "listener 'stays' listens");
  t.match(await httpRequest(await baton.listenerPort('stays')), { body: 'stays' });

  writeFileSync(file('hold'), '');
  writeFileSync(file('die'), '');
  await waitForLog(baton, 'worker 0 died');
  await removeDuringStart('second', 'stays');
  t.match(
    await httpRequest(await baton.listenerPort('stays')),
    { body: 'stays' },
    'the same for one that replaces another',
  );
  t.equal(baton.stderr.split('worker 0 died').length, 2);
  await baton.stop();
});

t.test('--mode validate and init_only accept a configuration with sources without contacting them', async (t) => {
  const plane = await startControlPlane(t);
  for (const mode of ['validate', 'init_only']) {
    const baton = await startBaton(t, { config: dynamic(plane), args: ['--mode', mode], wait: 'spawned' });
    t.match(await baton.exited, { code: 0 }, `${mode}: ${baton.stderr}`);
  }
  t.equal(plane.streamCount, 0);
});
