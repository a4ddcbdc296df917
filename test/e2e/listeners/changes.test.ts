// LDS listeners that are added, changed and removed: connections of unchanged listeners are unaffected, and none is refused.

import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, readlinkSync, statSync, unlinkSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { ResourceFile } from '../dynamic/resource-file.js';
import {
  type BatonOptions,
  type BatonProcess,
  bootstrap,
  type Config,
  connectRaw,
  EpochLine,
  fileAccessLog,
  HTTP2_CLUSTER,
  httpListener,
  httpRequest,
  Load,
  RawConnection,
  routeAllTo,
  startBaton,
  startTcpUpstream,
  staticCluster,
  type Teardown,
  takeReserve,
  tempDir,
  waitFor,
} from '../harness/index.js';
import { answering, managerOf } from '../http/proxy.js';
import { startBreakableBaton } from '../process/faults/fault-injection.js';
import type { Death } from '../process/faults/faults.js';

const LISTENER = 'envoy.config.listener.v3.Listener';

/** A Baton whose listeners are those of the last set(). */
class Changing {
  readonly baton: BatonProcess;
  readonly options: BatonOptions;
  readonly #file: ResourceFile;
  #updates = 1;

  private constructor(baton: BatonProcess, options: BatonOptions, file: ResourceFile) {
    this.baton = baton;
    this.options = options;
    this.#file = file;
  }

  static start(t: Teardown, listeners: Config[], drainS?: number, clusters?: Config[]): Promise<Changing> {
    return Changing.by((options) => startBaton(t, options), t, listeners, drainS, clusters);
  }

  static async by(
    startOne: (options: BatonOptions) => Promise<BatonProcess>,
    t: Teardown,
    listeners: Config[],
    drainS = 2,
    clusters: Config[] = [],
  ): Promise<Changing> {
    const file = new ResourceFile(tempDir(t), 'lds');
    file.write(LISTENER, ...listeners);
    const options: BatonOptions = {
      args: ['-l', 'warning', '--concurrency', '2', '--drain-time-s', `${drainS}`],
      config: bootstrap({
        listeners: [httpListener('fixed', 0, saying('fixed'))],
        clusters,
        extra: { dynamic_resources: { lds_config: file.source } },
      }),
    };
    return new Changing(await startOne(options), options, file);
  }

  /** Replaces all LDS listeners; resolves when the update is accepted and no listener warms. */
  async set(listeners: Config[]): Promise<void> {
    await this.write(listeners);
    await this.baton.waitForStat('listener_manager.total_listeners_warming', 0);
  }

  /** The same, without waiting. */
  writeOnly(listeners: Config[]): void {
    this.#updates++;
    this.#file.write(LISTENER, ...listeners);
  }

  /** The same, without waiting for warming listeners. */
  async write(listeners: Config[]): Promise<void> {
    this.writeOnly(listeners);
    await waitFor(
      async () => {
        const stats = await this.stats();
        return (stats['lds.update_success'] ?? 0) + (stats['lds.update_rejected'] ?? 0) >= this.#updates;
      },
      { what: `update ${this.#updates}` },
    );
  }

  /** Returns the stats of the listener manager. */
  stats(): Promise<Record<string, number>> {
    return this.baton.stats('listener_manager.');
  }

  async dump(): Promise<{ version_info?: string; static_listeners: Config[]; dynamic_listeners?: DumpedListener[] }> {
    const { body } = await this.baton.admin('/config_dump');
    const { configs } = JSON.parse(body) as { configs: { '@type': string }[] };
    return configs.find((each) => each['@type'].endsWith('.ListenersConfigDump')) as never;
  }
}

interface DumpedListener {
  name: string;
  active_state?: { version_info: string; listener: Config };
  warming_state?: { version_info: string };
  draining_state?: { version_info: string };
  error_state?: { details: string; failed_configuration: Config; version_info: string };
  client_status?: string;
}

