// Orderly close: the last bytes arrive within the time limit, and the id is free at once.

import { connect } from 'node:net';
import t from 'tap';
import { Event, Op } from '../../src/io/shim.js';
import { loopback, pattern, Rig, until } from './harness/harness.js';

const ECONNRESET = 104;

t.test('bytes pending at Close still arrive, followed by the FIN', async (t) => {
  const rig = new Rig({ scratchBytes: 8 << 20 });
  const { port } = rig.listen(loopback);
  const peer = connect(port, '127.0.0.1');
  peer.pause();
  const { id } = await rig.next(Event.Accept);
  const sent = pattern(8 << 20);
  rig.send(id, sent);
  rig.submit(Op.Close, id, 60_000, 0);
  rig.flush();
  t.same(rig.transport.counts(), { connections: 0, listeners: 1, closing: 1 });
  t.equal(rig.transport.localAddress(id).length, 0, 'the id is dead');
  const chunks: Buffer[] = [];
  let outcome = '';
  peer.on('data', (chunk) => chunks.push(chunk));
  peer.on('end', () => (outcome ||= 'end'));
  peer.on('error', (error) => (outcome ||= error.message));
  peer.resume();
  await until(() => outcome !== '', 'the end');
  t.equal(outcome, 'end');
  t.ok(Buffer.concat(chunks).equals(sent));
  t.equal(rig.transport.counts().closing, 0);
  rig.close();
});

t.test('a subscriber is notified once when a connection is closed, in whatever way', async (t) => {
  const rig = new Rig({ scratchBytes: 8 << 20 });
  const { address } = rig.listen(loopback);
  const reported = () => rig.of(Event.Gone).map(({ offset }) => offset);
  const pairs = [await rig.pair(address), await rig.pair(address), await rig.pair(address), await rig.pair(address)];
  const [read, unread, empty, reset] = pairs as [
    (typeof pairs)[0],
    (typeof pairs)[0],
    (typeof pairs)[0],
    (typeof pairs)[0],
  ];
  for (const { client } of [read, unread]) rig.submit(Op.Pause, client);
  for (const { server } of [read, unread]) rig.sendNow(server, pattern(6 << 20));
  const close = (id: number, token: number, op: Op, flushMs = 0) => {
    rig.submit(Op.NotifyGone, id, token);
    rig.submit(op, id, flushMs);
  };
  close(read.server, 1, Op.Close, 60_000);
  close(unread.server, 2, Op.Close, 300);
  close(empty.server, 3, Op.Close, 1000);
  close(reset.server, 4, Op.Reset);
  rig.flush();
  await rig.next(Event.Gone, undefined, 2);
  t.same(reported().sort(), [3, 4], 'at once with nothing pending');
  await rig.next(Event.Gone, undefined, 3);
  t.same(reported().slice(2), [2], 'an unread one when its time is over');
  rig.now(Op.Resume, read.client);
  await rig.next(Event.Gone, undefined, 4);
  t.same(reported().slice(3), [1], 'a read one at the end');
  await rig.next(Event.End, read.client);
  t.equal(rig.of(Event.Gone).length, 4);
  rig.close();
});

t.test('a subscriber to late closes is notified of those only, with their waiting time', async (t) => {
  const rig = new Rig({ scratchBytes: 8 << 20 });
  const { address } = rig.listen(loopback);
  const [unread, silent, prompt] = [await rig.pair(address), await rig.pair(address), await rig.pair(address)];
  rig.submit(Op.Pause, unread.client);
  rig.sendNow(unread.server, pattern(6 << 20));
  rig.submit(Op.NotifyLate, unread.server, 7);
  rig.submit(Op.Close, unread.server, 100, 60_000);
  rig.submit(Op.NotifyLate, silent.server, 8);
  rig.submit(Op.Close, silent.server, 60_000, 100);
  rig.submit(Op.NotifyLate, prompt.server, 8);
  rig.submit(Op.Close, prompt.server, 60_000, 60_000);
  rig.flush();
  await rig.next(Event.End, prompt.client);
  rig.now(Op.Close, prompt.client);
  await rig.next(Event.Late, undefined, 2);
  await until(() => rig.transport.counts().closing === 0, 'the last end');
  const reported = rig.of(Event.Late).map(({ offset, value }) => [offset, value]);
  t.same(reported.sort(), [
    [7, 0],
    [8, 1],
  ]);
  t.equal(rig.of(Event.Gone).length, 0);
  rig.close();
});

