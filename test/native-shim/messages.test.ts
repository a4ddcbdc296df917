// Messages between processes: complete, in order, with descriptors and the sender's credentials; a close is detected.

import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, fstatSync, openSync, readFileSync, readSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { constants } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import t from 'tap';
import { AddressKind, encodeAddress } from '../../src/io/addresses/address.js';
import { type Credentials, loadShim, type MessageSocketEvents, type NativeMessageSocket } from '../../src/io/shim.js';
import { endsWithTest, tempDir } from '../e2e/harness/environment.js';

const SHIM = new URL('../../src/io/shim.js', import.meta.url).href;
const ADDRESS = new URL('../../src/io/addresses/address.js', import.meta.url).href;
const shim = loadShim();

interface Received {
  readonly text: string;
  readonly fds: readonly number[];
  readonly credentials: Credentials | undefined;
}

/** One end of a conversation, and the messages it received. */
class End implements MessageSocketEvents {
  readonly socket: NativeMessageSocket;
  readonly received: Received[] = [];
  readonly lost: { readonly errno: number; readonly credentials: Credentials | undefined }[] = [];
  ended: number | undefined;
  writable = 0;
  #changed: (() => void) | undefined;

  constructor(fd: number) {
    this.socket = shim.watchMessages(fd, this);
  }

  onMessage(bytes: Uint8Array, fds: readonly number[], credentials: Credentials | undefined): void {
    this.received.push({ text: Buffer.from(bytes).toString(), fds, credentials });
    this.#changed?.();
  }
  onWritable(): void {
    this.writable++;
    this.#changed?.();
  }
  onLost(errno: number, credentials: Credentials | undefined): void {
    this.lost.push({ errno, credentials });
  }
  onEnd(errno: number): void {
    this.ended = errno;
    this.#changed?.();
  }

  async until(condition: () => boolean): Promise<void> {
    while (!condition()) await new Promise<void>((resolve) => (this.#changed = resolve));
  }
}

function pair(): [End, End] {
  const [a, b] = shim.socketPair();
  return [new End(a), new End(b)];
}

t.test('the last messages arrive although the other end was closed with unread messages', async (t) => {
  for (let run = 0; run < 20; run++) {
    const [fd, other] = shim.socketPair();
    const b = new End(other);
    const a = shim.watchMessages(fd, { onMessage() {}, onWritable() {}, onEnd() {} });
    for (let unread = 0; unread < 3; unread++) b.socket.send(Buffer.from('unread'), []);
    for (let index = 0; index < 40; index++) a.send(Buffer.from(`last words ${index}`), []);
    a.close();
    await b.until(() => b.ended !== undefined);
    t.equal(b.ended, 0);
    t.equal(b.received.length, 40);
  }
});

t.test('messages arrive complete and in order, whatever their size', async (t) => {
  const [a, b] = pair();
  const sizes = [1, 4096, 65536, 3];
  for (const size of sizes) t.ok(a.socket.send(Buffer.alloc(size, 'x'), []));
  await b.until(() => b.received.length === sizes.length);
  t.same(
    b.received.map(({ text }) => text.length),
    sizes,
  );
  a.socket.close();
  b.socket.close();
});

t.test('a sent descriptor is the same file for its receiver, and the sender keeps its own', async (t) => {
  const directory = tempDir(t);
  writeFileSync(join(directory, 'file'), 'content');
  const own = openSync(join(directory, 'file'), 'r');
  const [a, b] = pair();
  a.socket.send(Buffer.from('take it'), [own, own]);
  await b.until(() => b.received.length === 1);
  const { fds } = b.received[0]!;
  t.equal(fds.length, 2);
  for (const fd of fds) {
    t.not(fd, own);
    t.equal(fstatSync(fd).ino, fstatSync(own).ino);
    const flags = /^flags:\s*(\d+)/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, 'utf8'))![1]!;
    t.ok(Number.parseInt(flags, 8) & 0o2000000, 'programs that are started do not inherit it');
  }
  const buffer = Buffer.alloc(7);
  readSync(fds[0]!, buffer, 0, 7, 0);
  t.equal(`${buffer}`, 'content');
  for (const fd of [...fds, own]) closeSync(fd);
  a.socket.close();
  b.socket.close();
});

