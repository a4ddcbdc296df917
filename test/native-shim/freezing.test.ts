// A connection moves from one transport to another, or stays, unnoticed by its peer.

import { type ChildProcess, fork } from 'node:child_process';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { Event, Op } from '../../src/io/shim.js';
import { endsWithTest } from '../e2e/harness/environment.js';
import { loopback, pattern, Rig, shim, until } from './harness/harness.js';

const ECONNRESET = 104;
const EPIPE = 32;
const LIMITS = { highWatermark: 64 * 1024, hardLimit: 0, receiveLimit: 1 << 20 };
const NOTHING = { pending: new Uint8Array(0), ended: false, finAsked: false, paused: false, frozen: false, ...LIMITS };

/** Returns a client of Node, and the connection that a rig has accepted from it. */
async function accepted(rig: Rig, halfOpen = false) {
  const { port } = rig.listen(loopback);
  const before = rig.of(Event.Accept).length;
  const peer = connect({ port, host: '127.0.0.1', allowHalfOpen: halfOpen });
  const chunks: Buffer[] = [];
  const got = { length: 0, bytes: () => Buffer.concat(chunks), ended: false, error: '' };
  peer.on('data', (chunk: Buffer) => {
    chunks.push(chunk);
    got.length += chunk.length;
  });
  peer.on('end', () => (got.ended = true));
  peer.on('error', (error) => (got.error = error.message));
  const { id } = await rig.next(Event.Accept, undefined, before + 1);
  return { peer, id, got };
}

/** Moves a connection from one rig to another. */
function move(from: Rig, id: number, to: Rig, paused = false): number {
  from.flush();
  if (!from.transport.freeze(id)) throw new Error('it cannot be frozen');
  const { fd, ...progress } = from.transport.copyFrozen(id);
  const moved = to.transport.adopt(fd, { ...progress, ...LIMITS, paused, frozen: false });
  if (!from.transport.releaseFrozen(id)) throw new Error('it was not frozen');
  return moved;
}

t.test('a frozen connection delivers nothing; after thaw() it delivers everything', async (t) => {
  const rig = new Rig();
  const { peer, id, got } = await accepted(rig);
  t.equal(rig.transport.freeze(id), true);
  t.equal(rig.transport.freeze(id), false, 'once');
  const seen = rig.seen.length;
  peer.write('first');
  peer.end('second');
  const { client, server } = await rig.pair(rig.listen(loopback).address);
  rig.sendNow(client, 'others go on');
  await rig.next(Event.Data, server);
  t.same(
    rig.seen.slice(seen).filter((event) => event.id === id),
    [],
  );
  rig.sendNow(id, 'queued meanwhile');
  t.equal(rig.transport.pendingBytes(id), 16);
  t.equal(rig.transport.thaw(id), true);
  t.equal(rig.transport.thaw(id), false, 'once');
  await rig.next(Event.End, id);
  t.equal(rig.received(id).toString(), 'firstsecond');
  await until(() => got.length === 16, 'what was queued');
  rig.now(Op.Close, id, 1000);
  await until(() => got.ended, 'the end');
  rig.close();
});

t.test('after thaw() a paused connection stays paused, and an end is reported once', async (t) => {
  const rig = new Rig();
  const { peer, id } = await accepted(rig, true);
  peer.end('early');
  await rig.next(Event.End, id);
  rig.now(Op.Pause, id);
  rig.transport.freeze(id);
  rig.transport.thaw(id);
  const other = await accepted(rig);
  rig.now(Op.Pause, other.id);
  rig.transport.freeze(other.id);
  other.peer.write('late');
  rig.transport.thaw(other.id);
  const { client, server } = await rig.pair(rig.listen(loopback).address);
  rig.sendNow(client, 'x');
  await rig.next(Event.Data, server);
  t.equal(rig.of(Event.Data, other.id).length, 0);
  rig.now(Op.Resume, other.id);
  await rig.next(Event.Data, other.id);
  t.equal(rig.of(Event.End, id).length, 1);
  peer.destroy();
  other.peer.destroy();
  rig.close();
});

