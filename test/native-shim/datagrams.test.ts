// UDP sockets of the shim: addresses, sizes, errors, and sockets that are closed in the middle of a batch.

import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import t, { type Test } from 'tap';
import { decodeSockaddr, encodeIp } from '../../src/io/addresses/address.js';
import { DatagramPath } from '../../src/io/datagrams/datagram-path.js';
import { DATAGRAM_STRIDE, DatagramEvent, DatagramWord } from '../../src/io/datagrams/datagram-record.js';
import { loadShim, type NativeDatagrams } from '../../src/io/shim.js';
import { waitFor } from '../e2e/harness/index.js';

const shim = loadShim();
const RECEIVE_BYTES = 128 * 1024;
const OPTIONS = { reusePort: false, freebind: false, transparent: false, v6Only: true, isDatagram: true };

interface Seen {
  readonly id: number;
  readonly kind: number;
  readonly length: number;
  readonly text: string;
  readonly path: DatagramPath;
}

class Rig {
  readonly memory = new Uint8Array(new SharedArrayBuffer(RECEIVE_BYTES + 4096));
  readonly events = new Int32Array(64 * DATAGRAM_STRIDE);
  readonly sends = new Int32Array(64 * DATAGRAM_STRIDE);
  readonly seen: Seen[] = [];
  onEvent: (event: Seen) => void = () => {};
  readonly native: NativeDatagrams;

  constructor(t: Test) {
    const { events, memory, sends } = this;
    const onBatch = (count: number) => this.#onBatch(count);
    this.native = shim.createDatagramSockets({
      memory,
      receiveBytes: RECEIVE_BYTES,
      events,
      sends,
      onBatch,
      reserve: 0,
    });
    t.teardown(() => this.close());
  }

  #isOpen = true;

  close(): void {
    if (this.#isOpen) this.native.close();
    this.#isOpen = false;
  }

  listen(ip: string, maxBytes = 1500): { id: number; port: number } {
    const fd = shim.openListenSocket(encodeIp(ip, 0), OPTIONS);
    const raw = shim.boundAddress(fd);
    const id = this.native.addListener(fd, maxBytes);
    shim.closeDescriptor(fd);
    this.native.setReceiving(id, true);
    return { id, port: decodeSockaddr(raw, 0, raw.length).port };
  }

  /** Sends texts. Returns the results. */
  send(id: number, texts: readonly string[], path?: DatagramPath): number[] {
    texts.forEach((text, index) => {
      const bytes = Buffer.from(text);
      const at = index * DATAGRAM_STRIDE;
      this.memory.set(bytes, RECEIVE_BYTES + index * 16);
      this.sends.fill(0, at, at + DATAGRAM_STRIDE);
      this.sends.set([id, 0, RECEIVE_BYTES + index * 16, bytes.length], at);
      if (path !== undefined) this.sends.set(path.words, at + DatagramWord.Peer);
    });
    this.native.flush(texts.length);
    return texts.map((_, index) => this.sends[index * DATAGRAM_STRIDE + DatagramWord.Kind]!);
  }

  #onBatch(count: number): void {
    for (let index = 0; index < count; index++) {
      const at = index * DATAGRAM_STRIDE;
      const [id, kind, offset, length] = this.events.subarray(at, at + 4) as unknown as [
        number,
        number,
        number,
        number,
      ];
      const text =
        kind === DatagramEvent.Datagram ? Buffer.from(this.memory.slice(offset, offset + length)).toString() : '';
      const event = { id, kind, length, text, path: new DatagramPath(this.events, at) };
      this.seen.push(event);
      this.onEvent(event);
    }
  }
}

for (const [ip, to] of [
  ['127.0.0.1', '127.0.0.1'],
  ['0.0.0.0', '127.0.0.9'],
  ['::1', '::1'],
]) {
  t.test(`a listener on ${ip} answers from the address that the client has sent to`, async (t) => {
    const rig = new Rig(t);
    const { id, port } = rig.listen(ip!);
    const client = rig.native.connect(encodeIp(to!, port), undefined, undefined, 1500);
    rig.onEvent = (event) => {
      if (event.id === id) rig.send(id, [`re:${event.text}`], event.path);
    };
    t.strictSame(rig.send(client, ['one', '', 'three']), [0, 0, 0]);
    await waitFor(() => rig.seen.filter((event) => event.id === client).length === 3);
    t.strictSame(
      rig.seen.filter((event) => event.id === client).map(({ text }) => text),
      ['re:one', 're:', 're:three'],
    );
    const asked = rig.seen.find((event) => event.id === id)!;
    t.equal(asked.path.peer.ip, to!.includes(':') ? '::1' : '127.0.0.1');
    t.match(asked.path.local(port), { ip: to, port });
  });
}