t.test('64 descriptors fit in one message, more are refused', async (t) => {
  const own = openSync('/dev/null', 'r');
  const [a, b] = pair();
  t.ok(a.socket.send(Buffer.from('many'), new Array(64).fill(own)));
  await b.until(() => b.received.length === 1);
  t.equal(b.received[0]!.fds.length, 64);
  t.throws(() => a.socket.send(Buffer.from('too many'), new Array(65).fill(own)), TypeError);
  for (const fd of [...b.received[0]!.fds, own]) closeSync(fd);
  a.socket.close();
  b.socket.close();
});

t.test('the close of the peer is detected, after its last messages', async (t) => {
  const [a, b] = pair();
  a.socket.send(Buffer.from('last words'), []);
  a.socket.close();
  await b.until(() => b.ended !== undefined);
  t.equal(b.received[0]?.text, 'last words');
  t.equal(b.ended, 0);
  t.throws(() => b.socket.send(Buffer.from('too late'), []), { code: 'EBADF' });
});

t.test('a peer that does not read is reported, and can be sent to again when it reads', async (t) => {
  const [a, b] = shim.socketPair();
  const sender = new End(a);
  const message = Buffer.alloc(32768);
  let sent = 0;
  while (sender.socket.send(message, [])) sent++;
  const receiver = new End(b);
  await sender.until(() => sender.writable > 0);
  t.ok(sender.socket.send(message, []));
  await receiver.until(() => receiver.received.length === sent + 1);
  sender.socket.close();
  receiver.socket.close();
});

t.test('a meeting socket identifies the sender of a message', async (t) => {
  const name = { kind: AddressKind.Unix, ip: '', port: 0, path: `@baton-test-${process.pid}-meeting` };
  const address = encodeAddress(name);
  const meeting = new End(shim.openMeetingSocket(address));
  const code = `
    const { loadShim } = await import('${SHIM}');
    const { encodeAddress } = await import('${ADDRESS}');
    const shim = loadShim();
    const own = encodeAddress({ kind: ${AddressKind.Unix}, ip: '', port: 0, path: '@baton-test-' + process.pid });
    const socket = shim.watchMessages(shim.openMeetingSocket(own), {});
    const [here, there] = shim.socketPair();
    socket.sendTo(encodeAddress(${JSON.stringify(name)}), Buffer.from('hello'), [there]);
    socket.close();
    shim.watchMessages(here, {
      onMessage(bytes) { console.log('heard ' + Buffer.from(bytes)); process.exit(0); },
    });
  `;
  const command = ['--input-type=module', '-e', code];
  const child = endsWithTest(t, spawn(process.execPath, command, { stdio: ['ignore', 'pipe', 'inherit'] }));
  const output = once(child.stdout!, 'data');
  const exited = once(child, 'exit');
  await meeting.until(() => meeting.received.length === 1);
  const { text, fds, credentials } = meeting.received[0]!;
  t.equal(text, 'hello');
  t.same(credentials, { pid: child.pid, uid: process.getuid!(), gid: process.getgid!() });
  const link = new End(fds[0]!);
  link.socket.send(Buffer.from('welcome'), []);
  t.equal(`${(await output)[0]}`, 'heard welcome\n');
  await link.until(() => link.ended !== undefined);
  t.equal(link.ended, 0, 'the death of the process is detected');
  await exited;
  meeting.socket.close();
});

