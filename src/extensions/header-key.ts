// Header keys for extensions: an invalid field name is refused when the key is created, and so is never sent.

import { type HeaderKey, isFieldName, headerKey as keyOf } from '../common/text/header-names.js';

/**
 * Returns the key of a field name, known or not. Throws a TypeError if it is not a field name (RFC 9110, section 5.1), such as
 * `:path`.
 */
export function headerKey(name: string): HeaderKey {
  if (!isFieldName(name)) throw new TypeError(`${JSON.stringify(name)} is not a valid header name`);
  return keyOf(name);
}
