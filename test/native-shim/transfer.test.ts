// Bytes arrive complete and in order, however the kernel splits them.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import t from 'tap';
import { Event, Op } from '../../src/io/shim.js';
import { endsWithTest } from '../e2e/harness/environment.js';
import { internet, loopback, pattern, Rig, until } from './harness/harness.js';

t.test('a large transfer to a reader that repeatedly pauses is exact', async (t) => {
  const rig = new Rig({ scratchBytes: 8 << 20 });
  const { port } = rig.listen(loopback);
  const peer = connect(port, '127.0.0.1');
  const { id } = await rig.next(Event.Accept);
  const sent = pattern(24 << 20);
  peer.pause();
  rig.sendNow(id, sent);
  t.ok(rig.transport.pendingBytes(id) > 0, 'the kernel took only a part');
  await rig.next(Event.Blocked, id);
  const chunks: Buffer[] = [];
  let got = 0;
  peer.on('data', (chunk) => {
    chunks.push(chunk);
    got += chunk.length;
    if (chunks.length % 16 === 0) {
      peer.pause();
      setImmediate(() => peer.resume());
    }
  });
  peer.resume();
  await until(() => got >= sent.length, 'all bytes', 60_000);
  t.ok(Buffer.concat(chunks).equals(sent));
  await rig.next(Event.Drained, id);
  t.equal(rig.transport.pendingBytes(id), 0);
  peer.destroy();
  rig.close();
});

t.test('a large transfer from a peer is exact, through a window smaller than a share', async (t) => {
  const rig = new Rig({ receiveBytes: 40_000, maxEvents: 16 });
  const { port } = rig.listen(loopback);
  const peer = connect(port, '127.0.0.1');
  const sent = pattern(8 << 20, 7);
  peer.end(sent);
  const { id } = await rig.next(Event.Accept);
  await rig.next(Event.End, id);
  t.ok(rig.received(id).equals(sent));
  peer.destroy();
  rig.close();
});

/** Node sends no urgent data; Python, which builds the addon, does. It stays connected until its input ends. */
const URGENT = `
import socket, sys
peer = socket.create_connection(('127.0.0.1', int(sys.argv[1])))
peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
peer.send(b'before, ')
peer.send(b'!', socket.MSG_OOB)
peer.send(b'behind')
print('sent', flush=True)
sys.stdin.read()
`;

t.test('urgent data, at which the kernel ends a read, does not delay the bytes after it', async (t) => {
  const rig = new Rig({
    onEvent: ({ kind, id }, rig) => {
      if (kind === Event.Accept) rig.submit(Op.Pause, id);
    },
  });
  const { port } = rig.listen(loopback);
  const command = ['-c', URGENT, String(port)];
  const peer = endsWithTest(t, spawn('python3', command, { stdio: ['pipe', 'pipe', 'inherit'] }));
  t.teardown(() => rig.close());
  const { id } = await rig.next(Event.Accept);
  await once(peer.stdout, 'data');
  rig.now(Op.Resume, id);
  await until(() => rig.received(id).toString() === 'before, behind', 'the bytes behind the urgent one');
  peer.stdin.end();
  await rig.next(Event.End, id);
  await once(peer, 'exit');
  t.equal(rig.received(id).toString(), 'before, behind');
});

t.test('adjacent sends leave in order, in whatever way they are gathered', async (t) => {
  const rig = new Rig();
  const { address } = rig.listen(loopback);
  const { client, server } = await rig.pair(address);
  // One range; small ranges that are joined; large ones by sendmsg; more ranges than one system call accepts.
  for (const [count, size] of [
    [1, 100],
    [3, 50],
    [5, 3000],
    [200, 17],
    [150, 900],
  ] as const) {
    const before = rig.received(server).length;
    const sent = pattern(count * size, count);
    for (let i = 0; i < count; i++) rig.send(client, sent.subarray(i * size, (i + 1) * size));
    rig.flush();
    await until(() => rig.received(server).length >= before + sent.length, `${count} ranges`);
    t.ok(rig.received(server).subarray(before).equals(sent), `${count} ranges of ${size} bytes`);
  }
  rig.close();
});

t.test('received ranges are sent straight from the window', async (t) => {
  const echo = new Rig({ unlogged: true, uncopied: true });
  echo.onEvent = (event) => {
    if (event.kind === Event.Data) {
      echo.submit(Op.Send, event.id, event.bytes.byteOffset - echo.memory.byteOffset, event.bytes.length);
    }
  };
  const { port } = echo.listen(loopback);
  const peer = connect(port, '127.0.0.1');
  const sent = pattern(4 << 20, 3);
  const chunks: Buffer[] = [];
  peer.on('data', (chunk) => chunks.push(chunk));
  peer.end(sent);
  await until(() => chunks.reduce((sum, chunk) => sum + chunk.length, 0) >= sent.length, 'the echo');
  t.ok(Buffer.concat(chunks).equals(sent));
  peer.destroy();
  echo.close();
});

t.test('bytes sent before a connect completes follow it', async (t) => {
  const sockets: Socket[] = [];
  const chunks: Buffer[] = [];
  const server = createServer((socket) => {
    sockets.push(socket);
    socket.on('data', (chunk) => chunks.push(chunk));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const rig = new Rig();
  const id = rig.connect(internet('127.0.0.1', (server.address() as AddressInfo).port));
  rig.sendNow(id, 'early ');
  rig.sendNow(id, 'bird');
  rig.now(Op.Shutdown, id);
  t.equal(rig.transport.pendingBytes(id), 10);
  await rig.next(Event.Connected, id);
  await rig.next(Event.End, id); // node:net closes when its peer has closed
  t.equal(Buffer.concat(chunks).toString(), 'early bird');
  rig.close();
  server.close();
});
