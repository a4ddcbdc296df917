// The bootstrap extension that makes internal listeners possible.

import type { Bootstrap } from '../generated/api.js';
import { unpack } from '../schema/any.js';

export const INTERNAL_LISTENER = 'envoy.extensions.bootstrap.internal_listener.v3.InternalListener';

/** Returns whether the bootstrap has the extension. */
export function permitsInternalListeners({ bootstrap_extensions: extensions = [] }: Bootstrap): boolean {
  return extensions.some((extension) => unpack(extension?.typed_config, INTERNAL_LISTENER) !== undefined);
}

/** Returns the bytes that may be on the way in each direction of a connection to an internal listener; undefined: none are configured. */
export function internalBufferBytes({ bootstrap_extensions: extensions = [] }: Bootstrap): number | undefined {
  for (const { typed_config: config } of extensions) {
    const kilobytes = unpack(config, INTERNAL_LISTENER)?.buffer_size_kb;
    if (kilobytes !== undefined) return kilobytes * 1024;
  }
  return undefined;
}
