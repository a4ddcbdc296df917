// Attacks on the sockets of a restart, by processes of the same user: the server neither exits, hangs, grows nor floods its
// log, and the next process takes over.

import { randomBytes } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { AddressKind, encodeAddress, encodeIp } from '../../../src/io/addresses/address.js';
import { loadShim } from '../../../src/io/shim.js';
import { encodeHello, encodeToChild, encodeToParent, type ToParent } from '../../../src/restart/messages.js';
import { HOT_RESTART_VERSION } from '../../../src/restart/version.js';
import {
  type BatonProcess,
  bootstrap,
  EpochLine,
  freePort,
  httpListener,
  httpRequest,
  isRefused,
  tempDir,
  waitFor,
  waitForLog,
  withDeadline,
} from '../harness/index.js';
import { DatagramSender, FakeParent, welcomed } from './restart-peer.js';

const QUICK = ['--parent-shutdown-time-s', '1', '--drain-time-s', '1'];
const HELLO = encodeHello({ version: HOT_RESTART_VERSION, epoch: 1 });
const DATAGRAMS = 100_000;
const REQUESTS = 100_000;
/** Allowed growth of a process after an attack, for variations of its heap. */
const ALLOWED_GROWTH_BYTES = 100 * 1024 * 1024;

const shim = loadShim();
const ROUTE = { match: { prefix: '/' }, direct_response: { status: 200, body: { inline_string: 'hi' } } };
const WEB = httpListener('web', 0, {
  route_config: { virtual_hosts: [{ name: 'all', domains: ['*'], routes: [ROUTE] }] },
});
const CONFIG = bootstrap({ listeners: [WEB], clusters: [] });

/** Epoch 0, its state before the attack, and the restart at the end of a test. */
async function attacked(t: Test, socketPath?: string) {
  const line = new EpochLine(t, socketPath);
  const parent = await line.start(0, { config: CONFIG, args: QUICK });
  const port = await parent.listenerPort('web');
  const before = { descriptors: descriptorsOf(parent), bytes: residentBytes(parent) };
  const survives = async () => {
    await waitFor(() => descriptorsOf(parent) <= before.descriptors, { what: 'no descriptor of the attacker' });
    t.ok(residentBytes(parent) < before.bytes + ALLOWED_GROWTH_BYTES, 'no memory is retained');
    t.ok(parent.stderr.split('\n').length < 200, 'the log stays short');
    t.notMatch(parent.stderr, /internal error/);
    await waitFor(async () => !(await isRefused(port)), { what: 'the listener to accept' });
    t.equal((await httpRequest(port)).body, 'hi');
    const child = await line.start(1, { config: CONFIG, args: QUICK });
    t.equal(await child.listenerPort('web'), port, 'the next process has the sockets');
    await waitFor(() => parent.exit !== undefined, { what: 'the exit of the parent' });
    t.same(parent.exit, { code: 0, signal: null });
    t.equal((await httpRequest(port)).body, 'hi');
    await child.stop();
  };
  return { line, parent, port, survives };
}

t.test(
  'a hundred thousand datagrams: truncated, oversize, of another version or epoch, with descriptors',
  async (t) => {
    const { line, survives } = await attacked(t);
    const attacker = new DatagramSender(`${line.socketPath}_child_1`);
    const [link, other] = shim.socketPair();
    const many = new Array<number>(64).fill(link);
    const kinds: readonly (readonly [bytes: Uint8Array, fds: readonly number[]])[] = [
      [HELLO, []],
      [HELLO.subarray(0, HELLO.length - 1), [link]],
      [Buffer.concat([HELLO, HELLO.subarray(0, 1)]), [link]],
      [encodeHello({ version: '0.0', epoch: 1 }), [link]],
      [encodeHello({ version: HOT_RESTART_VERSION, epoch: 2 ** 32 - 1 }), [link]],
      [encodeHello({ version: 'x'.repeat(60_000), epoch: 1 }), []],
      [new Uint8Array(0), many],
      [new Uint8Array(64 * 1024), many],
      [randomBytes(100), []],
      [encodeToParent({ kind: 'terminate' }), [link]],
    ];
    for (let count = 0; count < DATAGRAMS; ) {
      const [bytes, fds] = kinds[count % kinds.length]!;
      if (attacker.send(line.socketPath, bytes, fds, count % 3 === 0 ? 'child' : 'parent')) count++;
      else await setImmediate();
    }
    shim.closeDescriptor(link);
    shim.closeDescriptor(other);
    attacker.close();
    await survives();
  },
);