t.test('the file of a Unix socket has the permissions of the serving version', async (t) => {
  const path = join(tempDir(t), 'door.sock');
  const door = (text: string, mode?: number) => ({
    ...httpListener('door', 0, saying(text)),
    address: { pipe: { path, ...(mode !== undefined && { mode }) } },
  });
  const changing = await Changing.start(t, [door('first')]);
  const modeOf = () => statSync(path).mode & 0o777;
  const asMade = modeOf();
  for (const [text, mode] of [['second', 0o600], ['third', 0o666], ['fourth']] as const) {
    await changing.set([door(text, mode)]);
    t.equal((await httpRequest(0, '/', { socketPath: path })).body, text);
    t.equal(modeOf(), mode ?? asMade, text);
  }
});

t.test('an address passes from one version to the next without a refused connection', async (t) => {
  const changing = await Changing.start(t, [httpListener('door', 0, saying('first'))]);
  const { baton } = changing;
  const port = await baton.listenerPort('door');
  const kept = await connectRaw(t, port);
  t.equal(await ask(kept), 'first');
  const load = new Answers(t, port, 4);
  await waitFor(() => load.count('first') > 20, { what: 'answers' });
  await changing.set([{ ...httpListener('door', 0, saying('second')), per_connection_buffer_limit_bytes: 70_000 }]);
  await waitFor(() => load.count('second') > 20, { what: 'answers of the second version' });
  t.equal(await baton.listenerPort('door'), port, 'port 0 keeps its port');
  const { dynamic_listeners: dumped = [] } = await changing.dump();
  t.match(dumped[0], { name: 'door', active_state: { version_info: '2' }, draining_state: { version_info: '1' } });
  t.equal((await changing.stats()).total_listeners_draining, 1);
  // Bound again, beside the previous sockets.
  await changing.set([{ ...httpListener('door', 0, saying('third')), freebind: true }]);
  await waitFor(() => load.count('third') > 20, { what: 'answers of the third version' });
  const gate = { ...httpListener('gate', port, saying('renamed')), freebind: true, enable_reuse_port: false };
  await changing.set([gate]);
  await waitFor(() => load.count('renamed') > 20, { what: 'answers of another listener at the address' });
  await load.end();
  t.same(load.failures, []);
  // An idle connection is closed at the end of the drain time.
  const { closed } = await kept.readToEnd();
  t.equal(closed, 'end');
  await waitFor(async () => (await changing.stats()).total_listeners_draining === 0, {
    what: 'the end of drains',
  });
  t.match(await changing.stats(), {
    listener_added: 3,
    listener_modified: 2,
    listener_removed: 1,
    // With the static one, on two workers.
    listener_create_success: 10,
  });
});

t.test('enable_reuse_port is fixed until the listener is removed', async (t) => {
  const door = (text: string, more: Config) => ({ ...httpListener('door', 0, saying(text)), ...more });
  const changing = await Changing.start(t, [door('first', { enable_reuse_port: false })]);
  const { baton } = changing;
  const port = await baton.listenerPort('door');
  for (const more of [{}, { enable_reuse_port: true }, { reuse_port: true, freebind: true }]) {
    await changing.write([door('refused', more)]);
    t.match((await changing.dump()).dynamic_listeners, [
      {
        name: 'door',
        error_state: { details: /^Listener door: reuse port cannot be changed during an update; remove/ },
      },
    ]);
    t.equal((await httpRequest(port)).body, 'first');
  }
  await changing.set([door('second', { enable_reuse_port: false })]);
  await waitFor(async () => (await httpRequest(port)).body === 'second', { what: 'the second version' });
  await changing.set([]);
  await changing.set([door('third', {})]);
  t.equal((await httpRequest(await baton.listenerPort('door'))).body, 'third');
  await changing.write([door('refused', { enable_reuse_port: false })]);
  t.match((await changing.dump()).dynamic_listeners, [{ error_state: { details: /reuse port cannot be changed/ } }]);
});

