// What a listener's filter chain is made of, as the listener sees it: something that takes accepted connections.

import type { RouteConfiguration } from '../config/generated/api.js';
import type { Address } from '../io/addresses/address.js';
import type { ConnectionChain, DownstreamConnection, DownstreamHandler } from './downstream-connection.js';
import type { Cargo } from './travel.js';

/** The terminal network filter of a chain: the HTTP connection manager, the TCP proxy. One a chain and thread. */
export interface TerminalNetworkFilter {
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
  readonly terminal: TerminalNetworkFilter;
}

/** Finds the chain of a connection among those of one version of a listener. */
export interface FilterChainFinder {
  /** Takes every connection, whatever its ends are; undefined when find() has to be asked. */
  readonly only: FilterChain | undefined;
  /** Undefined: nothing takes it, and it is closed. */
  find(ends: ConnectionEnds): FilterChain | undefined;
}

/** Where a connection comes from, and where it was made to; looked up when they are asked for. */
export interface ConnectionEnds {
  readonly remote: Address;
  /** The socket's own peer: another one than `remote` where a proxy has told who that is. */
  readonly direct: Address;
  readonly local: Address;
}

/** What a filter needs to go on with a connection. */
export interface FilterArrival {
  /** The client is not to be read at first. */
  readonly pausesClient: boolean;
  /** The connection is this process's; the client's socket is thawed behind it. */
  begin(connection: DownstreamConnection): DownstreamHandler;
  /** All sockets are thawed. */
  begun?(): void;
  /** Lets go of what it has taken. */
  drop(): void;
}
