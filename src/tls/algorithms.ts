// Names of TLS versions, cipher suites, groups and signature algorithms: from the configuration's form, which is BoringSSL's, to
// OpenSSL's.

import type { TlsParameters_CompliancePolicy, TlsParameters_TlsProtocol } from '../config/generated/api.js';
import type { TlsVersion } from '../io/tls/connection-security.js';

const VERSIONS: { readonly [protocol in TlsParameters_TlsProtocol]: number } = {
  TLS_AUTO: 0,
  TLSv1_0: 0x0301,
  TLSv1_1: 0x0302,
  TLSv1_2: 0x0303,
  TLSv1_3: 0x0304,
};

/** Returns the number of a version in the protocol; `automatic` for TLS_AUTO and without a value. */
export function versionNumber(protocol: TlsParameters_TlsProtocol | undefined, automatic: number): number {
  return VERSIONS[protocol ?? 'TLS_AUTO'] || automatic;
}

export function versionName(version: number): TlsVersion {
  if (version === 0x0304) return 'TLSv1.3';
  if (version === 0x0303) return 'TLSv1.2';
  return version === 0x0302 ? 'TLSv1.1' : 'TLSv1';
}

/** Envoy's default for clients and servers, in order of preference. */
export const DEFAULT_CIPHERS = [
  '[ECDHE-ECDSA-AES128-GCM-SHA256|ECDHE-ECDSA-CHACHA20-POLY1305]',
  '[ECDHE-RSA-AES128-GCM-SHA256|ECDHE-RSA-CHACHA20-POLY1305]',
  'ECDHE-ECDSA-AES256-GCM-SHA384',
  'ECDHE-RSA-AES256-GCM-SHA384',
];

/** BoringSSL's fixed list for TLS 1.3, on processors with AES instructions. */
export const TLS13_CIPHER_SUITES = 'TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256';

export const DEFAULT_GROUPS = ['X25519', 'P-256'];

/** What a compliance policy sets in place of all other parameters. */
export interface PolicyParameters {
  readonly minVersion: number;
  readonly maxVersion: number;
  readonly ciphers: string;
  readonly cipherSuites: string;
  readonly groups: string;
  readonly signatureAlgorithms: string;
}

/** NIST SP 800-52 (rev. 2), as BoringSSL reads it. */
const FIPS: PolicyParameters = {
  minVersion: 0x0303,
  maxVersion: 0x0304,
  ciphers:
    'ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384',
  cipherSuites: 'TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384',
  groups: 'P-256:P-384',
  signatureAlgorithms:
    'RSA+SHA256:RSA+SHA384:RSA+SHA512:ECDSA+SHA256:ECDSA+SHA384:RSA-PSS+SHA256:RSA-PSS+SHA384:RSA-PSS+SHA512',
};

/** NSA's Commercial National Security Algorithm Suite 1.0 (RFC 9151), as BoringSSL reads it. */
const CNSA1: PolicyParameters = {
  minVersion: 0x0303,
  maxVersion: 0x0304,
  ciphers: 'ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384:AES256-GCM-SHA384',
  cipherSuites: 'TLS_AES_256_GCM_SHA384',
  groups: 'P-384',
  signatureAlgorithms: 'ECDSA+SHA384:RSA-PSS+SHA384:RSA+SHA384',
};

/** The parameters of the compliance policies that OpenSSL can enforce. */
export const POLICY_PARAMETERS: { readonly [policy in TlsParameters_CompliancePolicy]?: PolicyParameters } = {
  FIPS_202205: FIPS,
  CNSA1_202603: CNSA1,
};