t.test('addresses pass between listeners without a refused connection', async (t) => {
  const changing = await Changing.start(t, [
    httpListener('door', 0, saying('first')),
    httpListener('gate', 0, saying('second')),
  ]);
  const { baton } = changing;
  const [one, two] = [await baton.listenerPort('door'), await baton.listenerPort('gate')];
  const [atOne, atTwo] = [new Answers(t, one, 2), new Answers(t, two, 2)];
  await changing.set([httpListener('door', two, saying('third')), httpListener('gate', one, saying('fourth'))]);
  await waitFor(() => atOne.count('fourth') > 20 && atTwo.count('third') > 20, { what: 'an exchange' });
  // A removed listener's address goes to one that stays, whose own address goes to a new one.
  await changing.set([httpListener('gate', two, saying('mended')), httpListener('bell', one, saying('renamed'))]);
  await waitFor(() => atOne.count('renamed') > 20 && atTwo.count('mended') > 20, { what: 'all listeners to move' });
  await Promise.all([atOne.end(), atTwo.end()]);
  t.same([...atOne.failures, ...atTwo.failures], []);
  t.equal(await baton.stat('listener_manager.lds.update_rejected'), 0);
});

t.test('a listener releases its address once the new owner has its routes, and not before', async (t) => {
  const silent = await startTcpUpstream(t, () => {});
  const listeners = [httpListener('door', 0, saying('door')), httpListener('gate', 0, saying('gate'))];
  const changing = await Changing.start(t, listeners, 2, [staticCluster('silent', silent.port, HTTP2_CLUSTER)]);
  const { baton } = changing;
  const [one, two] = [await baton.listenerPort('door'), await baton.listenerPort('gate')];
  const answers = async () => [(await httpRequest(one, '/')).body, (await httpRequest(two, '/')).body];
  const exchanged = (timeout: string) => [
    httpListener('door', two, saying('new door')),
    httpListener('gate', one, lateRoutes(timeout)),
  ];
  await changing.write(exchanged('0s'));
  await baton.waitForStat('listener_manager.total_listeners_warming', 2);
  t.same(await answers(), ['door', 'gate']);
  // It cannot keep an address that the other one is about to use.
  await changing.write([exchanged('0s')[0]!, listeners[1]!]);
  t.match(new Map((await changing.dump()).dynamic_listeners?.map((each) => [each.name, each])).get('gate'), {
    error_state: { details: /'gate' has duplicate address/ },
  });
  await changing.set(listeners);
  t.same(await answers(), ['door', 'gate']);
  t.equal(await baton.stat('listener_manager.total_listeners_draining'), 0, 'no listener drains');
  await changing.write(exchanged('0.2s'));
  await waitFor(async () => (await httpRequest(one, '/')).status === 404, { what: 'the version without routes' });
  await waitFor(async () => (await httpRequest(two, '/')).body === 'new door', { what: 'the other listener' });
});

t.test('a draining listener without a successor has only its draining state', async (t) => {
  const changing = await Changing.start(t, [httpListener('door', 0, saying('good'))], 60);
  const kept = await connectRaw(t, await changing.baton.listenerPort('door'));
  t.equal(await ask(kept), 'good');
  await changing.set([]);
  const { dynamic_listeners: [door] = [] } = await changing.dump();
  t.match(door, { name: 'door', draining_state: { version_info: '1' } });
  t.notOk(door?.client_status, 'no client status');
  t.notOk(door?.active_state);
});

t.test('an update of filter chains drains the changed ones, and leaves the others alone', async (t) => {
  const chains = (two: string) => ({
    ...httpListener('door', 0, {}),
    filter_chains: [chainFor('127.0.0.11', 'one'), chainFor('127.0.0.12', two)],
    default_filter_chain: chainFor(undefined, 'default'),
  });
  const changing = await Changing.start(t, [chains('two')]);
  const { baton } = changing;
  const port = await baton.listenerPort('door');
  const [one, two, two2] = await Promise.all(
    ['127.0.0.11', '127.0.0.12', '127.0.0.12'].map((from) => connectFrom(t, port, from)),
  );
  t.equal(await ask(one!), 'one');
  t.equal(await ask(two!), 'two');
  t.equal(await ask(two2!), 'two');
  await changing.set([chains('changed')]);
  t.match(await changing.stats(), {
    listener_in_place_updated: 1,
    listener_create_success: 6,
    listener_modified: 1,
    total_filter_chains_draining: 1,
  });
  const { body } = await baton.admin('/drain_status');
  t.match(JSON.parse(body), {
    listeners: [{}, {}, { name: 'door', filter_chain: 'two', reason: 'listener-change', connections: 2 }],
  });
  t.equal(await ask(await connectFrom(t, port, '127.0.0.12')), 'changed');
  t.equal((await two!.readToEnd()).closed, 'end', 'connections of the changed chain are closed');
  await waitFor(async () => (await changing.stats()).total_filter_chains_draining === 0, {
    what: 'the end of its drain',
  });
  t.equal((await two2!.readToEnd()).closed, 'end');
  t.equal(await ask(one!), 'one', 'the other chain is unaffected');
  t.equal((await changing.stats()).total_listeners_draining, 0);
});

