// The timeouts of a try: per_try_timeout until the response begins, per_try_idle_timeout without progress, and
// x-envoy-upstream-stream-duration-ms until the response ends. Created by the first request with such a timeout and then reused.

import { ResponseFlag } from '../../../../access-log/stream/response-flags.js';
import { Deadline } from '../../../../io/time/deadline.js';
import type { TimingWheel } from '../../../../io/time/timing-wheel.js';
import type { CounterSlot } from '../../../../stats/layout.js';
import { ClusterStats } from '../../../../stats/layouts/cluster.js';

/** A kind of timeout. */
export interface TryTimeout {
  /** The cluster's counter for it. */
  readonly counter: CounterSlot;
  /** %RESPONSE_CODE_DETAILS% if the request is not retried. */
  readonly details: string;
  /** The response flag of the try. */
  readonly flag: ResponseFlag;
  /** The host was too slow. False for the maximum stream duration. */
  readonly isSlowness: boolean;
}

const NO_RESPONSE: TryTimeout = {
  counter: ClusterStats.at.upstream_rq_per_try_timeout,
  details: 'upstream_per_try_timeout',
  flag: ResponseFlag.UpstreamRequestTimeout,
  isSlowness: true,
};
const NO_PROGRESS: TryTimeout = {
  counter: ClusterStats.at.upstream_rq_per_try_idle_timeout,
  details: 'upstream_per_try_idle_timeout',
  flag: ResponseFlag.UpstreamRequestTimeout,
  isSlowness: true,
};
const NO_END: TryTimeout = {
  counter: ClusterStats.at.upstream_rq_max_duration_reached,
  details: 'upstream_max_stream_duration_reached',
  flag: ResponseFlag.UpstreamMaxStreamDurationReached,
  isSlowness: false,
};

export class TryTimeouts {
  readonly #response: Deadline;
  readonly #progress: Deadline;
  readonly #end: Deadline;
  #responseMs = 0;
  #idleMs = 0;
  #streamMs = 0;
  #isRunning = false;

  constructor(wheel: TimingWheel, onTimeout: (timeout: TryTimeout) => void) {
    this.#response = new Deadline(wheel, () => onTimeout(NO_RESPONSE));
    this.#progress = new Deadline(wheel, () => onTimeout(NO_PROGRESS));
    this.#end = new Deadline(wheel, () => onTimeout(NO_END));
  }

  /** Sets the timeouts for each try of a new request; 0: none. */
  set(responseMs: number, idleMs: number, streamMs: number): void {
    this.#responseMs = responseMs;
    this.#idleMs = idleMs;
    this.#streamMs = streamMs;
  }

  /** Called when the try has a connection. */
  begin(): void {
    if (this.#streamMs > 0) this.#end.set(this.#streamMs);
  }

  /** Called when the try has a connection and the request is complete: a slow client is not a slow host. */
  start(hasResponse: boolean): void {
    this.#isRunning = true;
    if (!hasResponse) this.awaitResponse();
    this.progressed();
  }

  awaitResponse(): void {
    if (this.#responseMs > 0) this.#response.set(this.#responseMs);
  }

  responseBegan(): void {
    this.#response.clear();
    this.progressed();
  }

  /** Called when a part of the response was received. */
  progressed(): void {
    if (this.#isRunning && this.#idleMs > 0) this.#progress.set(this.#idleMs);
  }

  /** Called when the try has ended. */
  stop(): void {
    this.#isRunning = false;
    this.#response.clear();
    this.#progress.clear();
    this.#end.clear();
  }
}
