// Makes the first bytes of TLS clients: real ones of OpenSSL, and hand-made ones with any fields.

import { Duplex } from 'node:stream';
import { type ConnectionOptions, connect } from 'node:tls';

/** Returns the bytes that a client of Node's OpenSSL sends first. */
export async function clientHello(options: ConnectionOptions = {}): Promise<Buffer> {
  let sent: (bytes: Buffer) => void = () => {};
  const first = new Promise<Buffer>((resolve) => {
    sent = resolve;
  });
  const wire = new Duplex({ read() {}, write: (chunk: Buffer) => sent(chunk) });
  const client = connect({ socket: wire, rejectUnauthorized: false, ...options });
  client.on('error', () => {});
  const bytes = await first;
  client.destroy();
  return bytes;
}

export interface HelloFields {
  version?: number;
  sessionId?: Buffer;
  ciphers?: readonly number[];
  compression?: Buffer;
  /** Undefined: the hello ends before them. */
  extensions?: readonly (readonly [type: number, content: Buffer])[] | undefined;
}

/** Returns a handshake message. */
export function helloMessage(fields: HelloFields = {}): Buffer {
  const { version = 0x0303, sessionId = Buffer.alloc(0), ciphers = [0x1301], compression = Buffer.of(0) } = fields;
  const parts = [
    integers(version),
    Buffer.alloc(32, 'R'),
    vector(1, sessionId),
    vector(2, integers(...ciphers)),
    vector(1, compression),
  ];
  const { extensions } = fields;
  if (extensions !== undefined)
    parts.push(vector(2, ...extensions.map(([type, content]) => Buffer.concat([integers(type), vector(2, content)]))));
  return Buffer.concat([Buffer.of(1), vector(3, ...parts)]);
}

/** Divides a message into records with at most `size` bytes. */
export function records(message: Buffer, size = 16384, type = 22): Buffer {
  const list: Buffer[] = [];
  for (let at = 0; at < message.length; at += size)
    list.push(Buffer.of(type, 3, 1), vector(2, message.subarray(at, at + size)));
  return Buffer.concat(list);
}

export function serverName(name: string): readonly [number, Buffer] {
  return [0, vector(2, Buffer.of(0), vector(2, Buffer.from(name, 'latin1')))];
}

export function alpn(...protocols: string[]): readonly [number, Buffer] {
  return [16, vector(2, ...protocols.map((protocol) => vector(1, Buffer.from(protocol, 'latin1'))))];
}

export function integers(...values: number[]): Buffer {
  return Buffer.from(values.flatMap((value) => [value >> 8, value & 255]));
}

/** Returns the parts after their length, which has `size` bytes. */
export function vector(size: number, ...parts: readonly Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  const length = Buffer.alloc(size);
  length.writeUIntBE(content.length, 0, size);
  return Buffer.concat([length, content]);
}