t.test('log files are closed with the last chain that logs to them', async (t) => {
  const directory = tempDir(t);
  const door = (log: string, limit: number) => ({
    ...httpListener('door', 0, { ...saying('door'), access_log: [fileAccessLog(join(directory, log))] }),
    per_connection_buffer_limit_bytes: limit,
  });
  const changing = await Changing.start(t, [door('first', 60_000)], 1);
  const opened = (logs: string[]) =>
    waitFor(() => openFilesIn(changing.baton, directory).join() === logs.join(), { what: `open files: ${logs}` });
  await opened(['first']);
  await changing.set([door('second', 60_000)]);
  t.equal((await changing.stats()).listener_in_place_updated, 1, 'only its chain has changed');
  await opened(['second']);
  await changing.set([door('third', 61_000)]);
  await opened(['third']);
  await changing.set([]);
  await opened([]);
});

t.test('an invalid update is rejected, and the previous listeners keep serving', async (t) => {
  const changing = await Changing.start(t, [httpListener('door', 0, saying('good'))]);
  const { baton } = changing;
  const port = await baton.listenerPort('door');
  const fixed = await baton.listenerPort('fixed');
  const other = { ...httpListener('other', 0, saying('other')), stat_prefix: 'other' };
  await changing.set([
    { ...httpListener('door', fixed, saying('bad')), per_connection_buffer_limit_bytes: 80_000 },
    httpListener('thief', port, saying('thief')),
    httpListener('fixed', 0, saying('not static any more')),
    other,
  ]);
  t.match((await httpRequest(port, '/')).body, 'good');
  t.match((await httpRequest(await baton.listenerPort('other'), '/')).body, 'other', 'valid listeners are applied');
  t.match((await httpRequest(fixed, '/')).body, 'fixed', 'LDS changes no listener of the bootstrap');
  const { dynamic_listeners: dumped = [], static_listeners: dumpedStatic } = await changing.dump();
  t.same(dumpedStatic.length, 1);
  const byName = new Map(dumped.map((each) => [each.name, each]));
  t.match(byName.get('door'), {
    active_state: { version_info: '1' },
    client_status: 'NACKED',
    error_state: { version_info: '2', failed_configuration: { name: 'door' } },
  });
  t.match(byName.get('door')?.error_state?.details, /cannot listen|in use|duplicate address/);
  t.match(byName.get('thief')?.error_state?.details, `'thief' has duplicate address '127.0.0.1:${port}'`);
  t.match(byName.get('other'), { active_state: { version_info: '2' }, client_status: 'ACKED' });
  t.match(await changing.stats(), {
    listener_create_failure: 2,
    'lds.update_rejected': 1,
  });
  await changing.set([httpListener('door', 0, saying('good')), other]);
  t.notOk(
    (await changing.dump()).dynamic_listeners?.some(({ error_state }) => error_state),
    'the next update is valid',
  );
});

