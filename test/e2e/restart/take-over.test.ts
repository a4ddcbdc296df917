// A new process takes over from the old one: sockets and admin interface, and no accepted connection is lost.

import { existsSync, statSync, watch } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import {
  type BatonProcess,
  bootstrap,
  type Config,
  connectRaw,
  EpochLine,
  type HttpAnswer,
  httpListener,
  httpRequest,
  isRefused,
  Load,
  loopback,
  startUpstream,
  staticCluster,
  tcpListener,
  tempDir,
  waitFor,
  waitForLog,
} from '../harness/index.js';

const READY = 'GET /ready HTTP/1.1\r\nhost: admin\r\n\r\n';
const QUICK = ['--parent-shutdown-time-s', '1', '--drain-time-s', '1'];

/** Returns a listener that answers with the name of its owner. */
function web(name: string, body: string, more: Config = {}): Config {
  const route = { match: { prefix: '/' }, direct_response: { status: 200, body: { inline_string: body } } };
  const manager = { route_config: { virtual_hosts: [{ name: 'all', domains: ['*'], routes: [route] }] } };
  return { ...httpListener(name, 0, manager), ...more };
}

function config(...listeners: Config[]): Config {
  return bootstrap({ listeners, clusters: [] });
}

interface ServerInfo {
  readonly command_line_options: { readonly restart_epoch: number };
}

async function hasEnded(parent: BatonProcess): Promise<void> {
  await waitFor(() => parent.exit !== undefined, { what: 'the exit of the parent' });
}

t.test('three restarts with 2, 1 and 3 workers: no connection fails, neither to a listener nor to admin', async (t) => {
  const line = new EpochLine(t);
  let current = await line.start(0, { config: config(web('web', 'hi')), args: ['--concurrency', '2', ...QUICK] });
  const [port, adminPort] = [await current.listenerPort('web'), current.adminPort];
  const traffic = new Load(t, 2, () => expect('hi', httpRequest(port)));
  const scrapes = new Load(t, 2, () => expect('LIVE\n', httpRequest(adminPort, '/ready')));
  for (const [index, concurrency] of ['1', '3', '2'].entries()) {
    const epoch = index + 1;
    const args = ['--concurrency', concurrency, ...QUICK];
    const next = await line.start(epoch, { config: config(web('web', 'hi')), args });
    t.equal(await next.listenerPort('web'), port, 'the port that epoch 0 was assigned');
    t.equal(next.adminPort, adminPort);
    await hasEnded(current);
    t.same(current.exit, { code: 0, signal: null });
    t.match(current.stderr, 'shutting down admin due to child startup');
    t.match(current.stderr, 'closing and draining listeners');
    t.match(current.stderr, 'shutting down due to child request');
    t.match(next.stderr, `initializing epoch ${epoch} (base id=0, hot restart version=`);
    t.match(next.stderr, 'shutting down parent after drain');
    const before = traffic.answered;
    await waitFor(() => traffic.answered > before + 10, { what: 'traffic' });
    current = next;
  }
  for (const load of [traffic, scrapes]) {
    await load.end();
    t.same(load.failures, []);
    t.ok(load.answered > 100);
  }
  t.equal(await current.stat('server.hot_restart_epoch'), 3);
  t.equal(await current.stat('server.hot_restart_generation'), 4);
  await current.stop();
});

