// The timeouts of a downstream connection: before the first request, between requests and within a head, and the maximum age. It also
// schedules the checks of its requests' clocks.
//
// One timer serves all timeouts, and traffic does not rearm it. When it fires, it reads the times that traffic has recorded and sleeps for
// the remainder, but never longer than the shortest timeout, which may have begun meanwhile.

import { Timer } from '../../io/time/timing-wheel.js';
import type { ThreadOverload } from '../../runtime/overload/thread-overload.js';
import { HttpStats } from '../../stats/layouts/http.js';
import type { ServerCodec } from '../codec/connections.js';
import type { ManagerContext } from '../manager-context.js';
import { firstHeadTimeout, type HeadTimeout } from './head-timeouts.js';

/** A connection as its clocks use it. */
export interface ClockedConnection {
  readonly clocks: ConnectionClocks;
  readonly isClosed: boolean;
  readonly overload: ThreadOverload | undefined;
  readonly hasRequests: boolean;
  /** The client has not sent any byte yet. */
  readonly isUnused: boolean;
  readonly codec: ServerCodec | undefined;
  /** Ends requests that take too long. Returns the milliseconds after which to check again, at the latest. */
  checkRequests(now: number): number;
  /** Does what is due in the codec. Returns the milliseconds after which to check again, at the latest. */
  checkCodec(now: number): number;
  /** Called when a request head has not arrived in time. */
  headTimedOut(timeout: HeadTimeout): void;
  close(): void;
  /** Called when the connection was idle for too long, or is too old: the next response is the last. Closes an unused connection. */
  beginDrain(): void;
  onFault(error: unknown): void;
}

export class ConnectionClocks extends Timer<ClockedConnection> {
  /**
   * When bytes last moved in either direction, or a request ended (monotonic). Initialized with a number: otherwise V8 would allocate an
   * object for each value.
   */
  activeMs = 0;
  /** When the first byte of the next request arrived; UNSET if there is none. */
  requestStartMs = UNSET;
  readonly #manager: ManagerContext;
  readonly #startMs: number;
  /** The connection has reached max_connection_duration. */
  #isOld = false;
  /** When a timeout began to drain the connection, UNSET before. */
  #drainStartMs = UNSET;

  /** `startMs`: when the connection was accepted. */
  constructor(connection: ClockedConnection, manager: ManagerContext, startMs: number) {
    super(connection, onTimer);
    this.#manager = manager;
    this.#startMs = startMs;
    this.activeMs = startMs;
  }

  /** A timeout has begun to drain the connection, and drain_timeout has passed since: it closes as soon as it has no request. */
  get isDrained(): boolean {
    const startMs = this.#drainStartMs;
    return startMs !== UNSET && this.#manager.thread.clock.monotonicMs >= startMs + this.#manager.options.drainMs;
  }

  moved(): void {
    this.activeMs = this.#manager.thread.clock.monotonicMs;
  }

  begin(): void {
    this.#sleep(this.#shortestMs);
  }

  end(): void {
    this.#manager.thread.wheel.cancel(this);
  }

  /** Called when a request head begins to wait for room in the arena. */
  awaitRoom(): void {
    this.moved();
    this.#sleep(ROOM_WAIT_MS);
  }

  /** Checks soon, because a timeout has become shorter. */
  hurry(): void {
    this.#sleep(1);
  }

  /** The shortest timeout, which the overload manager may have reduced. */
  get #shortestMs(): number {
    const { overload } = this.owner;
    const { shortestTimeoutMs } = this.#manager;
    if (overload === undefined) return shortestTimeoutMs;
    const reduced = [this.#idleMs, this.#maxMs, this.#streamIdleMs];
    return Math.min(shortestTimeoutMs, ...reduced.filter((ms) => ms > 0));
  }

