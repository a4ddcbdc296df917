// The interface of stats sinks, which receive every flush.

import type { FlushedStats } from './flushed-stats.js';

export interface StatsSink {
  /**
   * Sends one flush. Runs a few milliseconds at a time: the sink yields after every few hundred stats. A yielded promise is
   * awaited; it must resolve soon regardless of the peer. Data that the peer does not accept is dropped beyond a bound. An
   * exception cancels the rest of this flush.
   */
  flush(stats: FlushedStats): Iterable<FlushStep>;
  /** Called when the server ends: no flush follows. Data in flight may take a moment. */
  close(): void | Promise<void>;
}

export type FlushStep = Promise<void> | void;

/** Stats after which a sink yields. */
export const STATS_PER_STEP = 256;
