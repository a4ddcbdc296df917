// envoy.transport_sockets.tls: encrypts connections of clients (DownstreamTlsContext) or to hosts (UpstreamTlsContext).
//
// The engine is in the native shim; src/tls makes its contexts, and listeners and connections to hosts use them.

import type { CommonTlsContext, DownstreamTlsContext, UpstreamTlsContext } from '../../../config/generated/api.js';
import { ipRange } from '../../../io/addresses/ip-range.js';
import { loadShim, type TlsContextSettings } from '../../../io/shim.js';
import { engineMistake } from '../../../tls/context-mistake.js';
import { clientSettings, serverSettings } from '../../../tls/context-settings.js';
import { inlineSecrets } from '../../../tls/secrets/context-secrets.js';
import { validationMistake } from '../../../tls/validation.js';
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
    checkKeyLog(common, report);
    if (!checkValidation(common, report)) return;
    check(report, () => serverSettings(context, inlineSecrets({ common }), []));
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
    checkKeyLog(common, report);
    if (!checkValidation(common, report)) return;
    check(report, () => clientSettings(context, inlineSecrets({ common })));
  },
};

/** Reports ranges that no address is in: without ranges, the keys of all connections would be written. */
function checkKeyLog({ key_log: log = {} }: CommonTlsContext, report: Report): void {
  for (const field of ['local_address_range', 'remote_address_range'] as const) {
    for (const [index, { address_prefix: prefix = '', prefix_len: bits = 0 }] of (log[field] ?? []).entries()) {
      if (ipRange(prefix, bits) !== undefined) continue;
      const at = `common_tls_context.key_log.${field}[${index}].address_prefix`;
      report(at, `invalid ip/mask combo '${prefix}/${bits}'`);
    }
  }
}

/** Returns false after reporting a context that must not be used. A combined one is checked when its secret is known. */
function checkValidation({ validation_context: context }: CommonTlsContext, report: Report): boolean {
  const mistake = context && validationMistake(context);
  if (mistake !== undefined) report(`common_tls_context.validation_context.${mistake.field}`, mistake.message);
  return mistake === undefined;
}

/** Reports what the native engine refuses in the settings of the known secrets. Unreadable files are reported with their DataSource. */
function check(report: Report, settingsOf: () => TlsContextSettings): void {
  try {
    const mistake = engineMistake(loadShim(), settingsOf());
    if (mistake !== undefined) report(mistake.path, mistake.message);
  } catch (error) {
    report('common_tls_context', messageOf(error));
  }
}
