// The state of a connection's requests as reported by the process that served it before.

import type { FilterProgress } from '../../listener/hand-over.js';

/** Times are monotonic. */
export class TakenOverRequests {
  readonly requests: number;
  readonly activeMs: number;
  /** -1 if no byte of the next request has arrived. */
  readonly requestStartMs: number;
  /** Bytes that were sent to the client are pending above the high watermark. */
  readonly isBlocked: boolean;

  private constructor(requests: number, activeMs: number, requestStartMs: number, isBlocked: boolean) {
    this.requests = requests;
    this.activeMs = activeMs;
    this.requestStartMs = requestStartMs;
    this.isBlocked = isBlocked;
  }

  /** Returns undefined if `progress` is not that of an HTTP connection. */
  static from(
    { requests, activeMs, requestStartMs }: FilterProgress,
    isBlocked: boolean,
  ): TakenOverRequests | undefined {
    if (typeof requests !== 'number' || typeof activeMs !== 'number' || typeof requestStartMs !== 'number') {
      return undefined;
    }
    return new TakenOverRequests(requests, activeMs, requestStartMs, isBlocked);
  }
}
