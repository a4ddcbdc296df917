// The first bytes of a connection can be peeked at: all that was not taken arrives as usual.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import t from 'tap';
import { Event, Op } from '../../src/io/shim.js';
import { endsWithTest } from '../e2e/harness/environment.js';
import { loopback, pattern, Rig, socketPath, unix, until } from './harness/harness.js';

const ECONNRESET = 104;

/** Returns a rig that peeks at the first bytes of every connection, at most `most` of them. */
function lookingRig(most = 1000): Rig {
  return new Rig({
    onEvent: ({ kind, id }, rig) => {
      if (kind === Event.Accept) rig.submit(Op.Peek, id, most);
    },
  });
}

const shown = (rig: Rig, id: number) => rig.of(Event.Data, id).map(({ bytes }) => bytes.toString());

for (const family of ['TCP', 'Unix']) {
  t.test(
    `${family}: each time more has arrived all of it is shown; bytes that are not taken are received`,
    async (t) => {
      const rig = lookingRig();
      t.teardown(() => rig.close());
      const path = socketPath();
      const { port } = rig.listen(family === 'TCP' ? loopback : unix(path));
      const peer = family === 'TCP' ? connect(port, '127.0.0.1') : connect(path);
      t.teardown(() => peer.destroy());
      const { id } = await rig.next(Event.Accept);
      for (const [part, all] of [
        ['head', 'head'],
        ['er, ', 'header, '],
        ['body', 'header, body'],
      ] as const) {
        peer.write(part);
        await until(() => shown(rig, id).includes(all), all);
      }
      rig.seen.length = 0;
      rig.now(Op.Take, id, 8);
      await rig.next(Event.Data, id);
      peer.end(' and more');
      await rig.next(Event.End, id);
      t.equal(rig.received(id).toString(), 'body and more');
    },
  );
}

t.test('no more is shown than was requested, and a long rest is exact', async (t) => {
  const rig = lookingRig(10);
  t.teardown(() => rig.close());
  const { port } = rig.listen(loopback);
  const sent = pattern(3 << 20);
  const peer = connect(port, '127.0.0.1').end(sent);
  t.teardown(() => peer.destroy());
  const { id } = await rig.next(Event.Accept);
  await rig.next(Event.Data, id);
  t.ok(rig.of(Event.Data, id).every(({ bytes }) => bytes.equals(sent.subarray(0, 10))));
  rig.seen.length = 0;
  rig.now(Op.Take, id, 7);
  await rig.next(Event.End, id);
  t.ok(rig.received(id).equals(sent.subarray(7)));
});

t.test('bytes beyond the requested number are not shown repeatedly', async (t) => {
  const rig = lookingRig(10);
  t.teardown(() => rig.close());
  const { port } = rig.listen(loopback);
  const peer = connect(port, '127.0.0.1', () => peer.write('twenty bytes at once'));
  t.teardown(() => peer.destroy());
  const { id } = await rig.next(Event.Accept);
  await rig.next(Event.Data, id);
  for (let count = 2; count <= 6; count++) {
    const other = connect(port, '127.0.0.1', () => other.write('x'));
    t.teardown(() => other.destroy());
    await rig.next(Event.Data, (await rig.next(Event.Accept, undefined, count)).id);
  }
  // It may have arrived both before and after the peek.
  t.ok(shown(rig, id).length <= 2, `${shown(rig, id).length} times`);
  t.ok(shown(rig, id).every((text) => text === 'twenty byt'));
});

t.test('many bytes are taken like few', async (t) => {
  const rig = lookingRig(70_000);
  t.teardown(() => rig.close());
  const { port } = rig.listen(loopback);
  const sent = pattern(40_000);
  const peer = connect(port, '127.0.0.1').end(sent);
  t.teardown(() => peer.destroy());
  const { id } = await rig.next(Event.Accept);
  await until(() => rig.of(Event.Data, id).some(({ bytes }) => bytes.length === sent.length), 'all bytes');
  rig.seen.length = 0;
  rig.now(Op.Take, id, 30_001);
  await rig.next(Event.End, id);
  t.ok(rig.received(id).equals(sent.subarray(30_001)));
});

t.test('a connection that finds the window of a batch nearly full is shown the rest in the next one', async (t) => {
  // Both are held until both have sent, so that one batch must show them.
  const rig = new Rig({ receiveBytes: 50_000 });
  t.teardown(() => rig.close());
  const { port } = rig.listen(loopback);
  const sent = pattern(30_000);
  const ids: number[] = [];
  for (let count = 1; count <= 2; count++) {
    const peer = connect(port, '127.0.0.1');
    t.teardown(() => peer.destroy());
    const { id } = await rig.next(Event.Accept, undefined, count);
    rig.submit(Op.Pause, id);
    rig.now(Op.Peek, id, 40_000);
    await new Promise<void>((resolve) => peer.write(sent, () => resolve()));
    ids.push(id);
  }
  for (const id of ids) rig.submit(Op.Resume, id);
  rig.flush();
  for (const id of ids) await until(() => rig.of(Event.Data, id).some(({ bytes }) => bytes.equals(sent)), 'all bytes');
});

t.test('a connection that is accepted late, when all bytes have arrived, is peeked at first', async (t) => {
  const rig = lookingRig();
  t.teardown(() => rig.close());
  const { id: listener, port } = rig.listen(loopback);
  rig.transport.setAccepting(listener, false);
  const peers = Array.from({ length: 3 }, () => connect(port, '127.0.0.1'));
  for (const peer of peers) {
    t.teardown(() => peer.destroy());
    await new Promise<void>((resolve) => peer.write('header, body', () => resolve()));
  }
  rig.transport.removeListener(listener, true);
  for (let count = 1; count <= peers.length; count++) {
    const { id, batch } = await rig.next(Event.Accept, undefined, count);
    t.ok((await rig.next(Event.Data, id)).batch > batch, 'not before the decision');
    rig.now(Op.Take, id, 8);
    await until(() => shown(rig, id).at(-1) === 'body', 'the bytes that were not taken');
  }
});

