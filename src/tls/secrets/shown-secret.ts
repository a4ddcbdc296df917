// A secret as it may be shown.

import type { DataSource, Secret } from '../../config/generated/api.js';
import { holdsPrivateKey, REDACTED } from '../../config/text/credentials.js';

const REDACTED_BYTES = Buffer.from(REDACTED).toString('base64');

/** Returns the secret without private keys, passwords, ticket keys and generic secrets. */
export function shownSecret(secret: Secret): Secret {
  const { session_ticket_keys: tickets, tls_certificate: certificate, validation_context: validation } = secret;
  const { generic_secret: generic } = secret;
  if (generic !== undefined)
    return { ...secret, generic_secret: generic.secret === undefined ? {} : { secret: redacted(generic.secret) } };
  if (tickets !== undefined) return { ...secret, session_ticket_keys: { keys: (tickets.keys ?? []).map(redacted) } };
  if (validation?.trusted_ca !== undefined)
    return { ...secret, validation_context: { ...validation, trusted_ca: withoutKey(validation.trusted_ca) } };
  if (certificate === undefined) return secret;
  const { certificate_chain: chain, password, pkcs12, private_key: key, ...rest } = certificate;
  return {
    ...secret,
    tls_certificate: {
      ...rest,
      ...(chain && { certificate_chain: withoutKey(chain) }),
      ...(key && { private_key: redacted(key) }),
      ...(password && { password: redacted(password) }),
      ...(pkcs12 && { pkcs12: redacted(pkcs12) }),
    },
  };
}

/** Files of certificates often contain the key, too. */
function withoutKey(source: DataSource): DataSource {
  const { inline_bytes: bytes, inline_string: text = '' } = source;
  const pem = bytes === undefined ? text : Buffer.from(bytes, 'base64').toString('latin1');
  return holdsPrivateKey(pem) ? redacted(source) : source;
}

function redacted({ inline_bytes: bytes, inline_string: text }: DataSource): DataSource {
  if (bytes !== undefined) return { inline_bytes: REDACTED_BYTES };
  return text === undefined ? { environment_variable: REDACTED } : { inline_string: REDACTED };
}
