// What a listener's filter chain is made of, as the listener sees it: something that takes accepted connections.

import type { ConnectionHandler } from '../io/transport.js';
import type { DownstreamConnection } from './downstream-connection.js';

/** The terminal network filter of a chain: the HTTP connection manager, the TCP proxy. One a chain and thread. */
export interface TerminalNetworkFilter {
  /** Takes over a connection for as long as it lives; undefined when it has closed it at once. */
  accept(connection: DownstreamConnection): ConnectionHandler | undefined;
}

/** Runtime form of a filter chain: immutable; connections hold on to the one they were accepted with. */
export interface FilterChain {
  readonly name: string;
  readonly terminal: TerminalNetworkFilter;
}
