// The interface of a checker, which checks one host repeatedly.

import type { Outcome } from './host-health.js';

export interface Checker {
  /** Begins a check. The previous one must have ended. `onChecked` is called once, perhaps before this returns. */
  begin(): void;
  /** Aborts the current check, and closes the connection. */
  close(): void;
}

/** Called with the outcome of a check, its reason for the log (`it has answered 503`), and the status of an HTTP response. */
export type OnChecked = (outcome: Outcome, reason: string, status?: number) => void;
