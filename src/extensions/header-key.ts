// Header keys for extensions: an invalid field name is refused when the key is created, and so is never sent.

import { BatonError } from '../common/errors/errors.js';
import { type HeaderKey, isFieldName, headerKey as keyOf } from '../common/text/header-names.js';
import { isControlledField } from '../http/headers/header-mutations.js';

/**
 * Returns the key of a field name, known or not. Throws a TypeError if it is not a field name (RFC 9110, section 5.1), such as
 * `:path`.
 */
export function headerKey(name: string): HeaderKey {
  if (!isFieldName(name)) throw new TypeError(`${JSON.stringify(name)} is not a valid header name`);
  return keyOf(name);
}

/** headerKey() for a field that a filter sets or removes. Throws a BatonError for one that frames the message, such as content-length. */
export function settableKey(name: string): HeaderKey {
  const key = headerKey(name);
  if (!isControlledField(name)) return key;
  const remedy = 'choose another one';
  throw new BatonError('CONFIG_INVALID', `'${name}' cannot be set or removed: it controls the message`, { remedy });
}
