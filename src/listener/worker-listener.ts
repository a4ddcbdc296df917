// A version of a listener on one worker, of either protocol.

import type { OverloadChange } from '../runtime/overload/thread-overload.js';
import type { DrainWindow } from './drain-window.js';
import type { HandedOverConnection, HandOverQueue, PreparedTakeOver } from './hand-over.js';
import type { FilterChain, FilterChainFinder } from './network-filter.js';
import type { OpenConnections } from './open-connections.js';

export interface WorkerListener {
  readonly name: string;
  /** The number of its sockets in the transport while it does not accept, otherwise 0. */
  readonly suspendedSockets: number;
  /** Returns a chain, current or former. */
  chain(id: number): FilterChain | undefined;
  /** Sets the chains for new connections. */
  setChains(chains: readonly FilterChain[], finder: FilterChainFinder): void;
  /** Removes a former chain and ends its connections. */
  removeChain(id: number): void;
  /** Copies these descriptors for accept(). Throws without descriptors left, and then keeps none. */
  takeSockets(fds: readonly number[], shared: boolean): void;
  /** Starts or resumes accepting, or receiving. */
  accept(): void;
  suspend(): void;
  /** Stops accepting for good. With `acceptRest`, connections in the backlog are still served. */
  stop(acceptRest: boolean): void;
  /** Drains the connections of all chains, or of the chain with this ID. */
  beginDrain(window: DrainWindow, chainId?: number): void;
  changeDrain(window: DrainWindow | undefined): void;
  /** Called at the end of the drain time. */
  drainEnded(): void;
  /** Counts what is open, of the listener and of each former chain. */
  countOpen(counts: Map<number, OpenConnections>): void;
  /** Removes the listener and ends its connections or sessions. */
  remove(): void;
  /** Called before the thread ends because of `error`. */
  abandon(error: unknown): void;
  /** Called when a connection was reset without its handler. */
  lost(id: number): void;
  /** Called when runtime values have changed. */
  runtimeChanged(): void;
  /** Called when the overload manager has changed the state of actions. */
  overloadChanged(change: OverloadChange): void;
  /** Starts moving its connections to another process; undefined: stops that. */
  handOver(queue: HandOverQueue | undefined): void;
  /** Prepares to take over a connection from another process. Returns a string with the reason if that is not possible. */
  prepareTakeOver(handedOver: HandedOverConnection): PreparedTakeOver | string;
}
