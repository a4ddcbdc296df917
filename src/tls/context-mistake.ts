// What the native engine refuses in the settings of a context, in terms of the configuration.

import type { NativeShim, TlsContextSettings, TlsMistake } from '../io/shim.js';

/** A mistake in a TLS context of the configuration; `path` is relative to it. */
export interface ContextMistake {
  readonly path: string;
  readonly message: string;
}

/** Returns what the engine refuses; undefined: it takes the settings. */
export function engineMistake(shim: NativeShim, settings: TlsContextSettings): ContextMistake | undefined {
  const made = shim.createTlsContext(settings);
  if (typeof made !== 'number') return located(made);
  shim.releaseTlsContext(made);
  return undefined;
}

/** The fields of the configuration that the settings come from. */
const PATHS: { readonly [field: string]: string } = {
  minVersion: 'common_tls_context.tls_params.tls_minimum_protocol_version',
  maxVersion: 'common_tls_context.tls_params.tls_maximum_protocol_version',
  ciphers: 'common_tls_context.tls_params.cipher_suites',
  groups: 'common_tls_context.tls_params.ecdh_curves',
  signatureAlgorithms: 'common_tls_context.tls_params.signature_algorithms',
  alpn: 'common_tls_context.alpn_protocols',
  roots: 'common_tls_context.validation_context.trusted_ca',
  crl: 'common_tls_context.validation_context.crl',
};

export function located({ field, reason }: TlsMistake): ContextMistake {
  const domain = /^trustDomains(\[\d+\])$/.exec(field)?.[1];
  if (domain !== undefined) {
    const path = `common_tls_context.validation_context.custom_validator_config.typed_config.trust_domains${domain}`;
    return { path, message: refusalText(reason) };
  }
  const index = /^identities(\[\d+\])$/.exec(field)?.[1];
  if (index === undefined) return { path: PATHS[field] ?? 'common_tls_context', message: refusalText(reason) };
  const [part, ...rest] = reason.split(': ');
  return { path: `common_tls_context.tls_certificates${index}.${part}`, message: refusalText(rest.join(': ')) };
}

function refusalText(reason: string): string {
  if (/passphrase|bad password|bad decrypt/.test(reason))
    return 'the key is encrypted, and password does not decrypt it';
  if (reason.includes('no start line')) return 'no certificate or key in PEM (-----BEGIN …-----)';
  return `OpenSSL refuses it: ${reason}`;
}
