// A process whose child died takes back everything that it handed over: sockets of every kind, admin, updates, its
// watched file, sinks.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { ResourceFile } from '../dynamic/resource-file.js';
import {
  type BatonProcess,
  bootstrap,
  type Config,
  EpochLine,
  freePort,
  httpListener,
  httpRequest,
  isRefused,
  loopback,
  tempDir,
  waitFor,
  waitForLog,
} from '../harness/index.js';
import { answering, managerOf } from '../http/proxy.js';
import { startStatsd } from './counting-statsd.js';

const LISTENER = 'envoy.config.listener.v3.Listener';
const ARGS = ['-l', 'info', '--parent-shutdown-time-s', '600', '--drain-time-s', '600'];

/** Returns a listener that answers with a text. */
function web(name: string, text: string, address: Config, more: Config = {}): Config {
  return { ...httpListener(name, 0, managerOf([answering({ prefix: '/' }, text)])), address, ...more };
}

/** Kills the child and waits until the parent serves again. */
async function killChild(parent: BatonProcess, child: BatonProcess): Promise<void> {
  await child.kill();
  await waitForLog(parent, 'this one serves again');
}

t.test(
  'the parent takes back sockets of every kind, a closed listener, and the admin interface at any address',
  async (t) => {
    const directory = tempDir(t);
    const [path, adminPath, addressPath] = ['web', 'admin', 'address'].map((name) => join(directory, name));
    const ports = {
      six: await freePort(),
      shared: await freePort(),
      dropped: await freePort(),
      admin: await freePort(),
    };
    const kept = [
      web('six', 'parent', { socket_address: { address: '::1', port_value: ports.six } }),
      web('shared', 'parent', loopback(ports.shared), { enable_reuse_port: false }),
      web('unix', 'parent', { pipe: { path, mode: 0o600 } }),
    ];
    const gone = [
      web('dropped', 'parent', loopback(ports.dropped)),
      web('gone unix', 'parent', { pipe: { path: join(directory, 'gone') } }),
    ];
    const admin = { address: { pipe: { path: adminPath } } };
    const line = new EpochLine(t);
    const args = [...ARGS, '--admin-address-path', addressPath!];
    const parent = await line.start(0, {
      config: { ...bootstrap({ listeners: [...kept, ...gone], clusters: [] }), admin },
      args: [...args, '--concurrency', '2'],
      wait: 'spawned',
    });
    const unix = (path: string, target = '/') => httpRequest(0, target, { socketPath: path });
    await waitFor(async () => (await unix(adminPath!, '/ready')).body === 'LIVE\n', { what: 'admin' });
    const serves = async () => {
      const answers = [
        await httpRequest(ports.six, '/', { host: '::1' }),
        await httpRequest(ports.shared),
        await unix(path!),
        await httpRequest(ports.dropped),
        await unix(join(directory, 'gone')),
      ];
      return answers.every(({ body }) => body === 'parent');
    };
    t.ok(await serves());
    for (const moved of [false, true]) {
      const child = await line.start(1, {
        config: {
          ...bootstrap({ listeners: kept, clusters: [] }),
          admin: moved ? { address: loopback(ports.admin) } : admin,
        },
        args: [...args, '--concurrency', '1'],
        wait: 'spawned',
      });
      await waitFor(() => isRefused(ports.dropped), { what: 'the close of the listener that the child does not have' });
      if (moved) await waitFor(() => readFileSync(addressPath!, 'utf8') === `127.0.0.1:${ports.admin}`);
      await killChild(parent, child);
      await waitFor(async () => !(await isRefused(ports.dropped)), { what: 'the dropped listener' });
      await waitFor(serves, { what: 'all listeners' });
      await waitFor(async () => (await unix(adminPath!, '/ready')).body === 'LIVE\n', { what: 'admin' });
      t.equal(readFileSync(addressPath!, 'utf8'), adminPath);
    }
    t.notMatch(parent.stderr, /cannot (be opened|accept|answer)/);
    await parent.stop();
  },
);

