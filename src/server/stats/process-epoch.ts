// Where in a line of processes that followed each other this one stands.

import { monotonicMs } from '../../io/time/timer-driver.js';

export interface ProcessEpoch {
  /** --restart-epoch */
  readonly number: number;
  /** Processes that have followed each other; the first counts 1. */
  readonly generation: number;
  /** When it began, in milliseconds of CLOCK_MONOTONIC, which the processes of a machine share. */
  readonly startedMs: number;
  /** When the first of them began. */
  readonly firstStartedMs: number;
  /** The same of what counters have counted: of this process, unless they go on where those of its parent stood. */
  readonly countedSinceMs: number;
}

/** Whole seconds since this process and since the first one began: in the first process they are the same. */
export function uptimes({ startedMs, firstStartedMs }: ProcessEpoch): { currentEpoch: number; allEpochs: number } {
  const now = monotonicMs();
  const currentEpoch = Math.floor((now - startedMs) / 1000);
  return { currentEpoch, allEpochs: Math.max(currentEpoch, Math.floor((now - firstStartedMs) / 1000)) };
}
