// How long a host is waited for in one try: per_try_timeout ends a try whose response does not begin, per_try_idle_timeout one
// that makes no progress, x-envoy-upstream-stream-duration-ms one that does not end. Made by the first request that has such a
// time, and used again by those after it.

import { Deadline } from '../../../../io/time/deadline.js';
import type { TimingWheel } from '../../../../io/time/timing-wheel.js';
import type { CounterSlot } from '../../../../stats/layout.js';
import { ClusterStats } from '../../../../stats/layouts/cluster.js';

/** One way in which a try takes too long. */
export interface TryTimeout {
  /** In the stats of its cluster. */
  readonly counter: CounterSlot;
  /** %RESPONSE_CODE_DETAILS% if there is no other try. */
  readonly details: string;
  /** The host was too slow: it is not, where a stream may only last so long. */
  readonly isSlowness: boolean;
}

const NO_RESPONSE: TryTimeout = {
  counter: ClusterStats.at.upstream_rq_per_try_timeout,
  details: 'upstream_per_try_timeout',
  isSlowness: true,
};
const NO_PROGRESS: TryTimeout = {
  counter: ClusterStats.at.upstream_rq_per_try_idle_timeout,
  details: 'upstream_per_try_idle_timeout',
  isSlowness: true,
};
const NO_END: TryTimeout = {
  counter: ClusterStats.at.upstream_rq_max_duration_reached,
  details: 'upstream_max_stream_duration_reached',
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

  /** For each try of the request that begins; 0: none. */
  set(responseMs: number, idleMs: number, streamMs: number): void {
    this.#responseMs = responseMs;
    this.#idleMs = idleMs;
    this.#streamMs = streamMs;
  }

  /** The try has a connection. */
  begin(): void {
    if (this.#streamMs > 0) this.#end.set(this.#streamMs);
  }

  /** The try has both: the whole request and a connection. A slow sender is no slow host. */
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

  /** Something has come of the response. */
  progressed(): void {
    if (this.#isRunning && this.#idleMs > 0) this.#progress.set(this.#idleMs);
  }

  /** The try is over. */
  stop(): void {
    this.#isRunning = false;
    this.#response.clear();
    this.#progress.clear();
    this.#end.clear();
  }
}