/** Standard names (RFC 5246 and others) of the cipher suites that BoringSSL has. */
const STANDARD_CIPHERS: { readonly [name: string]: string } = {
  TLS_RSA_WITH_AES_128_CBC_SHA: 'AES128-SHA',
  TLS_RSA_WITH_AES_256_CBC_SHA: 'AES256-SHA',
  TLS_RSA_WITH_AES_128_GCM_SHA256: 'AES128-GCM-SHA256',
  TLS_RSA_WITH_AES_256_GCM_SHA384: 'AES256-GCM-SHA384',
  TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA: 'ECDHE-ECDSA-AES128-SHA',
  TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA: 'ECDHE-ECDSA-AES256-SHA',
  TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256: 'ECDHE-ECDSA-AES128-SHA256',
  TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA: 'ECDHE-RSA-AES128-SHA',
  TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA: 'ECDHE-RSA-AES256-SHA',
  TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256: 'ECDHE-RSA-AES128-SHA256',
  TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256: 'ECDHE-ECDSA-AES128-GCM-SHA256',
  TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384: 'ECDHE-ECDSA-AES256-GCM-SHA384',
  TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256: 'ECDHE-RSA-AES128-GCM-SHA256',
  TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384: 'ECDHE-RSA-AES256-GCM-SHA384',
  TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256: 'ECDHE-RSA-CHACHA20-POLY1305',
  TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256: 'ECDHE-ECDSA-CHACHA20-POLY1305',
};

/**
 * Returns OpenSSL's list of cipher suites up to TLS 1.2. Those in brackets have equal preference in BoringSSL; here the first one
 * is preferred, but ChaCha20 if the client prefers that.
 */
export function cipherList(suites: readonly string[]): string {
  return suites
    .flatMap(alternatives)
    .map((name) => STANDARD_CIPHERS[name] ?? name)
    .join(':');
}

/** Returns OpenSSL's list of groups. */
export function groupList(curves: readonly string[]): string {
  return curves.flatMap(alternatives).join(':');
}

/** Splits `[A|B]`, and lists in one string (`A:B`). */
function alternatives(text: string): string[] {
  return text.split(/[[\]|:]/).filter((name) => name !== '');
}

/** OpenSSL's group names that Envoy spells differently. */
const GROUP_NAMES: { readonly [name: string]: string } = {
  x25519: 'X25519',
  prime256v1: 'P-256',
  secp256r1: 'P-256',
  secp384r1: 'P-384',
  secp521r1: 'P-521',
};

export function groupName(name: string): string {
  return GROUP_NAMES[name] ?? name;
}

/** Names of OpenSSL's pairs of key type and digest in the TLS registry of signature schemes. */
const SIGNATURE_NAMES: { readonly [pair: string]: string } = {
  'rsaEncryption+SHA1': 'rsa_pkcs1_sha1',
  'rsaEncryption+SHA256': 'rsa_pkcs1_sha256',
  'rsaEncryption+SHA384': 'rsa_pkcs1_sha384',
  'rsaEncryption+SHA512': 'rsa_pkcs1_sha512',
  'RSA-PSS+SHA256': 'rsa_pss_rsae_sha256',
  'RSA-PSS+SHA384': 'rsa_pss_rsae_sha384',
  'RSA-PSS+SHA512': 'rsa_pss_rsae_sha512',
  'rsassaPss+SHA256': 'rsa_pss_rsae_sha256',
  'rsassaPss+SHA384': 'rsa_pss_rsae_sha384',
  'rsassaPss+SHA512': 'rsa_pss_rsae_sha512',
  'id-ecPublicKey+SHA1': 'ecdsa_sha1',
  'id-ecPublicKey+SHA256': 'ecdsa_secp256r1_sha256',
  'id-ecPublicKey+SHA384': 'ecdsa_secp384r1_sha384',
  'id-ecPublicKey+SHA512': 'ecdsa_secp521r1_sha512',
  ED25519: 'ed25519',
};

export function signatureName(pair: string): string {
  return SIGNATURE_NAMES[pair] ?? pair;
}

/** Returns ALPN's wire form: each name after its length. Names have 1 to 255 bytes. */
export function alpnBytes(protocols: readonly string[]): Uint8Array {
  return Buffer.concat(protocols.map((name) => Buffer.concat([Buffer.of(Buffer.byteLength(name)), Buffer.from(name)])));
}