t.test('a child that requests stats a hundred thousand times without reading the responses', async (t) => {
  const { line, parent, survives } = await attacked(t);
  const child = await welcomed(t, line.socketPath);
  child.say(encodeToParent({ kind: 'live', taken: [], parentShutdownTimeS: 600, connectionWorkers: 0 }));
  await waitFor(() => child.received.includes('replaced'), { what: 'the take-over' });
  const request = encodeToParent({ kind: 'stats-request' });
  const before = residentBytes(parent);
  const tooMany = "it sent more than 100 messages of kind 'stats-request'";
  await repeat(() => child.say(request), parent, tooMany);
  t.ok(residentBytes(parent) < before + ALLOWED_GROWTH_BYTES, 'responses do not accumulate');
  const received = () => child.received.filter((kind) => kind === 'stats').length;
  t.ok(received() < 100, `${received()} pieces of responses`);
  child.close();
  await waitForLog(parent, 'this one serves again');
  await waitFor(() => parent.stderr.split("listener 'web' listens on").length > 2, { what: 'the listener' });
  await survives();
});

t.test('a child that sends an oversize message and then exits', async (t) => {
  const { line, parent, survives } = await attacked(t);
  const child = await welcomed(t, line.socketPath);
  child.say(encodeToParent({ kind: 'live', taken: [], parentShutdownTimeS: 600, connectionWorkers: 0 }));
  await waitFor(() => child.received.includes('replaced'), { what: 'the take-over' });
  child.sayAtLength(new Uint8Array(70_000));
  await waitForLog(parent, 'the link to the child process is unusable');
  child.close();
  await waitForLog(parent, 'this one serves again');
  await survives();
});

t.test('a child that exits while its copies of sockets are still open', async (t) => {
  const path = join(tempDir(t), 'web.sock');
  const line = new EpochLine(t);
  const listener = { ...WEB, address: { pipe: { path } } };
  const config = bootstrap({ listeners: [listener], clusters: [] });
  const parent = await line.start(0, { config, args: QUICK });
  const answers = () =>
    httpRequest(0, '/', { socketPath: path }).then(
      ({ body }) => body === 'hi',
      () => false,
    );
  await waitFor(answers, { what: 'a response at the socket' });
  const child = await welcomed(t, line.socketPath, true);
  child.say(encodeToParent({ kind: 'live', taken: [], parentShutdownTimeS: 600, connectionWorkers: 0 }));
  await waitFor(() => child.received.includes('replaced'), { what: 'the take-over' });
  child.close();
  await waitForLog(parent, 'this one serves again');
  child.dropSockets();
  await waitFor(answers, { what: 'a response at the rebound socket' });
  t.notMatch(parent.stderr, /cannot be opened again/);
});

t.test('children that repeat each message a hundred thousand times', async (t) => {
  const { line, parent, port, survives } = await attacked(t);
  let rounds = 1;
  const messages: readonly ToParent[] = [
    { kind: 'alive' },
    { kind: 'release', ids: Array.from({ length: 10_000 }, (_, id) => id) },
    { kind: 'further', sockets: [{ id: 0, count: 1 }] },
    { kind: 'live', taken: [0], parentShutdownTimeS: 600, connectionWorkers: 2 ** 31 },
  ];
  for (const message of messages) {
    const child = await welcomed(t, line.socketPath);
    const live: ToParent = { kind: 'live', taken: [0], parentShutdownTimeS: 600, connectionWorkers: 0 };
    if (message.kind === 'release') child.say(encodeToParent(live));
    const before = residentBytes(parent);
    const bytes = encodeToParent(message);
    const [link, other] = shim.socketPair();
    const say = () => child.say(bytes, message.kind === 'further' ? [link] : []);
    await repeat(say, parent, `messages of kind '${message.kind}'`);
    child.close();
    shim.closeDescriptor(link);
    shim.closeDescriptor(other);
    t.ok(residentBytes(parent) < before + ALLOWED_GROWTH_BYTES, `no memory is retained for ${message.kind}`);
    const again = () => parent.stderr.split('this one serves again').length > rounds;
    if (message.kind === 'release' || message.kind === 'live') {
      await waitFor(again, { what: 'the parent to serve again' });
      rounds++;
      await waitFor(() => parent.stderr.split("listener 'web' listens on").length > rounds, { what: 'the listener' });
    }
    await waitFor(async () => !(await isRefused(port)), { what: 'the listener to accept' });
  }
  await survives();
});

