// The position of this process in a series of hot restarts, and what its parent has handed over.

import { monotonicMs } from '../../io/time/timer-driver.js';
import type { TicketKeys } from '../../tls/shared-ticket-keys.js';
import type { InheritedSockets } from '../listeners/version/inherited-sockets.js';
import type { ProcessEpoch } from '../stats/process-epoch.js';

export interface EpochFacts extends ProcessEpoch {
  /** The sockets that the parent process has handed over; undefined without a parent. */
  readonly parentSockets: InheritedSockets | undefined;
  /** The keys with which the parent process encrypts session tickets; undefined without any. */
  readonly ticketKeys: TicketKeys | undefined;
}

/** Returns the facts of a starting process without a parent. */
export function firstEpoch(number: number): EpochFacts {
  const now = monotonicMs();
  return {
    number,
    generation: 1,
    startedMs: now,
    firstStartedMs: now,
    countedSinceMs: now,
    parentSockets: undefined,
    ticketKeys: undefined,
  };
}
