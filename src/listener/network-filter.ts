// The interfaces of the network filters of a filter chain: filters that pass or close connections, and the terminal one after
// them, which serves the connections that they pass.

import type { DynamicMetadata } from '../access-log/stream/dynamic-metadata.js';
import type { FilterState, FilterStateObject } from '../access-log/stream/filter-state.js';
import type { ResponseFlag } from '../access-log/stream/response-flags.js';
import type { DownstreamProperties } from '../access-log/stream/stream-info.js';
import type { RouteConfiguration, Struct } from '../config/generated/api.js';
import type { Address } from '../io/addresses/address.js';
import type { DetectedProtocols } from '../io/tls/detected-protocols.js';
import type { ConnectionChain, DownstreamConnection, DownstreamHandler } from './downstream-connection.js';
import type { HandedOverConnection } from './hand-over.js';
import type { ServerTls } from './server-tls.js';

/** Whether the next filters get what this filter has seen. */
export const enum FilterStatus {
  Continue,
  /**
   * Holds back bytes from the next filters until continueReading() is called or onData() returns Continue. This filter still gets
   * received bytes, as long as the held bytes are below the listener's buffer limit.
   */
  Stop,
}

/** How a filter ends a connection. */
export const enum FilterClose {
  /** Pending bytes for the client are still delivered. */
  Flush,
  /** Pending bytes are discarded; if there are any, the client sees a reset. */
  NoFlush,
}

/** A network filter before the terminal one, created for each connection. An exception in a method ends only this connection. */
export interface NetworkFilter {
  /** Called when all previous filters have passed the connection. */
  onNewConnection(): FilterStatus;
  /**
   * Called for received bytes, each once and in order: memory[offset, offset + length), valid until the call returns. `isEnd`:
   * the client has half-closed (length may be 0). Not called for a FIN that ends the whole connection, see
   * TerminalNetworkFilter.halfCloses.
   */
  onData(offset: number, length: number, isEnd: boolean): FilterStatus;
  /** Called when the TLS handshake of the connection has succeeded, perhaps before onNewConnection(). */
  onSecured?(): void;
  /** Called once when the connection has ended in any way. Cancels timers and calls. */
  onDestroy?(): void;
}

/** Creates the filters of connections. One per chain and thread. */
export interface NetworkFilterFactory {
  /** Called for each connection. Returns undefined to leave the filter out for this connection. */
  create(connection: FilteredClient): NetworkFilter | undefined;
  /** Called when the chain and its last connection are gone. */
  close?(): void;
}

/** A connection as a network filter controls it. Calls after its end are no-ops. */
export interface FilteredClient extends DownstreamProperties {
  /** Unique in the process, as in %CONNECTION_ID%. */
  readonly serial: number;
  readonly remote: Address;
  /** CLOCK_MONOTONIC. */
  readonly startMonotonicMs: number;
  readonly isClosed: boolean;
  /** Makes the TCP proxy at the end of the chain use this cluster instead of its own. Call it before the proxy accepts the connection. */
  setCluster(name: string): void;
  /** Makes a dynamic forward proxy connect to this host, `name:port`. Call it when setCluster() may be called. */
  setRequestedHost(host: string): void;
  /** Adds a flag to the connection's entries in access logs: that of its listener, and that of a TCP proxy that has accepted it. */
  addResponseFlag(flag: ResponseFlag): void;
  /** Merges a structure into the dynamic metadata of the connection, which its log entries show. */
  addMetadata(namespace: string, value: Struct): void;
  /** What filters have set; undefined: nothing. */
  readonly dynamicMetadata: DynamicMetadata | undefined;
  /** Sets an object of the connection's filter state, which its requests see too. */
  setFilterState(key: string, object: FilterStateObject): void;
  /** What filters have set; undefined: nothing. */
  readonly filterState: FilterState | undefined;
  /** Sets %RESPONSE_CODE_DETAILS% of these entries. */
  setResponseCodeDetails(details: string): void;
  /** Sets %DOWNSTREAM_LOCAL_CLOSE_REASON% of these entries. */
  setLocalCloseReason(reason: string): void;
  /** After FilterStatus.Stop: passes held bytes to the next filters, in a later turn. */
  continueReading(): void;
  /**
   * Ends the connection after `delayMs` (default 0). From now on filters get no bytes, and held bytes are dropped.
   * @param details %CONNECTION_TERMINATION_DETAILS%
   */
  close(how: FilterClose, details: string, delayMs?: number): void;
}

/** The terminal network filter of a chain (HTTP connection manager, TCP proxy). One per chain and thread. */
export interface TerminalNetworkFilter {
  /** A client that half-closes is still served. Absent or false: its FIN ends the connection. */
  readonly halfCloses?: boolean;
  /** Takes over a connection until it ends. Returns undefined if it was closed at once. */
  accept(connection: DownstreamConnection): DownstreamHandler | undefined;
  /**
   * Prepares to take over a connection that the same filter has served in another process. Returns a string with the reason if
   * that is not possible. Absent: it never is. `isClientBlocked`: the send queue to the client is above its high watermark.
   */
  prepareTakeOver?(handedOver: HandedOverConnection, isClientBlocked: boolean): FilterTakeOver | string;
  /**
   * Builds new inline routes in steps, one per route. Returns a function that activates them for new requests. Throws if they
   * cannot be built. Absent: the filter has no routes.
   */
  prepareRoutes?(routes: RouteConfiguration): Generator<void, () => void>;
  /** Called when the chain and its last connection are gone. Releases what the filter holds. */
  close?(): void;
}

/** The runtime form of a filter chain. Immutable: connections keep the chain with which they were accepted. */
export interface FilterChain extends ConnectionChain {
  readonly name: string;
  /** The class of its connections. */
  readonly Connection: typeof DownstreamConnection;
  readonly terminal: TerminalNetworkFilter;
  /** Undefined: its connections are plain. */
  readonly tls: ServerTls | undefined;
}

/** Finds the chain of a connection in one version of a listener. */
export interface FilterChainFinder {
  /** The chain of every connection regardless of its properties; undefined if find() must be called. */
  readonly only: FilterChain | undefined;
  /** Returns undefined if no chain matches; the connection is then closed. */
  find(properties: ConnectionProperties): FilterChain | undefined;
}

/** The properties of a connection that select its chain. Addresses are determined on demand. */
export interface ConnectionProperties {
  readonly remote: Address;
  /** The socket's peer. It differs from `remote` if a proxy in front has reported the client's address. */
  readonly direct: Address;
  readonly local: Address;
  /** What listener filters have detected; undefined if they detected nothing. */
  readonly detected: DetectedProtocols | undefined;
}

/** A filter's preparation for a connection from another process. */
export interface FilterTakeOver {
  /** The client must not be read at first. */
  readonly pausesClient: boolean;
  /** Called when this process owns the connection; the client's socket is thawed afterwards. */
  begin(connection: DownstreamConnection): DownstreamHandler;
  /** Called when all sockets are thawed. */
  begun?(): void;
  /** Releases what was prepared. */
  drop(): void;
}
