// The meeting sockets of a hot restart: strangers have no effect, and a lost name is bound again.

import { once } from 'node:events';
import { chownSync, closeSync, existsSync, lstatSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import t from 'tap';
import { AddressKind, encodeAddress } from '../../src/io/addresses/address.js';
import { loadShim, type MessageSocketEvents, type NativeMessageSocket, type NativeShim } from '../../src/io/shim.js';
import { Meeting } from '../../src/restart/meeting.js';
import { type Teardown, tempDir } from '../e2e/harness/environment.js';
import { waitFor } from '../e2e/harness/wait-for.js';
import { copies, original } from './copies.js';

const shim = loadShim();
const silent: MessageSocketEvents = { onMessage() {}, onWritable() {}, onEnd() {} };

let names = 0;

/** A meeting of epoch 0, and a sender. */
function meet(t: Teardown, distrust: () => string | undefined, watched: NativeShim = shim) {
  const socketPath = `@baton-test-${process.pid}-meeting-${names++}`;
  const meeting = new Meeting(watched, { socketPath, socketMode: 0o600, baseId: 0, epoch: 0 }, distrust);
  const sender = shim.watchMessages(shim.openMeetingSocket(at(`${socketPath}-sender`)), silent);
  const close = () => {
    meeting.close();
    sender.close();
  };
  t.teardown(close);
  const send = (which: 'parent' | 'child', text: string, fds: readonly number[] = []) =>
    waitFor(() => sender.sendTo(at(`${socketPath}_${which}_0`), Buffer.from(text), fds), {
      what: 'room for a datagram',
    });
  return { meeting, send, close };
}

t.test('messages of untrusted senders, and messages to a child without a parent, are dropped', async (t) => {
  let asked = 0;
  const { meeting, send } = meet(t, () => (++asked > 60 ? undefined : 'a stranger'));
  const before = copies();
  for (let count = 0; count < 50; count++) {
    await send('parent', 'hello', new Array(64).fill(original));
    await send('parent', '', new Array(64).fill(original));
    await send('child', 'proof', new Array(64).fill(original));
  }
  await waitFor(() => asked === 50 && copies() === before, { what: 'no descriptors of a stranger' });
  const received: string[] = [];
  meeting.onHello((bytes) => received.push(Buffer.from(bytes).toString()));
  for (let count = 50; count < 62; count++) await send('parent', `hello ${count}`);
  await waitFor(() => received.at(-1) === 'hello 61', { what: 'the trusted sender' });
  t.same(received, ['hello 60', 'hello 61']);
});

t.test('a few hellos that arrive during initialization are kept with their descriptors', async (t) => {
  const { meeting, send, close } = meet(t, () => undefined);
  const before = copies();
  for (let count = 0; count < 20; count++) await send('parent', `hello ${count}`, [original]);
  await waitFor(() => copies() === before + 4, { what: 'four of them' });
  const received: string[] = [];
  meeting.onHello((bytes, fds) => {
    received.push(Buffer.from(bytes).toString());
    for (const fd of fds) closeSync(fd);
  });
  t.same(received, ['hello 0', 'hello 1', 'hello 2', 'hello 3']);
  await send('parent', 'later', [original]);
  await waitFor(() => received.at(-1) === 'later', { what: 'the next one' });
  close();
  t.equal(copies(), before);
});

t.test('files that other threads create during a bind have their usual permissions', async (t) => {
  const directory = tempDir(t);
  const umask = process.umask(0o022);
  t.teardown(() => process.umask(umask));
  const source = `
    const { mkdirSync, rmdirSync, statSync } = require('node:fs');
    const { parentPort } = require('node:worker_threads');
    const modes = new Set();
    parentPort.once('message', () => parentPort.postMessage([...modes]));
    const make = () => {
      for (let count = 0; count < 200; count++) {
        const path = ${JSON.stringify(join(directory, 'made'))};
        mkdirSync(path);
        modes.add(statSync(path).mode & 0o777);
        rmdirSync(path);
      }
      setImmediate(make);
    };
    make();
    parentPort.postMessage('makes');`;
  const maker = new Worker(source, { eval: true });
  t.teardown(() => maker.terminate());
  await once(maker, 'message');
  const options = { socketPath: join(directory, 'restart'), socketMode: 0o600, baseId: 0, epoch: 0 };
  for (let count = 0; count < 1000; count++) new Meeting(shim, options, () => undefined).close();
  maker.postMessage('enough');
  t.same(await once(maker, 'message'), [[0o755]]);
});

t.test('exactly the files of killed epochs are removed', async (t) => {
  const directory = tempDir(t);
  const socketPath = join(directory, 'restart');
  const path = (which: string, id: number) => `${socketPath}_${which}_${id}`;
  const sockets = new Map<string, number>();
  for (const name of ['parent_1', 'child_1', 'parent_2', 'child_2', 'parent_10', 'parent_3']) {
    sockets.set(name, shim.openMeetingSocket(at(`${socketPath}_${name}`)));
  }
  for (const [name, fd] of sockets) if (name !== 'parent_2') shim.closeDescriptor(fd);
  rmSync(path('child', 2));
  writeFileSync(path('child', 2), 'no socket');
  const start = () => new Meeting(shim, { socketPath, socketMode: 0o600, baseId: 0, epoch: 0 }, () => undefined);
  start().close();
  t.ok(existsSync(path('parent', 1)), 'a new file may not be bound yet');
  await waitFor(() => Date.now() - lstatSync(path('parent', 3)).ctimeMs > 1000, { what: 'files that are old enough' });
  const meeting = start();
  t.same(
    readdirSync(directory).sort(),
    ['child_0', 'child_2', 'parent_0', 'parent_10', 'parent_2', 'parent_3'].map((name) => `restart_${name}`),
    'what is bound, what is not a socket, and what belongs to another base ID stays',
  );
  shim.closeDescriptor(sockets.get('parent_2')!);
  meeting.close();
  t.notOk(existsSync(path('parent', 2)), 'at the end too');
  if (process.getuid!() !== 0) return;
  const stranger = shim.openMeetingSocket(at(path('parent', 1)));
  chownSync(path('parent', 1), 65534, 65534);
  shim.closeDescriptor(stranger);
  await waitFor(() => Date.now() - lstatSync(path('parent', 1)).ctimeMs > 1000, { what: 'a file that is old enough' });
  start().close();
  t.ok(existsSync(path('parent', 1)), "another user's stays");
});

t.test('a socket that ends is bound again', async (t) => {
  const sockets: { readonly events: MessageSocketEvents; readonly socket: NativeMessageSocket }[] = [];
  const watched: NativeShim = {
    ...shim,
    watchMessages(fd, events) {
      const socket = shim.watchMessages(fd, events);
      sockets.push({ events, socket });
      return socket;
    },
  };
  const { meeting, send } = meet(t, () => undefined, watched);
  const received: string[] = [];
  meeting.onHello((bytes) => received.push(Buffer.from(bytes).toString()));
  t.equal(sockets.length, 2);
  for (const { events, socket } of [...sockets]) {
    socket.close();
    events.onEnd(12);
  }
  await send('parent', 'hello');
  await waitFor(() => received.length === 1, { what: 'a hello to the new socket' });
  t.ok(await send('child', 'proof'));
});

t.test('a socket whose file is removed is bound again, and frees its name at the end', async (t) => {
  const directory = tempDir(t);
  const socketPath = join(directory, 'restart');
  const meeting = new Meeting(shim, { socketPath, socketMode: 0o640, baseId: 0, epoch: 0 }, () => undefined);
  const sender = shim.watchMessages(shim.openMeetingSocket(at(join(directory, 'sender'))), silent);
  t.teardown(() => {
    meeting.close();
    sender.close();
  });
  let received = 0;
  meeting.onHello(() => received++);
  const files = ['parent', 'child'].map((which) => `${socketPath}_${which}_0`);
  const isBound = (path: string) => lstatSync(path, { throwIfNoEntry: false })?.isSocket() === true;
  const sends = (path: string) => {
    try {
      return isBound(path) && sender.sendTo(at(path), Buffer.from('hello'), []);
    } catch {
      return false;
    }
  };
  for (const path of files) rmSync(path);
  for (const path of files) await waitFor(() => sends(path), { what: path });
  await waitFor(() => received === 1, { what: 'a hello to the new socket' });
  t.equal(lstatSync(files[0]!).mode & 0o777, 0o640);
  meeting.close();
  t.same(readdirSync(directory), ['sender']);
});

function at(path: string): Uint8Array {
  return encodeAddress({ kind: AddressKind.Unix, ip: '', port: 0, path });
}
