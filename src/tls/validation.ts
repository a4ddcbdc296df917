// Validation contexts: how a default one and a secret are combined, and which say nothing about who a peer is.

import { shownName } from '../common/text/shown.js';
import type { CertificateValidationContext, SPIFFECertValidatorConfig } from '../config/generated/api.js';
import { spiffeValidator } from './trust-domains.js';

/** A mistake in a validation context; `field` is one of its own. */
export interface ValidationMistake {
  readonly field: keyof CertificateValidationContext;
  readonly message: string;
}

/** Returns why a context must not be used; undefined: it may. */
export function validationMistake(context: CertificateValidationContext): ValidationMistake | undefined {
  const { match_subject_alt_names: untyped = [], match_typed_subject_alt_names: typed = [] } = context;
  const hasRoots = context.trusted_ca !== undefined || context.system_root_certs !== undefined;
  const validator = spiffeValidator(context);
  if (validator !== undefined) return spiffeMistake(context, validator);
  if (context.trusted_ca !== undefined && context.system_root_certs !== undefined) {
    const message = 'trusted_ca replaces the roots of the system: leave one of them out';
    return { field: 'system_root_certs', message };
  }
  // Anybody can make a certificate with any name.
  if (typed.length + untyped.length > 0 && !hasRoots) {
    const message = 'names prove nothing without trusted_ca: set it, or leave them out';
    return { field: typed.length > 0 ? 'match_typed_subject_alt_names' : 'match_subject_alt_names', message };
  }
  if (context.crl !== undefined && !hasRoots) return { field: 'crl', message: 'a revocation list needs trusted_ca' };
  return undefined;
}

/** Envoy ignores what its SPIFFE validator does not read, except names, of which it drops those that are no URIs. */
function spiffeMistake(
  context: CertificateValidationContext,
  { trust_bundles: bundles, trust_domains: domains = [] }: SPIFFECertValidatorConfig,
): ValidationMistake | undefined {
  const refused = (field: keyof CertificateValidationContext, message: string): ValidationMistake => ({
    field,
    message,
  });
  const known = new Set<string>();
  for (const { name = '', trust_bundle: bundle } of domains) {
    if (known.has(name))
      return refused('custom_validator_config', `it has two trust bundles for the domain '${shownName(name)}'`);
    known.add(name);
    if (bundles === undefined && bundle === undefined) {
      return refused('custom_validator_config', `the domain '${shownName(name)}' needs a trust_bundle`);
    }
  }
  for (const field of NOT_OF_SPIFFE) {
    const value = context[field];
    const isSet = Array.isArray(value) ? value.length > 0 : value !== undefined && value !== false;
    if (isSet && value !== 'VERIFY_TRUST_CHAIN')
      return refused(field, 'the SPIFFE validator does not read it: leave it out');
  }
  const others = (context.match_typed_subject_alt_names ?? []).some(({ san_type: type }) => type !== 'URI');
  const message = 'the SPIFFE validator compares only names of the type URI';
  return others ? refused('match_typed_subject_alt_names', message) : undefined;
}

const NOT_OF_SPIFFE = [
  'crl',
  'verify_certificate_hash',
  'verify_certificate_spki',
  'trust_chain_verification',
  'only_verify_leaf_cert_crl',
  'match_subject_alt_names',
] as const;

/** Combines as Envoy does (MergeFrom of Protocol Buffers): fields of the secret replace those of the default, lists are joined. */
export function combinedValidation(
  defaults: CertificateValidationContext | undefined,
  secret: CertificateValidationContext | undefined,
): CertificateValidationContext | undefined {
  if (defaults === undefined || secret === undefined) return secret ?? defaults;
  return {
    ...defaults,
    ...secret,
    verify_certificate_spki: joined(defaults.verify_certificate_spki, secret.verify_certificate_spki),
    verify_certificate_hash: joined(defaults.verify_certificate_hash, secret.verify_certificate_hash),
    match_typed_subject_alt_names: joined(defaults.match_typed_subject_alt_names, secret.match_typed_subject_alt_names),
    match_subject_alt_names: joined(defaults.match_subject_alt_names, secret.match_subject_alt_names),
  };
}

function joined<T>(first: readonly T[] = [], second: readonly T[] = []): readonly T[] {
  return [...first, ...second];
}
