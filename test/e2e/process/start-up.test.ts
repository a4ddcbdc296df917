// The start of a server: its states, and the reasons to refuse to start.

import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import {
  bootstrap,
  type Config,
  freePort,
  httpListener,
  httpRequest,
  loopback,
  rawExchange,
  startBaton,
  staticCluster,
  type Teardown,
  takePort,
  tempDir,
  waitFor,
} from '../harness/index.js';
import { runBaton } from './command-line/run.js';
import { listeningPorts } from './sockets.js';

const HELLO: Config = {
  route_config: {
    name: 'all',
    virtual_hosts: [
      {
        name: 'all',
        domains: ['*'],
        routes: [{ match: { prefix: '/' }, direct_response: { status: 200, body: { inline_string: 'hello' } } }],
      },
    ],
  },
};
const STACK = /^\s+at .*:\d+:\d+/m;
const hasIp6 = Object.values(networkInterfaces()).some((list) => list?.some((entry) => entry.address === '::1'));

t.test('the configuration may be JSON, or a command-line argument', async (t) => {
  const config = bootstrap({ listeners: [httpListener('web', 0, HELLO)], clusters: [] });
  const fromJson = await startBaton(t, { config, configName: 'config.json' });
  t.equal((await httpRequest(await fromJson.listenerPort('web'), '/')).body, 'hello');
  await fromJson.stop();

  const fromArgument = await startBaton(t, { args: ['--config-yaml', JSON.stringify(config)] });
  t.equal((await httpRequest(await fromArgument.listenerPort('web'), '/')).body, 'hello');
  await fromArgument.stop();
});

t.test('listeners accept when the log reports the main loop, or the admin interface answers', async (t) => {
  for (const marker of ['starting main dispatch loop', 'admin address: ']) {
    const port = await freePort();
    const config = bootstrap({ listeners: [httpListener('web', port, HELLO)], clusters: [] });
    const baton = await startBaton(t, { config, args: ['-l', 'info'], wait: 'spawned' });
    await waitFor(() => baton.stderr.includes(marker), { what: marker });
    t.equal((await httpRequest(port, '/')).body, 'hello', marker);
    await baton.stop();
    const last = baton.stderr.slice(baton.stderr.indexOf('starting main dispatch loop'));
    t.notMatch(last, /starting workers|admin address/);
  }
});

t.test(
  'the main loop is reported while clusters wait for health checks, and the admin interface answers',
  async (t) => {
    const sockets: Socket[] = [];
    const silent = createServer((socket) => void sockets.push(socket));
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    t.teardown(() => {
      for (const socket of sockets) socket.destroy();
      silent.close();
    });
    const check = { timeout: '60s', interval: '60s', unhealthy_threshold: 1, healthy_threshold: 1 };
    const cluster = staticCluster('checked', (silent.address() as AddressInfo).port, {
      health_checks: [{ ...check, http_health_check: { path: '/' } }],
    });
    const config = bootstrap({ listeners: [httpListener('web', 0, HELLO)], clusters: [cluster] });
    const baton = await startBaton(t, { config, args: ['-l', 'info'], wait: 'admin' });
    await waitFor(() => baton.stderr.includes('starting main dispatch loop'), { what: 'the line' });
    t.notMatch(baton.stderr, /starting workers/);
    t.match(await baton.admin('/ready'), { status: 503, body: 'PRE_INITIALIZING\n' });
    await baton.stop();
  },
);

t.test('--config-yaml is merged onto the file: lists grow', async (t) => {
  const more = { static_resources: { listeners: [httpListener('second', 0, HELLO)] } };
  const baton = await serve(t, {}, ['--config-yaml', JSON.stringify(more)]);
  for (const name of ['web', 'second']) {
    t.equal((await httpRequest(await baton.listenerPort(name), '/')).body, 'hello');
  }
  await baton.stop();
});

t.test(
  'with a file `drain` in flags_path the server starts with failed health checks, until /healthcheck/ok',
  async (t) => {
    const flags = tempDir(t);
    const listeners = [httpListener('web', 0, HELLO)];
    const config = bootstrap({ listeners, clusters: [], extra: { flags_path: flags } });
    const ready = await startBaton(t, { config });
    t.equal(await ready.stat('server.live'), 1, 'no file, no drain');
    await ready.stop();

    writeFileSync(join(flags, 'drain'), '');
    const baton = await startBaton(t, { config, wait: 'admin' });
    t.equal(await baton.stat('server.live'), 0, 'from the start');
    const port = await baton.loggedPort('web');
    await waitFor(async () => (await baton.admin('/ready')).body === 'DRAINING\n', { what: 'the state DRAINING' });
    t.equal((await baton.admin('/ready')).status, 503);
    t.equal((await httpRequest(port, '/')).body, 'hello', 'requests are served');
    t.match(baton.stderr, 'starting server in drain mode');
    await baton.admin('/healthcheck/ok', { method: 'POST' });
    t.match(await baton.admin('/ready'), { status: 200, body: 'LIVE\n' });
    t.equal(await baton.stat('server.live'), 1);
    await baton.stop();
  },
);