t.test('the file of a meeting socket has its mode from the start, whatever the umask', async (t) => {
  const directory = tempDir(t);
  const at = (path: string) => encodeAddress({ kind: AddressKind.Unix, ip: '', port: 0, path });
  const umask = process.umask(0o077);
  t.teardown(() => process.umask(umask));
  for (const [mode, expected] of [
    [0o666, 0o666],
    [0, 0],
    [undefined, 0o600],
  ] as const) {
    const path = join(directory, `${mode}`);
    shim.closeDescriptor(shim.openMeetingSocket(at(path), mode));
    t.equal(statSync(path).mode & 0o777, expected);
  }
  process.umask(0);
  // A thread that checks a file as soon as it exists.
  const path = join(directory, 'seen');
  const source = `
    const { lstatSync } = require('node:fs');
    const { parentPort } = require('node:worker_threads');
    const modes = new Set();
    parentPort.once('message', () => parentPort.postMessage([...modes]));
    const look = () => {
      for (let count = 0; count < 2000; count++) {
        const stats = lstatSync(${JSON.stringify(path)}, { throwIfNoEntry: false });
        if (stats !== undefined) modes.add(stats.mode & 0o777);
      }
      setImmediate(look);
    };
    look();
    parentPort.postMessage('looks');`;
  const watcher = new Worker(source, { eval: true });
  t.teardown(() => watcher.terminate());
  await once(watcher, 'message');
  for (let count = 0; count < 2000; count++) {
    shim.closeDescriptor(shim.openMeetingSocket(at(path), 0o640));
    rmSync(path);
  }
  watcher.postMessage('enough');
  const [seen] = (await once(watcher, 'message')) as [number[]];
  t.ok(
    seen.every((mode) => mode === 0o640),
    `it has seen ${seen.map((mode) => mode.toString(8))}`,
  );
});

t.test('a datagram that is too large is lost, and the socket continues', async (t) => {
  const directory = tempDir(t);
  const path = join(directory, 'meeting');
  const meeting = new End(shim.openMeetingSocket(encodeAddress({ kind: AddressKind.Unix, ip: '', port: 0, path })));
  const { createSocket } = createRequire(import.meta.url)('unix-dgram') as {
    createSocket(type: string): {
      send(bytes: Buffer, offset: number, length: number, path: string): void;
      close(): void;
    };
  };
  const sender = createSocket('unix_dgram');
  for (const bytes of [Buffer.alloc(65537), Buffer.alloc(100_000), Buffer.from('small')])
    sender.send(bytes, 0, bytes.length, path);
  await meeting.until(() => meeting.received.length === 1 || meeting.ended !== undefined);
  t.equal(meeting.received[0]?.text, 'small');
  t.same(
    meeting.lost.map(({ errno, credentials }) => [errno, credentials?.pid]),
    [
      [constants.errno.EMSGSIZE, process.pid],
      [constants.errno.EMSGSIZE, process.pid],
    ],
  );
  sender.close();
  meeting.socket.close();
});

t.test('at the descriptor limit one descriptor is still received; the others are lost', async (t) => {
  const name = { kind: AddressKind.Unix, ip: '', port: 0, path: `@baton-test-${process.pid}-full` };
  const code = `
    const { openSync, closeSync } = await import('node:fs');
    const { loadShim } = await import('${SHIM}');
    const { encodeAddress } = await import('${ADDRESS}');
    const shim = loadShim();
    const kept = [], rest = [];
    const end = (status) => { for (const fd of rest) closeSync(fd); process.exit(status); };
    shim.watchMessages(shim.openMeetingSocket(encodeAddress(${JSON.stringify(name)})), {
      onMessage(bytes, fds) {
        kept.push(...fds);
        process.send(Buffer.from(bytes) + ' ' + fds.length, () => {
          if (Buffer.from(bytes).toString() === 'third') end(0);
        });
      },
      onLost(errno, { pid }) {
        process.send('lost ' + errno + ' ' + (pid === process.ppid));
        for (const fd of kept.splice(0)) closeSync(fd);
      },
      onEnd(errno) { process.send('ended ' + errno, () => end(1)); },
    });
    try { for (;;) rest.push(openSync('/dev/null', 'r')); } catch {}
    process.send('full');
  `;
  const args = ['-c', 'ulimit -n 64 && exec "$0" "$@"', process.execPath, '--input-type=module', '-e', code];
  const child = endsWithTest(t, spawn('/bin/sh', args, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] }));
  const said: unknown[] = [];
  const exited = once(child, 'exit');
  const own = openSync('/dev/null', 'r');
  const path = `@baton-test-${process.pid}-full-sender`;
  const sender = new End(shim.openMeetingSocket(encodeAddress({ ...name, path }))).socket;
  child.on('message', (message) => {
    said.push(message);
    // One after the other: each is answered.
    const next = ['first', 'second', 'third'][said.length - 1];
    if (next !== undefined) sender.sendTo(encodeAddress(name), Buffer.from(next), [own]);
  });
  t.same(await exited, [0, null]);
  t.same(said, ['full', 'first 1', `lost ${constants.errno.EMFILE} true`, 'third 1']);
  sender.close();
  closeSync(own);
});