t.test('IPv6, Unix sockets and sockets shared by workers are taken over', async (t) => {
  const directory = tempDir(t);
  const [path, adminPath] = [join(directory, 'web'), join(directory, 'admin')];
  const listeners = [
    web('six', 'hi', { address: { socket_address: { address: '::1', port_value: 0 } } }),
    web('shared', 'hi', { enable_reuse_port: false }),
    web('unix', 'hi', { address: { pipe: { path } } }),
  ];
  const unixAdmin = { ...config(...listeners), admin: { address: { pipe: { path: adminPath } } } };
  const line = new EpochLine(t);
  const start = async (epoch: number, concurrency: string) => {
    const args = ['--concurrency', concurrency, ...QUICK];
    const baton = await line.start(epoch, { config: unixAdmin, args, wait: 'spawned' });
    await waitForLog(baton, 'admin address: ');
    await waitFor(async () => (await httpRequest(0, '/ready', { socketPath: adminPath })).status === 200);
    return baton;
  };
  let current = await start(0, '1');
  const [six, shared] = [await current.loggedPort('six'), await current.loggedPort('shared')];
  const traffic = new Load(t, 2, async () => {
    await expect('hi', httpRequest(six, '/', { host: '::1' }));
    await expect('hi', httpRequest(shared));
    await expect('hi', httpRequest(0, '/', { socketPath: path }));
    await expect('LIVE\n', httpRequest(0, '/ready', { socketPath: adminPath }));
  });
  for (const [epoch, concurrency] of [
    [1, '2'],
    [2, '1'],
  ] as const) {
    const next = await start(epoch, concurrency);
    t.same([await next.loggedPort('six'), await next.loggedPort('shared')], [six, shared]);
    await hasEnded(current);
    current = next;
  }
  await traffic.end();
  t.same(traffic.failures, []);
  t.ok(traffic.answered > 10);
  await current.stop();
});

t.test('Unix sockets at relative paths are taken over', async (t) => {
  const directory = tempDir(t);
  const paths = { web: 'web:1.sock', admin: 'the admin.sock' };
  const unix = {
    ...config(web('unix', 'hi', { address: { pipe: { path: paths.web } } })),
    admin: { address: { pipe: { path: paths.admin } } },
  };
  const line = new EpochLine(t);
  const wrapper = ['sh', '-c', 'cd "$0" && exec "$@"', directory];
  const start = async (epoch: number) => {
    const baton = await line.start(epoch, { config: unix, args: QUICK, wrapper, wait: 'spawned' });
    await waitForLog(baton, 'admin address: the admin.sock');
    return baton;
  };
  const ask = (name: keyof typeof paths, target: string) =>
    httpRequest(0, target, { socketPath: join(directory, paths[name]) });
  const old = await start(0);
  await waitFor(async () => (await ask('admin', '/ready')).status === 200);
  const traffic = new Load(t, 2, async () => {
    await expect('hi', ask('web', '/'));
    await expect('LIVE\n', ask('admin', '/ready'));
  });
  const next = await start(1);
  await hasEnded(old);
  await traffic.end();
  t.same(traffic.failures, []);
  t.match((await ask('admin', '/listeners')).body, 'unix::web:1.sock');
  await next.stop();
  t.notOk(existsSync(join(directory, paths.admin)));
});

t.test('a listener that the new configuration drops is closed, and its backlog is served', async (t) => {
  const upstream = await startUpstream(t, (_request, answer) => answer.end('from upstream'));
  const clusters = [staticCluster('up', upstream.port)];
  const line = new EpochLine(t);
  const dropped = tcpListener('dropped', 0, { cluster: 'up' });
  const old = await line.start(0, {
    config: bootstrap({ listeners: [web('web', 'old'), dropped], clusters }),
    args: QUICK,
  });
  const [port, droppedPort] = [await old.listenerPort('web'), await old.listenerPort('dropped')];
  const next = await line.start(1, {
    config: bootstrap({ listeners: [web('web', 'new'), web('added', 'new')], clusters }),
    args: ['--parent-shutdown-time-s', '60'],
  });
  await waitFor(async () => (await httpRequest(port)).body === 'new', { what: 'a response of the new process' });
  t.equal((await httpRequest(await next.listenerPort('added'))).body, 'new');
  await waitFor(() => isRefused(droppedPort), { what: 'the close of the dropped listener' });
  await next.stop();
  await hasEnded(old);
});