t.test('listeners that workers cannot build are withdrawn, and the previous ones keep serving', async (t) => {
  const good = httpListener('door', 0, saying('good'));
  const still = httpListener('still', 0, saying('still'));
  const changing = await Changing.start(t, [good, still]);
  const { baton } = changing;
  const port = await baton.listenerPort('door');
  const kept = await connectRaw(t, port);
  t.equal(await ask(kept), 'good');
  const before = descriptorsOf(baton);
  // Only opening a pipe shows whether it has a reader: workers do that, after all other steps.
  const log = join(tempDir(t), 'log');
  execFileSync('mkfifo', [log]);
  const logging = { ...saying('bad'), access_log: [fileAccessLog(log)] };
  const failures = async () => (await changing.stats()).listener_create_failure!;
  const load = new Answers(t, port, 2);
  let expected = 0;
  for (const bad of [
    httpListener('door', 0, logging),
    { ...httpListener('door', 0, logging), per_connection_buffer_limit_bytes: 70_000 },
    { ...httpListener('door', 0, logging), freebind: true },
  ]) {
    await changing.write([bad, httpListener('new', 0, logging), still]);
    expected += 2;
    await waitFor(async () => (await failures()) === expected, { what: 'both failures' });
    const byName = new Map((await changing.dump()).dynamic_listeners?.map((each) => [each.name, each]));
    t.match(byName.get('door'), {
      active_state: { version_info: '1' },
      error_state: { details: /listener 'door' cannot be built: unable to open file/ },
      client_status: 'NACKED',
    });
    t.equal(byName.get('door')?.warming_state, undefined);
    t.match(byName.get('new'), { error_state: { details: /unable to open file/ } });
    t.match((await baton.admin('/listeners')).body, /^fixed::.*\ndoor::.*\nstill::.*\n$/);
  }
  t.equal(await baton.stat('listener_manager.total_listeners_draining'), 0);
  t.equal(await ask(kept), 'good', 'no connection was asked to close');
  // A listener that can be built again is applied.
  unlinkSync(log);
  await changing.set([
    { ...httpListener('door', 0, { ...saying('mended'), access_log: [fileAccessLog(log)] }) },
    still,
  ]);
  await waitFor(() => load.count('mended') > 20, { what: 'responses of the corrected listener' });
  await load.end();
  t.same(load.failures, []);
  t.equal(load.count('bad'), 0);
  t.equal((await changing.dump()).dynamic_listeners?.[0]?.error_state, undefined);
  await changing.set([good, still]);
  await waitFor(
    async () => {
      const { draining, chains } = await drainingOf(changing);
      return draining + chains === 0;
    },
    { what: 'the end of drains' },
  );
  await waitFor(() => descriptorsOf(baton) <= before, { what: 'descriptors to be closed' });
});

t.test('listeners without descriptors are rejected, and no connection is lost', async (t) => {
  const limit = 130;
  const wrapper = ['sh', '-c', `ulimit -n ${limit}; exec "$@"`, 'sh'];
  const door = httpListener('door', 0, saying('good'));
  const changing = await Changing.by((options) => startBaton(t, { ...options, wrapper }), t, [door]);
  const { baton } = changing;
  const port = await baton.listenerPort('door');
  const kept: RawConnection[] = [];
  while (readdirSync(`/proc/${baton.pid}/fd`).length < limit - 40) {
    kept.push(await connectRaw(t, port));
    t.equal(await ask(kept.at(-1)!), 'good');
  }
  const others = await takeReserve(t, baton, limit - 3);
  // The sockets of some can be created, but then not their copies for workers.
  const added = ['one', 'two', 'three', 'four', 'five', 'six'].map((name) => httpListener(name, 0, saying(name)));
  changing.writeOnly([door, ...added]);
  await waitFor(() => /listener '\w+' cannot be used|worker \d died/.test(baton.stderr), { what: 'a refusal' });
  for (const connection of kept) t.equal(await ask(connection), 'good');
  t.notMatch(baton.stderr, /worker \d died/);
  for (const connection of [...kept, ...others]) connection.destroy();
  await baton.waitForStat('listener_manager.total_listeners_warming', 0);
  await changing.set([door, ...added]);
  t.match(
    (await httpRequest(await baton.listenerPort('one'), '/')).body,
    'one',
    'applied when descriptors are available again',
  );
});

t.test('a removed listener drains, is closed, and leaks nothing', async (t) => {
  const named = { ...httpListener('door', 0, saying('door')), stat_prefix: 'named' };
  const changing = await Changing.start(t, [named]);
  const { baton } = changing;
  const port = await baton.listenerPort('door');
  const [idle, busy] = [await connectRaw(t, port), await connectRaw(t, port)];
  t.equal(await ask(idle), 'door');
  t.equal(await baton.stat('listener.named.downstream_cx_active'), 2);
  await changing.set([]);
  t.equal((await changing.stats()).listener_removed, 1);
  await waitFor(async () => (await answerTo(port)) === 'refused', { what: 'new connections to be refused' });
  t.match((await baton.admin('/listeners')).body, /^fixed::/);
  t.equal(await ask(busy), 'door', 'existing connections are served');
  t.equal((await idle.readToEnd()).closed, 'end');
  await waitFor(async () => (await baton.stat('listener.named.downstream_cx_total')) === undefined, {
    what: 'the removal of its stats',
  });
  t.notMatch((await baton.admin('/stats')).body, /^http\.door\./m);
  t.same((await changing.dump()).dynamic_listeners ?? [], []);
  // The same listener starts again at 0.
  await changing.set([named]);
  t.equal(await ask(await connectRaw(t, await baton.listenerPort('door'))), 'door');
  t.equal(await baton.stat('listener.named.downstream_cx_total'), 1);
});

