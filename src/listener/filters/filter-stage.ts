// One network filter of one connection, and the bytes that it holds back from the next filters.

import type { DynamicMetadata } from '../../access-log/stream/dynamic-metadata.js';
import { FilterState, type FilterStateObject } from '../../access-log/stream/filter-state.js';
import type { ResponseFlag } from '../../access-log/stream/response-flags.js';
import type { StreamInfo } from '../../access-log/stream/stream-info.js';
import type { Struct } from '../../config/generated/api.js';
import type { Address } from '../../io/addresses/address.js';
import type { HeldBytes } from '../../io/held-bytes.js';
import type { ConnectionSecurity } from '../../io/tls/connection-security.js';
import type { DetectedProtocols } from '../../io/tls/detected-protocols.js';
import type { DownstreamConnection } from '../downstream-connection.js';
import type { FilterClose, FilteredClient, NetworkFilter } from '../network-filter.js';

/** The common owner of all filters of a connection. */
export interface StageOwner {
  readonly connection: DownstreamConnection;
  /** The record of the connection for access logs; undefined: there is none yet. */
  readonly info: StreamInfo | undefined;
  /** See FilteredClient. */
  continueLater(stage: FilterStage): void;
  refuse(how: FilterClose, details: string, delayMs: number): void;
}

export class FilterStage implements FilteredClient {
  readonly run: StageOwner;
  readonly index: number;
  /** Set right after construction. */
  filter: NetworkFilter | undefined;
  isStopped = false;
  /** continueReading() was called and takes effect in a later turn. */
  isContinuing = false;
  /** Bytes that this filter has seen and the next ones have not; `holdsEnd`: followed by the client's FIN. */
  held: HeldBytes | undefined;
  holdsEnd = false;

  constructor(run: StageOwner, index: number) {
    this.run = run;
    this.index = index;
  }

  /** Whether further bytes must wait, because the filter has stopped or older bytes are still held. */
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
  get directLocalText(): string {
    return this.run.connection.directLocalText;
  }
  get security(): ConnectionSecurity | undefined {
    return this.run.connection.security;
  }

  get transportFailure(): string {
    return this.run.connection.transportFailure;
  }
  get detected(): DetectedProtocols | undefined {
    return this.run.connection.detected;
  }
  get startMonotonicMs(): number {
    return this.run.connection.startMonotonicMs;
  }
  get isClosed(): boolean {
    return this.run.connection.isClosed;
  }

  setCluster(name: string): void {
    this.run.connection.clusterName = name;
  }

  setRequestedHost(host: string): void {
    this.run.connection.requestedHost = host;
  }

  addResponseFlag(flag: ResponseFlag): void {
    const { info } = this.run;
    if (info !== undefined) info.responseFlags |= flag;
  }

  addMetadata(namespace: string, value: Struct): void {
    const { connection, info } = this.run;
    const metadata = connection.addMetadata(namespace, value);
    info?.shareDynamicMetadata(metadata);
  }

  get dynamicMetadata(): DynamicMetadata | undefined {
    return this.run.connection.dynamicMetadata;
  }

  setFilterState(key: string, object: FilterStateObject): void {
    const { connection } = this.run;
    connection.filterState ??= new FilterState();
    connection.filterState.set(key, object);
  }

  get filterState(): FilterState | undefined {
    return this.run.connection.filterState;
  }

  setResponseCodeDetails(details: string): void {
    const { info } = this.run;
    if (info !== undefined) info.responseCodeDetails = details;
  }

  setLocalCloseReason(reason: string): void {
    const { info } = this.run;
    if (info !== undefined) info.downstreamLocalCloseReason = reason;
  }

  continueReading(): void {
    this.run.continueLater(this);
  }

  close(how: FilterClose, details: string, delayMs = 0): void {
    this.run.refuse(how, details, delayMs);
  }
}
