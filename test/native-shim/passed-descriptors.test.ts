// Descriptors that a peer passes over a Unix socket are closed: the bytes beside and after them arrive as usual.

import { closeSync, openSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import t from 'tap';
import { Event, Op } from '../../src/io/shim.js';
import { Rig, shim, socketPath, unix, until } from './harness/harness.js';

interface WithHandle {
  _handle: { fd: number };
}

/** Sends three messages, the middle one with a descriptor. */
function pass(socket: Socket): void {
  const file = openSync('/dev/null', 'r');
  const fd = shim.duplicate((socket as unknown as WithHandle)._handle.fd);
  const messages = shim.watchMessages(fd, { onMessage: () => {}, onWritable: () => {}, onEnd: () => {} });
  messages.send(Buffer.from('before,'), []);
  messages.send(Buffer.from('beside,'), [file]);
  messages.send(Buffer.from('behind'), []);
  messages.close();
  closeSync(file);
}

t.test('descriptors passed on an accepted connection', async (t) => {
  const rig = new Rig();
  const path = socketPath();
  rig.listen(unix(path));
  const peer = connect(path);
  const { id } = await rig.next(Event.Accept);
  rig.now(Op.Pause, id);
  pass(peer);
  rig.now(Op.Resume, id);
  await until(() => rig.received(id).toString() === 'before,beside,behind', 'all of it');
  peer.destroy();
  rig.close();
  t.end();
});

t.test('descriptors passed on a connecting and on an adopted connection', async (t) => {
  const rig = new Rig();
  const path = socketPath();
  const accepted: Socket[] = [];
  const server = createServer({ pauseOnConnect: true }, (socket) => accepted.push(socket)).listen(path);
  const made = rig.connect(unix(path));
  await until(() => accepted.length === 1, 'the connection');
  const peer = connect(path);
  await until(() => accepted.length === 2, 'the second connection');
  const taken = rig.transport.adopt(shim.duplicate((peer as unknown as WithHandle)._handle.fd));
  for (const [index, id] of [made, taken].entries()) {
    rig.now(Op.Pause, id);
    pass(accepted[index]!);
    rig.now(Op.Resume, id);
    await until(() => rig.received(id).toString() === 'before,beside,behind', 'all of it');
  }
  for (const socket of [...accepted, peer]) socket.destroy();
  server.close();
  rig.close();
  t.end();
});
