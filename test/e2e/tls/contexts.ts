// TLS contexts for configurations, and HTTPS clients and hosts, for the tests of this folder.

import { createServer, type RequestListener } from 'node:http';
import { createServer as createSecureServer, request, type ServerOptions } from 'node:https';
import type { AddressInfo } from 'node:net';
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls';
import type { IssuedCertificate } from '../harness/certificates.js';
import { type Config, httpListener, type Teardown, withDeadline } from '../harness/index.js';

const TLS = 'type.googleapis.com/envoy.extensions.transport_sockets.tls.v3';
const NAME = 'envoy.transport_sockets.tls';

/** Returns the transport socket of a filter chain. `common`: merged into common_tls_context. */
export function serverTls(certificates: readonly IssuedCertificate[], common: Config = {}, more: Config = {}): Config {
  const context = { common_tls_context: { tls_certificates: certificates.map(tlsCertificate), ...common }, ...more };
  return { name: NAME, typed_config: { '@type': `${TLS}.DownstreamTlsContext`, ...context } };
}

/** Returns the transport socket of a cluster. */
export function clientTls(common: Config = {}, more: Config = {}): Config {
  return { name: NAME, typed_config: { '@type': `${TLS}.UpstreamTlsContext`, common_tls_context: common, ...more } };
}

export function tlsCertificate({ chain, key }: IssuedCertificate): Config {
  return { certificate_chain: { inline_string: chain }, private_key: { inline_string: key } };
}

export function trustedCa({ certificate }: IssuedCertificate): Config {
  return { trusted_ca: { inline_string: certificate } };
}

/** Returns a listener with an HTTP connection manager behind TLS. */
export function httpsListener(name: string, tls: Config, manager: Config, chain: Config = {}): Config {
  const listener = httpListener(name, 0, manager);
  const [only] = listener['filter_chains'] as Config[];
  return { ...listener, filter_chains: [{ ...only, transport_socket: tls, ...chain }] };
}

export interface SecureAnswer {
  readonly status: number;
  readonly body: string;
  readonly socket: TLSSocket;
}

/** Sends one request on a new connection. Rejects when the handshake or the connection fails. */
export function httpsGet(port: number, options: ConnectionOptions, path = '/'): Promise<SecureAnswer> {
  const answer = new Promise<SecureAnswer>((resolve, reject) => {
    const socketOptions = { host: '127.0.0.1', port, path, agent: false, servername: 'server.test', ...options };
    const sent = request(socketOptions as object, (response) => {
      const socket = response.socket as TLSSocket;
      let body = '';
      response.setEncoding('utf8').on('data', (chunk: string) => {
        body += chunk;
      });
      response.on('end', () => resolve({ status: response.statusCode!, body, socket }));
      response.on('error', reject);
    });
    sent.on('error', reject);
    sent.end();
  });
  return withDeadline(answer, `an answer over TLS from port ${port}`);
}

/** Connects and waits for the end of the handshake. Ends with the test. */
export function secureConnection(t: Teardown, port: number, options: ConnectionOptions): Promise<TLSSocket> {
  const connected = new Promise<TLSSocket>((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port, servername: 'server.test', ...options });
    t.teardown(() => socket.destroy());
    socket.once('secureConnect', () => resolve(socket));
    socket.on('error', reject);
  });
  return withDeadline(connected, `a TLS connection to port ${port}`);
}

export interface SecureHost {
  readonly port: number;
  /** Connections whose handshake has finished. */
  readonly sockets: TLSSocket[];
}

/** Starts a host that serves HTTP/1.1 over TLS. */
export async function startSecureHost(
  t: Teardown,
  certificate: IssuedCertificate,
  listener: RequestListener,
  options: ServerOptions = {},
): Promise<SecureHost> {
  const server = createSecureServer({ cert: certificate.chain, key: certificate.key, ...options }, listener);
  const sockets: TLSSocket[] = [];
  server.on('secureConnection', (socket) => sockets.push(socket));
  server.on('tlsClientError', () => {});
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  return { port: (server.address() as AddressInfo).port, sockets };
}

/** Starts a host that serves plain HTTP/1.1. */
export async function startPlainHost(t: Teardown, listener: RequestListener): Promise<number> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}
