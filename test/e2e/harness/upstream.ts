// Servers behind Baton in a test, on ports that the kernel chooses.

import { createServer as createHttpServer, type RequestListener } from 'node:http';
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from 'node:net';
import type { Teardown } from './environment.js';

export interface Upstream {
  port: number;
  server: Server;
  /** Connections open now. */
  sockets: Set<Socket>;
  /** Connections accepted since the start. */
  accepted(): number;
  /** Stops listening and destroys every connection; also called when the test ends. */
  close(): Promise<void>;
}

/**
 * Starts an HTTP/1.1 server. Its keep-alive never times out, so that only the proxy decides when connections close, and it
 * accepts longer header sections than Baton.
 */
export function startUpstream(t: Teardown, handler: RequestListener, port = 0, host?: string): Promise<Upstream> {
  const options = { keepAliveTimeout: 0, requestTimeout: 0, headersTimeout: 0, maxHeaderSize: 128 * 1024 };
  const server = createHttpServer(options, handler);
  return listen(t, server, port, host);
}

/** Starts a TCP server that passes each connection to `handler`; half-open connections stay open. */
export function startTcpUpstream(
  t: Teardown,
  handler: (socket: Socket) => void,
  port = 0,
  host?: string,
): Promise<Upstream> {
  const server = createTcpServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
    // A reset is an ordinary event here; without a listener it would end the process.
    socket.on('error', () => {});
    handler(socket);
  });
  return listen(t, server, port, host);
}

/** Starts a server that answers each HTTP request with 200 and a JSON description of the request. */
export function startEchoUpstream(t: Teardown, port = 0): Promise<Upstream> {
  return startUpstream(
    t,
    (request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        const { method, url, headers, rawHeaders } = request;
        const body = Buffer.concat(chunks).toString('latin1');
        const account: EchoedRequest = { method: method!, url: url!, headers, rawHeaders, body };
        response.setHeader('content-type', 'application/json');
        response.end(JSON.stringify(account));
      });
    },
    port,
  );
}

/** The JSON that startEchoUpstream() answers with. */
export interface EchoedRequest {
  method: string;
  url: string;
  headers: NodeJS.Dict<string | string[]>;
  rawHeaders: string[];
  body: string;
}

async function listen(t: Teardown, server: Server, port: number, host = '127.0.0.1'): Promise<Upstream> {
  const sockets = new Set<Socket>();
  let accepted = 0;
  server.on('connection', (socket: Socket) => {
    accepted++;
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, resolve);
  });
  let closed: Promise<void> | undefined;
  const close = (): Promise<void> => {
    closed ??= new Promise((resolve) => {
      server.close(() => resolve());
      for (const socket of sockets) socket.destroy();
    });
    return closed;
  };
  t.teardown(close);
  return { port: (server.address() as AddressInfo).port, server, sockets, accepted: () => accepted, close };
}
