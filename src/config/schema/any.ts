// google.protobuf.Any in canonical form: the fields of the message with its type URL as '@type'.

import type { Any, Messages } from '../generated/api.js';

/** Returns the message inside, including its '@type', if it is of that type. */
export function unpack<N extends keyof Messages>(any: Any | undefined, name: N): Messages[N] | undefined {
  const isThat = any !== undefined && any['@type'].slice(any['@type'].lastIndexOf('/') + 1) === name;
  return isThat ? (any as unknown as Messages[N]) : undefined;
}