t.test(
  'the parent applies updates that arrived meanwhile, and closes listeners that the child has closed',
  async (t) => {
    const ports = { stays: await freePort(), goes: await freePort(), comes: await freePort() };
    const listener = (name: keyof typeof ports, text = name as string) => web(name, text, loopback(ports[name]));
    const listeners = new ResourceFile(tempDir(t), 'listeners');
    listeners.write(LISTENER, listener('stays'), listener('goes'));
    const config = bootstrap({
      listeners: [],
      clusters: [],
      extra: { node: { id: 'id', cluster: 'cluster' }, dynamic_resources: { lds_config: listeners.source } },
    });
    const line = new EpochLine(t);
    const parent = await line.start(0, { config, args: ARGS });
    const child = await line.start(1, { config, args: ARGS });
    await waitForLog(parent, 'draining all listeners');
    listeners.write(LISTENER, listener('stays', 'changed'), listener('comes'));
    await waitForLog(parent, "lds: add/update listener 'comes'");
    await waitFor(() => isRefused(ports.goes), { what: 'the close of the listener in both processes' });
    await waitFor(async () => (await httpRequest(ports.stays)).body === 'changed', { what: 'the change' });
    await killChild(parent, child);
    await waitFor(async () => (await httpRequest(ports.stays)).body === 'changed', {
      what: 'the change in the parent',
    });
    await waitFor(async () => (await httpRequest(ports.comes)).body === 'comes', { what: 'the new listener' });
    t.ok(await isRefused(ports.goes));

    const next = await line.start(1, { config, args: ARGS });
    await waitFor(() => parent.stderr.split('draining all listeners').length === 3, { what: 'the next child' });
    t.match(await next.admin('/drain_listeners', { method: 'POST' }), { status: 200 });
    for (const name of ['stays', 'comes'] as const) {
      await waitFor(() => isRefused(ports[name]), { what: `the close of ${name} in both processes` });
    }
    await next.stop();
    t.match(await parent.exited, { code: 0 });
  },
);

t.test('the parent watches its file again, and its sinks receive no count twice', async (t) => {
  const sums = new Map<string, number>();
  const path = join(tempDir(t), 'config.yaml');
  const port = await freePort();
  const sink = await startStatsd(t, sums);
  const write = (text: string) => {
    const listeners = [web('web', text, loopback(port))];
    const extra = { stats_sinks: [sink], stats_flush_interval: '0.1s' };
    writeFileSync(path, JSON.stringify(bootstrap({ listeners, clusters: [], extra })));
  };
  write('first');
  const line = new EpochLine(t);
  const start = (epoch: number) => line.start(epoch, { args: ['-c', path, '--watch-config', ...ARGS] });
  const counted = () => sums.get('p.http.web.downstream_rq_total');
  const parent = await start(0);
  for (let count = 0; count < 5; count++) await httpRequest(port);
  const child = await start(1);
  await waitForLog(parent, 'draining all listeners');
  for (let count = 0; count < 3; count++) await httpRequest(port);
  await waitFor(() => counted() === 8, { what: 'the counts of both' });
  write('second');
  await waitFor(async () => (await httpRequest(port)).body === 'second', { what: 'the change in the child' });
  await waitForQuiet(counted);
  const before = counted()!;
  await killChild(parent, child);
  await waitFor(async () => (await httpRequest(port)).body === 'second', { what: 'the change in the parent' });
  await waitForQuiet(counted);
  const requests = await parent.stat('http.web.downstream_rq_total');
  t.ok(counted()! > before, 'its sinks work again');
  t.ok(counted()! - before <= requests! - 5, 'and have received only new counts');
  write('third');
  await waitFor(async () => (await httpRequest(port)).body === 'third', { what: 'the next change' });
  await parent.stop();
});

/** Waits until a number stays unchanged over several flushes. */
async function waitForQuiet(count: () => number | undefined): Promise<void> {
  let last = count();
  let same = 0;
  await waitFor(
    () => {
      same = count() === last ? same + 1 : 0;
      last = count();
      return same > 40;
    },
    { what: 'flushes without a change' },
  );
}