t.test('a descriptor that is not a packet socket is refused', async (t) => {
  const at = encodeAddress({ kind: AddressKind.Unix, ip: '', port: 0, path: `@baton-test-${process.pid}-no-link` });
  const events = { onMessage() {}, onWritable() {}, onEnd() {} };
  const datagrams = shim.openMeetingSocket(at);
  t.throws(() => shim.watchMessages(datagrams, events, true), { code: 'EPROTOTYPE' });
  const file = openSync('/dev/null', 'r');
  t.throws(() => shim.watchMessages(file, events, true), { code: 'ENOTSOCK' });
  closeSync(file);
  shim.watchMessages(datagrams, events).close();
  const [here, there] = shim.socketPair();
  for (const fd of [here, there]) shim.watchMessages(fd, events, true).close();
});

t.test('a missing peer, and an address in use, are errors with a code', async (t) => {
  const at = (path: string) => encodeAddress({ kind: AddressKind.Unix, ip: '', port: 0, path });
  const taken = at(`@baton-test-${process.pid}-taken`);
  const socket = new End(shim.openMeetingSocket(taken)).socket;
  t.throws(() => shim.openMeetingSocket(taken), { code: 'EADDRINUSE' });
  t.throws(() => socket.sendTo(at(`@baton-test-${process.pid}-nobody`), Buffer.from('x'), []), {
    code: 'ECONNREFUSED',
  });
  t.throws(() => socket.sendTo(at('/nonexistent/baton'), Buffer.from('x'), []), { code: 'ENOENT' });
  socket.close();
});

t.test('a thread can exit with its sockets open', async (t) => {
  const code = `
    const { loadShim } = await import('${SHIM}');
    const { parentPort } = await import('node:worker_threads');
    const shim = loadShim();
    const [a, b] = shim.socketPair();
    shim.watchMessages(a, { onMessage() { parentPort.postMessage('heard'); } });
    shim.watchMessages(b, {}).send(Buffer.from('x'), []);
  `;
  const worker = new Worker(new URL(`data:text/javascript,${encodeURIComponent(code)}`));
  t.same(await once(worker, 'message'), ['heard']);
  await worker.terminate();
});

t.test('an exception in a callback is reported, and the socket continues', async (t) => {
  const code = `
    const { loadShim } = await import('${SHIM}');
    const shim = loadShim();
    process.on('uncaughtException', (error) => console.log('caught ' + error.message));
    const [a, b] = shim.socketPair();
    let count = 0;
    shim.watchMessages(b, {
      onMessage() { if (++count === 2) { console.log('second'); process.exit(0); } throw new Error('first'); },
    });
    const sender = shim.watchMessages(a, {});
    sender.send(Buffer.from('1'), []);
    sender.send(Buffer.from('2'), []);
  `;
  const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', code], {
    encoding: 'utf8',
    timeout: 20_000,
  });
  t.equal(stdout, 'caught first\nsecond\n');
});

t.test('an orphan that has exited is reaped', async (t) => {
  t.equal(shim.reap(1), false, 'a process that is not a child');
  const code = `
    const { loadShim } = await import('${SHIM}');
    const { spawn } = await import('node:child_process');
    const shim = loadShim();
    shim.endWithParent(9);
    const child = spawn('/bin/sh', ['-c', 'kill -STOP $$'], { stdio: 'ignore' });
    console.log(shim.reap(child.pid));
    child.on('exit', () => process.exit(0));
    child.kill('SIGKILL');
  `;
  const { stdout, status } = spawnSync(process.execPath, ['--input-type=module', '-e', code], {
    encoding: 'utf8',
    timeout: 20_000,
  });
  t.equal(stdout, 'false\n', 'a child that still runs is left alone');
  t.equal(status, 0);
});
