// The open connections of the admin server. There is a limit to them, up to which idle ones are kept: beyond it the one that has been
// idle longest makes room, so that whoever holds connections without asking anything keeps nobody from asking.
//
// A connection is idle unless it has a complete request to answer. One that sends a request bit by bit is idle, and so is one that has
// not sent anything; node:http counts both as busy. When none is idle, one whose client takes nothing of its answers makes room.

import type { Socket } from 'node:net';
import { forEachGuarded, outsideDomains } from '../../../log/internal-errors.js';
import { AdminConnection, type ConnectionEvents } from './admin-connection.js';

export interface ConnectionsOptions {
  /** Connections at a time. */
  readonly max: number;
  /** How long one may be idle. */
  readonly idleMs: number;
  /** One was closed to make room for another. */
  onEvicted(): void;
  /** One was refused, for all others are busy. */
  onRefused(): void;
  /** One was idle for too long, and is closed. */
  onIdleTimeout(): void;
}

/** How often connections are looked at, at most: whether they are stalled, or have been idle for too long. */
const LOOK_MS = 1000;
const LOOKS_PER_TIMEOUT = 10;
/** A client that takes nothing for so many looks is stalled. */
const STALLED_LOOKS = 5;

export class Connections implements ConnectionEvents {
  readonly #options: ConnectionsOptions;
  readonly #open = new Map<Socket, AdminConnection>();
  /** Those that are idle, in the order in which they came to be so, and since when. */
  readonly #idle = new Map<AdminConnection, number>();
  /** Those whose clients take nothing, and for how many looks. */
  readonly #stalled = new Map<AdminConnection, number>();
  #timer: NodeJS.Timeout | undefined;
  #isClosing = false;

  constructor(options: ConnectionsOptions) {
    this.#options = options;
  }

  /** Takes a connection. Returns undefined, with the connection closed, when there is no room. */
  add(socket: Socket): AdminConnection | undefined {
    if (this.#open.size >= this.#options.max && !this.evict()) {
      this.#options.onRefused();
      socket.destroy();
      return undefined;
    }
    const connection = new AdminConnection(socket, this);
    this.#open.set(socket, connection);
    this.idle(connection);
    // It outlives the connection.
    this.#timer ??= outsideDomains(() => setInterval(() => this.#look(), this.#lookMs).unref());
    return connection;
  }

  /** Closes the connection that has been idle longest, or else stalled longest. Returns false when there is none. */
  evict(): boolean {
    const [first = this.#longestStalled] = this.#idle.keys();
    if (first === undefined) return false;
    this.#remove(first);
    this.#options.onEvicted();
    first.end();
    return true;
  }

  /** Undefined for one that has been closed. */
  find(socket: Socket): AdminConnection | undefined {
    return this.#open.get(socket);
  }

  /** The connection has closed; `byPeer`: because its client has left. */
  closed(connection: AdminConnection, byPeer: boolean): void {
    const sinceMs = this.#idle.get(connection);
    // node:http ends some of them itself.
    if (!byPeer && sinceMs !== undefined && performance.now() - sinceMs >= this.#options.idleMs) {
      this.#options.onIdleTimeout();
    }
    this.#remove(connection);
    connection.closed();
  }

  /** Ends connections as soon as they wait for no answer. */
  closeWhenIdle(): void {
    this.#isClosing = true;
    forEachGuarded(this.#open.values(), NOT_ENDED, (connection) => connection.endWhenIdle());
  }

  /** Undoes closeWhenIdle() for connections to come. */
  keepIdle(): void {
    this.#isClosing = false;
  }

  /** Ends all of them. */
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

  get #lookMs(): number {
    return Math.min(LOOK_MS, this.#options.idleMs / LOOKS_PER_TIMEOUT);
  }

  get #longestStalled(): AdminConnection | undefined {
    let longest: AdminConnection | undefined;
    let most = STALLED_LOOKS - 1;
    for (const [connection, looks] of this.#stalled) {
      if (looks > most) [longest, most] = [connection, looks];
    }
    return longest;
  }

  #look(): void {
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
      // A client that does not end its side, after it was told to, is not waited for again.
      if (nowMs - sinceMs < idleMs + 2 * this.#lookMs) connection.endIdle();
      else connection.end();
    });
  }
}

const NOT_ENDED = 'internal error: an admin connection is not ended';
