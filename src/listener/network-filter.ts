// What a listener's filter chain is made of: network filters that let connections through or end them, and the terminal one, which
// takes the accepted connections that they let through.

import type { DownstreamEnds } from '../access-log/stream/stream-info.js';
import type { RouteConfiguration } from '../config/generated/api.js';
import type { Address } from '../io/addresses/address.js';
import type { ConnectionChain, DownstreamConnection, DownstreamHandler } from './downstream-connection.js';
import type { Cargo } from './travel.js';

/** Whether the filters behind get what this one has seen. */
export const enum FilterStatus {
  Continue,
  /**
   * Holds back the filters behind, until continueReading() is called or onData() returns Continue. This filter still gets what is
   * received, as long as not more than the listener's buffer limit is held.
   */
  Stop,
}

/** How a filter ends a connection. */
export const enum FilterClose {
  /** What is pending for the client is still delivered. */
  Flush,
  /** Nothing is: a client for which something was pending sees a reset. */
  NoFlush,
}

/** A network filter before the terminal one. One a connection. What its methods throw ends this connection only. */
export interface NetworkFilter {
  /** Called when all filters before have let the connection through. */
  onNewConnection(): FilterStatus;
  /**
   * Called with what the client sends, each byte once and in order: memory[offset, offset + length), valid until the call returns.
   * `isEnd`: the client has ended its direction; length may be 0 then. Not called with an end that ends the connection (see
   * TerminalNetworkFilter.halfCloses).
   */
  onData(offset: number, length: number, isEnd: boolean): FilterStatus;
  /** The connection is gone, however that came: cancels what still waits. Called once. */
  onDestroy?(): void;
}

/** Makes the filters of one chain's connections. One a chain and thread. */
export interface NetworkFilterFactory {
  /** Called for each connection. Undefined: the filter has nothing to do with this one. */
  create(connection: FilteredClient): NetworkFilter | undefined;
  /** The chain is gone, and its last connection with it. Absent: nothing is to be done. */
  close?(): void;
}

/** A connection, as one of its network filters sees it. Calls that come after its end do nothing. */
export interface FilteredClient extends DownstreamEnds {
  /** Unique in the process, as in %CONNECTION_ID%. */
  readonly serial: number;
  readonly remote: Address;
  /** Of the clock that does not jump. */
  readonly startMonotonicMs: number;
  readonly isClosed: boolean;
  /** After Stop: what was held back goes to the filters behind, in a later turn. */
  continueReading(): void;
  /**
   * Ends the connection, `delayMs` from now; until then no filter gets anything more of the client, and what was held back is dropped.
   * @param details %CONNECTION_TERMINATION_DETAILS%, from now on
   */
  close(how: FilterClose, details: string, delayMs?: number): void;
}

/** The terminal network filter of a chain: the HTTP connection manager, the TCP proxy. One a chain and thread. */
export interface TerminalNetworkFilter {
  /** A client that ends its direction is still served. Absent or false: its end is that of the connection. */
  readonly halfCloses?: boolean;
  /** Takes over a connection for as long as it lives; undefined when it has closed it at once. */
  accept(connection: DownstreamConnection): DownstreamHandler | undefined;
  /**
   * Whether a connection can go on here that the same filter has had in another process; a text says why not. Absent: it
   * never can. `isClientBlocked`: more is pending for the client than its high watermark.
   */
  expect?(cargo: Cargo, isClientBlocked: boolean): FilterArrival | string;
  /**
   * Builds other routes than stand in the filter's configuration, in steps: one a route. What it returns in the end puts them in
   * place for new requests. Throws when they cannot be built. Absent: it has none.
   */
  prepareRoutes?(routes: RouteConfiguration): Generator<void, () => void>;
  /** The chain is gone, and its last connection with it: gives up what the filter holds open. Absent: nothing. */
  close?(): void;
}

/** Runtime form of a filter chain: immutable; connections hold on to the one they were accepted with. */
export interface FilterChain extends ConnectionChain {
  readonly name: string;
  /** The class of its connections. */
  readonly Connection: typeof DownstreamConnection;
  readonly terminal: TerminalNetworkFilter;
}

/** Finds the chain of a connection in one version of a listener. */
export interface FilterChainFinder {
  /** The chain of every connection regardless of its addresses; undefined if find() must be called. */
  readonly only: FilterChain | undefined;
  /** Returns undefined if no chain matches; the connection is then closed. */
  find(ends: ConnectionEnds): FilterChain | undefined;
}

/** The addresses of a connection, determined on demand. */
export interface ConnectionEnds {
  readonly remote: Address;
  /** The socket's peer, which differs from `remote` if a proxy has reported that. */
  readonly direct: Address;
  readonly local: Address;
}

/** A filter's preparation for a connection from another process. */
export interface FilterArrival {
  /** The client must not be read at first. */
  readonly pausesClient: boolean;
  /** Called when this process owns the connection; the client's socket is thawed afterwards. */
  begin(connection: DownstreamConnection): DownstreamHandler;
  /** Called when all sockets are thawed. */
  begun?(): void;
  /** Releases what was prepared. */
  drop(): void;
}
