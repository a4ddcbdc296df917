// google.protobuf.Any in canonical form: the fields of a message beside its type URL.

import type { Any, Messages } from '../generated/api.js';

/** The message inside, if it is that one; its '@type' stays beside its fields. */
export function unpack<N extends keyof Messages>(any: Any | undefined, name: N): Messages[N] | undefined {
  const isThat = any !== undefined && any['@type'].slice(any['@type'].lastIndexOf('/') + 1) === name;
  return isThat ? (any as unknown as Messages[N]) : undefined;
}
