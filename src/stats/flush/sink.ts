// What a stats sink is: it is given every flush, and takes it somewhere.

import type { FlushedStats } from './flushed-stats.js';

export interface StatsSink {
  /**
   * Sends one flush. It is run a few milliseconds at a time: the sink yields every few hundred stats. It may yield a promise
   * that it is to be waited for, which resolves within a moment whatever its peer does; what the peer does not take is lost
   * beyond a bound. What it throws costs the rest of this flush.
   */
  flush(stats: FlushedStats): Iterable<FlushStep>;
  /** The server ends: nothing is flushed any more. What is on its way may take a moment. */
  close(): void | Promise<void>;
}

export type FlushStep = Promise<void> | void;

/** Stats after which a sink yields. */
export const STATS_PER_STEP = 256;
