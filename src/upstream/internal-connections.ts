// Connections of a thread to its own listeners without a socket (`envoy_internal_address`). Each thread has its own listeners, and a
// connection stays on its thread.

import type { PassedValues } from '../access-log/stream/passed-values.js';

/** The internal listeners of a thread. */
export interface InternalListeners {
  /**
   * Gives one end of a connection to the listener at `address` (`envoy://name/endpoint`), which owns the descriptor from then on. Returns
   * false, with nothing done, if there is no such listener.
   */
  acceptWithin(fd: number, address: string, passed: PassedValues | undefined): boolean;
}

export class InternalConnections {
  /** Bytes that may be on the way in each direction (buffer_size_kb); undefined: as many as the kernel lets by default. */
  readonly bufferBytes: number | undefined;
  /** Undefined until the listeners exist. */
  listeners: InternalListeners | undefined = undefined;

  constructor(bufferBytes: number | undefined) {
    this.bufferBytes = bufferBytes;
  }
}
