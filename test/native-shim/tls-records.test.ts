// What a peer may send again and again, each time cheap for it: the connection ends after a bounded number.

import { createCipheriv, createHmac } from 'node:crypto';
import { connect as connectTcp, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import t, { type Test } from 'tap';
import { Event, TlsVerify } from '../../src/io/shim.js';
import { until } from './harness/harness.js';
import { client, context, echoServer, exchange, root, secure, server } from './harness/tls.js';

const SUITE = 'TLS_AES_128_GCM_SHA256';

const enum Content {
  Alert = 21,
  Handshake = 22,
  Data = 23,
}

/** RFC 8446, section 7.1. */
function expandLabel(secret: Buffer, label: string, length: number): Buffer {
  const name = Buffer.from(`tls13 ${label}`);
  const info = Buffer.from([length >> 8, length & 0xff, name.length, ...name, 0]);
  // One block of HKDF-Expand is enough.
  return createHmac('sha256', secret).update(info).update(Buffer.of(1)).digest().subarray(0, length);
}

/** A client of TLS 1.3 that has finished its handshake, and then writes records of its own. */
class RecordWriter {
  readonly socket: Socket;
  #secret: Buffer;
  #sequence = 0;

  private constructor(socket: Socket, secret: Buffer) {
    this.socket = socket;
    this.#secret = secret;
  }

  static async open(t: Test, { port, rig }: ReturnType<typeof echoServer>): Promise<RecordWriter> {
    const socket = connectTcp(port, '127.0.0.1');
    t.teardown(() => socket.destroy());
    const secured = connectTls({
      socket,
      ca: root.certificate,
      servername: 'server.test',
      minVersion: 'TLSv1.3',
      ciphers: SUITE,
    });
    secured.on('error', () => {});
    let secret = '';
    secured.on('keylog', (line: Buffer) => {
      secret ||= /^CLIENT_TRAFFIC_SECRET_0 \S+ (\S+)/.exec(String(line))?.[1] ?? '';
    });
    await secure(secured);
    // Node writes the client's Finished after its event.
    await rig.next(Event.Secured);
    return new RecordWriter(socket, Buffer.from(secret, 'hex'));
  }

  record(type: Content, content: Buffer): Buffer {
    const key = expandLabel(this.#secret, 'key', 16);
    const nonce = expandLabel(this.#secret, 'iv', 12);
    nonce.writeUInt32BE((nonce.readUInt32BE(8) ^ this.#sequence++) >>> 0, 8);
    const header = Buffer.from([23, 3, 3, 0, content.length + 17]);
    const cipher = createCipheriv('aes-128-gcm', key, nonce).setAAD(header);
    return Buffer.concat([header, cipher.update(Buffer.of(...content, type)), cipher.final(), cipher.getAuthTag()]);
  }

  /** A record that asks for another key of the server, too. */
  keyUpdate(): Buffer {
    const record = this.record(Content.Handshake, Buffer.of(24, 0, 0, 1, 1));
    this.#secret = expandLabel(this.#secret, 'traffic upd', 32);
    this.#sequence = 0;
    return record;
  }
}

/** Writes records until the connection is closed. Returns how many it took, at most `most`. */
async function countUntilClosed(writer: RecordWriter, most: number, record: () => Buffer): Promise<number> {
  let isClosed = false;
  writer.socket.on('error', () => {}).on('close', () => (isClosed = true));
  for (let count = 1; count <= most; count++) {
    writer.socket.write(record());
    await new Promise((resolve) => setImmediate(resolve));
    if (isClosed) return count;
  }
  await until(() => isClosed, 'the end of the connection');
  return most;
}

t.test('records of a client of its own are understood', async (t) => {
  const echo = echoServer(context());
  const { rig } = echo;
  const writer = await RecordWriter.open(t, echo);
  writer.socket.write(Buffer.concat([writer.record(Content.Data, Buffer.from('one')), writer.keyUpdate()]));
  writer.socket.write(writer.record(Content.Data, Buffer.from('two')));
  await until(() => Buffer.concat(rig.of(Event.Data).map(({ bytes }) => bytes)).equals(Buffer.from('onetwo')), 'both');
  rig.close();
});

for (const [what, of] of [
  ['key updates', (writer: RecordWriter) => () => writer.keyUpdate()],
  ['empty records', (writer: RecordWriter) => () => writer.record(Content.Data, Buffer.alloc(0))],
  ['warning alerts', (writer: RecordWriter) => () => writer.record(Content.Alert, Buffer.of(1, 90))],
] as const) {
  t.test(`${what} without end close the connection, and others are served`, async (t) => {
    const echo = echoServer(context());
    const { rig, port } = echo;
    const writer = await RecordWriter.open(t, echo);
    const other = client(port);
    await secure(other);
    const count = await countUntilClosed(writer, 200, of(writer));
    t.ok(count > 1 && count <= 200, `${count} records`);
    t.equal(String(await exchange(other, Buffer.from('hello'))), 'hello');
    other.destroy();
    await until(() => rig.transport.counts().connections === 0, 'the end of all connections');
    rig.close();
  });
}

t.test('key updates with data between them may be many', async (t) => {
  const echo = echoServer(context());
  const { rig } = echo;
  const writer = await RecordWriter.open(t, echo);
  for (let i = 0; i < 200; i++) {
    writer.socket.write(Buffer.concat([writer.keyUpdate(), writer.record(Content.Data, Buffer.from('x'))]));
  }
  const received = () => rig.of(Event.Data).reduce((sum, { bytes }) => sum + bytes.length, 0);
  await until(() => received() === 200, 'all data');
  rig.close();
});

t.test('a chain of certificates that is too long ends the handshake', async (t) => {
  const number = context({ verify: TlsVerify.Required, roots: Buffer.from(root.certificate) });
  const { rig, port } = echoServer(number);
  const cert = server.chain + `\n${root.certificate}`.repeat(400);
  const socket = client(port, { cert, key: server.key });
  await new Promise((resolve) => socket.once('close', resolve));
  const { id } = await rig.next(Event.HandshakeFailed);
  t.match(rig.transport.tlsFailure(id) ?? 'excessive message size', /excessive message size/);
  rig.close();
});