t.test('a child that is silent after its hello is replaced by the next process', async (t) => {
  const { line, parent, port } = await attacked(t);
  const silent = await welcomed(t, line.socketPath);
  silent.freeName();
  const child = await line.start(1, { config: CONFIG, args: QUICK });
  t.equal(await child.listenerPort('web'), port);
  t.match(parent.stderr, 'it sent nothing for 8 s, and another process wants to take over');
  t.ok(silent.received.includes('refusal'), 'it is notified');
  await child.stop();
});

t.test('a child that sends garbage, or repeats its hello, is treated as gone', async (t) => {
  const { line, parent, survives } = await attacked(t);
  const replays = 1000;
  for (const nonsense of [Buffer.from('nonsense'), randomBytes(60_000), encodeToChild({ kind: 'released' })]) {
    const child = await welcomed(t, line.socketPath);
    child.say(nonsense, [0, 1, 2]);
    await waitFor(() => child.isOver || child.received.includes('released'), { what: 'the close of the link' });
    child.close();
  }
  const live = await welcomed(t, line.socketPath);
  live.say(encodeToParent({ kind: 'live', taken: [], parentShutdownTimeS: 600, connectionWorkers: 0 }));
  live.say(Buffer.from('nonsense'), [0, 1, 2]);
  await waitForLog(parent, 'the link to the child process is unusable');
  live.close();
  await waitForLog(parent, 'this one serves again');
  // The fake child took no socket: the listener was closed, and is opened again.
  await waitFor(() => parent.stderr.split("listener 'web' listens on").length > 2, { what: 'the listener' });
  const child = await welcomed(t, line.socketPath);
  const attacker = new DatagramSender();
  for (let count = 0; count < replays; count++) {
    const [here, there] = shim.socketPair();
    await attacker.push(line.socketPath, HELLO, [there]);
    shim.closeDescriptor(there);
    shim.closeDescriptor(here);
  }
  await waitForLog(parent, 'previous baton process is still initializing');
  child.close();
  attacker.close();
  await waitFor(() => parent.stderr.split('was lost before it was live').length > 1);
  await survives();
});

t.test('a descriptor that is not a packet socket is refused as link: its close would never be noticed', async (t) => {
  const { line, parent, port, survives } = await attacked(t);
  const stream = connect(port, '127.0.0.1');
  await waitFor(() => !stream.connecting);
  const at = encodeAddress({ kind: AddressKind.Unix, ip: '', port: 0, path: `@baton-test-${process.pid}-datagrams` });
  const datagrams = shim.openMeetingSocket(at);
  const attacker = new DatagramSender(`${line.socketPath}_child_1`);
  const { fd } = (stream as Socket & { readonly _handle: { readonly fd: number } })._handle;
  for (const each of [datagrams, fd]) await attacker.push(line.socketPath, HELLO, [each]);
  await waitForLog(parent, 'a message to the hot restart socket is dropped: watchMessages');
  stream.destroy();
  shim.closeDescriptor(datagrams);
  attacker.close();
  await survives();
});

t.test('socket names that an attacker has bound or linked are refused, and their targets are left alone', async (t) => {
  const directory = tempDir(t);
  const path = join(directory, 'restart');
  const file = join(directory, 'file');
  writeFileSync(file, 'text');
  symlinkSync(file, `${path}_parent_0`);
  const line = new EpochLine(t, path);
  const refused = await line.start(0, { config: CONFIG, wait: 'spawned' });
  t.match(await withDeadline(refused.exited, 'the exit of the process'), { code: 1 });
  t.match(refused.stderr, 'unable to bind domain socket');
  t.equal(readFileSync(file, 'utf8'), 'text');
  t.notOk(existsSync(`${path}_child_0`), 'its own name is released');

  const abstract = new EpochLine(t);
  const attacker = new DatagramSender(`${abstract.socketPath}_parent_0`);
  const late = await abstract.start(0, { config: CONFIG, wait: 'spawned' });
  t.match(await withDeadline(late.exited, 'the exit of the process'), { code: 1 });
  t.match(late.stderr, 'see --base-id option');
  attacker.close();
});