t.test('the server can run without an admin interface', async (t) => {
  const config = { static_resources: { listeners: [httpListener('web', 0, HELLO)] } };
  const baton = await startBaton(t, { config, wait: 'spawned' });
  const port = await baton.loggedPort('web');
  t.equal((await httpRequest(port, '/')).body, 'hello');
  t.same(listeningPorts(baton.pid), [port]);
  t.match(baton.stderr, /the configuration has no admin address: there is no admin interface\n/);
  await baton.stop();
});

t.test('the server can run without listeners and clusters', async (t) => {
  const baton = await startBaton(t, { config: { admin: { address: loopback(0) } } });
  t.equal((await baton.admin('/ready')).body.trim(), 'LIVE');
  await baton.stop();
});

t.test('a port that another process listens on is an error that names it, with status 1', async (t) => {
  const { port } = await takePort(t);
  const taken = bootstrap({
    listeners: [httpListener('free', 0, HELLO), httpListener('web', port, HELLO)],
    clusters: [],
  });
  const listener = await runBaton(t, { config: taken, args: ['--concurrency', '2'] });
  t.equal(listener.code, 1);
  t.match(listener.stderr, new RegExp(`\\[critical\\].*127\\.0\\.0\\.1:${port}.*in use`));
  t.notMatch(listener.stderr, STACK);

  const admin = await runBaton(t, { config: { admin: { address: loopback(port) } } });
  t.equal(admin.code, 1);
  t.match(admin.stderr, new RegExp(`\\[critical\\].*127\\.0\\.0\\.1:${port}`));
  t.match(admin.stderr, /in use/);
  t.notMatch(admin.stderr, STACK);
});

t.test('an address that the machine does not have is refused, and bound with freebind', async (t) => {
  const away = {
    ...httpListener('away', 0, HELLO),
    address: { socket_address: { address: '192.0.2.7', port_value: 0 } },
  };
  const refused = await runBaton(t, { config: bootstrap({ listeners: [away], clusters: [] }) });
  t.equal(refused.code, 1);
  t.match(refused.stderr, /\[critical\].*192\.0\.2\.7.*freebind/);
  t.notMatch(refused.stderr, STACK);

  const listeners = [{ ...away, freebind: true }, httpListener('web', 0, HELLO)];
  const baton = await startBaton(t, { config: bootstrap({ listeners, clusters: [] }) });
  t.equal((await httpRequest(await baton.listenerPort('web'), '/')).body, 'hello');
  t.match((await baton.admin('/listeners')).body, /^away::192\.0\.2\.7:\d+$/m);
  await baton.stop();
});

t.test('a filter chain without filters closes its connections', async (t) => {
  const empty = { name: 'empty', address: loopback(0), filter_chains: [{}] };
  const baton = await startBaton(t, {
    config: bootstrap({ listeners: [empty, httpListener('web', 0, HELLO)], clusters: [] }),
  });
  const port = await baton.listenerPort('empty');
  t.same(await rawExchange(port, ''), { text: '', closed: 'end' });
  await baton.waitForStat('listener.127.0.0.1_0.downstream_cx_destroy', 1);
  t.equal((await httpRequest(await baton.listenerPort('web'), '/')).body, 'hello');
  await baton.stop();
});

t.test('a regular file in place of a Unix socket is not removed', async (t) => {
  const path = join(tempDir(t), 'precious');
  writeFileSync(path, 'data');
  const address = { pipe: { path } };
  const listener = { ...httpListener('pipe', 0, HELLO), address };
  for (const config of [
    bootstrap({ listeners: [listener], clusters: [] }),
    bootstrap({ listeners: [], clusters: [], extra: { admin: { address } } }),
  ]) {
    for (const args of [['--disable-hot-restart'], ['--use-dynamic-base-id']]) {
      const { code, stderr } = await runBaton(t, { config, args });
      t.equal(code, 1);
      t.match(stderr, `cannot listen on ${path}: a file at this path is not a socket`);
      t.equal(readFileSync(path, 'utf8'), 'data');
    }
  }
});

t.test('--admin-address-path gets the address without a line break', async (t) => {
  const path = join(tempDir(t), 'address');
  const baton = await serve(t, {}, ['--admin-address-path', path], 'spawned');
  const text = await waitFor(() => existsSync(path) && readFileSync(path, 'utf8'), { what: 'the file' });
  t.match(text, /^127\.0\.0\.1:\d+$/);
  const port = Number(text.split(':')[1]);
  await waitFor(async () => (await httpRequest(port, '/ready')).status === 200);
  await baton.stop();
});