t.test('the other transport continues with pending bytes in order, and reports pressure', async (t) => {
  const here = new Rig({ scratchBytes: 16 << 20 });
  const there = new Rig();
  const { peer, id, got } = await accepted(here);
  const sent = pattern(12 << 20);
  peer.pause();
  here.sendNow(id, sent);
  const pending = here.transport.pendingBytes(id);
  t.ok(pending > LIMITS.highWatermark, 'the kernel took only a part');
  const moved = move(here, id, there);
  t.equal(there.transport.pendingBytes(moved), pending);
  t.same(here.transport.counts().connections, 0);
  there.sendNow(moved, 'and more');
  peer.resume();
  await there.next(Event.Drained, moved);
  t.equal(there.of(Event.Blocked, moved).length, 0, 'not reported again');
  peer.write('answer');
  await there.next(Event.Data, moved);
  there.now(Op.Close, moved, 1000);
  await until(() => got.ended, 'the end');
  t.ok(got.bytes().equals(Buffer.concat([sent, Buffer.from('and more')])));
  here.close();
  there.close();
});

t.test('pressure that arose while frozen is reported after thaw()', async (t) => {
  const high = 12 << 20;
  const rig = new Rig({ highWatermark: high, scratchBytes: 12 << 20 });
  t.teardown(() => rig.close());
  const { peer, id } = await accepted(rig);
  t.teardown(() => peer.destroy());
  peer.pause();
  // The kernel's buffer is full: it reports nothing about the connection.
  rig.sendNow(id, pattern(12 << 20));
  rig.transport.freeze(id);
  rig.sendNow(id, pattern(12 << 20));
  t.ok(rig.transport.pendingBytes(id) > high);
  const { client, server } = await rig.pair(rig.listen(loopback).address);
  rig.sendNow(client, 'others go on');
  await rig.next(Event.Data, server);
  rig.transport.thaw(id);
  t.ok((await rig.next(Event.Blocked, id)).offset > high);
});

t.test('half-closed connections stay half-closed, in either direction', async (t) => {
  const here = new Rig({ scratchBytes: 16 << 20 });
  const there = new Rig();
  // The peer has half-closed: it still gets a response.
  const one = await accepted(here, true);
  one.peer.end('question');
  await here.next(Event.End, one.id);
  const first = move(here, one.id, there);
  there.sendNow(first, 'answer');
  there.now(Op.Close, first, 1000);
  await until(() => one.got.ended, 'the end of the answer');
  t.equal(one.got.bytes().toString(), 'answer');
  t.equal(there.of(Event.End, first).length, 0, 'its end had been delivered');
  // This side has half-closed after pending bytes: the FIN follows them.
  const other = await accepted(here, true);
  other.peer.pause();
  const sent = pattern(12 << 20);
  here.send(other.id, sent);
  here.now(Op.Shutdown, other.id);
  t.ok(here.transport.pendingBytes(other.id) > 0);
  const second = move(here, other.id, there);
  other.peer.resume();
  await until(() => other.got.ended, 'the end');
  t.ok(other.got.bytes().equals(sent));
  other.peer.write('still heard');
  await there.next(Event.Data, second);
  there.sendNow(second, 'too late');
  t.equal((await there.next(Event.Reset, second)).value, 32);
  other.peer.destroy();
  here.close();
  there.close();
});

t.test('a FIN requested while frozen is sent by the transport that continues', async (t) => {
  const here = new Rig();
  const there = new Rig();
  t.teardown(() => {
    here.close();
    there.close();
  });
  for (const continues of ['here', 'there', 'there, frozen at first']) {
    const { peer, id, got } = await accepted(here, true);
    t.teardown(() => peer.destroy());
    here.transport.freeze(id);
    here.now(Op.Shutdown, id);
    peer.write('still there?');
    const { client, server } = await here.pair(here.listen(loopback).address);
    here.now(Op.Shutdown, client);
    await here.next(Event.End, server);
    t.notOk(got.ended, continues);
    if (continues === 'here') here.transport.thaw(id);
    else {
      const { fd, ...progress } = here.transport.copyFrozen(id);
      const frozen = continues !== 'there';
      const moved = there.transport.adopt(fd, { ...progress, ...LIMITS, paused: false, frozen });
      here.transport.releaseFrozen(id);
      if (frozen) there.transport.thaw(moved);
      await there.next(Event.Data, moved);
    }
    await until(() => got.ended, 'the end');
  }
});

