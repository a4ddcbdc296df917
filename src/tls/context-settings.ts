// Converts a checked TLS context of the configuration to the settings of the native engine.

import { createHash } from 'node:crypto';
import { BatonError } from '../common/errors/errors.js';
import { durationMs } from '../common/time/duration.js';
import type {
  CertificateValidationContext,
  CommonTlsContext,
  DataSource,
  DownstreamTlsContext,
  DownstreamTlsContext_OcspStaplePolicy,
  SubjectAltNameMatcher,
  TlsCertificate,
  TlsParameters,
  UpstreamTlsContext,
} from '../config/generated/api.js';
import { OcspPolicy, type TlsContextSettings, type TlsIdentity, TlsVerify } from '../io/shim.js';
import {
  alpnBytes,
  cipherList,
  DEFAULT_CIPHERS,
  DEFAULT_GROUPS,
  groupList,
  POLICY_PARAMETERS,
  TLS13_CIPHER_SUITES,
  versionNumber,
} from './algorithms.js';
import { NameType } from './certificate-names.js';
import type { NameRule, PeerRules } from './peer-rules.js';
import type { TlsSecrets } from './secrets/context-secrets.js';
import { type ReadSource, readSource } from './source-reader.js';
import { readSystemRoots } from './system-roots.js';
import { spiffeValidator, trustDomainsOf } from './trust-domains.js';

/**
 * Returns the settings of a server. `serverNames`: those of the filter chain, whose sessions no other chain resumes.
 * @throws BatonError for a file that cannot be read
 */
export function serverSettings(
  context: DownstreamTlsContext,
  secrets: TlsSecrets,
  serverNames: readonly string[],
  read: ReadSource = readSource,
): TlsContextSettings {
  const settings = commonSettings(context.common_tls_context ?? {}, secrets, true, read);
  const verifies = secrets.validation !== undefined;
  // As in Envoy, a workload has to present a certificate.
  const verify =
    context.require_client_certificate || settings.trustDomains.length > 0
      ? TlsVerify.Required
      : verifies
        ? TlsVerify.Optional
        : TlsVerify.None;
  const sessionIdContext = createHash('sha256');
  for (const { chain, pkcs12 } of settings.identities) sessionIdContext.update(sized(chain ?? pkcs12!));
  for (const bytes of [settings.roots, settings.crl, settings.peerRules, JSON.stringify(serverNames)])
    sessionIdContext.update(sized(bytes));
  for (const { name, roots } of settings.trustDomains) sessionIdContext.update(sized(name)).update(sized(roots));
  sessionIdContext.update(`${verify} ${settings.verifyDepth} ${settings.allowsExpired} ${settings.checksLeafCrlOnly}`);
  return {
    ...settings,
    verify,
    sessionIdContext: sessionIdContext.digest(),
    prefersClientCiphers: context.prefer_client_ciphers ?? false,
    scansAllIdentities: context.full_scan_certs_on_sni_mismatch ?? false,
    requiresServerName: context.require_sni ?? false,
    ocspPolicy: OCSP_POLICIES[context.ocsp_staple_policy ?? 'LENIENT_STAPLING'],
    hasTickets: !(context.disable_stateless_session_resumption ?? false),
    hasStatefulSessions: !(context.disable_stateful_session_resumption ?? false),
    sessionSeconds: Math.round(durationMs(context.session_timeout, 0) / 1000),
  };
}

/**
 * Returns the settings of a client.
 * @throws BatonError for a file that cannot be read
 */
export function clientSettings(
  context: UpstreamTlsContext,
  secrets: TlsSecrets,
  read: ReadSource = readSource,
): TlsContextSettings {
  const settings = commonSettings(context.common_tls_context ?? {}, secrets, false, read);
  return {
    ...settings,
    verify: secrets.validation === undefined ? TlsVerify.None : TlsVerify.Required,
    maxClientSessions: context.max_session_keys ?? 1,
    allowsRenegotiation: context.allow_renegotiation ?? false,
  };
}

function commonSettings(
  context: CommonTlsContext,
  secrets: TlsSecrets,
  isServer: boolean,
  read: ReadSource,
): TlsContextSettings {
  const parameters = context.tls_params ?? {};
  const { validation } = secrets;
  return {
    isServer,
    ...algorithms(parameters, isServer),
    alpn: alpnBytes(context.alpn_protocols ?? []),
    prefersClientCiphers: false,
    identities: secrets.certificates.map((each) => identity(each, read)),
    scansAllIdentities: false,
    requiresServerName: false,
    ocspPolicy: OcspPolicy.Lenient,
    verify: TlsVerify.None,
    ...authorities(validation, read),
    verifyDepth: validation?.max_verify_depth ?? -1,
    checksLeafCrlOnly: validation?.only_verify_leaf_cert_crl ?? false,
    allowsExpired: validation?.allow_expired_certificate ?? false,
    sendsRootNames: !(validation?.suppress_client_ca_list ?? false),
    peerRules: validation === undefined ? '' : JSON.stringify(peerRulesOf(validation)),
    sessionIdContext: NONE,
    hasTickets: false,
    hasStatefulSessions: false,
    sessionSeconds: 0,
    maxClientSessions: 0,
    allowsRenegotiation: false,
    keepsKeys: context.key_log !== undefined,
  };
}

