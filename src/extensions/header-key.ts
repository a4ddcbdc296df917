// Names of header fields as extensions give them: one that no field can have is refused where it is given, and never sent.

import { type HeaderKey, isFieldName, headerKey as keyOf } from '../common/text/header-names.js';

/** The key for any name of a field, known or not. Throws when it is no name (RFC 9110, 5.1), such as `:path`. */
export function headerKey(name: string): HeaderKey {
  if (!isFieldName(name)) throw new TypeError(`${JSON.stringify(name)} is no name of a header field`);
  return keyOf(name);
}
