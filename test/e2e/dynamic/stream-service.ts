// A gRPC service with one bidirectional stream at a time, which records what it receives.

import { createServer, type IncomingHttpHeaders, type ServerHttp2Stream } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { loadMessages } from '../../../src/config/schema/messages.js';
import { framed, MessageReader } from '../../../src/grpc/message-reader.js';
import type { Teardown } from '../harness/index.js';

export interface StreamService<Request> {
  readonly port: number;
  readonly heads: IncomingHttpHeaders[];
  /** The received messages; numbers of 64 bits are numbers. */
  readonly received: Request[];
  /** Sends a message on the last stream. */
  send(response: object): void;
  /** Sends bytes as a message. */
  sendBytes(bytes: Uint8Array): void;
  /** Ends the last stream. */
  endStream(): void;
}

/** Starts a service whose messages have these full names. `enums`: enum values are names. */
export async function startStreamService<Request>(
  t: Teardown,
  requestName: string,
  responseName: string,
  { enums = false } = {},
): Promise<StreamService<Request>> {
  const types = loadMessages(requestName, responseName);
  const heads: IncomingHttpHeaders[] = [];
  const received: Request[] = [];
  let last: ServerHttp2Stream | undefined;
  const sessions = new Set<{ destroy(): void }>();
  const server = createServer();
  server.on('session', (session) => sessions.add(session));
  server.on('stream', (stream, head) => {
    const reader = new MessageReader(2 ** 24);
    heads.push(head);
    last = stream;
    stream.on('error', () => {});
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
    stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
    stream.on('data', (bytes: Buffer) => {
      reader.push(bytes);
      for (let next = reader.next(); next !== undefined; next = reader.next()) {
        const type = types[requestName]!;
        const options = enums ? { longs: Number, enums: String } : { longs: Number };
        received.push(type.toObject(type.decode(next as Buffer), options) as Request);
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    for (const session of sessions) session.destroy();
    server.close();
  });
  const sendBytes = (bytes: Uint8Array) => void last!.write(framed(bytes));
  const type = types[responseName]!;
  return {
    port: (server.address() as AddressInfo).port,
    heads,
    received,
    send: (response) => sendBytes(type.encode(type.fromObject(response)).finish()),
    sendBytes,
    endStream: () => void last!.end(),
  };
}
