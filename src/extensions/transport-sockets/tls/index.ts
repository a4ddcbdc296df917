// envoy.transport_sockets.tls: encrypts connections of clients (DownstreamTlsContext) or to hosts (UpstreamTlsContext).
//
// The engine is in the native shim; src/tls makes its contexts, and listeners and connections to hosts use them.

import type { CommonTlsContext, DownstreamTlsContext, UpstreamTlsContext } from '../../../config/generated/api.js';
import { clientSettings, inlineSecrets, serverSettings } from '../../../tls/context-settings.js';
import { checkSettings } from '../../../tls/tls-contexts.js';
import type { NamedExtension } from '../../factories.js';
import { messageOf, type Report } from '../../sdk.js';
import { DOWNSTREAM_FIELDS, UPSTREAM_FIELDS } from './fields.js';

const NAME = 'envoy.transport_sockets.tls';
const TYPES = 'type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.';

export const downstreamTls: NamedExtension = {
  category: 'envoy.transport_sockets.downstream',
  name: NAME,
  typeUrls: [`${TYPES}DownstreamTlsContext`],
  implemented: DOWNSTREAM_FIELDS,
  validate(config, report) {
    const context = config as DownstreamTlsContext;
    const common = context.common_tls_context ?? {};
    const { tls_certificate_sds_secret_configs: named = [], tls_certificates: certificates = [] } = common;
    if (certificates.length === 0 && named.length === 0) {
      report('common_tls_context', 'a server needs a certificate: set tls_certificates');
      return;
    }
    if (!checkValidation(common, report) || named.length > 0) return;
    check(report, () => checkSettings(serverSettings(context, inlineSecrets(common), [])));
  },
};

export const upstreamTls: NamedExtension = {
  category: 'envoy.transport_sockets.upstream',
  name: NAME,
  typeUrls: [`${TYPES}UpstreamTlsContext`],
  implemented: UPSTREAM_FIELDS,
  validate(config, report) {
    const context = config as UpstreamTlsContext;
    const common = context.common_tls_context ?? {};
    const { tls_certificate_sds_secret_configs: named = [], tls_certificates: certificates = [] } = common;
    if (certificates.length + named.length > 1) {
      report('common_tls_context', 'a client presents one certificate: leave the others out');
      return;
    }
    if (!checkValidation(common, report) || named.length > 0) return;
    check(report, () => checkSettings(clientSettings(context, inlineSecrets(common), [])));
  },
};

/** Returns false after reporting rules that nothing would vouch for. */
function checkValidation(common: CommonTlsContext, report: Report): boolean {
  const path =
    common.validation_context !== undefined
      ? 'validation_context'
      : 'combined_validation_context.default_validation_context';
  const context = common.validation_context ?? common.combined_validation_context?.default_validation_context;
  if (context === undefined || common.combined_validation_context !== undefined) return true;
  const { match_subject_alt_names: untyped = [], match_typed_subject_alt_names: names = [] } = context;
  const hasRoots = context.trusted_ca !== undefined || context.system_root_certs !== undefined;
  const at = `common_tls_context.${path}`;
  if (context.trusted_ca !== undefined && context.system_root_certs !== undefined) {
    report(`${at}.system_root_certs`, 'trusted_ca replaces the roots of the system: leave one of them out');
    return false;
  }
  if (names.length + untyped.length > 0 && !hasRoots) {
    report(`${at}.match_typed_subject_alt_names`, 'names prove nothing without trusted_ca: set it, or leave them out');
    return false;
  }
  if (context.crl !== undefined && !hasRoots) {
    report(`${at}.crl`, 'a revocation list needs trusted_ca');
    return false;
  }
  return true;
}

/** Reports what the native engine refuses. Unreadable files are reported with their DataSource. */
function check(report: Report, refused: () => ReturnType<typeof checkSettings>): void {
  try {
    const mistake = refused();
    if (mistake !== undefined) report(mistake.path, mistake.message);
  } catch (error) {
    report('common_tls_context', messageOf(error));
  }
}
