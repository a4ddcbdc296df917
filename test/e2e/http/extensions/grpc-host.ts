// A gRPC host for tests, which answers as the path of each call says.

import { createServer, type ServerHttp2Session } from 'node:http2';
import type { AddressInfo } from 'node:net';
import type { Teardown } from '../../harness/index.js';

export interface ReceivedCall {
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: Buffer;
}

export interface GrpcHost {
  readonly port: number;
  readonly calls: ReceivedCall[];
}

/** Returns a message in its frame. */
export function frame(message: string | Buffer): Buffer {
  const content = Buffer.from(message);
  const header = Buffer.alloc(5);
  header.writeUInt32BE(content.length, 1);
  return Buffer.concat([header, content]);
}

/**
 * Starts a host. Queries: `status` and `message` of the call, `messages` (a number), `type` of the content. The last part of the path is the
 * kind of the response: `TrailersOnly`, `Plain` (its `code` and `body` without gRPC), `NoTrailers`, or any other name for a usual one.
 */
export async function startGrpcHost(t: Teardown): Promise<GrpcHost> {
  const sessions = new Set<ServerHttp2Session>();
  const calls: ReceivedCall[] = [];
  const server = createServer();
  server.on('session', (session) => sessions.add(session));
  server.on('stream', (stream, headers) => {
    const parts: Buffer[] = [];
    stream.on('error', () => {});
    stream.on('data', (part: Buffer) => parts.push(part));
    stream.on('end', () => {
      calls.push({ headers, body: Buffer.concat(parts) });
      const { pathname, searchParams } = new URL(`http://host${headers[':path']}`);
      const query = (name: string, otherwise: string) => searchParams.get(name) ?? otherwise;
      const kind = pathname.split('/').at(-1);
      const type = { 'content-type': query('type', 'application/grpc') };
      const status = { 'grpc-status': query('status', '0'), 'grpc-message': query('message', '') };
      if (kind === 'TrailersOnly') return stream.respond({ ':status': 200, ...type, ...status }, { endStream: true });
      if (kind === 'Plain') {
        stream.respond({ ':status': Number(query('code', '503')), 'content-type': query('type', 'text/plain') });
        return void stream.end(query('body', ''));
      }
      stream.respond({ ':status': 200, ...type }, { waitForTrailers: kind !== 'NoTrailers' });
      stream.on('wantTrailers', () => stream.sendTrailers({ ...status, 'x-trailer': 'Tail' }));
      for (let count = Number(query('messages', '1')); count > 0; count--) stream.write(frame('answer'));
      stream.end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    for (const session of sessions) session.destroy();
    server.close();
  });
  return { port: (server.address() as AddressInfo).port, calls };
}
