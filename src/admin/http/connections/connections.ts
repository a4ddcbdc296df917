// The open connections of the admin server. Idle ones are kept up to a limit; beyond it, the longest idle one is evicted, so
// that clients that hold connections without sending requests do not block others.
//
// A connection is idle unless it has a complete request to answer. Connections that send a request slowly or have not sent
// anything are idle, though node:http counts both as busy. If none is idle, a connection whose client does not read its
// answers is evicted.

import type { Socket } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { forEachGuarded, outsideDomains } from '../../../log/internal-errors.js';
import { AdminConnection, type ConnectionEvents } from './admin-connection.js';

export interface ConnectionsOptions {
  /** Maximum number of connections. */
  readonly max: number;
  /** Maximum idle time. */
  readonly idleMs: number;
  /** Called when a connection was closed to make room for another. */
  onEvicted(): void;
  /** Called when a connection was refused because all others are busy. */
  onRefused(): void;
  /** Called when a connection is closed because it was idle for too long. */
  onIdleTimeout(): void;
}

/** Maximum interval of checks for stalled and idle connections. */
const MAX_CHECK_INTERVAL_MS = 1000;
const CHECKS_PER_TIMEOUT = 10;
/** Number of checks after which a client that reads nothing is stalled. */
const STALLED_CHECKS = 5;
const FIRST_REQUEST_POLL_MS = 5;

export class Connections implements ConnectionEvents {
  readonly #options: ConnectionsOptions;
  readonly #open = new Map<Socket, AdminConnection>();
  /** Idle connections with the time since when, longest idle first. */
  readonly #idle = new Map<AdminConnection, number>();
  /** Connections whose clients read nothing, with the number of checks. */
  readonly #stalled = new Map<AdminConnection, number>();
  #timer: NodeJS.Timeout | undefined;
  #isClosing = false;

  constructor(options: ConnectionsOptions) {
    this.#options = options;
  }

  /** Takes a connection. Returns undefined, with the connection closed, if there is no room. */
  add(socket: Socket): AdminConnection | undefined {
    if (this.#open.size >= this.#options.max && !this.evict()) {
      this.#options.onRefused();
      socket.destroy();
      return undefined;
    }
    const connection = new AdminConnection(socket, this);
    this.#open.set(socket, connection);
    this.idle(connection);
    // The timer outlives the connection.
    this.#timer ??= outsideDomains(() => setInterval(() => this.#check(), this.#checkIntervalMs).unref());
    return connection;
  }

  /** Closes the longest idle connection, or else the longest stalled one. Returns false if there is none. */
  evict(): boolean {
    const [first = this.#longestStalled] = this.#idle.keys();
    if (first === undefined) return false;
    this.#remove(first);
    this.#options.onEvicted();
    first.end();
    return true;
  }

  /** Returns undefined for a closed connection. */
  find(socket: Socket): AdminConnection | undefined {
    return this.#open.get(socket);
  }

  /** Called when the connection has closed; `byPeer`: the client closed it. */
  closed(connection: AdminConnection, byPeer: boolean): void {
    const sinceMs = this.#idle.get(connection);
    // node:http ends some idle connections itself.
    if (!byPeer && sinceMs !== undefined && performance.now() - sinceMs >= this.#options.idleMs) {
      this.#options.onIdleTimeout();
    }
    this.#remove(connection);
    connection.closed();
  }

  /** Resolves when each open connection has had a request, at the latest after `ms`. */
  async awaitFirstRequests(ms: number): Promise<void> {
    const deadline = performance.now() + ms;
    while (this.#hasFresh && performance.now() < deadline) await setTimeout(FIRST_REQUEST_POLL_MS);
  }

  get #hasFresh(): boolean {
    for (const { isFresh } of this.#open.values()) if (isFresh) return true;
    return false;
  }

  /** Ends connections as soon as they have no unanswered request. */
  closeWhenIdle(): void {
    this.#isClosing = true;
    forEachGuarded(this.#open.values(), NOT_ENDED, (connection) => connection.endWhenIdle());
  }

  /** Reverts closeWhenIdle() for new connections. */
  keepIdle(): void {
    this.#isClosing = false;
  }

  /** Ends all connections. */
  endAll(): void {
    forEachGuarded(this.#open.values(), NOT_ENDED, (connection) => connection.end());
  }

  busy(connection: AdminConnection): void {
    this.#idle.delete(connection);
  }

  idle(connection: AdminConnection): void {
    if (!this.#open.has(connection.socket)) return;
    this.#idle.set(connection, performance.now());
    if (this.#isClosing) connection.endWhenIdle();
  }

  #remove(connection: AdminConnection): void {
    this.#open.delete(connection.socket);
    this.#idle.delete(connection);
    this.#stalled.delete(connection);
    if (this.#open.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  get #checkIntervalMs(): number {
    return Math.min(MAX_CHECK_INTERVAL_MS, this.#options.idleMs / CHECKS_PER_TIMEOUT);
  }

  get #longestStalled(): AdminConnection | undefined {
    let longestStalled: AdminConnection | undefined;
    let maxChecks = STALLED_CHECKS - 1;
    for (const [connection, checks] of this.#stalled) {
      if (checks > maxChecks) [longestStalled, maxChecks] = [connection, checks];
    }
    return longestStalled;
  }

  #check(): void {
    this.#endIdle();
    for (const connection of this.#open.values()) {
      if (this.#idle.has(connection) || !connection.isStalled()) this.#stalled.delete(connection);
      else this.#stalled.set(connection, (this.#stalled.get(connection) ?? 0) + 1);
    }
  }

  #endIdle(): void {
    const { idleMs } = this.#options;
    const nowMs = performance.now();
    forEachGuarded([...this.#idle], NOT_ENDED, ([connection, sinceMs]) => {
      if (nowMs - sinceMs < idleMs) return;
      // A client that does not end its side after it was notified is not waited for again.
      if (nowMs - sinceMs < idleMs + 2 * this.#checkIntervalMs) connection.endIdle();
      else connection.end();
    });
  }
}

const NOT_ENDED = 'internal error: an admin connection is not ended';
