// What checks one host, one check after the other, as the rest of the primary sees it.

import type { Outcome } from './host-health.js';

export interface Checker {
  /** Begins a check; the one before has ended. `onChecked` is called once, perhaps before this returns. */
  begin(): void;
  /** Gives up the check that is under way, and the connection. */
  close(): void;
}

/** What came of a check, and why, as a log says it: `it has answered 503`. */
export type OnChecked = (outcome: Outcome, reason: string) => void;
