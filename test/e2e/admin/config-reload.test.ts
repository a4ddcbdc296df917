// Reloads of a changed bootstrap: POST /config/reload shows the differences and applies them under traffic, --watch-config does
// so on its own, and a configuration that cannot be applied changes nothing.

import { execFileSync } from 'node:child_process';
import { mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { SteadyClient } from '../draining/steady-client.js';
import {
  type BatonProcess,
  bootstrap,
  type Config,
  fileAccessLog,
  freePort,
  httpListener,
  httpRequest,
  routeAllTo,
  startBaton,
  startUpstream,
  staticCluster,
  takePort,
  tempDir,
  waitFor,
} from '../harness/index.js';
import { cannotFailCalls, failCalls } from '../harness/system-calls.js';
import { answering, managerOf } from '../http/proxy.js';

interface Reload {
  readonly outcome: string;
  readonly why?: string;
  readonly changes?: readonly { kind: string; name: string; change: string; fields?: { path: string }[] }[];
  readonly needs_restart?: readonly { path: string; before?: unknown; after?: unknown }[];
  readonly errors?: readonly { source: string; line: number; column: number; path: string; message: string }[];
}

async function reload(baton: BatonProcess, query = ''): Promise<Reload & { readonly status: number }> {
  const { body, status } = await baton.admin(`/config/reload?format=json&${query}`, {
    method: 'POST',
    deadlineMs: 60_000,
  });
  return { ...(JSON.parse(body) as Reload), status };
}

function write({ configPath }: BatonProcess, config: Config | string): void {
  writeFileSync(configPath, typeof config === 'string' ? config : JSON.stringify(config, null, 2));
}

/** Starts a Baton that answers 'first' and watches its file: `write` changes the answer. */
async function startWatched(t: Test) {
  const path = join(tempDir(t), 'config.yaml');
  const write = (text: string): void => {
    const listeners = [httpListener('web', 0, managerOf([answering({ prefix: '/' }, text)]))];
    writeFileSync(path, JSON.stringify(bootstrap({ listeners, clusters: [] })));
  };
  write('first');
  const baton = await startBaton(t, { args: ['-c', path, '--watch-config', '-l', 'info'] });
  return { baton, port: await baton.listenerPort('web'), write };
}

/** Starts an upstream that answers with its name. */
async function named(t: Test, name: string): Promise<number> {
  return (await startUpstream(t, (_request, response) => response.end(name))).port;
}

const dnsCluster = (name: string, port: number): Config => ({
  name,
  type: 'STRICT_DNS',
  load_assignment: {
    cluster_name: name,
    endpoints: [
      {
        lb_endpoints: [{ endpoint: { address: { socket_address: { address: 'localhost', port_value: port } } } }],
      },
    ],
  },
  dns_lookup_family: 'V4_ONLY',
});

const layer = (values: Config): Config => ({
  layered_runtime: {
    layers: [
      { name: 'base', static_layer: values },
      { name: 'admin', admin_layer: {} },
    ],
  },
});

t.test(
  'a reload shows the differences and applies them under traffic without losing a request or a connection',
  async (t) => {
    const [one, two] = [await named(t, 'one'), await named(t, 'two')];
    const extraPort = await freePort();
    // So many that workers build them between requests.
    const others = Array.from({ length: 500 }, (_, i) => ({ name: `${i}`, domains: [`${i}.com`] }));
    const long = (name: string, port: number, cluster: string) => {
      const routes = routeAllTo(cluster);
      const virtual_hosts = [...(routes['virtual_hosts'] as Config[]), ...others];
      return httpListener(name, port, { route_config: { ...routes, virtual_hosts } });
    };
    const web = (cluster: string) => long('web', 0, cluster);
    const steady = httpListener('steady', 0, managerOf([answering({ prefix: '/' }, 'steady')]));
    const before = bootstrap({
      listeners: [web('one'), steady, httpListener('gone', 0, managerOf([answering({ prefix: '/' }, 'gone')]))],
      clusters: [staticCluster('one', one), staticCluster('kept', [one, two])],
      extra: layer({ number: 1 }),
    });
    const after = bootstrap({
      listeners: [web('two'), steady, long('extra', extraPort, 'kept')],
      clusters: [dnsCluster('two', two), staticCluster('kept', [two])],
      extra: layer({ number: 2 }),
    });
    const baton = await startBaton(t, {
      config: before,
      args: ['-l', 'info', '--concurrency', '2', '--drain-time-s', '2'],
    });
    const web0 = await baton.listenerPort('web');
    t.equal((await baton.admin('/config/reload')).status, 400, 'GET changes nothing');
    t.match(await reload(baton), { status: 200, outcome: 'possible', changes: [], needs_restart: [] });

    await baton.admin('/runtime_modify?mine=kept', { method: 'POST' });
    const clients = [
      ...SteadyClient.start(t, web0, 4),
      ...SteadyClient.start(t, await baton.listenerPort('steady'), 2),
    ];
    await Promise.all(clients.map((client) => client.answers(20)));

    write(baton, after);
    const expected = [
      { kind: 'cluster', name: 'two', change: 'added' },
      { kind: 'cluster', name: 'one', change: 'removed' },
      { kind: 'cluster', name: 'kept', change: 'changed' },
      { kind: 'listener', name: 'extra', change: 'added' },
      { kind: 'listener', name: 'gone', change: 'removed' },
      { kind: 'route_configuration', name: 'web/all', change: 'changed' },
      { kind: 'runtime_layer', name: 'base', change: 'changed' },
    ];
    t.match(await reload(baton), { status: 200, outcome: 'possible', changes: expected });
    t.equal((await httpRequest(web0)).body, 'one', 'a dry run changes nothing');
    const shown = await baton.admin('/config/reload', { method: 'POST' });
    t.match(shown.body, /^dry run, .*\n {2}~ web\/all\n.*route\.cluster: "one" .+ "two"\n/s);
    const dump = JSON.parse((await baton.admin('/config_dump')).body);

    t.match(await reload(baton, 'apply=true'), { status: 200, outcome: 'applied', changes: expected });
    t.equal((await httpRequest(web0)).body, 'two');
    await Promise.all(clients.map((client) => client.answers(20)));
    for (const client of clients) {
      t.strictSame(client.failures, []);
      t.notOk(client.closing.includes(true), 'the connections stay open');
    }
    t.equal((await httpRequest(extraPort)).body, 'two');
    const hasLeft = async () => !/^one::/m.test((await baton.admin('/clusters')).body);
    await waitFor(hasLeft, {
      what: 'the removal of the cluster after the drain of the listener that uses it',
      deadlineMs: 30_000,
    });
    const listeners = (await baton.admin('/listeners')).body;
    t.match(listeners, /^extra::/m);
    t.notMatch(listeners, /^gone::/m);
    t.match(JSON.parse((await baton.admin('/runtime')).body).entries, {
      number: { final_value: '2' },
      mine: { final_value: 'kept' },
    });

    const dumped = JSON.parse((await baton.admin('/config_dump')).body);
    const lists = (of: {
      configs: Record<string, { listener?: Config; cluster?: Config; route_config?: Config }[]>[];
    }) => ({
      clusters: of.configs[1]!['static_clusters']!.map(({ cluster }) => cluster!['name']),
      listeners: of.configs[2]!['static_listeners']!.map(({ listener }) => listener!['name']),
    });
    t.strictSame(lists(dumped), { clusters: ['kept', 'two'], listeners: ['web', 'steady', 'extra'] });
    t.match(JSON.stringify(dumped.configs.find((each: Config) => 'static_route_configs' in each)), /"cluster":"two"/);
    t.equal(dumped.configs[0].bootstrap.static_resources.clusters[0].name, 'two');
    t.ok(Date.parse(dumped.configs[0].last_updated) > Date.parse(dump.configs[0].last_updated));

    t.match(await reload(baton, 'apply=true'), { status: 200, outcome: 'applied', changes: [] });
    const stats = (await baton.admin('/stats?filter=^config_reload')).body;
    t.match(
      stats,
      /dry_run: 3\n.*update_attempt: 2\n.*update_failure: 0\n.*update_rejected: 0\n.*update_success: 2\n/s,
    );
    t.match(baton.stderr, /configuration reloaded: clusters: 1 added, 1 changed, 1 removed, 0 unchanged; listeners:/);
  },
);

t.test('a configuration that is invalid, needs a restart, or cannot be applied changes nothing', async (t) => {
  const upstream = await named(t, 'upstream');
  const base = (listeners: Config[], clusters: Config[], extra: Config = {}) =>
    bootstrap({
      listeners: [httpListener('web', 0, { route_config: routeAllTo('a') }), ...listeners],
      clusters: [staticCluster('a', upstream), ...clusters],
      extra: { node: { id: 'n', cluster: 'c' }, ...extra },
    });
  const baton = await startBaton(t, { config: base([], []), args: ['--service-zone', 'z'] });
  const port = await baton.listenerPort('web');
  const dump = async () => (await baton.admin('/config_dump')).body;
  const asItWas = await dump();
  const isUnchanged = async (what: string) => {
    t.equal((await httpRequest(port)).body, 'upstream', what);
    t.equal(await dump(), asItWas, what);
    t.equal(await baton.stat('cluster_manager.active_clusters'), 1, what);
    t.equal(await baton.stat('listener_manager.total_listeners_active'), 1, what);
  };

  const wrong = '{\n  "admin": { "adress": 1 },\n  "static_resources": { "clusters": [{}], "listener": [] }\n}';
  write(baton, wrong);
  for (const query of ['', 'apply=true']) {
    const refused = await reload(baton, query);
    t.match(refused, { status: 400, outcome: 'invalid' });
    t.match(refused.errors, [
      { source: baton.configPath, line: 2, column: 14, message: /unknown field 'adress'/ },
      { source: baton.configPath, line: 3, path: 'static_resources.clusters[0].name' },
      { source: baton.configPath, line: 3, message: /unknown field 'listener'/ },
    ]);
  }
  t.match((await baton.admin('/config/reload', { method: 'POST' })).body, /refused.*config\.yaml:2:14: .*\n.*\^\n/s);
  await isUnchanged('after an invalid configuration');

  const other = staticCluster('b', upstream);
  write(baton, base([], [other], { node: { id: 'm', cluster: 'c' }, stats_flush_interval: '1s' }));
  const fields = [
    { path: 'node.id', before: 'n', after: 'm' },
    { path: 'stats_flush_interval', after: '1s' },
  ];
  t.match(await reload(baton), { status: 200, outcome: 'possible', needs_restart: fields });
  t.match(await reload(baton, 'apply=true'), { status: 400, outcome: 'needs_restart', needs_restart: fields });
  await isUnchanged('after a change that needs a restart');

  const { port: takenPort } = await takePort(t);
  const manager = managerOf([answering({ prefix: '/' }, 'new')]);
  write(
    baton,
    base([httpListener('free', await freePort(), manager), httpListener('taken', takenPort, manager)], [other]),
  );
  t.match(await reload(baton, 'apply=true'), {
    status: 500,
    outcome: 'failed',
    why: `cannot listen on 127.0.0.1:${takenPort}: the address is in use by another process`,
  });
  await isUnchanged('after an address that cannot be bound');
  t.equal((await baton.admin('/config/reload?apply=yes', { method: 'POST' })).status, 400);

  // Only opening a pipe shows whether it has a reader: workers do that, after all other steps.
  const log = join(baton.directory, 'log');
  execFileSync('mkfifo', [log]);
  const logging = httpListener('logging', 0, { ...manager, access_log: [fileAccessLog(log)] });
  const values = { layers: [{ name: 'base', static_layer: { number: 1 } }] };
  const moved = staticCluster('a', [await named(t, 'moved')]);
  const web = httpListener('web', 0, { route_config: routeAllTo('b') });
  write(baton, {
    ...base([], [], { layered_runtime: values }),
    static_resources: { listeners: [web, logging], clusters: [moved, other] },
  });
  t.match(await reload(baton, 'apply=true'), { status: 500, outcome: 'failed', why: /unable to open file/ });
  t.equal((await httpRequest(port)).body, 'upstream', 'after workers could not apply it');
  t.strictSame(JSON.parse(await dump()).configs[0], JSON.parse(asItWas).configs[0]);
  t.equal(await baton.stat('cluster_manager.active_clusters'), 1);
  t.match((await baton.admin('/listeners')).body, /^web::127\.0\.0\.1:\d+\n$/);
  t.strictSame(JSON.parse((await baton.admin('/runtime')).body).layers, []);

  write(baton, base([], [other], { node: { id: 'm', cluster: 'c' } }));
  t.match(await reload(baton, 'apply=true&partial=true'), { status: 200, outcome: 'applied' });
  t.match((await baton.admin('/clusters')).body, /^b::/m);
  t.match(JSON.parse(await dump()).configs[0].bootstrap, {
    node: { id: 'n', locality: { zone: 'z' } },
    static_resources: { clusters: [{ name: 'a' }, { name: 'b' }] },
  });
  t.match(await reload(baton), { outcome: 'possible', changes: [], needs_restart: [{ path: 'node.id' }] });

  const both = await Promise.all([reload(baton, 'apply=true&partial=true'), reload(baton)]);
  t.strictSame(both.map(({ status }) => status).sort(), [200, 409]);
  t.equal(await baton.stat('config_reload.update_failure'), 2);
});

t.test('listeners exchange their addresses without a refused connection', async (t) => {
  const [one, two] = [await freePort(), await freePort()];
  const door = (port: number) => httpListener('door', port, managerOf([answering({ prefix: '/' }, 'door')]));
  const gate = (port: number) => httpListener('gate', port, managerOf([answering({ prefix: '/' }, 'gate')]));
  const config = (listeners: Config[]) => bootstrap({ listeners, clusters: [] });
  const baton = await startBaton(t, {
    config: config([door(one), gate(two)]),
    args: ['--concurrency', '2', '--drain-time-s', '1'],
  });
  const clients = [...SteadyClient.start(t, one, 2), ...SteadyClient.start(t, two, 2)];
  await Promise.all(clients.map((client) => client.answers(20)));
  write(baton, config([door(two), gate(one)]));
  t.match(await reload(baton, 'apply=true'), { status: 200, outcome: 'applied' });
  t.same([(await httpRequest(one)).body, (await httpRequest(two)).body], ['gate', 'door']);
  // Connections of the old listeners are asked to close, and new ones replace them.
  await waitFor(() => clients.every((client) => client.closing.includes(true)), { what: 'all connections to close' });
  await Promise.all(clients.map((client) => client.answers(20)));
  for (const { failures, isRefused } of clients)
    t.strictSame({ failures, isRefused }, { failures: [], isRefused: false });
});

t.test(
  '--watch-config applies a file that is moved into place, edited, or behind a replaced symbolic link',
  async (t) => {
    const directory = tempDir(t);
    const answer = (text: string): string =>
      JSON.stringify(
        bootstrap({ listeners: [httpListener('web', 0, managerOf([answering({ prefix: '/' }, text)]))], clusters: [] }),
        null,
        2,
      );
    for (const version of ['v1', 'v2']) {
      mkdirSync(join(directory, version));
      writeFileSync(join(directory, version, 'config.yaml'), answer(version));
    }
    symlinkSync('v1', join(directory, 'data'));
    const path = join(directory, 'data', 'config.yaml');
    const baton = await startBaton(t, { args: ['-c', path, '--watch-config', '-l', 'info'] });
    const port = await baton.listenerPort('web');
    const [client] = SteadyClient.start(t, port, 1);
    const answers = (text: string) =>
      waitFor(async () => (await httpRequest(port)).body === text, { what: `the answer ${text}`, deadlineMs: 30_000 });
    await answers('v1');

    symlinkSync('v2', join(directory, 'next'));
    renameSync(join(directory, 'next'), join(directory, 'data'));
    await answers('v2');
    writeFileSync(path, answer('edited'));
    await answers('edited');

    writeFileSync(path, 'static_resources:\n  listeners: [{ nam: x }]\n');
    await waitFor(() => /it is refused:\n.*config\.yaml:2:17: [^\n]*unknown field 'nam'/s.test(baton.stderr));
    writeFileSync(join(directory, 'new'), Buffer.from([0xff, 0xfe, 0, 1, 2]));
    renameSync(join(directory, 'new'), path);
    await waitFor(() => /not UTF-8/.test(baton.stderr));
    writeFileSync(path, JSON.stringify({ ...JSON.parse(answer('x')), stats_flush_interval: '1s' }));
    await waitFor(() => /a part of it needs a restart: stats_flush_interval\n/.test(baton.stderr));
    await baton.waitForStat('config_reload.update_rejected', 3);
    t.equal((await httpRequest(port)).body, 'edited');

    writeFileSync(join(directory, 'new'), answer('moved'));
    renameSync(join(directory, 'new'), path);
    await answers('moved');
    await client!.answers(5);
    t.strictSame(client!.failures, []);
    t.notOk(client!.closing.includes(true));
    t.equal(await baton.stat('config_reload.update_success'), 3);
  },
);

t.test(
  '--watch-config retries a change that could not be read for lack of a thread',
  { skip: cannotFailCalls },
  async (t) => {
    const { baton, port, write } = await startWatched(t);
    const recover = await failCalls(t, baton.pid, 'clone,clone3', 'EAGAIN');
    write('second');
    await waitFor(() => /configuration not reloaded: .*cannot start more threads \(EAGAIN\)/.test(baton.stderr));
    t.equal((await httpRequest(port)).body, 'first');
    await recover();
    await waitFor(async () => (await httpRequest(port)).body === 'second', { what: 'the change' });
    t.equal(baton.stderr.split(' has changed').length - 1, 1);
  },
);

t.test('--watch-config retries a change that could not be read for lack of descriptors', async (t) => {
  const { baton, port, write } = await startWatched(t);
  const limit = (soft: number | 'unlimited') => execFileSync('prlimit', [`--pid=${baton.pid}`, `--nofile=${soft}:`]);
  const before = Number(execFileSync('prlimit', [`--pid=${baton.pid}`, '--nofile', '-o', 'SOFT', '--noheadings']));
  limit(3);
  write('second');
  await waitFor(() => /configuration not reloaded: .*EMFILE/.test(baton.stderr), { what: 'a reload that fails' });
  limit(before);
  await waitFor(async () => (await httpRequest(port)).body === 'second', { what: 'the change' });
  t.equal(await baton.stat('config_reload.update_rejected'), 0);
});

t.test('--watch-config applies a change that failed once the obstacle is gone', async (t) => {
  const path = join(tempDir(t), 'config.yaml');
  const { release, port } = await takePort(t);
  const write = (...listeners: Config[]) => writeFileSync(path, JSON.stringify(bootstrap({ listeners, clusters: [] })));
  const web = httpListener('web', 0, managerOf([answering({ prefix: '/' }, 'web')]));
  write(web);
  const baton = await startBaton(t, { args: ['-c', path, '--watch-config', '-l', 'info'] });
  await baton.listenerPort('web');
  write(web, httpListener('taken', port, managerOf([answering({ prefix: '/' }, 'taken')])));
  const failures = () => baton.stat('config_reload.update_failure');
  await waitFor(async () => ((await failures()) ?? 0) >= 2, { what: 'a second attempt' });
  release();
  await waitFor(
    () =>
      httpRequest(port)
        .then(({ body }) => body === 'taken')
        .catch(() => false),
    { what: 'the change' },
  );
  t.equal(baton.stderr.split('not applied, everything is as it was').length - 1, 1, 'the reason is logged once');
});

t.test(
  'a reload without a thread to read it reports that, and refuses nothing',
  { skip: cannotFailCalls },
  async (t) => {
    const baton = await startBaton(t, { config: bootstrap({ listeners: [], clusters: [] }) });
    const recover = await failCalls(t, baton.pid, 'clone,clone3', 'EAGAIN');
    const { errors, outcome, status, why } = await reload(baton, 'apply=true');
    t.strictSame({ errors, outcome, status }, { errors: undefined, outcome: 'unread', status: 503 });
    t.match(why, /cannot start more threads \(EAGAIN\)/);
    const text = await baton.admin('/config/reload', { method: 'POST' });
    t.match(text, {
      status: 503,
      body: /^the configuration cannot be read now, nothing has changed: this process cannot start/,
    });
    t.equal(await baton.stat('config_reload.update_failure'), 1);
    t.equal(await baton.stat('config_reload.update_rejected'), 0);
    await recover();
    t.equal((await reload(baton, 'apply=true')).outcome, 'applied');
  },
);
