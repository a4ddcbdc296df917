// The interfaces between listeners and filters for moving established connections to another process and taking them over from
// one.

import type { Address } from '../io/addresses/address.js';
import type { FrozenConnection } from '../io/shim.js';

/** The filter's state of a connection: plain JSON, which the same filter in the other process reads. */
export type FilterProgress = Readonly<Record<string, string | number | boolean>>;

/** A frozen connection. Either stay() or leave() is called, once. */
export interface Departure {
  /** The IDs of its frozen sockets, the client's first. */
  readonly ids: readonly number[];
  readonly progress: FilterProgress;
  /** Bytes of the client that were received but not handled. */
  readonly input: Uint8Array;
  /** Resumes the connection in this process. */
  stay(): void;
  /** Releases the connection, which the other process has taken over: it is no longer counted or logged here. */
  leave(): void;
}

/** The identity of a filter chain across processes. */
export interface ChainIdentity {
  /** Returns a value that is equal for chains that can take over each other's connections. Computed on demand. */
  fingerprint(): string;
}

/** A connection as the code that moves it to another process uses it. */
export interface TravellingConnection {
  readonly isClosed: boolean;
  readonly listener: { readonly name: string };
  readonly chain: ChainIdentity;
  readonly handler: { depart?(): Departure | undefined } | undefined;
  readonly remote: Address;
  /** See KnownConnection. */
  readonly direct: Address | undefined;
  readonly localText: string;
  readonly startMonotonicMs: number;
  /** Another process has refused to take it over. */
  mustStay: boolean;
}

/** The connections of a worker that may move to another process. */
export interface Departures {
  /** A connection that stops now can depart at the end of the turn. */
  readonly hasRoom: boolean;
  /** Called when a connection has stopped and can depart. */
  ready(connection: TravellingConnection): void;
  /** Registers a connection that may depart whenever it is between requests, without stopping for it. */
  add(connection: TravellingConnection): void;
}

/** The properties of a connection from another process; plain JSON. */
export interface TravelFacts {
  readonly listener: string;
  /** Of its filter chain, see ChainIdentity. */
  readonly fingerprint: string;
  readonly remote: Address;
  /** See KnownConnection. */
  readonly direct?: Address | undefined;
  /** The local address as text; '' if it was not determined. */
  readonly local: string;
  /** CLOCK_MONOTONIC, which the processes of a machine share. */
  readonly startMonotonicMs: number;
  readonly progress: FilterProgress;
}

/** A connection in transit. */
export interface Cargo {
  readonly facts: TravelFacts;
  /** The client's socket comes first. */
  readonly sockets: readonly FrozenConnection[];
  /** Bytes of the client that were received but not handled. */
  readonly input: Uint8Array;
}

/** A connection that can be taken over, and is still unchanged. */
export interface Arrival {
  begin(): void;
  /** Releases what was prepared. */
  drop(): void;
}
