// connection():ssl(), streamInfo():downstreamSslConnection(): what TLS has established on the client's connection.

import { byteText, type CertificateFacts, type ConnectionSecurity, type LuaMethod, LuaTable } from '../../../../sdk.js';
import { cipherSuiteId } from './cipher-suites.js';
import { LuaClass } from './classes.js';

export class LuaSslConnection {
  readonly security: ConnectionSecurity;

  constructor(security: ConnectionSecurity) {
    this.security = security;
  }

  get lua(): LuaClass {
    return LuaClass.SslConnection;
  }
}

/** parsedSubjectPeerCertificate() */
export class LuaParsedName {
  readonly #certificate: CertificateFacts;

  constructor(certificate: CertificateFacts) {
    this.#certificate = certificate;
  }

  get lua(): LuaClass {
    return LuaClass.ParsedName;
  }

  commonName(): string {
    return byteText(this.#certificate.subjectName.commonName);
  }

  organizationName(): LuaTable {
    return list(this.#certificate.subjectName.organizationNames);
  }
}

export const SSL_CONNECTION: readonly LuaMethod[] = [
  fact('peerCertificatePresented', ({ peer }) => peer !== undefined),
  fact('peerCertificateValidated', ({ isPeerVerified, peer }) => peer !== undefined && isPeerVerified),
  fact('uriSanLocalCertificate', ({ local }) => list(local?.uriSans)),
  fact('sha256PeerCertificateDigest', ({ peer }) => peer?.sha256 ?? ''),
  fact('sha256PeerCertificateIssuerDigest', ({ peerIssuer }) => peerIssuer?.sha256 ?? ''),
  fact('serialNumberPeerCertificate', ({ peer }) => peer?.serial ?? ''),
  fact('serialNumberPeerCertificateIssuer', ({ peerIssuer }) => peerIssuer?.serial ?? ''),
  fact('issuerPeerCertificate', ({ peer }) => byteText(peer?.issuer ?? '')),
  fact('subjectPeerCertificate', ({ peer }) => byteText(peer?.subject ?? '')),
  fact('parsedSubjectPeerCertificate', ({ peer }) => (peer === undefined ? null : new LuaParsedName(peer))),
  fact('uriSanPeerCertificate', ({ peer }) => list(peer?.uriSans)),
  fact('subjectLocalCertificate', ({ local }) => byteText(local?.subject ?? '')),
  fact('urlEncodedPemEncodedPeerCertificate', ({ peer }) => peer?.urlEncodedPem ?? ''),
  fact('urlEncodedPemEncodedPeerCertificateChain', ({ peerChain }) =>
    peerChain.map(({ urlEncodedPem }) => urlEncodedPem).join(''),
  ),
  fact('dnsSansPeerCertificate', ({ peer }) => list(peer?.dnsSans)),
  fact('dnsSansLocalCertificate', ({ local }) => list(local?.dnsSans)),
  fact('oidsPeerCertificate', ({ peer }) => list(peer?.extensionOids)),
  fact('oidsLocalCertificate', ({ local }) => list(local?.extensionOids)),
  fact('validFromPeerCertificate', ({ peer }) => Math.floor((peer?.validFromMs ?? 0) / 1000)),
  fact('expirationPeerCertificate', ({ peer }) => Math.floor((peer?.validUntilMs ?? 0) / 1000)),
  fact('sessionId', ({ sessionId }) => sessionId),
  fact('ciphersuiteId', ({ cipher }) => cipherSuiteId(cipher)),
  fact('ciphersuiteString', ({ cipher }) => cipher),
  fact('tlsVersion', ({ version }) => version),
];

export const PARSED_NAME: readonly LuaMethod[] = [
  ['commonName', '', LuaParsedName.prototype.commonName],
  ['organizationName', '', LuaParsedName.prototype.organizationName],
];

function fact(name: string, of: (security: ConnectionSecurity) => unknown): LuaMethod {
  return [
    name,
    '',
    function (this: LuaSslConnection) {
      return of(this.security);
    },
  ];
}

function list(texts: readonly string[] | undefined): LuaTable {
  return new LuaTable((texts ?? []).flatMap((text, index) => [index + 1, byteText(text)]));
}
