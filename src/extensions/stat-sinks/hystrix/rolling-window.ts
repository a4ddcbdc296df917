// The requests of a cluster by outcome, as differences over a rolling window of flushes.

import type { FlushedStats } from '../../sdk.js';

/** Requests by outcome; retries count as requests. */
export interface Outcomes {
  readonly success: number;
  readonly errors: number;
  readonly timeouts: number;
  readonly rejected: number;
  readonly total: number;
}

/** Returns a cluster's outcomes since the start. `prefix` is that of its stats, for example `cluster.api.` */
export function outcomesOf(stats: FlushedStats, prefix: string): Outcomes {
  const count = (name: string) => stats.counter(prefix + name);
  const routeTimeouts = count('upstream_rq_timeout');
  const timeouts = routeTimeouts + count('upstream_rq_per_try_timeout');
  // A timeout was answered with a 504, which must not count as an error in addition.
  const answered =
    count('upstream_rq_5xx') +
    count('retry.upstream_rq_5xx') +
    count('upstream_rq_4xx') +
    count('retry.upstream_rq_4xx');
  const errors = Math.max(0, answered - routeTimeouts);
  const success = count('upstream_rq_2xx');
  const rejected = count('upstream_rq_pending_overflow');
  return { success, errors, timeouts, rejected, total: errors + timeouts + success + rejected };
}

export class RollingWindow {
  readonly #flushes: Outcomes[];
  #latest = 0;

  /** The window starts filled with `outcomes`, so that earlier requests do not count. */
  constructor(buckets: number, outcomes: Outcomes) {
    this.#flushes = new Array<Outcomes>(buckets + 1).fill(outcomes);
  }

  push(outcomes: Outcomes): void {
    this.#latest = (this.#latest + 1) % this.#flushes.length;
    this.#flushes[this.#latest] = outcomes;
  }

  /** The differences between the latest flush and the oldest one in the window. */
  get outcomes(): Outcomes {
    const latest = this.#flushes[this.#latest]!;
    const oldest = this.#flushes[(this.#latest + 1) % this.#flushes.length]!;
    const between = (name: keyof Outcomes) => Math.max(0, latest[name] - oldest[name]);
    return {
      success: between('success'),
      errors: between('errors'),
      timeouts: between('timeouts'),
      rejected: between('rejected'),
      total: between('total'),
    };
  }
}
