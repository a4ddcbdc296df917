// Implemented fields of TLS contexts.

import { accepted, byValue, type ImplementedTable, notImplemented, onlyFalse, refused } from '../../sdk.js';

const TLS = 'envoy.extensions.transport_sockets.tls.v3';

const VERSIONS = byValue({ TLS_AUTO: true, TLSv1_0: true, TLSv1_1: true, TLSv1_2: true, TLSv1_3: true });
const PROVIDERS = 'certificates come from files or from the configuration itself';

const COMMON: ImplementedTable = {
  [`${TLS}.CommonTlsContext`]: {
    tls_params: true,
    tls_certificates: true,
    tls_certificate_sds_secret_configs: true,
    validation_context: true,
    validation_context_sds_secret_config: true,
    combined_validation_context: true,
    alpn_protocols: true,
    tls_certificate_provider_instance: refused(PROVIDERS),
    tls_certificate_certificate_provider: refused(PROVIDERS),
    tls_certificate_certificate_provider_instance: refused(PROVIDERS),
    validation_context_certificate_provider: refused(PROVIDERS),
    validation_context_certificate_provider_instance: refused(PROVIDERS),
    custom_tls_certificate_selector: refused('certificates are selected by SNI: list them in tls_certificates'),
    custom_handshaker: refused('handshakes are those of OpenSSL: leave it out'),
    ...notImplemented('key_log'),
  },
  [`${TLS}.CommonTlsContext.CombinedCertificateValidationContext`]: {
    default_validation_context: true,
    validation_context_sds_secret_config: true,
    validation_context_certificate_provider: refused(PROVIDERS),
    validation_context_certificate_provider_instance: refused(PROVIDERS),
  },
  [`${TLS}.TlsParameters`]: {
    tls_minimum_protocol_version: VERSIONS,
    tls_maximum_protocol_version: VERSIONS,
    cipher_suites: true,
    ecdh_curves: true,
    signature_algorithms: true,
    compliance_policies: refused('name the versions, cipher suites and curves of the policy'),
  },
  [`${TLS}.TlsCertificate`]: {
    certificate_chain: true,
    private_key: true,
    pkcs12: true,
    password: true,
    private_key_provider: refused('private keys are read from private_key or pkcs12'),
    signed_certificate_timestamp: accepted('Envoy does not read it either'),
    tls_params: refused('parameters belong to the whole context: set tls_params there'),
    ...notImplemented('watched_directory', 'ocsp_staple'),
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
    custom_validator_config: refused('certificates are verified against trusted_ca and the other fields'),
    ...notImplemented('watched_directory'),
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
    generic_secret: refused('nothing uses it: leave it out'),
  },
  [`${TLS}.SdsSecretConfig`]: {
    name: true,
    sds_config: refused('secrets are not discovered: put the secret in static_resources.secrets, or in the context'),
  },
};

export const DOWNSTREAM_FIELDS: ImplementedTable = {
  ...COMMON,
  [`${TLS}.DownstreamTlsContext`]: {
    common_tls_context: true,
    require_client_certificate: true,
    require_sni: true,
    session_ticket_keys: true,
    session_ticket_keys_sds_secret_config: true,
    disable_stateless_session_resumption: true,
    disable_stateful_session_resumption: true,
    session_timeout: true,
    ocsp_staple_policy: byValue({ LENIENT_STAPLING: true, STRICT_STAPLING: false, MUST_STAPLE: false }),
    full_scan_certs_on_sni_mismatch: true,
    prefer_client_ciphers: true,
  },
};

export const UPSTREAM_FIELDS: ImplementedTable = {
  ...COMMON,
  [`${TLS}.UpstreamTlsContext`]: {
    common_tls_context: true,
    sni: true,
    auto_host_sni: true,
    auto_sni_san_validation: onlyFalse('name the expected names with match_typed_subject_alt_names'),
    allow_renegotiation: true,
    max_session_keys: true,
    enforce_rsa_key_usage: accepted('OpenSSL checks the key usage of RSA certificates as their extensions say'),
  },
};