t.test('a request in flight at the end of the drain time is aborted, counted and logged', async (t) => {
  const silent = await startTcpUpstream(t, () => {});
  const log = join(tempDir(t), 'log');
  const door = httpListener('door', 0, {
    // Counters stay when the listener is removed.
    stat_prefix: 'fixed',
    route_config: routeAllTo('silent'),
    access_log: [fileAccessLog(log, '%RESPONSE_FLAGS% %RESPONSE_CODE_DETAILS%\n')],
  });
  const changing = await Changing.start(t, [door], 1, [staticCluster('silent', silent.port)]);
  const { baton } = changing;
  const connection = await connectRaw(t, await baton.listenerPort('door'));
  connection.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
  await baton.waitForStat('cluster.silent.upstream_rq_active', 1);
  await changing.set([]);
  t.equal((await connection.readToEnd()).closed, 'reset');
  await baton.waitForStat('http.fixed.downstream_cx_destroy_local_active_rq', 1);
  for (const name of ['cx_destroy_active_rq', 'cx_destroy_local', 'cx_destroy', 'rq_rx_reset', 'rq_total']) {
    t.equal(await baton.stat(`http.fixed.downstream_${name}`), 1, name);
  }
  for (const name of ['http.fixed.downstream_cx', 'http.fixed.downstream_rq', 'cluster.silent.upstream_rq']) {
    t.equal(await baton.stat(`${name}_active`), 0, name);
  }
  await baton.kill('SIGTERM');
  t.equal(readFileSync(log, 'utf8'), 'DC downstream_local_disconnect\n');
});

t.test('the replacement of a worker that dies during updates has the current listeners', async (t) => {
  const door = (text: string, number: number) => ({
    ...httpListener('door', 0, saying(text)),
    tcp_backlog_size: 100 + number,
  });
  const chains = (text: string) => httpListener('chains', 0, saying(text));
  let kill: ((death: Death) => Promise<number>) | undefined;
  const start = async (options: BatonOptions) => {
    const { baton, killWorker } = await startBreakableBaton(t, options);
    kill = killWorker;
    return baton;
  };
  const changing = await Changing.by(start, t, [door('first', 0), chains('first')]);
  const { baton } = changing;
  const ports = [await baton.listenerPort('door'), await baton.listenerPort('chains')];
  for (let round = 1; round <= 3; round++) {
    const killed = kill!('throw');
    let isOver = false;
    void killed.finally(() => (isOver = true));
    for (let number = 1; !isOver; number++) {
      changing.writeOnly([door(`${round}`, number), chains(`${round} ${number}`)]);
      await new Promise((resolve) => setImmediate(resolve));
    }
    await killed;
    const last = `last ${round}`;
    changing.writeOnly([door(last, 0), chains(last)]);
    // Reaches both workers: the kernel gives connections to one or the other.
    for (const port of ports) {
      await waitFor(
        async () => {
          const answers = await Promise.all(Array.from({ length: 20 }, () => httpRequest(port, '/')));
          return answers.every(({ body }) => body === last);
        },
        { what: `'${last}' from all workers` },
      );
    }
  }
  t.equal(await baton.stat('listener_manager.total_listeners_warming'), 0);
  await waitFor(
    async () => {
      const { draining, chains } = await drainingOf(changing);
      return draining + chains === 0;
    },
    { what: 'the end of drains' },
  );
  t.equal((await changing.stats()).listener_create_failure, 0);
  t.equal(await baton.stat('server.total_connections'), 0);
});

