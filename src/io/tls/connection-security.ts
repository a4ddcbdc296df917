// What TLS has established on a connection with a client or with an upstream host: the facts that access logs, headers, routes and
// policies read. Types only. The transport creates one object when a handshake succeeds; `undefined` stands for a connection
// without TLS, so that a plain connection costs nothing.
//
// An implementation is immutable and cheap to create: version, cipher and names are strings that the transport has anyway, and
// certificates stay in DER. CertificateFacts are computed when they are first read and then kept, because most connections never
// need them (src/io/tls/certificate.ts computes them from DER).

/** Envoy's names. */
export type TlsVersion = 'TLSv1' | 'TLSv1.1' | 'TLSv1.2' | 'TLSv1.3';

/** Exists from the end of the handshake to the end of the connection, also when the connection is handed to a log afterwards. */
export interface ConnectionSecurity {
  /** %DOWNSTREAM_TLS_VERSION% */
  readonly version: TlsVersion;
  /** OpenSSL's name, for example `TLS_AES_128_GCM_SHA256` or `ECDHE-RSA-AES128-GCM-SHA256`. */
  readonly cipher: string;
  /** The group of the key exchange in Envoy's spelling, for example `X25519` or `P-256`; '' if there was none. */
  readonly group: string;
  /** In hexadecimal, lower case; '' if the session has none. A new session of TLS 1.3 has none that both sides share. */
  readonly sessionId: string;
  /** SNI: as the client sent it, in lower case; of a connection to a host, as sent to the host. '' without. */
  readonly serverName: string;
  /** The protocol that ALPN has selected, for example `h2`; '' without. */
  readonly applicationProtocol: string;
  /** The handshake has resumed an earlier session. Certificates are then those of that session. */
  readonly isResumed: boolean;
  /** The peer's certificate was verified against a trusted CA or a pinned value. False with ACCEPT_UNTRUSTED after a failure. */
  readonly isPeerVerified: boolean;
  /** The peer's certificate. Undefined if it has sent none: a client usually does not. */
  readonly peer: CertificateFacts | undefined;
  /** What the peer has sent, its own certificate first; not the verified chain. Empty without `peer`. */
  readonly peerChain: readonly CertificateFacts[];
  /** The issuer's certificate in the verified chain. Undefined if nothing was verified against a CA. */
  readonly peerIssuer: CertificateFacts | undefined;
  /** The certificate that this side has presented. Undefined if it has presented none. */
  readonly local: CertificateFacts | undefined;
}

/**
 * The contents of one X.509 certificate. Its issuer chooses the texts, and anybody can issue certificates: they may contain any character but control
 * characters, which are escaped.
 */
export interface CertificateFacts {
  readonly der: Uint8Array;
  /** Distinguished names in the form of RFC 2253, for example `CN=Steve Kille,O=Isode Limited,C=GB`. */
  readonly subject: string;
  readonly issuer: string;
  readonly subjectName: ParsedName;
  /** In hexadecimal, lower case, without leading zero bytes. */
  readonly serial: string;
  /** Digests of `der` in hexadecimal, lower case. */
  readonly sha256: string;
  readonly sha1: string;
  /** Subject alternative names of each kind, in the order of the certificate. */
  readonly uriSans: readonly string[];
  readonly dnsSans: readonly string[];
  readonly ipSans: readonly string[];
  readonly emailSans: readonly string[];
  readonly otherNameSans: readonly string[];
  /** Object identifiers of the extensions, in dotted form. */
  readonly extensionOids: readonly string[];
  /** With line breaks, as in a file. */
  readonly pem: string;
  /** `pem` with the escapes of a URL, as Envoy writes it to headers and logs. */
  readonly urlEncodedPem: string;
  /** Wall clock, in milliseconds. */
  readonly validFromMs: number;
  readonly validUntilMs: number;
}

/** The parts of a subject that Envoy's matchers use separately, unescaped. */
export interface ParsedName {
  /** The last one of several; '' without. */
  readonly commonName: string;
  readonly organizationNames: readonly string[];
}
