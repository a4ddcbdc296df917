// Describes the certificates of a TLS context, for /certs and for stats.

import { createHash } from 'node:crypto';
import type { DataSource } from '../config/generated/api.js';
import type { NativeShim, OcspTimes, TlsContextSettings } from '../io/shim.js';
import { Certificate } from '../io/tls/certificate.js';
import type { TlsSecrets } from './secrets/context-secrets.js';
import type { TrustDomain } from './trust-domains.js';

/** A certificate and where it comes from. */
export interface LoadedCertificate {
  /** The path of its file; `<inline>` for a certificate in the configuration. */
  readonly path: string;
  /** Its name in stats. */
  readonly statName: string;
  readonly certificate: Certificate;
  /** The times of the OCSP response that a server sends with it. */
  readonly ocsp?: OcspTimes | undefined;
}

export interface ContextCertificates {
  /** The first trusted certificate: Envoy shows only that. All, with trust domains. */
  readonly ca: readonly LoadedCertificate[];
  /** Those that are presented, without their issuers. */
  readonly chain: readonly LoadedCertificate[];
}

/** Describes what a context was made of. A certificate in PKCS#12 form is left out. */
export function contextCertificates(
  shim: NativeShim,
  { certificateNames, certificates, validation, validationName }: TlsSecrets,
  settings: TlsContextSettings,
): ContextCertificates {
  const first = (pem: Uint8Array | undefined, source: DataSource | undefined, statName: string) => {
    const der = pem === undefined || pem.length === 0 ? undefined : shim.readPemCertificates(firstBlock(pem))?.[0];
    return der === undefined ? [] : [{ path: pathOf(source), statName, certificate: new Certificate(der) }];
  };
  const { trusted_ca: ca } = validation ?? {};
  const authorities = (settings.trustDomains as readonly TrustDomain[]).flatMap(({ name, path, roots }) =>
    (shim.readPemCertificates(roots) ?? []).map((der) => ({
      path: `${name}: ${path}`,
      certificate: new Certificate(der),
    })),
  );
  const named = authorities.map((each, index) => ({
    ...each,
    statName: `${validationName || 'unnamed_ca_cert'}_${index}`,
  }));
  return {
    ca: named.length > 0 ? named : first(settings.roots, ca, validationName || `unnamed_ca_cert_${digestOf(ca)}`),
    chain: certificates.flatMap(({ certificate_chain: source }, index) => {
      const statName = certificateNames[index] || `unnamed_cert_${digestOf(source)}`;
      const { chain, ocspStaple: staple } = settings.identities[index] ?? {};
      const ocsp = settings.isServer && staple?.length ? shim.describeOcspResponse(staple) : undefined;
      return first(chain, source, statName).map((found) => ({ ...found, ocsp }));
    }),
  };
}

const END = 'CERTIFICATE-----';

/** Returns the text up to the end of its first certificate: a bundle may have thousands. */
function firstBlock(pem: Uint8Array): Uint8Array {
  const text = Buffer.from(pem.buffer, pem.byteOffset, pem.length);
  const end = text.indexOf(END, text.indexOf(END) + END.length);
  return end < 0 ? pem : Buffer.concat([text.subarray(0, end + END.length), Buffer.of(0x0a)]);
}

function pathOf(source: DataSource | undefined): string {
  return source?.filename ?? '<inline>';
}

/** As in Envoy, only `inline_bytes` are digested; every other source has the digest of no bytes. */
function digestOf(source: DataSource | undefined): string {
  const bytes = Buffer.from(source?.inline_bytes ?? '', 'base64');
  return createHash('sha256').update(bytes).digest('hex').slice(0, 8);
}
