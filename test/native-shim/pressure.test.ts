// A slow reader costs bounded memory: pressure is reported, and the connection is reset at the hard limit.

import { connect } from 'node:net';
import t from 'tap';
import { Control, Event, Op } from '../../src/io/shim.js';
import { loopback, pattern, Rig, until } from './harness/harness.js';

const ENOBUFS = 105;
const ECONNRESET = 104;

t.test('a sender that obeys Blocked and Drained keeps pending bytes within the watermark and one send', async (t) => {
  const high = 256 * 1024;
  const piece = pattern(64 * 1024);
  const total = 32 << 20;
  const rig = new Rig({ highWatermark: high });
  const { port } = rig.listen(loopback);
  const peer = connect(port, '127.0.0.1');
  peer.pause();
  const { id } = await rig.next(Event.Accept);
  let sent = 0;
  let most = 0;
  let blocked = false;
  const fill = () => {
    while (!blocked && sent < total && rig.transport.pendingBytes(id) <= high) {
      rig.sendNow(id, piece);
      sent += piece.length;
      most = Math.max(most, rig.transport.pendingBytes(id));
    }
  };
  rig.onEvent = (event) => {
    if (event.kind === Event.Blocked) blocked = true;
    if (event.kind === Event.Drained) {
      blocked = false;
      fill();
    }
  };
  fill();
  await rig.next(Event.Blocked, id);
  t.ok(rig.of(Event.Blocked, id)[0]!.offset > high, 'Blocked has the number of pending bytes');
  let got = 0;
  let wrong = false;
  peer.on('data', (chunk) => {
    for (let at = 0; at < chunk.length; ) {
      const from = (got + at) % piece.length;
      const part = chunk.subarray(at, at + piece.length - from);
      if (!part.equals(piece.subarray(from, from + part.length))) wrong = true;
      at += part.length;
    }
    got += chunk.length;
  });
  peer.resume();
  await until(() => got >= total, 'all bytes', 60_000);
  t.notOk(wrong, 'byte-exact');
  t.ok(most <= high + piece.length, `at most ${high + piece.length} bytes were pending (${most})`);
  const marks = rig.seen.filter((event) => event.kind === Event.Blocked || event.kind === Event.Drained);
  t.ok(
    marks.length > 0 && marks.every((event, i) => event.kind === (i % 2 === 0 ? Event.Blocked : Event.Drained)),
    'they alternate',
  );
  peer.destroy();
  rig.close();
});

t.test('the memory of all pending bytes is reported, and is 0 when none are pending', async (t) => {
  const rig = new Rig({ scratchBytes: 16 << 20 });
  const { address } = rig.listen(loopback);
  const pairs = [await rig.pair(address), await rig.pair(address), await rig.pair(address)];
  const reported = () => rig.control[Control.Pending]! * 65_536;
  rig.flush();
  t.equal(reported(), 0);
  for (const { client, server } of pairs) {
    rig.submit(Op.Pause, client);
    rig.send(server, pattern(12 << 20));
    rig.flush();
  }
  const pending = () => pairs.reduce((sum, { server }) => sum + rig.transport.pendingBytes(server), 0);
  t.ok(pending() > 3 << 20);
  t.ok(reported() > pending() - 65_536 && reported() < 2 * pending(), `${reported()} bytes for ${pending()}`);
  rig.now(Op.Reset, pairs[0]!.server, 0, 0);
  t.ok(reported() < 2 * pending());
  // One whose peer disconnects, and one that closes in an orderly way and takes its bytes along.
  rig.now(Op.Reset, pairs[1]!.client, 0, 0);
  await rig.next(Event.Reset, pairs[1]!.server);
  t.ok(reported() > pending() - 65_536 && reported() < 2 * pending() + 65_536);
  rig.now(Op.Close, pairs[2]!.server, 60_000, 0);
  t.ok(reported() > 1 << 20, 'the closing one counts');
  rig.now(Op.Resume, pairs[2]!.client, 0, 0);
  await rig.next(Event.End, pairs[2]!.client);
  rig.flush();
  t.equal(reported(), 0);
  rig.close();
});

t.test('at the hard limit the connection is reset and its bytes are dropped', async (t) => {
  const rig = new Rig({ hardLimit: 1 << 20, scratchBytes: 16 << 20 });
  const { client, server } = await rig.pair(rig.listen(loopback).address);
  rig.submit(Op.Pause, client);
  rig.send(server, pattern(16 << 20));
  rig.flush();
  t.equal((await rig.next(Event.Reset, server)).value, ENOBUFS);
  t.equal(rig.transport.pendingBytes(server), 0);
  rig.now(Op.Close, server, 1000, 1000);
  t.equal((await rig.next(Event.Reset, client)).value, ECONNRESET, 'the peer sees that something is missing');
  rig.close();
});

t.test('closing the transport before that is reported does not make the connection look complete', async (t) => {
  const rig = new Rig({ hardLimit: 1 << 20, scratchBytes: 16 << 20 });
  const peers = new Rig();
  t.teardown(() => peers.close());
  const peer = peers.connect(rig.listen(loopback).address);
  await peers.next(Event.Connected, peer);
  peers.now(Op.Pause, peer);
  const { id } = await rig.next(Event.Accept);
  rig.sendNow(id, pattern(16 << 20));
  t.equal(rig.transport.pendingBytes(id), 0);
  rig.close();
  peers.now(Op.Resume, peer);
  await until(() => [Event.End, Event.Reset].includes(peers.seen.at(-1)!.kind), 'the end');
  t.match(peers.seen.at(-1), { kind: Event.Reset, value: ECONNRESET });
});

t.test('Watermark changes the limits of a connection', async (t) => {
  const rig = new Rig({ highWatermark: 1 << 30, scratchBytes: 16 << 20 });
  const { port } = rig.listen(loopback);
  const peer = connect(port, '127.0.0.1');
  peer.pause();
  const { id } = await rig.next(Event.Accept);
  rig.sendNow(id, pattern(16 << 20));
  t.ok(rig.transport.pendingBytes(id) > 0);
  rig.now(Op.Watermark, id, 1000, 0);
  await rig.next(Event.Blocked, id);
  rig.now(Op.Watermark, id, 1 << 30, 0);
  await rig.next(Event.Drained, id);
  peer.destroy();
  rig.close();
});

t.test('pending bytes count while connecting', async (t) => {
  const rig = new Rig();
  const { address } = rig.listen(loopback);
  const id = rig.connect(address, undefined, 1000, 2000);
  rig.sendNow(id, pattern(1500));
  t.equal(rig.transport.pendingBytes(id), 1500);
  rig.sendNow(id, pattern(600));
  t.equal((await rig.next(Event.Reset, id)).value, ENOBUFS);
  rig.close();
});
