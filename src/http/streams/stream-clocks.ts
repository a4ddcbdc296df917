// The time limits of one request: for its arrival, for its duration, and for time without progress.

import type { ManagerContext } from '../manager-context.js';

/** The limit that was reached. */
export const enum Elapsed {
  None = 0,
  /** HttpConnectionManager.request_timeout: the request is incomplete and has no response. */
  Request = 1,
  /** max_stream_duration, of its route or connection manager. */
  Duration = 2,
  /** No progress for too long. */
  Idle = 3,
}

export class StreamClocks {
  /** Maximum duration regardless of progress; 0: no limit. */
  maxMs = 0;
  /** Set by check(): the milliseconds after which to check again, at the latest. */
  leftMs = Number.POSITIVE_INFINITY;
  readonly #manager: ManagerContext;
  #startMs = 0;
  /** When bytes last moved, in either direction. */
  #activeMs = 0;

  constructor(manager: ManagerContext) {
    this.#manager = manager;
  }

  /** Starts the limits. `startMs`: when the first byte arrived (monotonic). */
  begin(startMs: number): void {
    this.#startMs = startMs;
    this.maxMs = this.#manager.options.maxStreamMs;
    this.#activeMs = this.#manager.thread.clock.monotonicMs;
  }

  /** Records progress. Returns the time (monotonic). */
  moved(): number {
    this.#activeMs = this.#manager.thread.clock.monotonicMs;
    return this.#activeMs;
  }

  /**
   * Returns the limit that was reached. `awaitsRequest`: the stream waits for the rest of the request; `idleMs`: the route's timeout, if it
   * has one.
   */
  check(now: number, awaitsRequest: boolean, idleMs = this.#manager.options.streamIdleMs): Elapsed {
    const { requestMs } = this.#manager.options;
    const lastedMs = now - this.#startMs;
    const requestLeft = requestMs > 0 && awaitsRequest ? requestMs - lastedMs : Number.POSITIVE_INFINITY;
    const left = this.maxMs > 0 ? this.maxMs - lastedMs : Number.POSITIVE_INFINITY;
    const idleLeft = idleMs > 0 ? idleMs - (now - this.#activeMs) : Number.POSITIVE_INFINITY;
    this.leftMs = Math.min(requestLeft, left, idleLeft);
    if (this.leftMs > 0) return Elapsed.None;
    if (requestLeft <= 0) return Elapsed.Request;
    return left <= 0 ? Elapsed.Duration : Elapsed.Idle;
  }
}
