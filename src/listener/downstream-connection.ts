// The socket of one accepted connection: its addresses, its accounting, and the one place where it ends.

import { type Address, addressText, decodeSockaddr } from '../io/address.js';
import type { Transport } from '../io/transport.js';
import { ListenerStats, ListenerWorkerStats } from '../stats/layouts/listener.js';
import type { Scope } from '../stats/thread-stats.js';

/** How long a peer may take nothing of the bytes that are pending when its connection is closed in order. */
const FLUSH_MS = 5000;

/** The listener that accepted a connection, as the connection sees it. */
export interface ConnectionOwner {
  /** listener.<address>. */
  readonly stats: Scope;
  /** listener.<address>.worker_<n>. */
  readonly workerStats: Scope;
  connectionEnded(connection: DownstreamConnection): void;
}

export class DownstreamConnection {
  readonly transport: Transport;
  readonly id: number;
  readonly listener: ConnectionOwner;
  /** Unique in the process, as in %CONNECTION_ID%. */
  readonly serial: number;
  readonly remote: Address;
  readonly startMonotonicMs: number;
  #remoteText = '';
  #localText = '';
  #isClosed = false;

  constructor(
    transport: Transport,
    id: number,
    listener: ConnectionOwner,
    serial: number,
    addressOffset: number,
    addressLength: number,
  ) {
    this.transport = transport;
    this.id = id;
    this.listener = listener;
    this.serial = serial;
    this.remote = decodeSockaddr(transport.memory.bytes, addressOffset, addressLength);
    this.startMonotonicMs = transport.clock.monotonicMs;
    listener.stats.increment(ListenerStats.at.downstream_cx_total);
    listener.stats.increment(ListenerStats.at.downstream_cx_active);
    listener.workerStats.increment(ListenerWorkerStats.at.downstream_cx_total);
    listener.workerStats.increment(ListenerWorkerStats.at.downstream_cx_active);
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** The peer as text with port. */
  get remoteText(): string {
    if (this.#remoteText === '') this.#remoteText = addressText(this.remote);
    return this.#remoteText;
  }

  /** This end as text with port. Asked of the kernel the first time: a listener on a wildcard address has many. */
  get localText(): string {
    if (this.#localText === '' && !this.#isClosed) {
      const raw = this.transport.localAddress(this.id);
      this.#localText = addressText(decodeSockaddr(raw, 0, raw.length));
    }
    return this.#localText;
  }

  send(offset: number, length: number): void {
    this.transport.send(this.id, offset, length);
  }

  pause(): void {
    this.transport.pause(this.id);
  }

  resume(): void {
    this.transport.resume(this.id);
  }

  /** Ends the sending direction. */
  shutdown(): void {
    this.transport.shutdown(this.id);
  }

  /**
   * Closes behind what is pending. `lingerMs` > 0: the peer may still be sending, and gets that long to notice, so that
   * the last answer is not destroyed by a reset.
   */
  close(lingerMs: number): void {
    if (this.#isClosed) return;
    this.transport.close(this.id, FLUSH_MS, lingerMs);
    this.#ended();
  }

  /** Aborts: the peer sees a reset. */
  reset(): void {
    if (this.#isClosed) return;
    this.transport.reset(this.id);
    this.#ended();
  }

  #ended(): void {
    this.#isClosed = true;
    const { stats, workerStats } = this.listener;
    stats.increment(ListenerStats.at.downstream_cx_destroy);
    stats.decrement(ListenerStats.at.downstream_cx_active);
    stats.record(
      ListenerStats.at.downstream_cx_length_ms,
      Math.floor(this.transport.clock.monotonicMs - this.startMonotonicMs),
    );
    workerStats.decrement(ListenerWorkerStats.at.downstream_cx_active);
    this.listener.connectionEnded(this);
  }
}
