// The socket of one accepted connection: its addresses, its accounting, and the one place where it ends.

import { LONGEST_TIMER_MS } from '../common/time/longest-timer.js';
import { type Address, AddressKind, addressText, decodeSockaddr } from '../io/addresses/address.js';
import type { ConnectionHandler } from '../io/transport/connection-handler.js';
import type { Transport } from '../io/transport/transport.js';
import { getLogger } from '../log/logger.js';
import { ListenerStats, ListenerWorkerStats } from '../stats/layouts/listener.js';
import type { Scope } from '../stats/thread-stats.js';
import type { ListenerDrain } from './listener-drain.js';
import type { ChainIdentity, Departure } from './travel.js';

const logger = getLogger('connection');

/** How long a peer may take nothing of the bytes that are pending when its connection is closed in order. */
const FLUSH_MS = 5000;

/** The listener that accepted a connection, as the connection sees it. */
export interface ConnectionOwner {
  readonly name: string;
  /** listener.<address>. */
  readonly stats: Scope;
  /** listener.<address>.worker_<n>. */
  readonly workerStats: Scope;
  connectionEnded(connection: DownstreamConnection): void;
}

/** The filter chain that a connection began with, as the connection sees it. */
export interface ConnectionChain extends ChainIdentity {
  /** Unique in the process; that of its ChainSnapshot. */
  readonly id: number;
  /** Whether its connections are to end: with its listener, or because an update has left the chain out. */
  readonly drain: ListenerDrain;
}

/** What is known of a connection that listener filters have seen, or that another process has had. */
export interface KnownConnection {
  readonly remote: Address;
  /** The socket's own peer, where it is another one: a proxy, which has told who `remote` is. */
  readonly direct?: Address | undefined;
  /** '' as long as nobody has asked for it. */
  readonly local: string;
  readonly startMonotonicMs: number;
}

/** Where the peer's sockaddr stands in memory. */
interface SockaddrRange {
  readonly offset: number;
  readonly length: number;
}

/** What a filter chain does with one connection. */
export interface DownstreamHandler extends ConnectionHandler {
  /** Requests that are being served; 0 where there is no such thing. */
  readonly activeRequests: number;
  /** The time to drain is over: a connection that no response can end, ends now, and in order. */
  onDrainEnd?(): void;
  /** Its listener is gone: it ends now, whatever it is doing. */
  onListenerGone(): void;
  /** A network filter in front ends the connection, and closes it when this returns. Absent: onListenerGone() is called. */
  onFilterClose?(): void;
  /** Stops where it is, for another process to go on; undefined at moments at which that is not possible. */
  depart?(): Departure | undefined;
}

export class DownstreamConnection {
  readonly transport: Transport;
  readonly id: number;
  readonly listener: ConnectionOwner;
  /** Unique in the process, as in %CONNECTION_ID%. */
  readonly serial: number;
  /** The peer's address without port; '' when it has none (Unix sockets). */
  readonly remoteIp: string;
  readonly startMonotonicMs: number;
  /** What has taken it over; undefined when that has closed it at once. */
  handler: DownstreamHandler | undefined;
  /** The filters that it began with. */
  readonly chain: ConnectionChain;
  /** Among the connections of its listener. */
  place = -1;
  /** Another process has refused to go on with it. */
  mustStay = false;
  /** The socket's own peer; undefined: it is the same as `remote`. */
  readonly direct: Address | undefined;
  readonly #remoteKind: AddressKind;
  readonly #remotePort: number;
  /** Text with port or path, as soon as somebody has asked. */
  #remoteText = '';
  #localText = '';
  #isClosed = false;

