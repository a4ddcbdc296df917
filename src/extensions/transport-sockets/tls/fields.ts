// Implemented fields of TLS contexts.

import { accepted, byValue, type ImplementedTable, refused } from '../../sdk.js';

const TLS = 'envoy.extensions.transport_sockets.tls.v3';

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
    key_log: true,
  },
  [`${TLS}.TlsKeyLog`]: { path: true, local_address_range: true, remote_address_range: true },
  [`${TLS}.CommonTlsContext.CombinedCertificateValidationContext`]: {
    default_validation_context: true,
    validation_context_sds_secret_config: true,
    validation_context_certificate_provider: refused(PROVIDERS),
    validation_context_certificate_provider_instance: refused(PROVIDERS),
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
    ocsp_staple_policy: byValue({ LENIENT_STAPLING: true, STRICT_STAPLING: true, MUST_STAPLE: true }),
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
    auto_sni_san_validation: true,
    allow_renegotiation: true,
    max_session_keys: true,
    enforce_rsa_key_usage: accepted('OpenSSL checks the key usage of RSA certificates as their extensions say'),
  },
};
