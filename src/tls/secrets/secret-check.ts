// Whether a delivered secret is usable by itself, before any context uses it.

import { BatonError } from '../../common/errors/errors.js';
import { readDataSource } from '../../config/fields/data-source.js';
import type { Secret } from '../../config/generated/api.js';
import type { NativeShim } from '../../io/shim.js';
import { engineMistake } from '../context-mistake.js';
import { clientSettings } from '../context-settings.js';
import { TICKET_KEY_BYTES } from '../shared-ticket-keys.js';
import { partOf, type TlsSecrets } from './context-secrets.js';
import type { SecretKind } from './secret-discovery.js';

/** Throws BatonError for a secret without the part `kind`, or with one that no context can use. */
export function checkSecret(shim: NativeShim, secret: Secret, kind: SecretKind): void {
  if (kind === 'session_ticket_keys') return checkTicketKeys(secret);
  // Any bytes will do: withContents() has checked that the part is there.
  if (kind === 'generic_secret') return;
  const alone: TlsSecrets = {
    certificates: kind === 'tls_certificate' ? [partOf(secret, kind)] : [],
    certificateNames: [''],
    validation: kind === 'validation_context' ? partOf(secret, kind) : undefined,
    validationName: '',
    ticketKeys: undefined,
  };
  // The OCSP response is checked with the context: clients do not use it.
  const mistake = engineMistake(shim, clientSettings({}, alone));
  if (mistake === undefined) return;
  const where = mistake.path.replace('common_tls_context.', '').replace('tls_certificates[0]', kind);
  throw new BatonError('CONFIG_INVALID', mistake.message, { where });
}

function checkTicketKeys(secret: Secret): void {
  const { keys = [] } = partOf(secret, 'session_ticket_keys');
  for (const [index, source] of keys.entries()) {
    const where = `session_ticket_keys.keys[${index}]`;
    const { length } = readDataSource(source, where);
    if (length === TICKET_KEY_BYTES) continue;
    throw new BatonError('CONFIG_INVALID', `a session ticket key has ${TICKET_KEY_BYTES} bytes, found ${length}`, {
      where,
    });
  }
}