t.test('datagrams that are too long are counted as dropped, and never delivered in part', async (t) => {
  const rig = new Rig(t);
  const { id, port } = rig.listen('127.0.0.1', 4);
  const client = rig.native.connect(encodeIp('127.0.0.1', port), undefined, undefined, 1500);
  rig.send(client, ['12345', '1234']);
  await waitFor(() => rig.seen.length === 2);
  t.match(rig.seen, [
    { id, kind: DatagramEvent.Dropped, length: 1 },
    { id, kind: DatagramEvent.Datagram, text: '1234' },
  ]);
});

t.test('what the kernel drops because nothing is received is counted', async (t) => {
  const rig = new Rig(t);
  const { id, port } = rig.listen('127.0.0.1');
  rig.native.setReceiving(id, false);
  const client = rig.native.connect(encodeIp('127.0.0.1', port), undefined, undefined, 1500);
  for (let count = 0; count < 100; count++) rig.send(client, new Array(64).fill('x'));
  rig.native.setReceiving(id, true);
  await waitFor(() => rig.seen.some(({ kind }) => kind === DatagramEvent.Datagram));
  rig.send(client, ['last']);
  await waitFor(() => rig.seen.some(({ text }) => text === 'last'));
  const sum = (kind: number, of: (event: Seen) => number) =>
    rig.seen.filter((event) => event.kind === kind).reduce((total, event) => total + of(event), 0);
  t.equal(sum(DatagramEvent.Datagram, () => 1) + sum(DatagramEvent.Dropped, ({ length }) => length), 6401);
});

t.test('a refusal by the peer is an event; sending to a closed socket fails', async (t) => {
  const socket = createSocket('udp4').bind(0, '127.0.0.1');
  await once(socket, 'listening');
  const { port } = socket.address();
  socket.close();
  const rig = new Rig(t);
  const client = rig.native.connect(encodeIp('127.0.0.1', port), undefined, undefined, 1500);
  rig.send(client, ['x']);
  await waitFor(() => rig.seen.length === 1);
  t.match(rig.seen, [{ id: client, kind: DatagramEvent.Error, length: 111 }]);
  rig.native.remove(client);
  t.strictSame(rig.send(client, ['x']), [9]);
  t.equal(rig.native.localAddress(client).length, 0);
  rig.native.remove(client);
});

t.test('sockets may be removed, and everything closed, while a batch is handled', async (t) => {
  const rig = new Rig(t);
  const { id, port } = rig.listen('127.0.0.1');
  const clients = [1, 2, 3].map(() => rig.native.connect(encodeIp('127.0.0.1', port), undefined, undefined, 1500));
  for (const client of clients) rig.send(client, ['x']);
  rig.onEvent = () => rig.native.remove(id);
  await waitFor(() => rig.seen.length > 0);
  const other = rig.listen('127.0.0.1');
  t.not(other.id, id);
  const client = rig.native.connect(encodeIp('127.0.0.1', other.port), undefined, undefined, 1500);
  rig.onEvent = () => rig.close();
  rig.send(client, ['x']);
  await waitFor(() => rig.seen.some((event) => event.id === other.id));
  t.throws(() => rig.native.flush(0), { code: 'EBADF' });
});

t.test('ranges outside of the memory are not sent; wrong arguments throw', (t) => {
  const rig = new Rig(t);
  const { id } = rig.listen('127.0.0.1');
  rig.sends.set([id, 0, RECEIVE_BYTES, 1 << 20]);
  t.equal(rig.native.flush(1), false);
  t.equal(rig.sends[1], 22);
  rig.sends.set([id, 0, -1, 1]);
  t.equal(rig.native.flush(1), false);
  t.throws(() => rig.native.addListener(-1, 1500), TypeError);
  t.throws(() => rig.native.addListener(100_000, 1500), { code: 'EBADF' });
  t.throws(() => rig.native.addListener(0, 65536), TypeError);
  t.throws(() => rig.native.connect(new Uint8Array(3), undefined, undefined, 1500), { code: 'EAFNOSUPPORT' });
  t.throws(
    () => rig.native.connect.call({} as NativeDatagrams, encodeIp('127.0.0.1', 1), undefined, undefined, 9),
    TypeError,
  );
  t.end();
});
