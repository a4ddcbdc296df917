// The framing of gRPC messages.

import t from 'tap';
import { framed, MessageReader } from '../../src/grpc/message-reader.js';
import { GrpcCode } from '../../src/grpc/status.js';

const prefix = (flags: number, length: number) => {
  const bytes = Buffer.alloc(5, flags);
  bytes.writeUInt32BE(length, 1);
  return bytes;
};

/** Reads all complete messages. */
function drain(reader: MessageReader): string[] {
  const messages: string[] = [];
  for (let next = reader.next(); next !== undefined; next = reader.next()) {
    if (!Buffer.isBuffer(next)) throw new Error(next.details);
    messages.push(next.toString());
  }
  return messages;
}

t.test('messages arrive whole, however the bytes are split', (t) => {
  const messages = ['', 'a', 'b'.repeat(600), '', 'c'.repeat(70_000), 'd'];
  const body = Buffer.concat(messages.map((message) => framed(Buffer.from(message))));
  for (const size of [1, 2, 5, 7, 511, 512, 513, 16_384, body.length]) {
    const reader = new MessageReader(100_000);
    const received: string[] = [];
    for (let at = 0; at < body.length; at += size) {
      reader.push(body.subarray(at, at + size));
      received.push(...drain(reader));
    }
    t.same(received, messages, `${size} bytes at a time`);
    t.equal(reader.bufferedBytes, 0);
  }
  t.end();
});

t.test('a message that was returned does not change when more bytes arrive', (t) => {
  const reader = new MessageReader(1000);
  reader.push(Buffer.concat([framed(Buffer.from('first')), framed(Buffer.from('second')).subarray(0, 7)]));
  const first = reader.next() as Buffer;
  reader.push(Buffer.alloc(2000, 'x'));
  t.equal(first.toString(), 'first');
  t.end();
});

t.test('a length prefix takes no memory before the message arrives', (t) => {
  const reader = new MessageReader(2 ** 32 - 1);
  reader.push(prefix(0, 2 ** 32 - 1));
  const before = process.memoryUsage().arrayBuffers;
  for (let count = 0; count < 1000; count++) {
    reader.push(Buffer.from('x'));
    t.equal(reader.next(), undefined);
  }
  t.ok(process.memoryUsage().arrayBuffers - before < 1024 * 1024);
  t.equal(reader.bufferedBytes, 1000);
  t.end();
});

t.test('a message beyond the limit, a compressed one, and bytes that are not gRPC end the call', (t) => {
  for (const [bytes, code, details] of [
    [prefix(0, 101), GrpcCode.ResourceExhausted, /101 bytes .* limit of 100 bytes: raise max_receive_message_length/],
    [prefix(1, 2), GrpcCode.Internal, /marked as compressed/],
    [Buffer.from('<html>'), GrpcCode.Internal, /not a sequence of gRPC messages/],
  ] as const) {
    const reader = new MessageReader(100);
    reader.push(framed(Buffer.from('fine')));
    reader.push(bytes);
    t.equal(String(reader.next()), 'fine');
    t.match(reader.next(), { code, details });
  }
  t.end();
});
