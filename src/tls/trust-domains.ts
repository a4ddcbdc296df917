// The trust domains of a validation context with the SPIFFE validator: which authorities vouch for the workloads of which domain.

import { BatonError, messageOf } from '../common/errors/errors.js';
import { shownName } from '../common/text/shown.js';
import type {
  CertificateValidationContext,
  SPIFFECertValidatorConfig,
  SPIFFECertValidatorConfig_TrustDomain,
} from '../config/generated/api.js';
import type { TlsTrustDomain } from '../io/shim.js';
import type { ReadSource } from './source-reader.js';

/** A domain with what is shown of its origin. */
export interface TrustDomain extends TlsTrustDomain {
  /** The path of its file; `<inline>` for authorities in the configuration. */
  readonly path: string;
}

/** Returns the configuration of the SPIFFE validator; undefined: certificates are verified against `trusted_ca`. */
export function spiffeValidator(
  validation: CertificateValidationContext | undefined,
): SPIFFECertValidatorConfig | undefined {
  // The only validator that the loader accepts.
  return validation?.custom_validator_config?.typed_config as SPIFFECertValidatorConfig | undefined;
}

/** Returns the trust domains of a context; empty without the validator. Throws BatonError for those that cannot be read. */
export function trustDomainsOf(
  validation: CertificateValidationContext | undefined,
  read: ReadSource,
): readonly TrustDomain[] {
  const config = spiffeValidator(validation);
  if (config === undefined) return [];
  const { trust_bundles: bundles, trust_domains: domains = [] } = config;
  if (bundles === undefined) return domains.map((domain) => ({ ...named(domain), roots: read(domain.trust_bundle!) }));
  const path = bundles.filename ?? '<inline>';
  return bundleMap(read(bundles)).map((domain) => ({ ...domain, path }));
}

function named({ name = '', trust_bundle: bundle }: SPIFFECertValidatorConfig_TrustDomain) {
  return { name, path: bundle?.filename ?? '<inline>' };
}

interface BundleKey {
  readonly use?: unknown;
  readonly x5c?: unknown;
}

/**
 * Reads a SPIFFE trust bundle map: `{"trust_domains": {"<name>": {"keys": [{"use": "x509-svid", "x5c": ["<base64 of DER>", …]}]}}}`.
 * Throws BatonError for another form.
 */
export function bundleMap(bytes: Buffer): TlsTrustDomain[] {
  let map: unknown;
  try {
    map = JSON.parse(bytes.toString());
  } catch (error) {
    throw mistake(`it is not JSON: ${messageOf(error)}`);
  }
  // A domain without a name vouches for nobody, as in Envoy: certificates without an ID have none either.
  const domains = entriesOf(property(map, 'trust_domains')).filter(([name]) => name !== '');
  if (domains.length === 0) throw mistake('it has no trust_domains');
  return domains.map(([name, domain]) => {
    const keys = property(domain, 'keys');
    const where = `the domain '${shownName(name)}'`;
    if (!Array.isArray(keys) || keys.length === 0) throw mistake(`${where} has no keys`);
    return { name, roots: Buffer.from(keys.map((key: BundleKey) => pemOf(key, where)).join('')) };
  });
}

function pemOf(key: BundleKey, where: string): string {
  const certificates = property(key, 'x5c');
  if (property(key, 'use') !== 'x509-svid') throw mistake(`${where} has a key whose use is not x509-svid`);
  if (!Array.isArray(certificates) || certificates.length === 0) throw mistake(`${where} has a key without x5c`);
  return certificates
    .map((text) => {
      if (typeof text !== 'string' || !BASE64.test(text))
        throw mistake(`${where} has a certificate that is not base64`);
      return `-----BEGIN CERTIFICATE-----\n${text.replace(/.{64}/g, '$&\n')}\n-----END CERTIFICATE-----\n`;
    })
    .join('');
}

const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;

function property(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    ? (value as { [name: string]: unknown })[name]
    : undefined;
}

function entriesOf(value: unknown): [string, unknown][] {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? Object.entries(value) : [];
}

function mistake(what: string): BatonError {
  return new BatonError('CONFIG_INVALID', `the trust bundles cannot be used: ${what}`);
}
