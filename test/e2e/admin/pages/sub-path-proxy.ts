// A reverse proxy that serves the admin pages under a path prefix, as an operator's portal does.

import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Teardown } from '../../harness/index.js';

export interface SubPathProxy {
  /** The URL of the server's root. */
  readonly url: string;
  /** Requested paths outside of the prefix. */
  readonly strays: string[];
}

/** Forwards paths under /ops/baton/ to the port, without that prefix. */
export async function startSubPathProxy(t: Teardown, port: number): Promise<SubPathProxy> {
  const prefix = '/ops/baton';
  const strays: string[] = [];
  const server = createServer((incoming, outgoing) => {
    const { url = '/', method, headers } = incoming;
    if (!url.startsWith(`${prefix}/`)) {
      strays.push(url);
      outgoing.writeHead(404).end();
      return;
    }
    const host = `127.0.0.1:${port}`;
    const forwarded = request({
      host: '127.0.0.1',
      port,
      method,
      path: url.slice(prefix.length),
      headers: { ...headers, host },
    });
    forwarded.on('response', (answer) => {
      outgoing.writeHead(answer.statusCode!, answer.headers);
      answer.pipe(outgoing);
    });
    forwarded.on('error', () => outgoing.destroy());
    incoming.pipe(forwarded);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}${prefix}/`, strays };
}
