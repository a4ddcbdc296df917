// Limits of what a peer of a restart can make this process keep.

import t from 'tap';
import { loadShim } from '../../src/io/shim.js';
import { MessageLink } from '../../src/restart/link.js';
import { SocketReceiver } from '../../src/restart/received-sockets.js';
import { waitFor } from '../e2e/harness/wait-for.js';
import { copies, original } from './copies.js';

t.test('received sockets are limited per offer, and offers without sockets are dropped', async (t) => {
  const closed: number[] = [];
  const receiver = new SocketReceiver((fd) => closed.push(fd));
  const offered = (id: number, count: number) => ({
    ...{ id, isAdmin: false, name: '', configured: '', real: '', traits: '', isReusePort: true, count },
  });
  for (let count = 0; count < 20; count++) receiver.add([offered(1, 64), offered(2 + count, 3)], new Array(64).fill(7));
  const sockets = receiver.take();
  t.same(
    sockets.map(({ id, fds }) => [id, fds.length]),
    [[1, 1024]],
  );
  t.equal(closed.length, 20 * 64 - 1024);
});

t.test('the names in offers are limited', async (t) => {
  const closed: number[] = [];
  const receiver = new SocketReceiver((fd) => closed.push(fd));
  const long = { name: 'x'.repeat(60_000), configured: '', real: '', traits: '' };
  const total = 1000;
  for (let id = 0; id < total; id++) receiver.add([{ id, isAdmin: false, ...long, isReusePort: true, count: 1 }], [id]);
  const kept = receiver.take();
  t.ok(kept.length * 60_000 <= 32 * 1024 * 1024);
  t.equal(closed.length, total - kept.length, 'the sockets of others are closed');
});

t.test('the link to a peer that reads too slowly fails', async (t) => {
  const shim = loadShim();
  const [here, there] = shim.socketPair();
  const codec = { encode: (message: Uint8Array) => message, decode: (bytes: Uint8Array) => bytes };
  let ended: string | undefined;
  const link = new MessageLink<Uint8Array, Uint8Array>(shim, here, codec, {
    message() {},
    ended: (why, isGone) => (ended = `${why}, ${isGone}`),
  });
  for (let count = 0; count < 1000; count++) link.send(new Uint8Array(60_000));
  t.equal(ended, undefined, "not within the sender's call");
  await waitFor(() => ended !== undefined);
  t.equal(ended, 'it takes its messages too slowly, false');
  shim.closeDescriptor(there);
});

t.test('an unusable link reports only the end of its peer, if requested', async (t) => {
  const shim = loadShim();
  const [here, there] = shim.socketPair();
  const received: string[] = [];
  const codec = {
    encode: (message: string) => Buffer.from(message),
    decode(bytes: Uint8Array) {
      if (bytes.length > 1) throw new Error('too long');
      return Buffer.from(bytes).toString();
    },
  };
  const link = new MessageLink<string, string>(shim, here, codec, {
    message: (message) => received.push(message),
    ended: (why, isGone) => received.push(`ended: ${why}, ${isGone}`),
    gone: () => received.push('gone'),
  });
  const peer = shim.watchMessages(there, { onMessage: () => received.push('answer'), onWritable() {}, onEnd() {} });
  const before = copies();
  for (const text of ['a', 'garbage', 'b', 'garbage']) peer.send(Buffer.from(text), [original]);
  await waitFor(() => received.length === 2 && copies() === before + 1, { what: 'the invalid message' });
  link.send('to nobody');
  await link.drained();
  peer.close();
  await waitFor(() => received.includes('gone'));
  t.same(received, ['a', 'ended: it sent an invalid message (too long), false', 'gone']);
});
