// An adopted descriptor becomes a connection like any other.

import { openSync } from 'node:fs';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import t from 'tap';
import { Event, Op } from '../../src/io/shim.js';
import { Rig, shim, until } from './harness/harness.js';

interface WithHandle {
  _handle: { fd: number };
}

t.test('a connected socket is adopted, even while another holder keeps it open', async (t) => {
  const accepted: Socket[] = [];
  const server = createServer({ pauseOnConnect: true }, (socket) => accepted.push(socket));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const peer = connect((server.address() as AddressInfo).port, '127.0.0.1');
  const chunks: Buffer[] = [];
  peer.on('data', (chunk) => chunks.push(chunk));
  await until(() => accepted.length === 1, 'the connection');
  const rig = new Rig();
  const id = rig.transport.adopt(shim.duplicate((accepted[0] as unknown as WithHandle)._handle.fd));
  peer.write('question');
  await rig.next(Event.Data, id);
  t.equal(rig.received(id).toString(), 'question');
  rig.sendNow(id, 'answer');
  await until(() => Buffer.concat(chunks).toString() === 'answer', 'the answer');

  // After the close here the open file description stays with the other holder: nothing more may be reported.
  rig.now(Op.Close, id);
  const seen = rig.seen.length;
  peer.write('for the other holder');
  accepted[0]!.resume();
  let rest = '';
  accepted[0]!.on('data', (chunk) => (rest += chunk));
  await until(() => rest === 'for the other holder', 'the other holder');
  t.equal(rig.seen.length, seen);
  t.equal(rig.transport.counts().connections, 0);
  peer.destroy();
  accepted[0]!.destroy();
  server.close();
  rig.close();
});

t.test('a descriptor that is not a stream socket is refused and stays with the caller', (t) => {
  const rig = new Rig();
  const file = openSync('/dev/null', 'r');
  t.throws(() => rig.transport.adopt(file), { code: 'ENOTSOCK' });
  shim.closeDescriptor(file);
  t.throws(() => rig.transport.adopt(99_999), { code: 'EBADF' });
  rig.close();
  t.end();
});
