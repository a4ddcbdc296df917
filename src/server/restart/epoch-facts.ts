// Which process of a line of hot restarts this is.

import { monotonicMs } from '../../io/time/timer-driver.js';
import type { InheritedSockets } from '../listeners/version/inherited-sockets.js';
import type { ProcessEpoch } from '../stats/process-epoch.js';

export interface EpochFacts extends ProcessEpoch {
  /** What the parent process has handed over; undefined without one. */
  readonly parentSockets: InheritedSockets | undefined;
}

/** The facts of a process without a parent that begins now. */
export function firstEpoch(number: number): EpochFacts {
  const now = monotonicMs();
  return {
    number,
    generation: 1,
    startedMs: now,
    firstStartedMs: now,
    countedSinceMs: now,
    parentSockets: undefined,
  };
}