t.test(
  'the address file of a killed process is removed before the next one starts, and no other file is',
  async (t) => {
    const path = join(tempDir(t), 'address');
    const address = { pipe: { path: tempDir(t) } };
    const config = bootstrap({ listeners: [], clusters: [], extra: { admin: { address } } });
    for (const hotRestart of ['--disable-hot-restart', '--use-dynamic-base-id']) {
      writeFileSync(path, '127.0.0.1:1');
      const args = [hotRestart, '--admin-address-path', path];
      t.equal((await runBaton(t, { config, args })).code, 1);
      t.notOk(existsSync(path));
      writeFileSync(path, 'an unrelated text');
      t.equal((await runBaton(t, { config, args })).code, 1);
      t.equal(readFileSync(path, 'utf8'), 'an unrelated text');
    }
  },
);

t.test('an --admin-address-path that cannot be written is reported, and the server starts', async (t) => {
  const path = join(tempDir(t), 'no', 'such', 'directory');
  const baton = await serve(t, {}, ['--admin-address-path', path], 'spawned');
  t.equal((await httpRequest(await baton.loggedPort('web'), '/')).body, 'hello');
  t.match(baton.stderr, `cannot open admin address output file ${path} for writing`);
  await baton.stop();
});

for (const [given, workers] of [
  ['0', 1],
  ['1', 1],
  ['3', 3],
] as const) {
  t.test(`--concurrency ${given} runs ${workers} worker(s)`, async (t) => {
    const baton = await serve(t, {}, ['--concurrency', given]);
    t.equal(await baton.stat('server.concurrency'), workers);
    const port = await baton.listenerPort('web');
    t.equal(
      listeningPorts(baton.pid).filter((each) => each === port).length,
      workers,
      'each worker has its own socket',
    );
    t.equal((await httpRequest(port, '/')).body, 'hello');
    await baton.stop();
  });
}

t.test('listeners bind to every IPv4 address, to IPv6, and to both at once', { skip: !hasIp6 }, async (t) => {
  const on = (name: string, address: Config): Config => ({
    ...httpListener(name, 0, HELLO),
    address: { socket_address: { port_value: 0, ...address } },
  });
  const listeners = [
    on('any4', { address: '0.0.0.0' }),
    on('loopback6', { address: '::1' }),
    on('any6', { address: '::' }),
    on('both', { address: '::', ipv4_compat: true }),
  ];
  const baton = await startBaton(t, { config: bootstrap({ listeners, clusters: [] }), args: ['--concurrency', '2'] });
  const ask = async (name: string, host: string): Promise<string> => {
    const port = await baton.listenerPort(name);
    return httpRequest(port, '/', { host }).then(
      (answer) => answer.body,
      (error: NodeJS.ErrnoException) => error.code ?? String(error),
    );
  };
  t.equal(await ask('any4', '127.0.0.1'), 'hello');
  t.equal(await ask('any4', '127.0.0.99'), 'hello');
  t.equal(await ask('loopback6', '::1'), 'hello');
  t.equal(await ask('any6', '::1'), 'hello');
  t.equal(await ask('any6', '127.0.0.1'), 'ECONNREFUSED', ':: is IPv6 only without ipv4_compat');
  t.equal(await ask('both', '::1'), 'hello');
  t.equal(await ask('both', '127.0.0.1'), 'hello');
  t.match((await baton.admin('/listeners')).body, /^loopback6::\[::1\]:\d+$/m);
  await baton.stop();
});

t.test('with enable_reuse_port: false two workers share one socket, and both serve', async (t) => {
  const baton = await serve(t, { enable_reuse_port: false }, ['--concurrency', '2']);
  const port = await baton.listenerPort('web');
  t.equal(listeningPorts(baton.pid).filter((each) => each === port).length, 1, 'one socket');
  const served = (worker: number): Promise<number | undefined> =>
    baton.stat(`listener.web.worker_${worker}.downstream_cx_total`);
  await waitFor(
    async () => {
      const answers = await Promise.all(Array.from({ length: 100 }, () => httpRequest(port, '/')));
      if (!answers.every((answer) => answer.body === 'hello')) throw new Error('a connection was not served');
      return (await served(0))! > 0 && (await served(1))! > 0;
    },
    { what: 'both workers to serve' },
  );
  await baton.stop();
});

t.test('two servers can share a port with reuse_port', async (t) => {
  const port = await freePort();
  const config = bootstrap({ listeners: [httpListener('web', port, HELLO)], clusters: [] });
  const first = await startBaton(t, { config });
  const second = await startBaton(t, { config });
  await first.stop();
  for (let index = 0; index < 10; index++) t.equal((await httpRequest(port, '/')).body, 'hello');
  await second.stop();
});

function serve(t: Teardown, listener: Config = {}, args: string[] = [], wait: 'live' | 'spawned' = 'live') {
  const config = bootstrap({ listeners: [{ ...httpListener('web', 0, HELLO), ...listener }], clusters: [] });
  return startBaton(t, { config, args, wait });
}