t.test('a close is reported even when nothing else happens', async (t) => {
  const rig = new Rig();
  t.teardown(() => rig.close());
  const { port } = rig.listen(loopback);
  const peer = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  t.teardown(() => peer.destroy());
  const { id } = await rig.next(Event.Accept);
  rig.submit(Op.NotifyGone, id, 5);
  rig.now(Op.Close, id);
  t.match(await rig.next(Event.Gone), { offset: 5 });
});

t.test('a late close is reported even when nothing else happens', async (t) => {
  const rig = new Rig();
  t.teardown(() => rig.close());
  const { port } = rig.listen(loopback);
  const peer = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  t.teardown(() => peer.destroy());
  const { id } = await rig.next(Event.Accept);
  rig.submit(Op.NotifyLate, id, 5);
  rig.now(Op.Close, id, 60_000, 100);
  t.match(await rig.next(Event.Late), { offset: 5, value: 1 });
});

t.test('a cancelled connect does not wait', async (t) => {
  const rig = new Rig();
  t.teardown(() => rig.close());
  const id = rig.connect(rig.listen(loopback).address);
  rig.now(Op.Close, id, 60_000, 60_000);
  t.same(rig.transport.counts(), { connections: 0, listeners: 1, closing: 0 });
});

t.test('a peer that does not read is reset when its time is over, so that it sees the loss', async (t) => {
  const rig = new Rig({ scratchBytes: 8 << 20 });
  const { client, server } = await rig.pair(rig.listen(loopback).address);
  rig.submit(Op.Pause, client);
  rig.send(server, pattern(8 << 20));
  rig.submit(Op.Close, server, 100, 0);
  rig.flush();
  t.equal(rig.transport.counts().closing, 1);
  t.equal((await rig.next(Event.Reset, client)).value, ECONNRESET);
  t.equal(rig.transport.counts().closing, 0);
  rig.close();
});

t.test('a peer that reads slowly gets the time it needs', async (t) => {
  const rig = new Rig({ scratchBytes: 24 << 20 });
  const { port } = rig.listen(loopback);
  const peer = connect(port, '127.0.0.1');
  peer.pause();
  const { id } = await rig.next(Event.Accept);
  rig.send(id, pattern(24 << 20));
  rig.submit(Op.Close, id, 1500, 0);
  rig.flush();
  let read = 0;
  let outcome = '';
  const reader = setInterval(() => peer.resume(), 150);
  peer.on('data', (chunk) => {
    read += chunk.length;
    if (read % (1 << 20) < chunk.length) peer.pause();
  });
  peer.on('end', () => (outcome ||= 'end'));
  peer.on('error', (error) => (outcome ||= error.message));
  await until(() => outcome !== '', 'the end');
  clearInterval(reader);
  t.equal(outcome, 'end');
  t.equal(read, 24 << 20);
  rig.close();
});

t.test('lingering: a response sent while the peer still sends is not destroyed by an RST', async (t) => {
  const rig = new Rig();
  const { port } = rig.listen(loopback);
  for (let run = 0; run < 20; run++) {
    const peer = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    const chunks: Buffer[] = [];
    let outcome = '';
    peer.on('data', (chunk) => chunks.push(chunk));
    peer.on('end', () => (outcome ||= 'end'));
    peer.on('error', (error: NodeJS.ErrnoException) => (outcome ||= error.code!));
    peer.write(pattern(1 << 20));
    const { id } = await rig.next(Event.Accept, undefined, run + 1);
    await rig.next(Event.Data, id);
    rig.send(id, 'too large');
    rig.submit(Op.Close, id, 1000, 30_000);
    rig.flush();
    await until(() => outcome !== '', 'the outcome');
    if (outcome !== 'end' || Buffer.concat(chunks).toString() !== 'too large') t.fail(`run ${run}: ${outcome}`);
    peer.end(pattern(1 << 20));
  }
  await until(() => rig.transport.counts().closing === 0, 'the peers to end');
  t.equal(rig.transport.counts().connections, 0);
  rig.close();
});

