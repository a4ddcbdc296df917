// The API of network filters in TypeScript: they see the bytes of a client's connection before the TCP proxy or the HTTP connection
// manager does, and may hold, choose the cluster of, or close it. docs/filters-in-typescript.md is its introduction.

import type { StandardSchema, StreamContext } from './context.js';
import { marked } from './kind.js';

/** A network filter: a module exports one as its default, made with defineNetworkFilter(). `C`: its `config`. */
export interface NetworkFilter<C = unknown> {
  /** Validates `config`, as that of HttpFilter does. */
  readonly config?: StandardSchema<C> | ((config: unknown) => C);
  /**
   * Called with each connection. While a promise is pending, the connection is held. 'more' as the result holds it until onData() has
   * passed its first bytes on: without it the TCP proxy connects before them, because in some protocols the host speaks first.
   */
  onConnection?(ctx: ConnectionContext<C>): ConnectionResult | Promise<ConnectionResult>;
  /**
   * Called with the received bytes that have not been passed on. Nothing as the result passes them on; 'more' holds them, and
   * onData() is called again with these and the next ones; 'done' passes them and all later ones on, without further calls. While a
   * promise is pending, the bytes are held.
   */
  onData?(data: Uint8Array, ctx: ConnectionContext<C>): DataResult | Promise<DataResult>;
  /** Called when the connection has ended in any way. It cannot wait. */
  onClose?(ctx: ConnectionContext<C>): void;
}

// biome-ignore lint/suspicious/noConfusingVoidType: hooks without a return statement
export type ConnectionResult = void | 'more';

// biome-ignore lint/suspicious/noConfusingVoidType: hooks without a return statement
export type DataResult = void | 'more' | 'done';

/** The context of one connection. */
export interface ConnectionContext<C = unknown> extends StreamContext {
  readonly config: C;
  /** The TCP proxy uses this cluster instead of its own. Throws once the connection was passed on: see onConnection(). */
  setCluster(name: string): void;
  /** Closes the connection. `details`: %CONNECTION_TERMINATION_DETAILS% of access logs. */
  close(details?: string): void;
}

/** Defines a network filter. */
export function defineNetworkFilter<C = unknown>(filter: NetworkFilter<C>): NetworkFilter<C> {
  return marked(filter, 'network filter');
}
