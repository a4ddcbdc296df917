// Implemented fields of secrets: certificates with their keys, rules for the certificates of peers, keys of session tickets, and
// secrets of filters.

import { accepted, byValue, type ImplementedTable, onlyExtension, refused } from './table.js';

const TLS = 'envoy.extensions.transport_sockets.tls.v3';

const VERSIONS = byValue({ TLS_AUTO: true, TLSv1_0: true, TLSv1_1: true, TLSv1_2: true, TLSv1_3: true });
const PROVIDERS = 'certificates come from files or from the configuration itself';

/** The only extension of `custom_validator_config`. */
export const SPIFFE = 'envoy.tls.cert_validator.spiffe';

export const SECRET: ImplementedTable = {
  [`${TLS}.TlsParameters`]: {
    tls_minimum_protocol_version: VERSIONS,
    tls_maximum_protocol_version: VERSIONS,
    cipher_suites: true,
    ecdh_curves: true,
    signature_algorithms: true,
    compliance_policies: byValue({ FIPS_202205: true, CNSA1_202603: true, CNSA2_202603: false }),
  },
  [`${TLS}.TlsCertificate`]: {
    certificate_chain: true,
    private_key: true,
    pkcs12: true,
    password: true,
    private_key_provider: refused('private keys are read from private_key or pkcs12'),
    signed_certificate_timestamp: accepted('Envoy does not read it either'),
    tls_params: refused('parameters belong to the whole context: set tls_params there'),
    ocsp_staple: true,
    watched_directory: true,
  },
  [`${TLS}.CertificateValidationContext`]: {
    trusted_ca: true,
    system_root_certs: true,
    verify_certificate_spki: true,
    verify_certificate_hash: true,
    match_typed_subject_alt_names: true,
    match_subject_alt_names: true,
    crl: true,
    allow_expired_certificate: true,
    trust_chain_verification: byValue({ VERIFY_TRUST_CHAIN: true, ACCEPT_UNTRUSTED: true }),
    only_verify_leaf_cert_crl: true,
    max_verify_depth: true,
    suppress_client_ca_list: true,
    ca_certificate_provider_instance: refused(PROVIDERS),
    require_signed_certificate_timestamp: accepted('Envoy does not read it either'),
    custom_validator_config: onlyExtension(SPIFFE, 'SPIFFE is the only other verification: leave it out'),
    watched_directory: true,
  },
  [`${TLS}.CertificateValidationContext.SystemRootCerts`]: {},
  [`${TLS}.SubjectAltNameMatcher`]: {
    san_type: byValue({
      SAN_TYPE_UNSPECIFIED: false,
      EMAIL: true,
      DNS: true,
      URI: true,
      IP_ADDRESS: true,
      OTHER_NAME: true,
    }),
    matcher: true,
    oid: true,
  },
  [`${TLS}.TlsSessionTicketKeys`]: { keys: true },
  [`${TLS}.Secret`]: {
    name: true,
    tls_certificate: true,
    session_ticket_keys: true,
    validation_context: true,
    generic_secret: true,
  },
  [`${TLS}.SdsSecretConfig`]: { name: true, sds_config: true },
  [`${TLS}.GenericSecret`]: {
    secret: true,
    secrets: accepted('the filters that Baton has use only secret'),
  },
};
