// The API of network filters in TypeScript. They see the bytes of a client's connection before the TCP proxy or the HTTP connection
// manager does, and may hold or close it, or choose its cluster. docs/filters-in-typescript.md is the introduction.

import type { StandardSchema, StreamContext } from './context.js';
import { marked } from './kind.js';

/** A network filter: a module exports one as its default, made with defineNetworkFilter(). `C`: its `config`. */
export interface NetworkFilter<C = unknown> {
  /** Validates `config`, as HttpFilter.config does. */
  readonly config?: StandardSchema<C> | ((config: unknown) => C);
  /**
   * Called for each new connection. The connection is held while a returned promise is pending. Return 'more' to hold it until onData()
   * passes its first bytes on. Otherwise the TCP proxy connects to the host at once, because in some protocols the host speaks first.
   */
  onConnection?(ctx: ConnectionContext<C>): ConnectionResult | Promise<ConnectionResult>;
  /**
   * Called with all received bytes that have not been passed on. Return nothing to pass them on; 'more' to hold them until onData() is
   * called again with these and the next bytes; 'done' to pass on these and all later bytes without further calls. The bytes are held
   * while a returned promise is pending.
   */
  onData?(data: Uint8Array, ctx: ConnectionContext<C>): DataResult | Promise<DataResult>;
  /** Called when the connection has ended in any way. Nothing waits for a returned promise. */
  onClose?(ctx: ConnectionContext<C>): void;
}

// biome-ignore lint/suspicious/noConfusingVoidType: hooks without a return statement
export type ConnectionResult = void | 'more';

// biome-ignore lint/suspicious/noConfusingVoidType: hooks without a return statement
export type DataResult = void | 'more' | 'done';

/** The context of one connection. */
export interface ConnectionContext<C = unknown> extends StreamContext {
  readonly config: C;
  /** Makes the TCP proxy use this cluster instead of its own. Throws once the connection has been passed on: see onConnection(). */
  setCluster(name: string): void;
  /** Closes the connection. `details` is %CONNECTION_TERMINATION_DETAILS% in access logs, not `details` of their entries. */
  close(details?: string): void;
}

/** Defines a network filter. */
export function defineNetworkFilter<C = unknown>(filter: NetworkFilter<C>): NetworkFilter<C> {
  return marked(filter, 'network filter');
}
