// Collectors of traces and logs that record what they receive, over gRPC and over HTTP.

import { createServer as createHttpServer, type IncomingHttpHeaders } from 'node:http';
import { createServer, type ServerHttp2Stream } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { MessageReader } from '../../../src/grpc/message-reader.js';
import { type Teardown, waitFor } from '../harness/index.js';

export interface Collector<M> {
  readonly port: number;
  /** Headers of the calls, with their path as `:path`. */
  readonly heads: IncomingHttpHeaders[];
  readonly messages: M[];
  /** Resolves with what `list` makes of the messages when that has `count` elements. */
  collect<E>(count: number, list: (message: M) => readonly E[]): Promise<E[]>;
}

export interface CollectorOptions {
  /** It reads and answers nothing. */
  readonly isDeaf?: boolean;
  /** Status of its answers by HTTP. */
  readonly status?: number;
}

/** Starts a gRPC server that answers each method with an empty message, when the client ends its side. */
export async function startGrpcCollector<M>(
  t: Teardown,
  decode: (message: Uint8Array, path: string) => M,
  { isDeaf = false }: CollectorOptions = {},
): Promise<Collector<M>> {
  const heads: IncomingHttpHeaders[] = [];
  const messages: M[] = [];
  const sessions = new Set<{ destroy(): void }>();
  const server = createServer();
  server.on('session', (session) => sessions.add(session));
  server.on('stream', (stream: ServerHttp2Stream, head) => {
    const reader = new MessageReader(2 ** 24);
    heads.push(head);
    stream.on('error', () => {});
    if (isDeaf) return;
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
    stream.on('data', (bytes: Buffer) => {
      reader.push(bytes);
      for (let next = reader.next(); next !== undefined; next = reader.next())
        messages.push(decode(next as Buffer, head[':path']!));
    });
    stream.on('end', () => stream.end(Buffer.alloc(5)));
    stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    for (const session of sessions) session.destroy();
    server.close();
  });
  return collector((server.address() as AddressInfo).port, heads, messages);
}

/** Starts an HTTP server that answers each request without a body. */
export async function startHttpCollector<M>(
  t: Teardown,
  decode: (body: Buffer, head: IncomingHttpHeaders) => M,
  { isDeaf = false, status = 200 }: CollectorOptions = {},
): Promise<Collector<M>> {
  const heads: IncomingHttpHeaders[] = [];
  const messages: M[] = [];
  const server = createHttpServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      if (isDeaf) return;
      heads.push({ ...request.headers, ':method': request.method!, ':path': request.url! });
      messages.push(decode(Buffer.concat(chunks), request.headers));
      response.writeHead(status, { 'content-type': 'application/json' }).end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  return collector((server.address() as AddressInfo).port, heads, messages);
}

function collector<M>(port: number, heads: IncomingHttpHeaders[], messages: M[]): Collector<M> {
  return {
    port,
    heads,
    messages,
    async collect(count, list) {
      await waitFor(() => messages.flatMap(list).length >= count, { what: `${count} elements at the collector` });
      return messages.flatMap(list);
    },
  };
}
