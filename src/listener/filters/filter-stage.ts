// One network filter of one connection, and what it holds back from those behind it.

import type { Address } from '../../io/addresses/address.js';
import type { HeldBytes } from '../../io/held-bytes.js';
import type { DownstreamConnection } from '../downstream-connection.js';
import type { FilterClose, FilteredClient, NetworkFilter } from '../network-filter.js';

/** What all filters of a connection have in common. */
export interface StageOwner {
  readonly connection: DownstreamConnection;
  /** See FilteredClient. */
  continueLater(stage: FilterStage): void;
  refuse(how: FilterClose, details: string, delayMs: number): void;
}

export class FilterStage implements FilteredClient {
  readonly run: StageOwner;
  readonly index: number;
  /** Set as soon as it is made. */
  filter: NetworkFilter | undefined;
  isStopped = false;
  /** It has called continueReading(), and the turn in which that is done has not come. */
  isContinuing = false;
  /** Bytes that it has seen and those behind it have not; the client's end behind them. */
  held: HeldBytes | undefined;
  holdsEnd = false;

  constructor(run: StageOwner, index: number) {
    this.run = run;
    this.index = index;
  }

  /** Whether what comes has to wait behind what it holds. */
  get holds(): boolean {
    return this.isStopped || (this.held !== undefined && !this.held.isEmpty);
  }

  // ── FilteredClient ───────────────────────────────────────────────────────────────────────────────────────────────

  get serial(): number {
    return this.run.connection.serial;
  }
  get remote(): Address {
    return this.run.connection.remote;
  }
  get remoteText(): string {
    return this.run.connection.remoteText;
  }
  get directRemoteText(): string {
    return this.run.connection.directRemoteText;
  }
  get localText(): string {
    return this.run.connection.localText;
  }
  get startMonotonicMs(): number {
    return this.run.connection.startMonotonicMs;
  }
  get isClosed(): boolean {
    return this.run.connection.isClosed;
  }

  continueReading(): void {
    this.run.continueLater(this);
  }

  close(how: FilterClose, details: string, delayMs = 0): void {
    this.run.refuse(how, details, delayMs);
  }
}
