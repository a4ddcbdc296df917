// Certificates for tests: authorities that issue certificates of any key, name and lifetime, in PEM form.

import 'reflect-metadata';
import { webcrypto } from 'node:crypto';
import * as x509 from '@peculiar/x509';

x509.cryptoProvider.set(webcrypto as never);

const DAY_MS = 86_400_000;

const ALGORITHMS = {
  'P-256': { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' },
  'P-384': { name: 'ECDSA', namedCurve: 'P-384', hash: 'SHA-384' },
  'RSA-2048': {
    name: 'RSASSA-PKCS1-v1_5',
    modulusLength: 2048,
    publicExponent: new Uint8Array([1, 0, 1]),
    hash: 'SHA-256',
  },
} as const;

export type KeyKind = keyof typeof ALGORITHMS;
export type SubjectName = { type: 'dns' | 'ip' | 'email' | 'url'; value: string };

export interface CertificateRequest {
  /** The common name; '' for an empty subject. Default: the first DNS name. */
  readonly commonName?: string;
  /** A whole subject, as in RFC 4514. Replaces `commonName`. */
  readonly subject?: string;
  /** DNS names, or names of other types. */
  readonly names?: readonly (string | SubjectName)[];
  readonly key?: KeyKind;
  /** From when to when it is valid, in days from now. Default: -1 to 30. */
  readonly validDays?: readonly [number, number];
  /** Clients may expect an OCSP response with it. */
  readonly isMustStaple?: boolean;
  /** For an X.509-SVID: it may sign, but neither certificates nor revocation lists. */
  readonly isOfWorkload?: boolean;
  /** It can issue certificates. */
  readonly isAuthority?: boolean;
}

/** A certificate with its key, in PEM form. */
export interface IssuedCertificate {
  /** The certificate alone. */
  readonly certificate: string;
  /** The certificate, followed by those of the intermediate authorities that issued it. */
  readonly chain: string;
  readonly key: string;
  readonly x509: x509.X509Certificate;
}

let serials = 0x1000;

/** Issues certificates. Its own certificate is what peers trust. */
export class Authority implements IssuedCertificate {
  readonly certificate: string;
  readonly chain: string;
  readonly key: string;
  readonly x509: x509.X509Certificate;
  readonly #keys: webcrypto.CryptoKeyPair;
  readonly #algorithm: (typeof ALGORITHMS)[KeyKind];

  private constructor(made: Made, chain: string) {
    this.x509 = made.certificate;
    this.certificate = made.certificate.toString('pem');
    this.chain = chain;
    this.key = made.key;
    this.#keys = made.keys;
    this.#algorithm = made.algorithm;
  }

  /** Creates a self-signed authority. */
  static async create(commonName = 'Test Root', key: KeyKind = 'P-256'): Promise<Authority> {
    const made = await make({ commonName, key, isAuthority: true, validDays: [-1, 3650] }, undefined);
    return new Authority(made, made.certificate.toString('pem'));
  }

  /** Issues the certificate of a server or client. */
  async issue(request: CertificateRequest = {}): Promise<IssuedCertificate> {
    const made = await make(request, this.#issuer);
    const certificate = made.certificate.toString('pem');
    return { certificate, chain: `${certificate}\n${this.#issuerChain}`, key: made.key, x509: made.certificate };
  }

  /** Issues the certificate of an intermediate authority. */
  async issueAuthority(commonName: string): Promise<Authority> {
    const made = await make({ commonName, isAuthority: true }, this.#issuer);
    return new Authority(made, `${made.certificate.toString('pem')}\n${this.#issuerChain}`);
  }

  /** Returns a revocation list that names `revoked`, in PEM form. */
  async revoke(revoked: readonly IssuedCertificate[]): Promise<string> {
    const list = await x509.X509CrlGenerator.create({
      issuer: this.x509.subject,
      thisUpdate: new Date(Date.now() - DAY_MS),
      nextUpdate: new Date(Date.now() + 30 * DAY_MS),
      signingAlgorithm: this.#algorithm,
      signingKey: this.#keys.privateKey,
      entries: revoked.map((each) => ({ serialNumber: each.x509.serialNumber, revocationDate: new Date() })),
    });
    return x509.PemConverter.encode(list.rawData, 'X509 CRL');
  }

  get #issuer(): Issuer {
    return { name: this.x509.subject, keys: this.#keys, algorithm: this.#algorithm };
  }

  /** The part of a chain that follows a certificate of this authority: its own chain, unless it is a root. */
  get #issuerChain(): string {
    return this.x509.subject === this.x509.issuer ? '' : this.chain;
  }
}

/** RFC 7633. */
const TLS_FEATURE = '1.3.6.1.5.5.7.1.24';
const STATUS_REQUEST = Uint8Array.of(0x30, 3, 2, 1, 5);

interface Issuer {
  readonly name: string;
  readonly keys: webcrypto.CryptoKeyPair;
  readonly algorithm: (typeof ALGORITHMS)[KeyKind];
}

interface Made {
  readonly certificate: x509.X509Certificate;
  readonly keys: webcrypto.CryptoKeyPair;
  readonly key: string;
  readonly algorithm: (typeof ALGORITHMS)[KeyKind];
}

async function make(request: CertificateRequest, issuer: Issuer | undefined): Promise<Made> {
  const algorithm = ALGORITHMS[request.key ?? 'P-256'];
  const keys = (await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])) as webcrypto.CryptoKeyPair;
  const names = (request.names ?? []).map((name) =>
    typeof name === 'string' ? { type: 'dns' as const, value: name } : name,
  );
  const firstDns = names.find(({ type }) => type === 'dns')?.value;
  const commonName = request.commonName ?? firstDns ?? 'test';
  const subject = request.subject ?? (commonName === '' ? '' : `CN=${commonName}`);
  const [from, to] = request.validDays ?? [-1, 30];
  const extensions: x509.Extension[] = [
    new x509.BasicConstraintsExtension(request.isAuthority === true, undefined, true),
    await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
  ];
  if (issuer !== undefined) extensions.push(await x509.AuthorityKeyIdentifierExtension.create(issuer.keys.publicKey));
  if (request.isOfWorkload) extensions.push(new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true));
  if (names.length > 0) extensions.push(new x509.SubjectAlternativeNameExtension(names));
  if (request.isMustStaple) extensions.push(new x509.Extension(TLS_FEATURE, false, STATUS_REQUEST));
  const certificate = await x509.X509CertificateGenerator.create({
    serialNumber: (serials++).toString(16),
    subject,
    issuer: issuer?.name ?? subject,
    notBefore: new Date(Date.now() + from * DAY_MS),
    notAfter: new Date(Date.now() + to * DAY_MS),
    signingAlgorithm: issuer?.algorithm ?? algorithm,
    publicKey: keys.publicKey,
    signingKey: issuer?.keys.privateKey ?? keys.privateKey,
    extensions,
  });
  const key = x509.PemConverter.encode(await webcrypto.subtle.exportKey('pkcs8', keys.privateKey), 'PRIVATE KEY');
  return { certificate, keys, key, algorithm };
}
