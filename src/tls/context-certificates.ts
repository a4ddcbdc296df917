// The certificates of a TLS context, for people who look at them.

import type { DataSource } from '../config/generated/api.js';
import type { NativeShim, TlsContextSettings } from '../io/shim.js';
import { Certificate } from '../io/tls/certificate.js';
import type { TlsSecrets } from './context-settings.js';

/** A certificate and where it comes from. */
export interface LoadedCertificate {
  /** Of the file; `<inline>` for one in the configuration. */
  readonly path: string;
  readonly certificate: Certificate;
}

export interface ContextCertificates {
  /** The first trusted one, as Envoy shows it. */
  readonly ca: readonly LoadedCertificate[];
  /** Those that are presented, without their issuers. */
  readonly chain: readonly LoadedCertificate[];
}

/** Describes what a context was made of. A certificate in PKCS#12 form is left out. */
export function contextCertificates(
  shim: NativeShim,
  { certificates, validation }: TlsSecrets,
  settings: TlsContextSettings,
): ContextCertificates {
  const first = (pem: Uint8Array | undefined, path: string): LoadedCertificate[] => {
    const der = pem === undefined || pem.length === 0 ? undefined : shim.readPemCertificates(pem)?.[0];
    return der === undefined ? [] : [{ path, certificate: new Certificate(der) }];
  };
  return {
    ca: first(settings.roots, pathOf(validation?.trusted_ca)),
    chain: certificates.flatMap(({ certificate_chain: source }, index) =>
      first(settings.identities[index]?.chain, pathOf(source)),
    ),
  };
}

function pathOf(source: DataSource | undefined): string {
  return source?.filename ?? '<inline>';
}
