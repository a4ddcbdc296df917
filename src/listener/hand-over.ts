// The interfaces between listeners and filters for moving established connections to another process and taking them over from
// one.

import type { Address } from '../io/addresses/address.js';
import type { FrozenConnection } from '../io/shim.js';
import type { DetectedProtocols } from '../io/tls/detected-protocols.js';

/** The filter's state of a connection: plain JSON, which the same filter in the other process reads. */
export type FilterProgress = Readonly<Record<string, string | number | boolean>>;

/** A frozen connection that is offered to another process. Either resume() or release() is called, once. */
export interface PreparedHandOver {
  /** The IDs of its frozen sockets, the client's first. */
  readonly ids: readonly number[];
  readonly progress: FilterProgress;
  /** Bytes of the client that were received but not handled. */
  readonly input: Uint8Array;
  /** Resumes the connection in this process. */
  resume(): void;
  /** Releases the connection, which the other process has taken over: it is no longer counted or logged here. */
  release(): void;
}

/** The identity of a filter chain across processes. */
export interface ChainIdentity {
  /** Returns a value that is equal for chains that can take over each other's connections. Computed on demand. */
  fingerprint(): string;
}

/** The part of a connection that the hand-over uses. */
export interface MovableConnection {
  readonly isClosed: boolean;
  readonly listener: { readonly name: string };
  readonly chain: ChainIdentity;
  readonly handler: { prepareHandOver?(): PreparedHandOver | undefined } | undefined;
  readonly remote: Address;
  /** See KnownConnection. */
  readonly direct: Address | undefined;
  readonly localText: string;
  readonly isLocalRestored: boolean;
  readonly detected: DetectedProtocols | undefined;
  readonly startMonotonicMs: number;
  /** The child process did not take it over, so it stays here until there is another child. */
  hasHandOverFailed: boolean;
}

/** The connections of a worker that wait to be handed over to another process. */
export interface HandOverQueue {
  /** A connection that stops now can be offered at the end of the turn. */
  readonly hasRoom: boolean;
  /** Called when a connection has stopped and can be offered. */
  ready(connection: MovableConnection): void;
  /** Registers a connection that can be offered whenever it is between requests, without stopping for it. */
  add(connection: MovableConnection): void;
}

/** The properties of a connection from another process; plain JSON. */
export interface HandOverFacts {
  readonly listener: string;
  /** The fingerprint of the connection's filter chain, see ChainIdentity. */
  readonly fingerprint: string;
  readonly remote: Address;
  /** See KnownConnection. */
  readonly direct?: Address | undefined;
  /** The local address as text; '' if it was not determined. */
  readonly local: string;
  /** See KnownConnection. */
  readonly isLocalRestored?: boolean;
  readonly detected?: DetectedProtocols | undefined;
  /** CLOCK_MONOTONIC, which the processes of a machine share. */
  readonly startMonotonicMs: number;
  readonly progress: FilterProgress;
}

/** A connection in transit between two processes. */
export interface HandedOverConnection {
  readonly facts: HandOverFacts;
  /** The client's socket comes first. */
  readonly sockets: readonly FrozenConnection[];
  /** Bytes of the client that were received but not handled. */
  readonly input: Uint8Array;
}

/** A connection that is ready to be taken over. Nothing has been read or sent on it yet. */
export interface PreparedTakeOver {
  begin(): void;
  /** Releases what was prepared. */
  drop(): void;
}
