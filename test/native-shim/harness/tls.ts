// TLS contexts, servers and clients for the tests of the native engine.

import { connect as connectTls, type TLSSocket } from 'node:tls';
import { Event, OcspPolicy, Op, type TlsContextSettings, TlsVerify } from '../../../src/io/shim.js';
import { Authority, type IssuedCertificate } from '../../e2e/harness/certificates.js';
import { internet, Rig, shim } from './harness.js';

export const loopback = internet('127.0.0.1');
export const root = await Authority.create();
export const server = await root.issue({ names: ['server.test'] });

export function settings(changes: Partial<TlsContextSettings> = {}): TlsContextSettings {
  return {
    isServer: true,
    minVersion: 0x0303,
    maxVersion: 0x0304,
    securityLevel: 1,
    ciphers: '',
    cipherSuites: '',
    groups: '',
    signatureAlgorithms: '',
    alpn: new Uint8Array(),
    prefersClientCiphers: false,
    identities: changes.isServer === false ? [] : [identity(server)],
    scansAllIdentities: false,
    verify: TlsVerify.None,
    roots: new Uint8Array(),
    crl: new Uint8Array(),
    trustDomains: [],
    verifyDepth: -1,
    checksLeafCrlOnly: false,
    allowsExpired: false,
    sendsRootNames: true,
    peerRules: '',
    requiresServerName: false,
    ocspPolicy: OcspPolicy.Lenient,
    sessionIdContext: Buffer.from('test'),
    hasTickets: true,
    hasStatefulSessions: true,
    sessionSeconds: 0,
    maxClientSessions: 0,
    allowsRenegotiation: false,
    keepsKeys: false,
    ...changes,
  };
}

export function identity(issued: IssuedCertificate) {
  return { chain: Buffer.from(issued.chain), key: Buffer.from(issued.key) };
}

export function context(changes: Partial<TlsContextSettings> = {}): number {
  const made = shim.createTlsContext(settings(changes));
  if (typeof made !== 'number') throw new Error(`${made.field}: ${made.reason}`);
  return made;
}

/** A transport that serves TLS and answers each piece with the same bytes. */
export function echoServer(number: number): { rig: Rig; port: number } {
  const rig = new Rig({
    onEvent: (event) => {
      if (event.kind === Event.Accept) rig.transport.startTls(event.id, number);
      if (event.kind === Event.Data) rig.send(event.id, event.bytes);
      if (event.kind === Event.End || event.kind === Event.Reset) rig.submit(Op.Close, event.id, 5000, 0);
      if (event.kind === Event.HandshakeFailed) rig.submit(Op.Close, event.id, 5000, 0);
    },
  });
  return { rig, port: rig.listen(loopback).port };
}

export function client(port: number, options: object = {}): TLSSocket {
  const socket = connectTls({ port, host: '127.0.0.1', servername: 'server.test', ca: root.certificate, ...options });
  socket.on('error', () => {});
  return socket;
}

export async function secure(socket: TLSSocket): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    socket.once('secureConnect', resolve);
    socket.once('error', reject);
  });
}

export async function exchange(socket: TLSSocket, bytes: Buffer): Promise<Buffer> {
  const received: Buffer[] = [];
  let length = 0;
  const done = new Promise<void>((resolve, reject) => {
    socket.on('data', (chunk: Buffer) => {
      received.push(chunk);
      length += chunk.length;
      if (length >= bytes.length) resolve();
    });
    socket.once('close', () => reject(new Error(`closed after ${length} of ${bytes.length} bytes`)));
  });
  socket.write(bytes);
  await done;
  return Buffer.concat(received);
}
