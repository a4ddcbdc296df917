// Datagrams that are placed in memory, and sent in batches.

import t from 'tap';
import { DATAGRAM_STRIDE, DatagramWord } from '../../../src/io/datagrams/datagram-record.js';
import { DatagramSockets } from '../../../src/io/datagrams/datagram-sockets.js';
import type { DatagramOptions, NativeDatagrams, NativeShim } from '../../../src/io/shim.js';
import type { Transport } from '../../../src/io/transport/transport.js';

t.test('placed bytes stay until they are sent, also when a batch is full in between', async (t) => {
  const sent: string[] = [];
  const createDatagramSockets = ({ memory, sends }: DatagramOptions): Partial<NativeDatagrams> => ({
    flush(count) {
      for (let index = 0; index < count; index++) {
        const at = index * DATAGRAM_STRIDE;
        const offset = sends[at + DatagramWord.Offset]!;
        sent.push(Buffer.from(memory.slice(offset, offset + sends[at + DatagramWord.Length]!)).toString());
      }
      return true;
    },
    close() {},
  });
  const shim = { createDatagramSockets } as unknown as NativeShim;
  const sockets = new DatagramSockets(shim, {} as Transport, 0);
  let accepted = 0;
  const sender = { onSent: () => void accepted++ };
  // The first ones are short: those that follow reach their places before another batch is full.
  const texts = Array.from({ length: 3000 }, (_, index) => String(index).padEnd(index < 1024 ? 4 : 100));
  for (const text of texts) sockets.send(1, sockets.place(Buffer.from(text)), text.length, sender);
  sockets.close();
  t.strictSame(sent, texts);
  t.equal(accepted, texts.length);
});
