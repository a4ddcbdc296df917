// The security of a connection whose handshake has finished.

import type { TlsState } from '../shim.js';
import type { Transport } from '../transport/transport.js';
import { Certificate } from './certificate.js';
import type { CertificateFacts, ConnectionSecurity, TlsVersion } from './connection-security.js';

export class SessionSecurity implements ConnectionSecurity {
  readonly version: TlsVersion;
  readonly cipher: string;
  readonly group: string;
  readonly serverName: string;
  readonly applicationProtocol: string;
  readonly isResumed: boolean;
  readonly isPeerVerified: boolean;
  readonly peerChain: readonly Certificate[];
  readonly peerIssuer: CertificateFacts | undefined;
  readonly #sessionId: string;
  readonly #transport: Transport;
  readonly #id: number;
  #local: Certificate | undefined;

  constructor(transport: Transport, id: number, state: TlsState, version: TlsVersion, group: string) {
    this.version = version;
    this.cipher = state.cipher;
    this.group = group;
    this.serverName = state.serverName.toLowerCase();
    this.applicationProtocol = state.alpn;
    this.isResumed = state.isResumed;
    this.isPeerVerified = state.isPeerVerified;
    this.#sessionId = state.sessionId;
    this.#transport = transport;
    this.#id = id;
    this.peerChain = state.hasPeerCertificate
      ? transport.peerCertificates(id).map((der) => new Certificate(der))
      : NONE;
    const issuer = state.isPeerVerified ? transport.peerIssuer(id) : undefined;
    this.peerIssuer = issuer && new Certificate(issuer);
  }

  get sessionId(): string {
    return Buffer.from(this.#sessionId, 'latin1').toString('hex');
  }

  get peer(): CertificateFacts | undefined {
    return this.peerChain[0];
  }

  /** Must be read once before the connection ends, to be known afterwards. */
  get local(): CertificateFacts | undefined {
    if (this.#local === undefined) {
      const der = this.#transport.ownCertificate(this.#id);
      if (der !== undefined) this.#local = new Certificate(der);
    }
    return this.#local;
  }
}

const NONE: readonly Certificate[] = [];