t.test('operations on a frozen connection do not affect the holder of its copy', async (t) => {
  for (const end of [Op.Close, Op.Reset, undefined]) {
    const here = new Rig({ scratchBytes: 16 << 20 });
    const there = new Rig();
    const { peer, id, got } = await accepted(here);
    peer.pause();
    const sent = pattern(12 << 20);
    here.sendNow(id, sent);
    here.transport.freeze(id);
    const { fd, ...progress } = here.transport.copyFrozen(id);
    if (end !== undefined) here.now(end, id, 0, 0);
    here.close();
    const moved = there.transport.adopt(fd, { ...progress, ...LIMITS, paused: false, frozen: false });
    peer.resume();
    await until(() => got.length === sent.length || got.error !== '', 'all bytes');
    t.ok(got.bytes().equals(sent), got.error);
    t.equal(got.ended, false);
    there.now(Op.Close, moved, 1000);
    there.close();
    peer.destroy();
  }
});

t.test('a connection that was adopted frozen is not touched before thaw()', async (t) => {
  const here = new Rig({ scratchBytes: 16 << 20 });
  const there = new Rig();
  const { peer, id, got } = await accepted(here);
  peer.pause();
  const sent = pattern(12 << 20);
  here.send(id, sent);
  here.now(Op.Shutdown, id);
  here.transport.freeze(id);
  const { fd, ...progress } = here.transport.copyFrozen(id);
  const prepared = there.transport.adopt(fd, { ...progress, ...LIMITS, paused: false, frozen: true });
  const pending = there.transport.pendingBytes(prepared);
  peer.write('not for it');
  peer.resume();
  // It is released: the first holder continues.
  there.transport.releaseFrozen(prepared);
  here.transport.thaw(id);
  t.equal(here.transport.pendingBytes(id) <= pending, true);
  await here.next(Event.Data, id);
  await until(() => got.ended, 'the end');
  t.ok(got.bytes().equals(sent));
  t.equal(there.seen.length, 0);
  peer.destroy();
  here.close();
  there.close();
});

t.test('connections that cannot be moved are refused', async (t) => {
  const rig = new Rig();
  const { address, id: listener } = rig.listen(loopback);
  const client = rig.connect(address);
  t.equal(rig.transport.freeze(client), false, 'it is not connected yet');
  await rig.next(Event.Connected, client);
  t.equal(rig.transport.freeze(listener), false, 'a listener');
  t.equal(rig.transport.freeze(12345), false, 'a stale id');
  t.throws(() => rig.transport.copyFrozen(client), { code: 'ENOENT' }, 'it is not frozen');
  t.equal(rig.transport.releaseFrozen(client), false);
  const { id } = await rig.next(Event.Accept);
  rig.now(Op.Reset, client);
  await rig.next(Event.Reset, id);
  t.equal(rig.transport.freeze(id), false, 'it is broken');
  t.throws(() => rig.transport.adopt(99_999, { ...NOTHING }), { code: 'EBADF' });
  t.throws(() => rig.transport.adopt(0, { ...NOTHING, pending: 'x' as never }), TypeError);
  rig.close();
});

t.test('a connection that breaks while frozen is reported when it continues, here or there', async (t) => {
  const here = new Rig();
  const there = new Rig();
  for (const stays of [true, false]) {
    const { client, server } = await here.pair(here.listen(loopback).address);
    here.transport.freeze(server);
    here.now(Op.Reset, client);
    if (stays) {
      here.transport.thaw(server);
      t.equal((await here.next(Event.Reset, server)).value, ECONNRESET);
    } else {
      const { fd, ...progress } = here.transport.copyFrozen(server);
      here.transport.releaseFrozen(server);
      const moved = there.transport.adopt(fd, { ...progress, ...LIMITS, paused: false, frozen: false });
      t.equal((await there.next(Event.Reset, moved)).value, ECONNRESET);
    }
  }
  here.close();
  there.close();
});