  get #idleMs(): number {
    const { idleMs } = this.#manager.options;
    return this.owner.overload?.timeout('HTTP_DOWNSTREAM_CONNECTION_IDLE', idleMs) ?? idleMs;
  }

  get #maxMs(): number {
    const { maxConnectionMs } = this.#manager.options;
    return this.owner.overload?.timeout('HTTP_DOWNSTREAM_CONNECTION_MAX', maxConnectionMs) ?? maxConnectionMs;
  }

  get #streamIdleMs(): number {
    const { streamIdleMs } = this.#manager.options;
    return this.owner.overload?.timeout('HTTP_DOWNSTREAM_STREAM_IDLE', streamIdleMs) ?? streamIdleMs;
  }

  /** The timeout of an incomplete head. */
  get #headTimeout(): HeadTimeout | undefined {
    const { headTimeout, options } = this.#manager;
    const streamIdleMs = this.#streamIdleMs;
    return streamIdleMs === options.streamIdleMs ? headTimeout : firstHeadTimeout({ ...options, streamIdleMs });
  }

  wakeWithin(timeoutMs: number): void {
    if (timeoutMs > 0 && timeoutMs < this.#manager.shortestTimeoutMs) this.#sleep(timeoutMs);
  }

  check(): void {
    const connection = this.owner;
    const { options, thread } = this.#manager;
    const now = thread.clock.monotonicMs;
    let remaining = this.#shortestMs;
    if (options.maxConnectionMs > 0) remaining = Math.min(remaining, this.#checkAge(now));
    if (!connection.isClosed && connection.codec?.isMultiplexed === true)
      remaining = Math.min(remaining, this.#checkMultiplexed(now));
    if (!connection.isClosed) {
      const left = connection.hasRequests ? connection.checkRequests(now) : this.#checkBetweenRequests(now);
      remaining = Math.min(remaining, left);
    }
    if (!connection.isClosed) this.#sleep(remaining);
  }

  /** Sleeps for at most `forMs`; keeps an earlier deadline. */
  #sleep(forMs: number): void {
    if (forMs < Number.POSITIVE_INFINITY) this.#manager.thread.wheel.hasten(this, forMs);
  }

  /** Returns the milliseconds after which to check again. */
  #checkMultiplexed(now: number): number {
    const left = this.owner.checkCodec(now);
    if (this.owner.isClosed || this.#drainStartMs === UNSET || !this.owner.hasRequests) return left;
    const drainLeft = this.#drainStartMs + this.#manager.options.drainMs - now;
    if (drainLeft > 0) return Math.min(left, drainLeft);
    this.owner.codec?.refuseStreams();
    return left;
  }

  #checkBetweenRequests(now: number): number {
    const { codec } = this.owner;
    if (codec?.isAwaitingRoom !== true) return this.#checkNextRequest(now);
    const left = ROOM_WAIT_MS - (now - this.activeMs);
    if (left > 0) return Math.min(left, this.#checkNextRequest(now));
    codec.refuseHead();
    return 0;
  }

  #checkNextRequest(now: number): number {
    const { options, stats } = this.#manager;
    const { codec } = this.owner;
    const isStopped = codec?.awaitsClient === true;
    // The beginning of a head may have been received with the previous request.
    if (codec?.holdsNoRequest) this.requestStartMs = UNSET;
    else if (this.requestStartMs === UNSET && !isStopped && codec !== undefined && codec.bufferedBytes > 0)
      this.requestStartMs = this.activeMs;
    const headTimeout = this.requestStartMs === UNSET || isStopped ? undefined : this.#headTimeout;
    if (headTimeout !== undefined) {
      const left = headTimeout.ms - (now - this.requestStartMs);
      if (left > 0) return left;
      stats.http.increment(headTimeout.counter);
      this.owner.headTimedOut(headTimeout);
      return 0;
    }
    if (this.#drainStartMs !== UNSET) return this.#checkDrain(now);
    if (options.idleMs === 0) return Number.POSITIVE_INFINITY;
    const left = this.#idleMs - (now - this.activeMs);
    if (left > 0) return left;
    stats.http.increment(HttpStats.at.downstream_cx_idle_timeout);
    this.#beginDrain(now);
    return options.drainMs;
  }

  /** Called when a multiplexed connection begins to end: it accepts requests during drain_timeout. */
  beginDrain(): void {
    if (this.#drainStartMs !== UNSET) return;
    this.#drainStartMs = this.#manager.thread.clock.monotonicMs;
    this.#sleep(this.#manager.options.drainMs);
  }

  #checkDrain(now: number): number {
    const left = this.#drainStartMs + this.#manager.options.drainMs - now;
    if (left > 0) return left;
    this.owner.close();
    return 0;
  }

  /**
   * As in Envoy, neither timeout closes a connection that has been used: a request may be on its way. The connection may send one more
   * response, and waits for its request during drain_timeout.
   */
  #beginDrain(now: number): void {
    if (this.#drainStartMs !== UNSET) return;
    this.#drainStartMs = now;
    this.owner.beginDrain();
  }

  #checkAge(now: number): number {
    const { options, stats } = this.#manager;
    const left = this.#startMs + this.#maxMs - now;
    if (left > 0) return left;
    if (!this.#isOld) {
      this.#isOld = true;
      stats.http.increment(HttpStats.at.downstream_cx_max_duration_reached);
      this.#beginDrain(now);
    }
    const drainLeft = this.#drainStartMs + options.drainMs - now;
    return drainLeft > 0 ? drainLeft : Number.POSITIVE_INFINITY;
  }
}

/** No time. */
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
