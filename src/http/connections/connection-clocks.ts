// The timeouts of a connection from a client: what may pass before its first request, between two of them and in a head, how old it may
// become, and when the clocks of its requests are to be looked at.
//
// One timer serves all of them and is not touched by traffic: when it fires it looks at the times that traffic left, and sleeps for what
// remains, but never longer than the shortest timeout, which may have begun meanwhile.

import { Timer } from '../../io/time/timing-wheel.js';
import { HttpStats } from '../../stats/layouts/http.js';
import type { ServerCodec } from '../codec/connections.js';
import type { ManagerContext } from '../manager-context.js';
import type { HeadTimeout } from './head-timeouts.js';

/** A connection, as its clocks see it. */
export interface ClockedConnection {
  readonly clocks: ConnectionClocks;
  readonly isClosed: boolean;
  readonly hasRequests: boolean;
  /** The client has not sent a byte. */
  readonly isUnused: boolean;
  readonly codec: ServerCodec | undefined;
  /** Ends requests that take too long; the milliseconds after which to look again, at the latest. */
  checkRequests(now: number): number;
  /** The head of a request has not come in time. */
  headTimedOut(timeout: HeadTimeout): void;
  /** It has been idle for too long, or is too old and has no request. */
  close(): void;
  /** It is as old as it may become: the next response is the last. */
  grewOld(): void;
  onFault(error: unknown): void;
}

export class ConnectionClocks extends Timer<ClockedConnection> {
  /** When bytes moved last, in either direction, or a request ended (monotonic). A field without a number at first makes an object of each. */
  activeMs = 0;
  /** When the first byte of the request that comes next arrived; UNSET as long as there is none. */
  requestStartMs = UNSET;
  readonly #manager: ManagerContext;
  readonly #startMs: number;
  /** It has reached max_connection_duration. */
  #isOld = false;

  /** `startMs`: when the connection was accepted. */
  constructor(connection: ClockedConnection, manager: ManagerContext, startMs: number) {
    super(connection, onTimer);
    this.#manager = manager;
    this.#startMs = startMs;
    this.activeMs = startMs;
  }

  moved(): void {
    this.activeMs = this.#manager.thread.clock.monotonicMs;
  }

  begin(): void {
    this.#sleep(this.#manager.shortestTimeoutMs);
  }

  end(): void {
    this.#manager.thread.wheel.cancel(this);
  }

  /** The head of a request waits for room in the arena from now on. */
  awaitRoom(): void {
    this.moved();
    this.#sleep(ROOM_WAIT_MS);
  }

  wakeWithin(timeoutMs: number): void {
    if (timeoutMs > 0 && timeoutMs < this.#manager.shortestTimeoutMs) this.#sleep(timeoutMs);
  }

  check(): void {
    const connection = this.owner;
    const { options, shortestTimeoutMs, thread } = this.#manager;
    const now = thread.clock.monotonicMs;
    let remaining = shortestTimeoutMs;
    if (options.maxConnectionMs > 0) remaining = Math.min(remaining, this.#checkAge(now));
    if (!connection.isClosed) {
      const left = connection.hasRequests ? connection.checkRequests(now) : this.#checkBetweenRequests(now);
      remaining = Math.min(remaining, left);
    }
    if (!connection.isClosed) this.#sleep(remaining);
  }

  /** At most so long: what ends earlier is not forgotten. */
  #sleep(forMs: number): void {
    if (forMs < Number.POSITIVE_INFINITY) this.#manager.thread.wheel.hasten(this, forMs);
  }

  #checkBetweenRequests(now: number): number {
    const { codec } = this.owner;
    if (codec?.isAwaitingRoom !== true) return this.#checkNextRequest(now);
    const left = ROOM_WAIT_MS - (now - this.activeMs);
    if (left > 0) return Math.min(left, this.#checkNextRequest(now));
    codec.giveUpRoom();
    return 0;
  }

  #checkNextRequest(now: number): number {
    const { headTimeout, options, stats } = this.#manager;
    const { codec } = this.owner;
    const isStopped = codec?.awaitsClient === true;
    // As may the beginning of its head.
    if (codec?.holdsEmptyLine) this.requestStartMs = UNSET;
    else if (this.requestStartMs === UNSET && !isStopped && codec !== undefined && codec.bufferedBytes > 0)
      this.requestStartMs = this.activeMs;
    if (this.requestStartMs !== UNSET && !isStopped && headTimeout !== undefined) {
      const left = headTimeout.ms - (now - this.requestStartMs);
      if (left > 0) return left;
      stats.http.increment(headTimeout.counter);
      this.owner.headTimedOut(headTimeout);
      return 0;
    }
    if (options.idleMs === 0) return Number.POSITIVE_INFINITY;
    const left = options.idleMs - (now - this.activeMs);
    if (left > 0) return left;
    stats.http.increment(HttpStats.at.downstream_cx_idle_timeout);
    this.owner.close();
    return 0;
  }

  /** At the end of its time the connection has one more response, and drain_timeout for the request; one that is unused just ends. */
  #checkAge(now: number): number {
    const { options, stats } = this.#manager;
    const left = this.#startMs + options.maxConnectionMs - now;
    if (left > 0) return left;
    if (!this.#isOld) {
      this.#isOld = true;
      stats.http.increment(HttpStats.at.downstream_cx_max_duration_reached);
      this.owner.grewOld();
      if (this.owner.isClosed) return Number.POSITIVE_INFINITY;
    }
    if (left + options.drainMs > 0) return left + options.drainMs;
    if (!this.owner.hasRequests) this.owner.close();
    return Number.POSITIVE_INFINITY;
  }
}

/** A time that there is not. */
export const UNSET = -1;

/** How long a request waits for room in the arena before it is refused. */
const ROOM_WAIT_MS = 5000;

function onTimer(connection: ClockedConnection): void {
  try {
    connection.clocks.check();
  } catch (error) {
    connection.onFault(error);
    throw error;
  }
}
