// A failed restart affects no other process: the parent keeps serving, and the next child succeeds.

import { execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import {
  chmodSync,
  closeSync,
  cpSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import t from 'tap';
import { packagePath } from '../../../src/common/package/package-root.js';
import { AddressKind } from '../../../src/io/addresses/address.js';
import { encodeHello } from '../../../src/restart/messages.js';
import { HOT_RESTART_VERSION } from '../../../src/restart/version.js';
import {
  type BatonProcess,
  bootstrap,
  type Config,
  connectRaw,
  EpochLine,
  type Exit,
  endsWithTest,
  httpListener,
  httpRequest,
  loopback,
  type RawConnection,
  startBaton,
  type Teardown,
  takeReserve,
  tempDir,
  waitFor,
  waitForLog,
  withDeadline,
} from '../harness/index.js';
import { DatagramSender } from './restart-peer.js';

const QUICK = ['--parent-shutdown-time-s', '1', '--drain-time-s', '1'];
/** So many workers that a child is not live at once. */
const SLOW_START = ['--concurrency', '24'];

const ROUTE = { match: { prefix: '/' }, direct_response: { status: 200, body: { inline_string: 'hi' } } };
const WEB = httpListener('web', 0, {
  route_config: { virtual_hosts: [{ name: 'all', domains: ['*'], routes: [ROUTE] }] },
});

function config(more: Config = {}): Config {
  return bootstrap({ listeners: [WEB], clusters: [], extra: more });
}

type Asserts = Pick<typeof t, 'equal' | 'same'>;

/** Waits for the exit of a process that gives up. */
function ends(baton: BatonProcess): Promise<Exit> {
  return withDeadline(baton.exited, 'the exit of the process', 30_000);
}

/** Checks that it answers requests, and admin requests. */
async function serves(t: Asserts, baton: BatonProcess, port: number): Promise<void> {
  t.equal((await httpRequest(port)).body, 'hi');
  t.equal((await baton.admin('/ready')).body, 'LIVE\n');
}

/** Checks that a restart from `old` succeeds. */
async function restarts(
  t: Asserts,
  line: EpochLine,
  old: BatonProcess,
  port: number,
  epoch = 1,
): Promise<BatonProcess> {
  const next = await line.start(epoch, { config: config(), args: QUICK });
  t.equal(await next.listenerPort('web'), port);
  await waitFor(() => old.exit !== undefined, { what: 'the exit of the parent' });
  t.same(old.exit, { code: 0, signal: null });
  return next;
}

t.test('a child killed at any stage of its start leaves the parent unchanged', async (t) => {
  const line = new EpochLine(t);
  const parent = await line.start(0, { config: config(), args: QUICK });
  const port = await parent.listenerPort('web');
  for (const stage of ['initializing epoch 1', 'cm init: all clusters initialized', 'starting workers']) {
    const child = await line.start(1, { config: config(), args: SLOW_START, wait: 'spawned' });
    await waitForLog(child, stage);
    await child.kill();
    await serves(t, parent, port);
  }
  t.notMatch(parent.stderr, 'shutting down admin');
  await (await restarts(t, line, parent, port)).stop();
});

t.test('a child with an invalid configuration, or one that is terminated, affects no other process', async (t) => {
  const line = new EpochLine(t);
  const parent = await line.start(0, { config: config(), args: QUICK });
  const port = await parent.listenerPort('web');
  const invalid = await line.start(1, { config: { static_resources: { listeners: [{}] } }, wait: 'spawned' });
  t.match(await ends(invalid), { code: 1 });
  const missing = { admin: { address: { socket_address: { address: '192.0.2.1', port_value: 1 } } } };
  const unable = await line.start(1, { config: config(missing), wait: 'spawned' });
  t.match(await ends(unable), { code: 1 });
  t.match(unable.stderr, 'cannot listen on 192.0.2.1:1');
  const stopped = await line.start(1, { config: config(), wait: 'spawned' });
  await waitForLog(stopped, 'initializing epoch 1');
  stopped.child.kill('SIGTERM');
  t.match(await ends(stopped), { code: 0 });
  await serves(t, parent, port);
  t.equal(parent.exit, undefined);
  await (await restarts(t, line, parent, port)).stop();
});

t.test('removed program files prevent neither serving nor a restart', async (t) => {
  const copy = programCopy(t);
  // One of two workers exits on demand.
  const hook = `data:text/javascript,
    import { existsSync } from 'node:fs';
    import { threadId } from 'node:worker_threads';
    const path = ${JSON.stringify(join(copy, 'dies'))};
    if (threadId === 3) setInterval(() => { if (existsSync(path)) process.exit(3); }, 10).unref();`;
  const line = new EpochLine(t);
  const parent = await line.start(0, {
    program: join(copy, 'dist/baton/main.js'),
    config: config(),
    args: [...QUICK, '--concurrency', '2'],
    nodeArgs: ['--import', hook],
  });
  const port = await parent.listenerPort('web');
  rmSync(join(copy, 'dist'), { recursive: true });
  writeFileSync(join(copy, 'dies'), '');
  await waitForLog(parent, /worker \d died: .*Cannot find module/);
  t.equal((await parent.admin('/ready')).body, 'LIVE\n');
  const next = await restarts(t, line, parent, port);
  await serves(t, next, port);
  await next.stop();
});

t.test('a child that cannot load the restart protocol reports that', async (t) => {
  const copy = programCopy(t);
  const program = join(copy, 'dist/baton');
  const parts = readdirSync(program).filter((name) => /^messages-.*\.js$/.test(name));
  const part = parts.find((name) => readFileSync(join(program, name), 'utf8').includes('decodeHello'))!;
  writeFileSync(join(program, part), 'throw new Error("EMFILE");');
  const options = { program: join(program, 'main.js'), config: config(), wait: 'spawned' as const };
  const child = await new EpochLine(t).start(1, options);
  t.match(await child.exited, { code: 1 });
  t.match(child.stderr, '[critical][main]');
  t.match(child.stderr, 'cannot take over from the parent process: EMFILE');
});

/** Returns the root of a copy of the program. */
function programCopy(t: Teardown): string {
  const copy = tempDir(t);
  for (const name of ['package.json', 'dist/baton']) cpSync(packagePath(name), join(copy, name), { recursive: true });
  for (const name of ['node_modules', 'native-shim', 'dist/schema.json'])
    symlinkSync(packagePath(name), join(copy, name));
  return copy;
}

t.test('a child gives up on a parent that does not answer', async (t) => {
  // Each of them waits for ten seconds.
  t.jobs = 3;

  t.test('without a parent a child gives up after ten attempts, or starts normally where allowed', async (t) => {
    const [alone, may] = await Promise.all([
      new EpochLine(t).start(1, { config: config(), wait: 'spawned' }),
      new EpochLine(t).start(5, { config: config(), args: ['--skip-hot-restart-on-no-parent'] }),
    ]);
    t.match(may.stderr, 'hot restart sendmsg() connection refused, falling back to regular restart');
    t.equal(await may.stat('server.hot_restart_epoch'), 5, 'the epoch is kept');
    t.equal(await may.stat('server.hot_restart_generation'), 1);
    await may.stop();
    await waitFor(() => alone.exit !== undefined, { what: 'the exit of the child', deadlineMs: 30_000 });
    t.match(alone.exit, { code: 1 });
    t.equal(alone.stderr.split('hot restart sendmsg() connection refused, retrying').length, 12);
    t.match(alone.stderr, 'cannot be reached: no process listens at its socket');
  });

  t.test('the child of a stopped parent gives up, and the parent keeps serving', async (t) => {
    const { line, parent, port } = await stoppedParent(t);
    const child = await line.start(1, { config: config(), wait: 'spawned' });
    t.match(await ends(child), { code: 1 });
    t.match(child.stderr, 'the parent process has not answered in 10 s');
    parent.child.kill('SIGCONT');
    await serves(t, parent, port);
    await (await restarts(t, line, parent, port)).stop();
  });

  t.test('with --skip-hot-restart-on-no-parent the child starts normally', async (t) => {
    const { line, parent, port } = await stoppedParent(t);
    const args = ['--skip-hot-restart-on-no-parent'];
    const child = await line.start(1, { config: config(), args });
    t.match(child.stderr, 'falling back to regular restart');
    t.not(await child.listenerPort('web'), port);
    await child.stop();
    parent.child.kill('SIGCONT');
    await serves(t, parent, port);
    await (await restarts(t, line, parent, port)).stop();
  });
});

async function stoppedParent(t: Teardown) {
  const line = new EpochLine(t);
  const parent = await line.start(0, { config: config(), args: QUICK });
  const port = await parent.listenerPort('web');
  parent.child.kill('SIGSTOP');
  return { line, parent, port };
}

t.test('a stopped child does not keep its parent from serving', async (t) => {
  const line = new EpochLine(t);
  const parent = await line.start(0, { config: config(), args: QUICK });
  const port = await parent.listenerPort('web');
  const child = await line.start(1, { config: config(), args: SLOW_START, wait: 'spawned' });
  await waitForLog(parent, 'a child process of epoch 1 initializes');
  child.child.kill('SIGSTOP');
  await serves(t, parent, port);
  const other = await line.start(1, { config: config(), wait: 'spawned' });
  t.match(await ends(other), { code: 1 });
  t.match(other.stderr, 'unable to bind domain socket with base_id=0, id=1, errno=98 (see --base-id option)');
  await child.kill();
  await waitForLog(parent, 'the child process was lost before it was live');
  await (await restarts(t, line, parent, port)).stop();
});

t.test('a parent that dies before its child is live ends the child too; later the child survives', async (t) => {
  const line = new EpochLine(t);
  const parent = await line.start(0, { config: config(), args: QUICK });
  const port = await parent.listenerPort('web');
  const early = await line.start(1, { config: config(), args: SLOW_START, wait: 'spawned' });
  await waitForLog(parent, 'a child process of epoch 1 initializes');
  parent.child.kill('SIGKILL');
  await waitFor(() => early.exit !== undefined, { what: 'the exit of the child' });
  t.match(early.exit, { code: 1 });
  t.match(early.stderr, 'the parent process was lost');

  const again = await line.start(0, { config: config(), args: QUICK });
  const child = await line.start(1, { config: config(), args: ['--parent-shutdown-time-s', '60'] });
  await waitForLog(again, 'closing and draining listeners');
  await again.kill();
  await waitForLog(child, 'the parent process was lost');
  await serves(t, child, await child.listenerPort('web'));
  t.not(await child.listenerPort('web'), port);
  await child.stop();
});

t.test('after the death of a child that took over, another child can follow the parent', async (t) => {
  const line = new EpochLine(t);
  const parent = await line.start(0, { config: config(), args: ['--parent-shutdown-time-s', '60'] });
  const child = await line.start(1, { config: config(), args: ['--parent-shutdown-time-s', '60'] });
  await waitForLog(parent, 'closing and draining listeners');
  await child.kill();
  await waitForLog(parent, 'the child process that took over has ended');
  const port = await parent.listenerPort('web');
  await serves(t, parent, port);
  await (await restarts(t, line, parent, port)).stop();
});

t.test('the exit of a child ends its parent; three processes may overlap, a fourth may not', async (t) => {
  const line = new EpochLine(t);
  const slow = ['--parent-shutdown-time-s', '60', '--drain-time-s', '60'];
  const first = await line.start(0, { config: config(), args: slow });
  const second = await line.start(1, { config: config(), args: slow });
  const third = await line.start(2, { config: config(), args: slow });
  await waitFor(() => first.exit !== undefined, { what: 'the exit of the first, which the third requests' });
  t.same(first.exit, { code: 0, signal: null });
  t.match(second.stderr, 'terminating parent process');
  await third.stop();
  await waitFor(() => second.exit !== undefined, { what: 'the exit of the parent' });
  t.same(second.exit, { code: 0, signal: null });

  const holder = await line.start(0, { config: config(), args: slow });
  const fourth = await line.start(3, { config: config(), wait: 'spawned' });
  t.match(await ends(fourth), { code: 1 });
  t.match(fourth.stderr, 'unable to bind domain socket with base_id=0, id=0, errno=98 (see --base-id option)');
  await holder.stop();
});

for (const [kind, create] of [
  ['directory', (path: string) => mkdirSync(path)],
  ['pipe', (path: string) => execFileSync('mkfifo', [path])],
  ['file', (path: string) => writeFileSync(path, '')],
] as const) {
  t.test(`a ${kind} with the name of the hot restart socket is named, and stays`, async (t) => {
    const socketPath = join(tempDir(t), 'socket');
    create(`${socketPath}_parent_0`);
    const baton = await new EpochLine(t, socketPath).start(0, { config: config(), wait: 'spawned' });
    t.match(await ends(baton), { code: 1 });
    const hint = `(see --socket-path option: '${socketPath}_parent_0' is not a socket)`;
    t.match(baton.stderr, `unable to bind domain socket with base_id=0, id=0, errno=98 ${hint}`);
    t.same(readdirSync(dirname(socketPath)), ['socket_parent_0']);
  });
}

t.test('a second server with the same base ID is refused; dynamic IDs are unused ones', async (t) => {
  const line = new EpochLine(t);
  const first = await line.start(0, { config: config() });
  const second = await line.start(0, { config: config(), wait: 'spawned' });
  t.match(await ends(second), { code: 1 });
  t.match(second.stderr, 'unable to bind domain socket with base_id=0, id=0, errno=98 (see --base-id option)');
  const path = join(first.directory, 'id');
  const dynamic = await startBaton(t, { config: config(), args: ['--use-dynamic-base-id', '--base-id-path', path] });
  const { command_line_options: shown } = JSON.parse((await dynamic.admin('/server_info')).body);
  t.equal(readFileSync(path, 'utf8'), shown.base_id);
  t.ok(Number(shown.base_id) < 2 ** 28);
  t.match(
    dynamic.stderr,
    `initializing epoch 0 (base id=${shown.base_id}, hot restart version=${HOT_RESTART_VERSION})`,
  );
  t.equal((await dynamic.admin('/hot_restart_version')).body, HOT_RESTART_VERSION);
  await Promise.all([dynamic.stop(), first.stop()]);
});

t.test('file sockets: permissions, stale files, a missing directory, a path that is too long', async (t) => {
  const directory = tempDir(t);
  const path = join(directory, 'restart');
  const line = new EpochLine(t, path);
  const killed = await line.start(0, { config: config(), args: ['--socket-mode', '640'] });
  t.equal(statSync(`${path}_parent_0`).mode & 0o777, 0o640);
  t.equal(statSync(`${path}_child_0`).mode & 0o777, 0o640);
  await killed.kill();
  t.ok(existsSync(`${path}_parent_0`));
  const parent = await line.start(0, { config: config(), args: QUICK });
  const second = await line.start(0, { config: config(), wait: 'spawned' });
  t.match(await ends(second), { code: 1 }, 'a socket file in use is not removed');
  const child = await restarts(t, line, parent, await parent.listenerPort('web'));
  t.notOk(existsSync(`${path}_parent_0`));
  await child.stop();
  t.notOk(existsSync(`${path}_parent_1`));

  const cases: [path: string, text: string][] = [
    [join(directory, 'missing', 'restart'), 'errno=2 (see --socket-path option'],
    [join(directory, 'x'.repeat(120)), 'is longer than 107 bytes'],
  ];
  for (const [socketPath, text] of cases) {
    const refused = await new EpochLine(t, socketPath).start(0, { config: config(), wait: 'spawned' });
    t.match(await ends(refused), { code: 1 });
    t.match(refused.stderr, text);
  }
});

t.test('a process takes over although the socket files of its parent were removed', async (t) => {
  const line = new EpochLine(t, join(tempDir(t), 'restart'));
  const parent = await line.start(0, { config: config(), args: QUICK });
  for (const which of ['parent', 'child']) rmSync(`${line.socketPath}_${which}_0`);
  const child = await restarts(t, line, parent, await parent.listenerPort('web'));
  t.match(parent.stderr, /the file of the hot restart socket '.*_parent_0' was removed; binding it again/);
  await child.stop();
});

t.test('garbage, other versions and other users at the socket are ignored', async (t) => {
  const directory = tempDir(t);
  chmodSync(directory, 0o711);
  const line = new EpochLine(t);
  const parent = await line.start(0, { config: config(), args: QUICK });
  const port = await parent.listenerPort('web');
  const attacker = new DatagramSender();
  for (const bytes of [Buffer.from('garbage'), randomBytes(4096), Buffer.alloc(60_000, 0xff), Buffer.alloc(0)]) {
    attacker.send(line.socketPath, bytes, []);
    attacker.send(line.socketPath, bytes, [0, 1, 2]);
  }
  await waitForLog(parent, 'a message to the hot restart socket is dropped');
  await serves(t, parent, port);

  const impostor = new DatagramSender(`${line.socketPath}_child_1`);
  t.match(
    await impostor.hello(line.socketPath, encodeHello({ version: '0.0', epoch: 1 })),
    /Hot restart version mismatch! It has version 0\.0/,
  );
  t.match(
    await impostor.hello(line.socketPath, encodeHello({ version: HOT_RESTART_VERSION, epoch: 4 })),
    /its parent has epoch 0/,
  );
  for (const path of ['/dev/null', '/', join(directory, 'file')]) {
    if (!existsSync(path)) writeFileSync(path, '');
    const file = openSync(path, 'r');
    attacker.send(line.socketPath, encodeHello({ version: HOT_RESTART_VERSION, epoch: 1 }), [file]);
    closeSync(file);
  }
  t.match(
    await impostor.hello(line.socketPath, encodeHello({ version: HOT_RESTART_VERSION, epoch: 4 })),
    /its parent has epoch 0/,
    'a descriptor that is not a socket is not a link',
  );
  impostor.close();

  if (process.getuid!() === 0) {
    const code = `
      process.setgid(65534); process.setuid(65533);
      const { loadShim } = await import(${JSON.stringify(SHIM)});
      const { encodeAddress } = await import(${JSON.stringify(ADDRESS)});
      const shim = loadShim();
      const at = (path) => encodeAddress({ kind: ${AddressKind.Unix}, ip: '', port: 0, path });
      const socket = shim.watchMessages(shim.openMeetingSocket(at('@baton-test-' + process.pid)), {});
      const [here, there] = shim.socketPair();
      socket.sendTo(at(${JSON.stringify(`${line.socketPath}_parent_0`)}), Buffer.from(${JSON.stringify([
        ...encodeHello({ version: HOT_RESTART_VERSION, epoch: 1 }),
      ])}), [there]);
      shim.closeDescriptor(there);
      shim.watchMessages(here, { onMessage() { console.log('answered'); }, onEnd() { console.log('dropped'); process.exit(0); } });
    `;
    // Output of the test runner's additions to the process goes to stderr: they would write where that user may not.
    const command = ['--input-type=module', '-e', code];
    const other = endsWithTest(t, spawn(process.execPath, command, { stdio: ['ignore', 'pipe', 'ignore'] }));
    let output = '';
    other.stdout.on('data', (chunk) => (output += String(chunk)));
    await once(other, 'close');
    t.equal(output, 'dropped\n', 'a process of another user gets no socket');
  }
  attacker.close();
  await (await restarts(t, line, parent, port)).stop();
});

t.test('nothing that is sent to the sockets is retained, and the next child takes over', async (t) => {
  const line = new EpochLine(t, join(tempDir(t), 'restart'));
  const parent = await line.start(0, { config: config(), args: QUICK });
  const port = await parent.listenerPort('web');
  const open = () => readdirSync(`/proc/${parent.pid}/fd`).length;
  const before = open();
  const attacker = new DatagramSender();
  const files = Array.from({ length: 64 }, () => 0);
  for (const which of ['parent', 'child']) {
    for (const bytes of [Buffer.alloc(0), Buffer.alloc(1), Buffer.alloc(65_536)]) {
      for (let count = 0; count < 20; count++) {
        await waitFor(() => attacker.send(line.socketPath, bytes, files, which), {
          what: 'space in the socket buffer',
        });
      }
    }
  }
  const { createSocket } = createRequire(import.meta.url)('unix-dgram') as {
    createSocket(type: string): {
      send(bytes: Buffer, from: number, length: number, path: string): void;
      close(): void;
    };
  };
  const sender = createSocket('unix_dgram');
  for (const which of ['parent', 'child'])
    sender.send(Buffer.alloc(100_000), 0, 100_000, `${line.socketPath}_${which}_0`);
  await waitForLog(parent, 'a message to the hot restart socket is dropped');
  await waitFor(() => open() <= before, { what: 'no foreign descriptor', deadlineMs: 5000 });
  await serves(t, parent, port);
  attacker.close();
  sender.close();
  await (await restarts(t, line, parent, port)).stop();
});

t.test('a parent without free descriptors can be restarted', async (t) => {
  const line = new EpochLine(t);
  const limit = 120;
  const wrapper = ['sh', '-c', `ulimit -n ${limit}; exec "$@"`, 'sh'];
  const parent = await line.start(0, { config: config(), args: QUICK, wrapper });
  const port = await parent.listenerPort('web');
  for (let count = 0; count < limit; count++) await connectRaw(t, port);
  await takeReserve(t, parent, limit - 1);
  await (await restarts(t, line, parent, port)).stop();
});

t.test('a parent without free descriptors hands its connections over', async (t) => {
  const line = new EpochLine(t);
  const limit = 120;
  const wrapper = ['sh', '-c', `ulimit -n ${limit}; exec "$@"`, 'sh'];
  const args = ['--hand-over-connections', '--concurrency', '8', '--parent-shutdown-time-s', '20'];
  const parent = await line.start(0, { config: config(), args, wrapper });
  const port = await parent.listenerPort('web');
  const connections: RawConnection[] = [];
  for (let count = 0; count < limit; count++) connections.push(await connectRaw(t, port));
  await waitForLog(parent, 'no more connections are accepted');
  await takeReserve(t, parent, limit - 1);
  const next = await line.start(1, { config: config(), args });
  for (const connection of connections) {
    connection.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n');
    t.match(await connection.readUntil('\r\n\r\nhi'), /^HTTP\/1\.1 200 OK\r\n/);
  }
  await waitFor(() => parent.exit !== undefined, { what: 'the exit of the parent' });
  t.same(parent.exit, { code: 0, signal: null });
  await next.stop();
});

t.test('a child with too few descriptors for the sockets does not take over, and says why', async (t) => {
  const line = new EpochLine(t);
  const closing = Array.from({ length: 99 }, (_, index) => ({
    name: `closing ${index}`,
    address: loopback(0),
    filter_chains: [{}],
  }));
  const many = config({ static_resources: { listeners: [WEB, ...closing] } });
  const parent = await line.start(0, { config: many, args: QUICK });
  const port = await parent.listenerPort('web');
  for (const [limit, why] of [
    [90, 'cannot take over from the parent process: .*this one may open too few descriptors for what came'],
    // Enough for the primary, which has all sockets, but not for the worker's copies.
    [215, "error initializing configuration: listener 'closing \\d+' cannot be built: .*too many open files"],
  ] as const) {
    const wrapper = ['sh', '-c', `ulimit -n ${limit}; exec "$@"`, 'sh'];
    const child = await line.start(1, { config: many, args: QUICK, wait: 'spawned', wrapper });
    t.same(await ends(child), { code: 1, signal: null });
    t.match(child.stderr, new RegExp(why));
    await serves(t, parent, port);
  }
  await parent.stop();
});

/** Starts a server as a grandchild of the test: its own parent has written its pid to a file, and waits. */
async function startWrapped(t: Teardown, args: string[]): Promise<{ baton: BatonProcess; pid: number }> {
  const path = join(tempDir(t), 'pid');
  const wrapper = ['sh', '-c', '"$@" & echo $! > "$0"; wait', path];
  const baton = await startBaton(t, { config: config(), args, wrapper });
  const pid = Number(readFileSync(path, 'utf8'));
  t.teardown(() => {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // The process is gone, as expected.
    }
  });
  return { baton, pid };
}

t.test('the death of a wrapper ends the server, unless hot restart is disabled', async (t) => {
  const bound = await startWrapped(t, ['--use-dynamic-base-id']);
  bound.baton.child.kill('SIGKILL');
  await waitForLog(bound.baton, 'caught SIGTERM');
  await waitFor(() => !isAlive(bound.pid), { what: 'the exit of the server' });
  const free = await startWrapped(t, ['--disable-hot-restart']);
  free.baton.child.kill('SIGKILL');
  t.equal((await free.baton.admin('/ready')).status, 200);
});

t.test('the death of a wrapper counts as one SIGTERM, however often the kernel sends it', async (t) => {
  const { baton, pid } = await startWrapped(t, ['--use-dynamic-base-id', '--drain-on-sigterm', '--drain-time-s', '4']);
  const client = await connectRaw(t, await baton.listenerPort('web'));
  baton.child.kill('SIGKILL');
  await waitForLog(baton, 'caught SIGTERM');
  // As for a second thread of the wrapper.
  process.kill(pid, 'SIGTERM');
  await waitFor(async () => (await baton.admin('/ready')).status === 503, { what: 'the drain' });
  client.destroy();
  await waitFor(() => !isAlive(pid), { what: 'the exit of the server' });
  t.match(baton.stderr, 'the last connection has ended');
  t.equal(baton.stderr.match(/caught SIGTERM/g)?.length, 1);
});

const SHIM = new URL('../../../src/io/shim.js', import.meta.url).href;
const ADDRESS = new URL('../../../src/io/addresses/address.js', import.meta.url).href;

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