t.test('a stream in both directions moves back and forth between transports, byte for byte', async (t) => {
  const rigs = [new Rig({ scratchBytes: 8 << 20 }), new Rig({ scratchBytes: 8 << 20 })] as const;
  let at = 0;
  const { peer, id, got } = await accepted(rigs[0]);
  const down = pattern(16 << 20, 3);
  const up = pattern(16 << 20, 5);
  peer.write(up);
  const received: Buffer[] = [];
  let receivedBytes = 0;
  let sentBytes = 0;
  let current = id;
  for (const rig of rigs)
    rig.onEvent = (event) => {
      if (event.kind !== Event.Data) return;
      received.push(event.bytes);
      receivedBytes += event.bytes.length;
    };
  let moves = 0;
  while (receivedBytes < up.length || got.length < down.length) {
    const rig = rigs[at]!;
    if (sentBytes < down.length && rig.transport.pendingBytes(current) < 1 << 20) {
      rig.sendNow(current, down.subarray(sentBytes, sentBytes + 300_000));
      sentBytes = Math.min(down.length, sentBytes + 300_000);
    }
    await new Promise((resolve) => setImmediate(resolve));
    const next = rigs[1 - at]!;
    current = move(rig, current, next);
    at = 1 - at;
    moves++;
  }
  t.ok(moves > 20, `${moves} moves`);
  t.ok(Buffer.concat(received).equals(up));
  t.ok(got.bytes().equals(down));
  peer.destroy();
  for (const rig of rigs) rig.close();
});

t.test('another process continues, even when this one is killed', async (t) => {
  const holder = fileURLToPath(new URL('./harness/frozen-holder.js', import.meta.url));
  const parent = endsWithTest(t, fork(holder, { stdio: 'inherit' }));
  const sockets: Socket[] = [];
  const server = createServer((socket) => sockets.push(socket));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  parent.send({ port: (server.address() as AddressInfo).port });
  await until(() => sockets.length === 1, 'the connection');
  const peer = sockets[0]!;
  let text = '';
  let ended = false;
  peer.on('data', (chunk) => (text += chunk));
  peer.on('end', () => (ended = true));
  peer.on('error', () => (ended = true));
  // The holder gives a copy to another process, and is killed.
  const heir = (await message(parent)) as { pid: number };
  parent.kill('SIGKILL');
  await new Promise((resolve) => parent.once('exit', resolve));
  peer.write('to the heir');
  await until(() => text === 'heard: to the heir', `an answer of process ${heir.pid}`);
  t.equal(ended, false);
  peer.end();
  await until(() => ended, 'the end');
  server.close();
});

function message(child: ChildProcess): Promise<unknown> {
  return new Promise((resolve) => child.once('message', resolve));
}

t.test('descriptors are released', async (t) => {
  const rig = new Rig();
  const { client, server } = await rig.pair(rig.listen(loopback).address);
  rig.transport.freeze(server);
  const before = shim.duplicate(0);
  shim.closeDescriptor(before);
  const { fd } = rig.transport.copyFrozen(server);
  t.equal(fd, before, 'the copy is the lowest free number');
  shim.closeDescriptor(fd);
  rig.transport.releaseFrozen(server);
  await rig.next(Event.End, client);
  t.equal(rig.transport.counts().connections, 1);
  rig.close();
});

t.test('a connection lost while frozen cannot be continued elsewhere, and looks incomplete after thaw()', async (t) => {
  const rig = new Rig();
  const { id, got } = await accepted(rig);
  rig.transport.freeze(id);
  rig.send(id, 'never sent');
  rig.submit(Op.Shutdown, id);
  rig.send(id, 'behind the end');
  rig.flush();
  t.throws(() => rig.transport.copyFrozen(id), { code: 'ENOENT' });
  rig.transport.thaw(id);
  t.equal((await rig.next(Event.Reset, id)).value, EPIPE);
  rig.now(Op.Close, id, 1000, 1000);
  await until(() => got.ended || got.error !== '', 'the peer to see the close');
  t.equal(got.error, 'read ECONNRESET');
  rig.close();
});
