// What a listener filter is: it looks at the first bytes of a connection before a filter chain takes it (`listener_filters`).

import type { Address } from '../io/addresses/address.js';

/** One a listener version and thread; it keeps nothing of a connection. */
export interface ListenerFilter {
  /** Most bytes that it needs to see. */
  readonly mostBytes: number;
  /**
   * Looks at all that has come so far and that no filter before has taken, at least one byte. Returns how many of the bytes it
   * takes away, 0 and more; or a verdict.
   */
  inspect(bytes: Uint8Array, ends: InspectedEnds): number;
}

/** What inspect() returns where it takes nothing. */
export const enum Verdict {
  /** Too few to decide: it is asked again when more has come. */
  NeedsMore = -1,
  /** The connection is closed. */
  Refuses = -2,
}

/** The ends of a connection as they count from now on: a filter may know better. */
export interface InspectedEnds {
  remote: Address;
  local: Address;
}
