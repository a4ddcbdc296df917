// The position of this process in a series of hot restarts.

import { monotonicMs } from '../../io/time/timer-driver.js';

export interface ProcessEpoch {
  /** --restart-epoch */
  readonly number: number;
  /** Number of processes in the series so far; the first is 1. */
  readonly generation: number;
  /** Start of this process, in milliseconds of CLOCK_MONOTONIC, which the processes of a machine share. */
  readonly startedMs: number;
  /** Start of the first process. */
  readonly firstStartedMs: number;
  /** Time since which the counters count: this process's start, or earlier when they continue those of the parent. */
  readonly countedSinceMs: number;
}

/** Returns whole seconds since this process and since the first one started; equal in the first process. */
export function uptimes({ startedMs, firstStartedMs }: ProcessEpoch): { currentEpoch: number; allEpochs: number } {
  const now = monotonicMs();
  const currentEpoch = Math.floor((now - startedMs) / 1000);
  return { currentEpoch, allEpochs: Math.max(currentEpoch, Math.floor((now - firstStartedMs) / 1000)) };
}
