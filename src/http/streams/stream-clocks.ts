// What limits the time of one request: that it arrives, how long it may last, and how long nothing of it may move.

import type { ManagerContext } from '../manager-context.js';

/** Which limit has been reached. */
export const enum Elapsed {
  None = 0,
  /** HttpConnectionManager.request_timeout: the request has not come whole, and has no response. */
  Request = 1,
  /** max_stream_duration, of its route or connection manager. */
  Duration = 2,
  /** Nothing has moved for too long. */
  Idle = 3,
}

export class StreamClocks {
  /** How long it may last, whatever moves; 0: for ever. */
  maxMs = 0;
  /** After check(): the milliseconds after which to look again, at the latest. */
  leftMs = Number.POSITIVE_INFINITY;
  readonly #manager: ManagerContext;
  #startMs = 0;
  /** When something of it moved last, in either direction. */
  #activeMs = 0;

  constructor(manager: ManagerContext) {
    this.#manager = manager;
  }

  /** Its first byte came at `startMs` (monotonic). */
  begin(startMs: number): void {
    this.#startMs = startMs;
    this.maxMs = this.#manager.options.maxStreamMs;
    this.#activeMs = this.#manager.thread.clock.monotonicMs;
  }

  /** Something has moved. Returns the time (monotonic). */
  moved(): number {
    this.#activeMs = this.#manager.thread.clock.monotonicMs;
    return this.#activeMs;
  }

  /** `awaitsRequest`: the rest of the request is what it waits for; `idleMs`: of its route, if that has one. */
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