t.test('a connection paused after Take is received when it resumes', async (t) => {
  const rig = lookingRig();
  t.teardown(() => rig.close());
  const { port } = rig.listen(loopback);
  const peer = connect(port, '127.0.0.1').end('header, body');
  t.teardown(() => peer.destroy());
  const { id } = await rig.next(Event.Accept);
  await until(() => shown(rig, id).includes('header, body'), 'the bytes');
  rig.seen.length = 0;
  rig.submit(Op.Take, id, 8);
  rig.now(Op.Pause, id);
  const other = connect(port, '127.0.0.1').end('x');
  t.teardown(() => other.destroy());
  await rig.next(Event.Data, (await rig.next(Event.Accept)).id);
  t.same(rig.of(Event.Data, id), []);
  rig.now(Op.Resume, id);
  await rig.next(Event.End, id);
  t.equal(rig.received(id).toString(), 'body');
});

t.test('a peer that closes in the middle of its first bytes is reported, after its bytes', async (t) => {
  const rig = lookingRig();
  t.teardown(() => rig.close());
  const { port } = rig.listen(loopback);
  const peer = connect(port, '127.0.0.1').end('head');
  t.teardown(() => peer.destroy());
  const { id } = await rig.next(Event.Accept);
  await rig.next(Event.End, id);
  t.equal(shown(rig, id).at(-1), 'head');
  // The bytes can still be received.
  rig.now(Op.Take, id, 0);
  await rig.next(Event.End, id, 2);
  t.equal(shown(rig, id).at(-1), 'head');
});

t.test('a peer that closes, or resets, without a byte is reported', async (t) => {
  const rig = lookingRig();
  t.teardown(() => rig.close());
  const { port } = rig.listen(loopback);
  connect(port, '127.0.0.1').end().resume();
  const ended = await rig.next(Event.Accept);
  await rig.next(Event.End, ended.id);
  const peer = connect(port, '127.0.0.1', () => peer.resetAndDestroy());
  const broken = await rig.next(Event.Accept, undefined, 2);
  t.equal((await rig.next(Event.Reset, broken.id)).value, ECONNRESET);
  rig.now(Op.Take, broken.id, 100);
});

t.test('a peer that resets in the middle of its first bytes has not ended', async (t) => {
  const rig = lookingRig();
  t.teardown(() => rig.close());
  const { port } = rig.listen(loopback);
  const peer = connect(port, '127.0.0.1', () => peer.write('head'));
  const { id } = await rig.next(Event.Accept);
  await rig.next(Event.Data, id);
  peer.resetAndDestroy();
  t.equal((await rig.next(Event.Reset, id)).value, ECONNRESET);
  t.same(rig.of(Event.End, id), []);
});

/** Node sends no urgent data; Python, which builds the addon, does. It stays connected until its input ends. */
const URGENT = `
import socket, sys
peer = socket.create_connection(('127.0.0.1', int(sys.argv[1])))
peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
peer.send(b'head')
peer.send(b'!', socket.MSG_OOB)
peer.send(b'body')
print('sent', flush=True)
sys.stdin.read()
`;

t.test('urgent data in the middle of the first bytes is not an end', async (t) => {
  const rig = lookingRig();
  t.teardown(() => rig.close());
  const { port } = rig.listen(loopback);
  const command = ['-c', URGENT, String(port)];
  const peer = endsWithTest(t, spawn('python3', command, { stdio: ['pipe', 'pipe', 'inherit'] }));
  const { id } = await rig.next(Event.Accept);
  await once(peer.stdout, 'data');
  await until(() => shown(rig, id).includes('head'), 'the bytes before the urgent one');
  // Later connections are served: everything due was reported.
  const other = connect(port, '127.0.0.1').end('x');
  t.teardown(() => other.destroy());
  await rig.next(Event.End, (await rig.next(Event.Accept, undefined, 2)).id);
  t.same(rig.of(Event.End, id), []);
  rig.seen.length = 0;
  rig.now(Op.Take, id, 2);
  await until(() => rig.received(id).toString() === 'adbody', 'the bytes that were not taken');
  peer.stdin.end();
  await rig.next(Event.End, id);
  await once(peer, 'exit');
});

t.test('an end is reported once, whatever happens in the other direction', async (t) => {
  const rig = lookingRig();
  t.teardown(() => rig.close());
  const { client, server } = await rig.pair(rig.listen(loopback).address);
  rig.sendNow(client, 'head');
  rig.now(Op.Shutdown, client);
  await rig.next(Event.End, server);
  rig.now(Op.Shutdown, server);
  await rig.next(Event.End, client);
  const other = await rig.pair(rig.listen(loopback).address);
  rig.sendNow(other.client, 'x');
  await rig.next(Event.Data, other.server);
  t.equal(rig.of(Event.End, server).length, 1);
});

t.test('a reset is reported even when a send detects it first', async (t) => {
  const rig = lookingRig();
  t.teardown(() => rig.close());
  const { client, server } = await rig.pair(rig.listen(loopback).address);
  rig.send(client, 'head');
  rig.submit(Op.Reset, client);
  rig.send(server, 'too late');
  rig.flush();
  await rig.next(Event.Reset, server);
  t.same(rig.of(Event.End, server), []);
});
