// What TLS would have established, for tests without a handshake.

import { Certificate } from '../../../src/io/tls/certificate.js';
import type { ConnectionSecurity } from '../../../src/io/tls/connection-security.js';
import { issuer, minimal, server, client as withAllNames } from './certificates.js';

const SERVER = new Certificate(server);
const ISSUER = new Certificate(issuer);

/** A client without a certificate. */
export const anonymous: ConnectionSecurity = {
  version: 'TLSv1.3',
  cipher: 'TLS_AES_128_GCM_SHA256',
  group: 'X25519',
  sessionId: '',
  serverName: 'srv.example.com',
  applicationProtocol: 'http/1.1',
  isResumed: false,
  isPeerVerified: false,
  peer: undefined,
  peerChain: [],
  peerIssuer: undefined,
  local: SERVER,
};

/** A client whose certificate has every kind of name. */
export const authenticated = withPeer(new Certificate(withAllNames), ISSUER);

/** A client whose certificate has no alternative names. */
export const nameless = withPeer(new Certificate(minimal));

function withPeer(peer: Certificate, peerIssuer?: Certificate): ConnectionSecurity {
  const peerChain = peerIssuer === undefined ? [peer] : [peer, peerIssuer];
  return { ...anonymous, isPeerVerified: true, peer, peerChain, peerIssuer };
}
