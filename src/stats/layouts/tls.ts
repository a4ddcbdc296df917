// Stats of TLS connections, of listeners and clusters.

import { defineLayout } from '../layout.js';

/** Scopes `listener.<address or stat_prefix>.ssl.` and `cluster.<name>.ssl.` */
export const TlsStats = defineLayout({
  connection_error: 'counter',
  handshake: 'counter',
  session_reused: 'counter',
  no_certificate: 'counter',
  fail_verify_no_cert: 'counter',
  fail_verify_error: 'counter',
  fail_verify_san: 'counter',
  fail_verify_cert_hash: 'counter',
  ocsp_staple_failed: 'counter',
  ocsp_staple_omitted: 'counter',
  ocsp_staple_responses: 'counter',
  ocsp_staple_requests: 'counter',
});

/** Scopes `listener.<address or stat_prefix>.ssl.certificate.<name>.` and `cluster.<name>.ssl.certificate.<name>.` */
export const CertificateStats = defineLayout({ expiration_unix_time_seconds: 'own_gauge' });

/** Scopes `sds.<name>.`, beside the stats of the subscription. */
export const SecretStats = defineLayout({ key_rotation_failed: 'counter' });

/** Scopes `listener.<address or stat_prefix>.server_ssl_socket_factory.` and `cluster.<name>.client_ssl_socket_factory.` */
export const TlsFactoryStats = defineLayout({
  ssl_context_update_by_sds: 'counter',
  upstream_context_secrets_not_ready: 'counter',
  downstream_context_secrets_not_ready: 'counter',
});