t.test('listeners change before and after a hot restart without a failed request', async (t) => {
  const line = new EpochLine(t);
  const args = ['--parent-shutdown-time-s', '4'];
  const startEpoch = (epoch: number, options: BatonOptions) =>
    line.start(epoch, { ...options, args: [...(options.args ?? []), ...args] });
  const door = (text: string, limit: number) => ({
    ...httpListener('door', 0, saying(text)),
    per_connection_buffer_limit_bytes: limit,
  });
  const changing = await Changing.by((options) => startEpoch(0, options), t, [door('first', 60_000)]);
  const { baton, options } = changing;
  const port = await baton.listenerPort('door');
  const load = new Answers(t, port, 4);
  const answersOf = (text: string) => waitFor(() => load.count(text) > 20, { what: `answers: ${text}` });
  await answersOf('first');
  await changing.set([door('second', 61_000)]);
  await answersOf('second');
  // While the previous version drains.
  const next = await startEpoch(1, options);
  changing.writeOnly([door('third', 62_000)]);
  await answersOf('third');
  changing.writeOnly([door('fourth', 62_000)]);
  await answersOf('fourth');
  t.equal(await next.stat('server.hot_restart_epoch'), 1);
  t.equal(await next.listenerPort('door'), port);
  await waitFor(() => baton.exit !== undefined, { what: 'the exit of the parent' });
  await load.end();
  t.same(load.failures, []);
});

t.test('a changed listener serves its previous version until its routes arrive', async (t) => {
  // A management server that never answers.
  const silent = await startTcpUpstream(t, () => {});
  const waiting = (limit: number, timeout = '0s') => ({
    ...httpListener('door', 0, lateRoutes(timeout)),
    per_connection_buffer_limit_bytes: limit,
  });
  const first = httpListener('door', 0, saying('first'));
  const changing = await Changing.start(t, [first], 2, [staticCluster('silent', silent.port, HTTP2_CLUSTER)]);
  const { baton } = changing;
  const port = await baton.listenerPort('door');
  await changing.write([waiting(60_000)]);
  await baton.waitForStat('listener_manager.total_listeners_warming', 1);
  t.equal((await httpRequest(port, '/')).body, 'first');
  t.match((await changing.dump()).dynamic_listeners?.[0], {
    active_state: { version_info: '1' },
    warming_state: { version_info: '2' },
  });
  const { body } = await baton.admin('/init_dump?mask=listener');
  t.match(body, /init manager Listener-local-init-manager door /);
  // Another one replaces it, and one equal to the active version ends the warming.
  await changing.write([waiting(61_000)]);
  await baton.waitForStat('listener_manager.listener_modified', 2);
  t.equal(await baton.stat('listener_manager.total_listeners_warming'), 1);
  await changing.set([first]);
  t.equal(await baton.stat('listener_manager.total_listeners_draining'), 0);
  await changing.set([waiting(62_000, '0.2s')]);
  await waitFor(async () => (await httpRequest(port, '/')).status === 404, { what: 'the version without routes' });
});

t.test('after POST /drain_listeners no listener for that traffic is added or changed', async (t) => {
  const inbound = { ...httpListener('in', 0, saying('in')), traffic_direction: 'INBOUND' };
  const changing = await Changing.start(t, [inbound, httpListener('out', 0, saying('out'))]);
  const { baton } = changing;
  await baton.admin('/drain_listeners?inboundonly', { method: 'POST' });
  const late = { ...inbound, name: 'late' };
  await changing.set([{ ...inbound, tcp_backlog_size: 5 }, late, httpListener('out', 0, saying('changed'))]);
  const { body } = await baton.admin('/listeners');
  t.notMatch(body, /^late::/m);
  t.equal((await httpRequest(await baton.listenerPort('out'), '/')).body, 'changed');
  t.match(await changing.stats(), {
    listener_stopped: 1,
    listener_modified: 1,
  });
});