t.test('an admin interface that moves answers at its new address, and the old one is closed', async (t) => {
  const line = new EpochLine(t);
  const old = await line.start(0, { config: config(web('web', 'hi')), args: QUICK });
  const moved = {
    ...config(web('web', 'hi')),
    admin: { address: { socket_address: { address: '::1', port_value: 0 } } },
  };
  const next = await line.start(1, { config: moved, args: ['--parent-shutdown-time-s', '60'], wait: 'spawned' });
  await waitFor(async () => (await httpRequest(next.adminPort, '/ready', { host: '::1' })).status === 200);
  await waitFor(() => isRefused(old.adminPort), { what: 'the close of the old admin interface' });
  await next.stop();
  await hasEnded(old);
});

t.test(
  'the admin socket file is removed when the next process uses another one, and stays when it uses the same',
  async (t) => {
    const directory = tempDir(t);
    const [first, second] = [join(directory, 'first'), join(directory, 'second')];
    const { admin: _, ...silent } = config(web('web', 'hi'));
    const line = new EpochLine(t);
    const start = (epoch: number, more: Config) =>
      line.start(epoch, { config: { ...silent, ...more }, args: QUICK, wait: 'spawned' });
    const startAt = async (epoch: number, path: string) => {
      const baton = await start(epoch, { admin: { address: { pipe: { path } } } });
      await waitForLog(baton, 'admin address: ');
      return baton;
    };
    const isAnswered = (socketPath: string) =>
      waitFor(async () => (await httpRequest(0, '/ready', { socketPath })).status === 200, {
        what: `admin at ${socketPath}`,
      });
    const zero = await startAt(0, first);
    await isAnswered(first);
    const one = await startAt(1, second);
    await hasEnded(zero);
    t.notOk(existsSync(first));
    await isAnswered(second);
    const two = await startAt(2, second);
    await hasEnded(one);
    t.ok(existsSync(second));
    await isAnswered(second);
    const three = await start(3, {});
    await hasEnded(two);
    t.notOk(existsSync(second));
    const four = await startAt(4, first);
    await hasEnded(three);
    await isAnswered(first);
    await four.stop();
    t.notOk(existsSync(first));
  },
);

t.test('the admin socket file gets the mode that the next process configures', async (t) => {
  const path = join(tempDir(t), 'admin');
  const line = new EpochLine(t);
  const start = async (epoch: number, mode: number) => {
    const withAdmin = { ...config(web('web', 'hi')), admin: { address: { pipe: { path, mode } } } };
    const baton = await line.start(epoch, { config: withAdmin, args: QUICK, wait: 'spawned' });
    await waitForLog(baton, 'admin address: ');
    // Before that it refuses the next one.
    await waitFor(async () => (await httpRequest(0, '/ready', { socketPath: path })).status === 200, { what: 'LIVE' });
    return baton;
  };
  const permissions = () => statSync(path).mode & 0o777;
  const old = await start(0, 0o600);
  t.equal(permissions(), 0o600);
  const next = await start(1, 0o660);
  await hasEnded(old);
  t.equal(permissions(), 0o660);
  await next.stop();
});

t.test('a child that cannot serve leaves the admin socket file of its parent', async (t) => {
  const path = join(tempDir(t), 'admin');
  const withAdmin = (listener: Config) => ({ ...config(listener), admin: { address: { pipe: { path } } } });
  const line = new EpochLine(t);
  const start = (epoch: number, listener: Config) =>
    line.start(epoch, { config: withAdmin(listener), args: QUICK, wait: 'spawned' });
  const isAnswered = () =>
    waitFor(async () => (await httpRequest(0, '/ready', { socketPath: path })).body === 'LIVE\n', { what: 'admin' });
  const old = await start(0, web('web', 'hi'));
  await isAnswered();
  const { port } = await startUpstream(t, (_request, answer) => answer.end());
  const unable = await start(1, web('web', 'hi', { address: loopback(port) }));
  await hasEnded(unable);
  t.match(unable.exit, { code: 1 });
  t.match(unable.stderr, 'cannot listen on');
  await isAnswered();
  const next = await start(1, web('web', 'hi'));
  await hasEnded(old);
  await isAnswered();
  await next.stop();
  t.notOk(existsSync(path));
});