t.test('lingering ends when its time is over', async (t) => {
  const rig = new Rig();
  const { port } = rig.listen(loopback);
  const peer = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  peer.on('error', () => undefined);
  const { id } = await rig.next(Event.Accept);
  rig.now(Op.Close, id, 1000, 50);
  t.equal(rig.transport.counts().closing, 1);
  await until(() => rig.transport.counts().closing === 0, 'the time to be over');
  t.notOk(peer.destroyed && !peer.readableEnded, 'the peer had not ended');
  peer.destroy();
  rig.close();
});

for (const lingerMs of [0, 60_000]) {
  t.test(`two ends that close with much pending do not wait for each other, lingering ${lingerMs} ms`, async (t) => {
    const rig = new Rig({ scratchBytes: 8 << 20 });
    const { client, server } = await rig.pair(rig.listen(loopback).address);
    const bytes = pattern(8 << 20);
    for (const id of [client, server]) rig.submit(Op.Pause, id);
    for (const id of [client, server]) rig.sendNow(id, bytes);
    for (const id of [client, server]) rig.submit(Op.Close, id, 60_000, lingerMs);
    rig.flush();
    t.equal(rig.transport.counts().closing, 2);
    await until(() => rig.transport.counts().closing === 0, 'both to be closed', 20_000);
    rig.close();
  });
}

t.test('a FIN that arrives while bytes are pending does not keep a lingering connection', async (t) => {
  const rig = new Rig({ scratchBytes: 8 << 20 });
  const { port } = rig.listen(loopback);
  const peer = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  peer.pause();
  const { id } = await rig.next(Event.Accept);
  const sent = pattern(8 << 20);
  rig.send(id, sent);
  rig.submit(Op.Close, id, 60_000, 60_000);
  rig.flush();
  peer.end('unread');
  const chunks: Buffer[] = [];
  peer.on('data', (chunk) => chunks.push(chunk));
  peer.resume();
  await until(() => peer.readableEnded || peer.errored !== null, 'the end', 20_000);
  t.ok(Buffer.concat(chunks).equals(sent));
  await until(() => rig.transport.counts().closing === 0, 'nothing to be left', 20_000);
  rig.close();
});

t.test('without time for pending bytes Close is a reset', async (t) => {
  const rig = new Rig({ scratchBytes: 8 << 20 });
  const { client, server } = await rig.pair(rig.listen(loopback).address);
  rig.submit(Op.Pause, client);
  rig.send(server, pattern(8 << 20));
  rig.submit(Op.Close, server, 0, 0);
  rig.flush();
  t.equal(rig.transport.counts().closing, 0);
  t.equal((await rig.next(Event.Reset, client)).value, ECONNRESET);
  rig.close();
});

t.test('closing a transport resets connections with pending bytes, so that nothing looks complete', async (t) => {
  const rig = new Rig({ scratchBytes: 8 << 20 });
  const peers = new Rig();
  t.teardown(() => peers.close());
  const { address } = rig.listen(loopback);
  for (const isClosing of [false, true]) {
    const peer = peers.connect(address);
    await peers.next(Event.Connected, peer);
    peers.now(Op.Pause, peer);
    const { id } = await rig.next(Event.Accept, undefined, isClosing ? 2 : 1);
    rig.sendNow(id, pattern(8 << 20));
    t.ok(rig.transport.pendingBytes(id) > 0);
    if (isClosing) rig.now(Op.Close, id, 60_000, 0);
  }
  rig.close();
  for (const { id } of peers.of(Event.Connected)) {
    peers.now(Op.Resume, id);
    await until(() => peers.of(Event.End, id).length + peers.of(Event.Reset, id).length > 0, 'the end');
    t.equal(peers.of(Event.Reset, id)[0]?.value, ECONNRESET);
  }
});

t.test('Close while connecting sends the queued bytes', async (t) => {
  const rig = new Rig();
  const { address } = rig.listen(loopback);
  const client = rig.connect(address);
  rig.send(client, 'hit and run');
  rig.submit(Op.Close, client, 10_000, 0);
  rig.flush();
  const { id } = await rig.next(Event.Accept);
  await rig.next(Event.End, id);
  t.equal(rig.received(id).toString(), 'hit and run');
  t.equal(rig.of(Event.Connected).length, 0);
  rig.close();
});