function algorithms(parameters: TlsParameters, isServer: boolean) {
  const policy = parameters.compliance_policies?.map((name) => POLICY_PARAMETERS[name])[0];
  if (policy !== undefined) return { ...policy, securityLevel: 1 };
  const minVersion = versionNumber(parameters.tls_minimum_protocol_version, 0x0303);
  const maxVersion = versionNumber(parameters.tls_maximum_protocol_version, isServer ? 0x0304 : 0x0303);
  const { cipher_suites: ciphers = [], ecdh_curves: curves = [], signature_algorithms: signatures = [] } = parameters;
  return {
    minVersion,
    maxVersion,
    // Older versions sign with SHA-1, which OpenSSL permits only at level 0.
    securityLevel: minVersion < 0x0303 ? 0 : 1,
    ciphers: cipherList(ciphers.length > 0 ? ciphers : DEFAULT_CIPHERS),
    cipherSuites: TLS13_CIPHER_SUITES,
    groups: groupList(curves.length > 0 ? curves : DEFAULT_GROUPS),
    signatureAlgorithms: signatures.join(':'),
  };
}

const OCSP_POLICIES: { readonly [policy in DownstreamTlsContext_OcspStaplePolicy]: OcspPolicy } = {
  LENIENT_STAPLING: OcspPolicy.Lenient,
  STRICT_STAPLING: OcspPolicy.Strict,
  MUST_STAPLE: OcspPolicy.MustStaple,
};

function identity(certificate: TlsCertificate, read: ReadSource): TlsIdentity {
  const bytesOf = (source: DataSource | undefined) => source && read(source);
  const { certificate_chain: chain, ocsp_staple: staple, password, pkcs12, private_key: key } = certificate;
  return {
    chain: bytesOf(chain),
    key: bytesOf(key),
    pkcs12: bytesOf(pkcs12),
    password: bytesOf(password)
      ?.toString()
      .replace(/\r?\n$/, ''),
    ocspStaple: bytesOf(staple),
  };
}

/** With the SPIFFE validator only its bundles count, as in Envoy. */
function authorities(validation: CertificateValidationContext | undefined, read: ReadSource) {
  const trustDomains = trustDomainsOf(validation, read);
  if (trustDomains.length > 0) return { trustDomains, roots: NONE, crl: NONE };
  return { trustDomains, roots: rootsOf(validation, read), crl: crlOf(validation, read) };
}

function rootsOf(validation: CertificateValidationContext | undefined, read: ReadSource): Uint8Array {
  if (validation?.trusted_ca !== undefined) {
    const roots = read(validation.trusted_ca);
    // The engine verifies no chain without roots.
    if (roots.length === 0) throw new BatonError('CONFIG_INVALID', 'trusted_ca is empty');
    return roots;
  }
  return validation?.system_root_certs === undefined ? NONE : readSystemRoots();
}

function crlOf(validation: CertificateValidationContext | undefined, read: ReadSource): Uint8Array {
  const crl = validation?.crl && read(validation.crl);
  // The engine revokes nothing without a list.
  if (crl?.length === 0) throw new BatonError('CONFIG_INVALID', 'crl is empty');
  return crl ?? NONE;
}

/** Returns the rules of a validation context. */
export function peerRulesOf(validation: CertificateValidationContext): PeerRules {
  const {
    match_subject_alt_names: untyped = [],
    match_typed_subject_alt_names: typed = [],
    trust_chain_verification: trust,
    verify_certificate_hash: hashes = [],
    verify_certificate_spki: keyHashes = [],
  } = validation;
  const hasTrustDomains = spiffeValidator(validation) !== undefined;
  const anyType = [NameType.Dns, NameType.Uri, NameType.Email, NameType.Ip];
  return {
    names: [
      ...typed.map(nameRule),
      ...untyped.flatMap((matcher) => anyType.map((type) => ({ type, matcher, oid: '' }))),
    ],
    digests: hashes.map((hash) => hash.replaceAll(':', '').toLowerCase()),
    keyDigests: keyHashes.map((hash) => Buffer.from(hash, 'base64').toString('hex')),
    hasRoots: hasTrustDomains || validation.trusted_ca !== undefined || validation.system_root_certs !== undefined,
    hasTrustDomains,
    acceptsUntrusted: trust === 'ACCEPT_UNTRUSTED',
  };
}

function nameRule({ matcher, oid = '', san_type: type }: SubjectAltNameMatcher): NameRule {
  return { type: NAME_TYPES[type ?? 'DNS'] ?? NameType.Dns, matcher: matcher ?? {}, oid };
}

const NAME_TYPES: { readonly [type: string]: NameType } = {
  EMAIL: NameType.Email,
  DNS: NameType.Dns,
  URI: NameType.Uri,
  IP_ADDRESS: NameType.Ip,
  OTHER_NAME: NameType.Other,
};

const NONE = new Uint8Array();

/** Returns bytes after their length, so that no two lists of pieces are the same in a digest. */
function sized(bytes: Uint8Array | string): Buffer {
  const piece = Buffer.from(bytes);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(piece.length);
  return Buffer.concat([length, piece]);
}