t.test('many updates affect no connection and leak nothing', async (t) => {
  const still = httpListener('still', 0, saying('still'));
  const changing = await Changing.start(t, [still], 600);
  const { baton } = changing;
  const kept = await connectRaw(t, await baton.listenerPort('still'));
  t.equal(await ask(kept), 'still');
  const countStats = async () => (await baton.admin('/stats')).body.split('\n').length;
  const before = await countStats();
  for (let round = 0; round < 24; round++) {
    await changing.set([
      still,
      { ...httpListener(`new${round}`, 0, saying('new')), stat_prefix: `new${round}` },
      { ...httpListener('moving', 0, saying(`${round}`)), stat_prefix: 'moving', tcp_backlog_size: 100 + (round % 2) },
    ]);
  }
  await changing.set([still]);
  t.equal(await ask(kept), 'still', 'the connection of the unchanged listener is open');
  await waitFor(async () => (await changing.stats()).total_listeners_draining! <= 16, {
    what: 'versions without connections to be removed early',
  });
  // When all workers have released a version, its stats are removed.
  await waitFor(async () => (await countStats()) - before < 17 * 80, {
    what: 'stats to be removed with the listeners',
  });
  t.equal((await changing.stats()).listener_create_failure, 0);
});

function saying(text: string): Config {
  return managerOf([answering({ prefix: '/' }, text)]);
}

function chainFor(source: string | undefined, text: string): Config {
  const [chain] = httpListener('chain', 0, saying(text))['filter_chains'] as Config[];
  const match = { source_prefix_ranges: [{ address_prefix: source, prefix_len: 32 }] };
  return { ...chain, name: text, ...(source !== undefined && { filter_chain_match: match }) };
}

/** Returns the number of open sockets of a process. */
function descriptorsOf({ pid }: BatonProcess): number {
  return readdirSync(`/proc/${pid}/fd`).filter((fd) => isSocket(`/proc/${pid}/fd/${fd}`)).length;
}

/** Returns the names of the files in a directory that the process has open. */
function openFilesIn({ pid }: BatonProcess, directory: string): string[] {
  const names = readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
    const path = linkOf(`/proc/${pid}/fd/${fd}`);
    return path.startsWith(`${directory}/`) ? [path.slice(directory.length + 1)] : [];
  });
  return [...new Set(names)].sort();
}

function isSocket(path: string): boolean {
  return linkOf(path).startsWith('socket:');
}

/** Returns the target of a descriptor; '' when it was closed meanwhile. */
function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return '';
  }
}

async function drainingOf(changing: Changing): Promise<{ draining: number; chains: number }> {
  const stats = await changing.stats();
  return { draining: stats.total_listeners_draining!, chains: stats.total_filter_chains_draining! };
}

/** Sends one request on an existing connection; returns the body of the response. */
async function ask(connection: RawConnection): Promise<string> {
  connection.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
  const head = await connection.readUntil('\r\n\r\n');
  return connection.read(Number(/content-length: (\d+)/i.exec(head)![1]));
}

async function answerTo(port: number): Promise<string> {
  try {
    return (await httpRequest(port, '/')).body;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ECONNREFUSED') return 'refused';
    throw error;
  }
}

function connectFrom(t: Test, port: number, localAddress: string): Promise<RawConnection> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1', localAddress, allowHalfOpen: true });
    t.teardown(() => socket.destroy());
    socket.once('error', reject);
    socket.once('connect', () => {
      socket.removeAllListeners('error');
      resolve(new RawConnection(socket));
    });
  });
}

/** Routes from the cluster 'silent', with this initial fetch timeout. */
function lateRoutes(timeout: string): Config {
  const services = [{ envoy_grpc: { cluster_name: 'silent' } }];
  return {
    rds: {
      route_config_name: 'late',
      config_source: {
        api_config_source: { api_type: 'GRPC', transport_api_version: 'V3', grpc_services: services },
        resource_api_version: 'V3',
        initial_fetch_timeout: timeout,
      },
    },
  };
}

/** Requests on new connections, and the number of responses by text. */
class Answers extends Load {
  readonly #counts: Map<string, number>;

  constructor(t: Teardown, port: number, clients: number) {
    const counts = new Map<string, number>();
    super(t, clients, async () => {
      const { body, status } = await httpRequest(port, '/');
      if (status !== 200) throw new Error(`status ${status}`);
      counts.set(body, (counts.get(body) ?? 0) + 1);
    });
    this.#counts = counts;
  }

  count(text: string): number {
    return this.#counts.get(text) ?? 0;
  }
}
