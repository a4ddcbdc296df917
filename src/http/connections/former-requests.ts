// The requests of a connection that another process has had, as that process tells of them.

import type { FilterProgress } from '../../listener/travel.js';

/** What a connection has seen in another process; times are monotonic. */
export class FormerRequests {
  readonly requests: number;
  readonly activeMs: number;
  /** -1 as long as nothing of a request has come. */
  readonly requestStartMs: number;
  /** The client has not taken what was sent to it. */
  readonly isBlocked: boolean;

  private constructor(requests: number, activeMs: number, requestStartMs: number, isBlocked: boolean) {
    this.requests = requests;
    this.activeMs = activeMs;
    this.requestStartMs = requestStartMs;
    this.isBlocked = isBlocked;
  }

  /** Undefined when it is not what an HTTP connection tells. */
  static from({ requests, activeMs, requestStartMs }: FilterProgress, isBlocked: boolean): FormerRequests | undefined {
    if (typeof requests !== 'number' || typeof activeMs !== 'number' || typeof requestStartMs !== 'number') {
      return undefined;
    }
    return new FormerRequests(requests, activeMs, requestStartMs, isBlocked);
  }
}