  /** `isNew`: it was not another process's. */
  constructor(
    transport: Transport,
    id: number,
    listener: ConnectionOwner,
    chain: ConnectionChain,
    serial: number,
    origin: KnownConnection | SockaddrRange,
    isNew = true,
  ) {
    this.transport = transport;
    this.id = id;
    this.listener = listener;
    this.chain = chain;
    this.serial = serial;
    listener.stats.increment(ListenerStats.at.downstream_cx_active);
    listener.workerStats.increment(ListenerWorkerStats.at.downstream_cx_active);
    const isKnown = 'remote' in origin;
    const remote = isKnown ? origin.remote : decodeSockaddr(transport.memory.bytes, origin.offset, origin.length);
    this.direct = isKnown ? origin.direct : undefined;
    this.remoteIp = remote.ip;
    this.#remoteKind = remote.kind;
    this.#remotePort = remote.port;
    if (remote.kind === AddressKind.Unix) this.#remoteText = remote.path;
    if (isKnown) this.#localText = origin.local;
    this.startMonotonicMs = isKnown ? origin.startMonotonicMs : transport.clock.monotonicMs;
    if (!isNew) {
      if (logger.isDebug) logger.debug(`[C${serial}] taken over from another process, of ${this.remoteText}`);
      return;
    }
    listener.stats.increment(ListenerStats.at.downstream_cx_total);
    listener.workerStats.increment(ListenerWorkerStats.at.downstream_cx_total);
    if (logger.isDebug) logger.debug(`[C${serial}] new connection from ${this.remoteText}`);
  }

  /** Whether responses are to end it. */
  get drain(): ListenerDrain {
    return this.chain.drain;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** The peer. An idle connection does not hold it as an object. */
  get remote(): Address {
    const kind = this.#remoteKind;
    return {
      kind,
      ip: this.remoteIp,
      port: this.#remotePort,
      path: kind === AddressKind.Unix ? this.#remoteText : '',
    };
  }

  /** The socket's own peer as text with port. */
  get directRemoteText(): string {
    return this.direct === undefined ? this.remoteText : addressText(this.direct);
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

  /** Bytes of the client that network filters in front have not passed on. */
  get withheldBytes(): number {
    return 0;
  }

  /** Why a network filter in front ends it, as in %CONNECTION_TERMINATION_DETAILS%; '' when none does. */
  get terminationDetails(): string {
    return '';
  }

  /** Bytes that were sent and that the kernel has not taken yet. */
  get pendingBytes(): number {
    return this.#isClosed ? 0 : this.transport.pendingBytes(this.id);
  }

  /**
   * For filters: throws a RangeError when the bytes are outside of the memory. Where they are known to be inside, Transport.send() does
   * without that.
   */
  send(offset: number, length: number): void {
    this.transport.memory.checkRange(offset, length);
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
   * Closes behind what is pending, of which the peer has to take some every `flushMs`. `lingerMs` > 0: the peer may still be
   * sending, and gets that long to notice, so that the last answer is not destroyed by a reset. `lateToken`, of
   * Transport.addLateHandler(), requests a notification if either takes too long; 0: none. Throws a RangeError for a time that is none.
   */
  close(lingerMs: number, lateToken = 0, flushMs = FLUSH_MS): void {
    if (this.#isClosed) return;
    if (!(lingerMs >= 0 && lingerMs <= LONGEST_TIMER_MS))
      throw new RangeError(`a connection cannot linger for ${lingerMs} ms`);
    this.#keepEnds();
    if (lateToken !== 0) this.transport.requestLate(this.id, lateToken);
    this.transport.close(this.id, flushMs, lingerMs);
    if (logger.isDebug) logger.debug(`[C${this.serial}] closing`);
    this.#ended();
  }

  /** Aborts: the peer sees a reset. */
  reset(): void {
    if (this.#isClosed) return;
    this.#keepEnds();
    this.transport.reset(this.id);
    if (logger.isDebug) logger.debug(`[C${this.serial}] resetting`);
    this.#ended();
  }

  /** It was frozen, and is another process's now. */
  leave(): void {
    this.transport.releaseFrozen(this.id);
    if (logger.isDebug) logger.debug(`[C${this.serial}] handed over to another process`);
    this.gone();
  }

  /** The log of a request that it ends amid may ask for them. */
  #keepEnds(): void {
    if (this.#localText === '' && this.handler !== undefined && this.handler.activeRequests > 0) {
      this.#localText = this.localText;
    }
  }

  #ended(): void {
    const { stats } = this.listener;
    stats.increment(ListenerStats.at.downstream_cx_destroy);
    stats.record(
      ListenerStats.at.downstream_cx_length_ms,
      Math.floor(this.transport.clock.monotonicMs - this.startMonotonicMs),
    );
    this.gone();
  }

  /** It ends here, in whichever way. */
  protected gone(): void {
    this.#isClosed = true;
    const { stats, workerStats } = this.listener;
    stats.decrement(ListenerStats.at.downstream_cx_active);
    workerStats.decrement(ListenerWorkerStats.at.downstream_cx_active);
    this.listener.connectionEnded(this);
  }
}
