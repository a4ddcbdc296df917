// How established connections leave for another process, and arrive from one: what listeners and filters say to each other.

import type { Address } from '../io/addresses/address.js';
import type { FrozenConnection } from '../io/shim.js';

/** What the filter that serves a connection knows of it; plain JSON, which the same filter of the other process reads. */
export type FilterProgress = Readonly<Record<string, string | number | boolean>>;

/** A connection that has stopped where it is. One of stay() and leave() is called, once. */
export interface Departure {
  /** Its frozen sockets, the client's first. */
  readonly ids: readonly number[];
  readonly progress: FilterProgress;
  /** Bytes of the client that were received and not handled. */
  readonly input: Uint8Array;
  /** It goes on here after all. */
  stay(): void;
  /** It is another process's: here it counts and is logged no longer. */
  leave(): void;
}

/** What two processes must have in common for connections to go on. */
export interface ChainIdentity {
  /** Equal where connections of one chain can go on with the other; computed when it is asked for. */
  fingerprint(): string;
}

/** A connection, as those see it who take it to another process. */
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
  /** Another process has refused to go on with it. */
  mustStay: boolean;
}

/** Where connections of a worker are taken that may leave. */
export interface Departures {
  /** One that stops for it can leave when the turn ends. */
  readonly hasRoom: boolean;
  /** It has stopped at a point where it can leave. */
  ready(connection: TravellingConnection): void;
  /** It can leave from now on, at moments that it does not stop for. */
  add(connection: TravellingConnection): void;
}

/** What is known of a connection that another process had; plain JSON. */
export interface TravelFacts {
  readonly listener: string;
  /** Of its filter chain. */
  readonly fingerprint: string;
  readonly remote: Address;
  /** See KnownConnection. */
  readonly direct?: Address | undefined;
  /** Its own end as text; '' when nobody has asked for it yet. */
  readonly local: string;
  /** CLOCK_MONOTONIC, which the processes of a machine share. */
  readonly startMonotonicMs: number;
  readonly progress: FilterProgress;
}

/** A connection on its way. */
export interface Cargo {
  readonly facts: TravelFacts;
  /** The client's first. */
  readonly sockets: readonly FrozenConnection[];
  /** Bytes of the client that were received and not handled. */
  readonly input: Uint8Array;
}

/** A connection that could go on here; nothing of it was touched. */
export interface Arrival {
  begin(): void;
  /** Lets go of it. */
  drop(): void;
}
