// The servers behind a Baton that a test starts.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TestServer } from '../api/testing.js';

export class Servers {
  readonly #servers: Server[] = [];

  /** Returns the port of a server, which is started if it is a function. */
  async portOf(server: TestServer): Promise<number> {
    if (typeof server === 'number') return server;
    const own = createServer(server);
    this.#servers.push(own);
    await new Promise<void>((resolve) => own.listen(0, '127.0.0.1', resolve));
    return (own.address() as AddressInfo).port;
  }

  async close(): Promise<void> {
    for (const server of this.#servers) {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    }
  }
}

/** Answers with the request. */
export function echo(request: IncomingMessage, response: ServerResponse): void {
  const { headers, method, url } = request;
  let body = '';
  request.setEncoding('utf8').on('data', (text: string) => {
    body += text;
  });
  request.on('end', () => {
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ method, url, headers, body }));
  });
}