t.test("an attacker with the parent's name but without proof of identity is not accepted", async (t) => {
  const line = new EpochLine(t);
  const at = encodeAddress({ kind: AddressKind.Unix, ip: '', port: 0, path: `${line.socketPath}_parent_0` });
  let sent = 0;
  const bound = shim.openMeetingSocket(at);
  const meeting = shim.watchMessages(bound, {
    onMessage: (_bytes, [fd]) => {
      if (fd === undefined) return;
      const link = shim.watchMessages(fd, { onMessage() {}, onWritable() {}, onEnd() {} });
      const sockets = Array.from({ length: 32 }, (_, id) => ({
        ...{ id, isAdmin: false, name: 'x'.repeat(1000), configured: '', real: '', traits: '' },
        ...{ isReusePort: true, count: 2 },
      }));
      const welcome = { firstStartedMs: 0, generation: 1, sockets, isLast: false };
      const bytes = encodeToChild({ kind: 'welcome', welcome });
      const flood = () => {
        try {
          while (sent < 5000 && link.send(bytes, new Array(64).fill(bound))) sent++;
          if (sent < 5000) setTimeout(flood, 1);
        } catch {
          // The child gives up.
          sent = 5000;
        }
      };
      flood();
    },
    onWritable() {},
    onEnd() {},
  });
  t.teardown(() => meeting.close());
  const child = await line.start(1, { config: CONFIG, wait: 'spawned' });
  let most = 0;
  await waitFor(
    () => {
      if (child.exit === undefined) most = Math.max(most, residentBytes(child));
      return child.exit !== undefined;
    },
    { what: 'the exit of the child', deadlineMs: 40_000 },
  );
  t.same(child.exit, { code: 1, signal: null });
  t.match(child.stderr, /cannot take over from the parent process/);
  t.ok(sent > 0);
  t.ok(most < 3 * ALLOWED_GROWTH_BYTES, `${most} bytes`);
});

t.test('sockets of a fake parent are refused, and the next process binds its own', async (t) => {
  const line = new EpochLine(t);
  const options = { reusePort: true, freebind: false, transparent: false, v6Only: true };
  const elsewhere = shim.openListenSocket(encodeIp('127.0.0.1', 0), options);
  shim.listen(elsewhere, 10);
  t.teardown(() => shim.closeDescriptor(elsewhere));
  const [pair, other] = shim.socketPair();
  for (const fd of [pair, other]) t.teardown(() => shim.closeDescriptor(fd));
  const port = await freePort();
  const offered = { isAdmin: false, traits: 'false,false,true', isReusePort: true, count: 2 };
  const text = `127.0.0.1:${port}`;
  const parent = new FakeParent(t, line.socketPath, {
    sockets: [
      { ...offered, id: 0, name: 'web', configured: text, real: text },
      { ...offered, id: 1, name: 'any', configured: '127.0.0.1:0', real: text },
    ],
    fds: [elsewhere, pair, elsewhere, pair],
  });
  const routes = { route_config: { virtual_hosts: [{ name: 'all', domains: ['*'], routes: [ROUTE] }] } };
  const listeners = [httpListener('web', port, routes), httpListener('any', 0, routes)];
  const child = await line.start(1, { config: bootstrap({ listeners, clusters: [] }), args: QUICK });
  for (const name of ['web', 'any']) {
    t.match(
      child.stderr,
      new RegExp(`2 of 2 sockets of the parent process for listener '${name}' .* refused: it is bound else`),
    );
    t.equal((await httpRequest(await child.listenerPort(name))).body, 'hi');
  }
  t.equal(await child.listenerPort('web'), port);
  await waitFor(() => parent.received.includes('live'), { what: 'the take-over' });
  await child.stop();
});

function descriptorsOf({ pid }: BatonProcess): number {
  return readdirSync(`/proc/${pid}/fd`).length;
}

function residentBytes({ pid }: BatonProcess): number {
  try {
    return Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1] ?? 0) * 1024;
  } catch {
    return 0;
  }
}

/** Sends a message a hundred thousand times, or until the parent logs its refusal. */
async function repeat(say: () => boolean, parent: BatonProcess, enough: string): Promise<void> {
  try {
    for (let count = 0; count < REQUESTS && !parent.stderr.includes(enough); ) {
      if (say()) count++;
      if (count % 100 === 0) await setImmediate();
    }
  } catch (error) {
    // The parent has closed the link.
    if (!/ECONNRESET|EPIPE/.test(String((error as NodeJS.ErrnoException).code))) throw error;
  }
  await waitForLog(parent, enough);
}
