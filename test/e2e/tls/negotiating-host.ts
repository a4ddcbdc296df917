// A host that serves HTTP/1.1 or HTTP/2 over TLS, as ALPN selects, and records what connections offer.

import { createServer, type RequestListener } from 'node:http';
import { createSecureServer, type Http2ServerRequest, type Http2ServerResponse } from 'node:http2';
import type { AddressInfo, Server } from 'node:net';
import { createServer as createTlsServer, type TLSSocket } from 'node:tls';
import type { IssuedCertificate } from '../harness/certificates.js';
import type { Teardown } from '../harness/index.js';

export interface NegotiatingHost {
  readonly port: number;
  /** For each connection, what it offers by ALPN, joined by commas; '' for nothing. */
  readonly offers: string[];
  /** For each connection, the server name that it requests; '' for none. */
  readonly serverNames: string[];
  /** Connections whose handshake has finished. */
  readonly sockets: TLSSocket[];
}

export type Answering = (request: Http2ServerRequest, answer: Http2ServerResponse) => void;

export interface NegotiatingOptions {
  /** The protocols that it selects from, the preferred one first; none: it does not answer ALPN, and serves HTTP/1.1. */
  readonly protocols?: readonly string[];
}

/** Starts a host that answers with the HTTP version of the request, or with `handler`. */
export async function startNegotiatingHost(
  t: Teardown,
  certificate: IssuedCertificate,
  { protocols = ['h2', 'http/1.1'] }: NegotiatingOptions = {},
  handler: Answering = (request, answer) => answer.end(request.httpVersion),
): Promise<NegotiatingHost> {
  const offers: string[] = [];
  const serverNames: string[] = [];
  const sockets: TLSSocket[] = [];
  const identity = { cert: certificate.chain, key: certificate.key };
  const server =
    protocols.length === 0
      ? withoutAlpn(identity, handler as unknown as RequestListener)
      : createSecureServer(
          {
            ...identity,
            allowHTTP1: true,
            ALPNCallback: ({ protocols: offered }) => {
              offers.push(offered.join());
              return protocols.find((name) => offered.includes(name));
            },
            SNICallback: (name, done) => {
              serverNames.push(name);
              done(null, undefined);
            },
          },
          handler,
        );
  server.on('secureConnection', (socket: TLSSocket) => {
    sockets.push(socket);
    socket.on('error', () => {});
  });
  server.on('tlsClientError', () => {});
  server.on('sessionError', () => {});
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { port: (server.address() as AddressInfo).port, offers, serverNames, sockets };
}

function withoutAlpn(identity: { cert: string; key: string }, handler: RequestListener): Server {
  const http = createServer(handler);
  return createTlsServer(identity, (socket) => void http.emit('connection', socket));
}