t.test('a file that a listener of the next process has created in place of the admin socket stays', async (t) => {
  const directory = tempDir(t);
  const [first, second] = [join(directory, 'first'), join(directory, 'second')];
  const line = new EpochLine(t);
  const start = (epoch: number, path: string, listener: Config) =>
    line.start(epoch, {
      config: { ...config(listener), admin: { address: { pipe: { path } } } },
      args: QUICK,
      wait: 'spawned',
    });
  const old = await start(0, first, web('web', 'hi'));
  await waitFor(async () => (await httpRequest(0, '/ready', { socketPath: first })).body === 'LIVE\n');
  const next = await start(1, second, web('web', 'hi', { address: { pipe: { path: first } } }));
  await hasEnded(old);
  t.equal((await httpRequest(0, '/', { socketPath: first })).body, 'hi');
  await next.stop();
});

t.test('clients that see the address file of the new process reach that process', async (t) => {
  const line = new EpochLine(t);
  let old = await line.start(0, { config: config(web('web', 'hi')), args: QUICK });
  const { adminPort } = old;
  const ask = async () => {
    const info = JSON.parse((await httpRequest(adminPort, '/server_info')).body) as ServerInfo;
    return info.command_line_options.restart_epoch;
  };
  for (const epoch of [1, 2, 3]) {
    const next = await line.start(epoch, { config: config(web('web', 'hi')), args: QUICK, wait: 'spawned' });
    const epochs: Promise<number>[] = [];
    const kept = await connectRaw(t, adminPort);
    kept.write(READY);
    await kept.readUntil('LIVE\n\r\n0\r\n\r\n');
    const watcher = watch(next.directory, () => {
      kept.write(READY);
      for (let count = 0; count < 8; count++) epochs.push(ask());
    });
    t.teardown(() => watcher.close());
    await waitFor(() => epochs.length > 0, { what: 'the address file' });
    const answers = await Promise.all(epochs);
    t.ok(
      answers.every((answer) => answer === epoch),
      `epoch ${epoch}: ${answers}`,
    );
    t.match(await kept.readToEnd(), { text: '' }, 'existing connections are closed');
    watcher.close();
    await hasEnded(old);
    old = next;
  }
  await old.stop();
});

t.test(
  'a kept-alive connection to the old admin interface closes at the take-over, after the response in progress',
  async (t) => {
    const line = new EpochLine(t);
    const old = await line.start(0, { config: config(web('web', 'hi')), args: QUICK });
    const silent = await connectRaw(t, old.adminPort);
    const asked = await connectRaw(t, old.adminPort);
    asked.write(READY);
    t.match(await asked.readUntil('LIVE\n\r\n0\r\n\r\n'), /^HTTP\/1\.1 200 OK\r\n(?!.*connection: close)/is);
    const asking = await connectRaw(t, old.adminPort);
    asking.write('POST /healthcheck/ok HTTP/1.1\r\nhost: admin\r\ncontent-length: 2\r\n\r\nh');
    await old.waitForStat('http.admin.downstream_rq_active', 2);
    const next = await line.start(1, { config: config(web('web', 'hi')), args: ['--parent-shutdown-time-s', '60'] });
    for (const connection of [silent, asked]) t.same(await connection.readToEnd(), { text: '', closed: 'end' });
    asking.write('i');
    t.match(await asking.readToEnd(), { text: /^HTTP\/1\.1 200 OK\r\n.*connection: close/is, closed: 'end' });
    await next.stop();
    await hasEnded(old);
  },
);

async function expect(body: string, asked: Promise<HttpAnswer>): Promise<void> {
  const answer = await asked;
  if (answer.body !== body) throw new Error(`answered ${answer.status} ${JSON.stringify(answer.body)}`);
}
