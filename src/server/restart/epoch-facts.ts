// Which process of a line of hot restarts this is.

import { monotonicMs } from '../../io/timer-driver.js';
import type { InheritedSockets } from '../listeners/inherited-sockets.js';

export interface EpochFacts {
  /** --restart-epoch */
  readonly number: number;
  /** Processes that have followed each other; the first counts 1. */
  readonly generation: number;
  /** When the first of them began, in milliseconds of CLOCK_MONOTONIC, which the processes of a machine share. */
  readonly firstStartedMs: number;
  /** What the parent process has handed over; undefined without one. */
  readonly parentSockets: InheritedSockets | undefined;
}

/** The facts of a process without a parent that begins now. */
export function firstEpoch(number: number): EpochFacts {
  return { number, generation: 1, firstStartedMs: monotonicMs(), parentSockets: undefined };
}

/** Whole seconds since the first process began. */
export function uptimeOfAllEpochs({ firstStartedMs }: EpochFacts): number {
  return Math.max(0, Math.floor((monotonicMs() - firstStartedMs) / 1000));
}
