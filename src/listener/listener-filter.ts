// The interface of listener filters (`listener_filters`), which inspect the first bytes of a connection before a filter chain is
// chosen.

import type { Address } from '../io/addresses/address.js';
import type { DetectedProtocols } from '../io/tls/detected-protocols.js';

/** One per listener version and thread. It keeps no state of connections. */
export interface ListenerFilter {
  /** Maximum bytes that the filter needs; 0: it needs none, and inspects the connection without any. */
  readonly maxBytes: number;
  /**
   * Inspects all received bytes that no earlier filter has consumed, at least one unless it needs none. Returns how many bytes it consumes (0 or
   * more), or a Verdict.
   */
  inspect(bytes: Uint8Array, connection: InspectedConnection): number;
}

/** Results of inspect() without consuming. */
export const enum Verdict {
  /** More bytes are needed: inspect() is called again when they arrive. */
  NeedsMore = -1,
  /** The connection must be closed. */
  Refuses = -2,
}

/** A connection as listener filters see it. */
export interface InspectedConnection {
  /** The effective addresses, which a filter may replace. A local one that is set is the original destination. */
  remote: Address;
  local: Address;
  /**
   * Returns where the connection was directed before the kernel redirected it, or what the opener of a connection to an internal listener has
   * passed; undefined where that is unknown.
   */
  originalDestination(): Address | undefined;
  /** Returns the client that the opener of a connection to an internal listener has passed; undefined: none. */
  originalSource?(): Address | undefined;
  /** What filters have detected so far; undefined if they detected nothing. */
  readonly detected: DetectedProtocols | undefined;
  /** Returns `detected` to change it. */
  detect(): DetectedProtocols;
}
