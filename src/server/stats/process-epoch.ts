// Where in a line of processes that followed each other this one stands.

import { monotonicMs } from '../../io/timer-driver.js';

export interface ProcessEpoch {
  /** --restart-epoch */
  readonly number: number;
  /** Processes that have followed each other; the first counts 1. */
  readonly generation: number;
  /** When the first of them began, in milliseconds of CLOCK_MONOTONIC, which the processes of a machine share. */
  readonly firstStartedMs: number;
  /** The same of what counters have counted: of this process, unless they go on where those of its parent stood. */
  readonly countedSinceMs: number;
}

/** Whole seconds since the first process began. */
export function uptimeOfAllEpochs({ firstStartedMs }: ProcessEpoch): number {
  return Math.max(0, Math.floor((monotonicMs() - firstStartedMs) / 1000));
}
