// The socket of one accepted connection: its addresses, its stats, and the single place where it ends.

import { DynamicMetadata } from '../access-log/stream/dynamic-metadata.js';
import { FilterState } from '../access-log/stream/filter-state.js';
import type { PassedValues } from '../access-log/stream/passed-values.js';
import type { ChainNames, StreamInfo } from '../access-log/stream/stream-info.js';
import { MAX_TIMER_MS } from '../common/time/max-timer.js';
import type { Struct } from '../config/generated/api.js';
import { type Address, AddressKind, addressText, decodeSockaddr } from '../io/addresses/address.js';
import type { ConnectionSecurity } from '../io/tls/connection-security.js';
import type { DetectedProtocols } from '../io/tls/detected-protocols.js';
import type { ConnectionHandler } from '../io/transport/connection-handler.js';
import type { Transport } from '../io/transport/transport.js';
import { getLogger } from '../log/logger.js';
import type { ThreadOverload } from '../runtime/overload/thread-overload.js';
import { ListenerStats, ListenerWorkerStats } from '../stats/layouts/listener.js';
import type { Scope } from '../stats/thread-stats.js';
import type { ChainIdentity, PreparedHandOver } from './hand-over.js';
import type { ListenerDrain } from './listener-drain.js';

const logger = getLogger('connection');

/** The object of the filter state that names the cluster of the TCP proxy. */
const CLUSTER_OBJECT = 'envoy.tcp_proxy.cluster';

/** How long a peer may read none of the pending bytes of a closing connection. */
const FLUSH_MS = 5000;

/** The access log of a listener, as its connections use it. */
export interface OwnerLog {
  /** Returns the record of a connection that begins. Its handler adds what it knows, or replaces it by its own. */
  begin(connection: DownstreamConnection): StreamInfo;
  /** Logs a connection that ends. */
  ended(connection: DownstreamConnection): void;
}

/** The listener of a connection, as the connection uses it. */
export interface ConnectionOwner {
  readonly name: string;
  /** listener.<address>. */
  readonly stats: Scope;
  /** listener.<address>.worker_<n>. */
  readonly workerStats: Scope;
  connectionEnded(connection: DownstreamConnection): void;
  /** Its access log; undefined: it has none. */
  readonly log: OwnerLog | undefined;
}

/** The filter chain of a connection, as the connection uses it. */
export interface ConnectionChain extends ChainIdentity {
  /** The ID of its ChainSnapshot, unique in the process. */
  readonly id: number;
  /** Controls whether its connections drain: with its listener, or because an update has removed the chain. */
  readonly drain: ListenerDrain;
  /** Connections begin with a TLS handshake. */
  readonly isTls: boolean;
  /** For access logs. */
  readonly names: ChainNames;
  /** Undefined: no overload manager applies to its connections. */
  readonly overload?: ThreadOverload | undefined;
}

/** The properties of a connection that has passed listener filters, or that another process has served. */
export interface KnownConnection {
  readonly remote: Address;
  /** The socket's peer if it differs from `remote`, or the local address is not the socket's own. */
  readonly direct?: Address | undefined;
  /** '' until it is determined. */
  readonly local: string;
  /** `local` is the original destination, which a listener filter has found. */
  readonly isLocalRestored?: boolean;
  readonly startMonotonicMs: number;
  /** What listener filters have detected. */
  readonly detected?: DetectedProtocols | undefined;
  /** The socket's own address, of a connection to an internal listener; absent: that of the kernel. */
  readonly directLocal?: string;
  /** What a connection to an internal listener brings with it. */
  readonly passed?: PassedValues | undefined;
}

/** The range of the peer's sockaddr in memory. */
interface SockaddrRange {
  readonly offset: number;
  readonly length: number;
}

/** The handler of one connection in its filter chain. */
export interface DownstreamHandler extends ConnectionHandler {
  /** The number of active requests; 0 for protocols without requests. */
  readonly activeRequests: number;
  /** Its record of the connection, if it has an access log of its own. */
  readonly info?: StreamInfo;
  /** Called when a TLS handshake, which begins after the filter chain has accepted the connection, has finished. */
  onSecured?(): void;
  /** Called at the end of the drain time: a connection that no response can end closes now, in an orderly way. */
  onDrainEnd?(): void;
  /** Called when the overload manager has changed timeouts, which may be over now. */
  onTimeoutsChanged?(): void;
  /** Called when the listener is removed: ends the connection now, in any state. */
  onListenerGone(): void;
  /**
   * Called when a network filter before this one ends the connection, which it closes when this returns. Absent: onListenerGone()
   * is called.
   */
  onFilterClose?(): void;
  /**
   * Freezes the connection so that another process can take it over. Returns undefined when that is not possible at this moment.
   */
  prepareHandOver?(): PreparedHandOver | undefined;
}

export class DownstreamConnection {
  readonly transport: Transport;
  readonly id: number;
  readonly listener: ConnectionOwner;
  /** Unique in the process, as in %CONNECTION_ID%. */
  readonly serial: number;
  /** The peer's address without port; '' for Unix sockets. */
  readonly remoteIp: string;
  readonly startMonotonicMs: number;
  /** The connection's handler; undefined if the terminal filter has closed it at once. */
  handler: DownstreamHandler | undefined;
  /** The cluster that a network filter, or the opener of a connection to an internal listener, has selected for the TCP proxy; '' if none has. */
  clusterName = '';
  /** The host, with port, that a network filter has determined for a dynamic forward proxy; '' if none has. */
  requestedHost = '';
  /** What network filters have set; undefined: nothing. */
  dynamicMetadata: DynamicMetadata | undefined = undefined;
  /** What network filters have set, or the opener of a connection to an internal listener shares; undefined: nothing. */
  filterState: FilterState | undefined;
  /** The filter chain that it began with. */
  readonly chain: ConnectionChain;
  /** For the access log of the listener; undefined if it has none. The handler records here what it knows of the connection. */
  info: StreamInfo | undefined;
  /** Index among the connections of its listener. */
  place = -1;
  /** Another process has refused to take it over. */
  hasHandOverFailed = false;
  /** Why TLS has failed (%DOWNSTREAM_TRANSPORT_FAILURE_REASON%); '' unless it has. */
  transportFailure = '';
  /** What TLS has established. The transport socket sets it when the handshake has succeeded; undefined without TLS. */
  security: ConnectionSecurity | undefined = undefined;
  /** What listener filters have detected; undefined if that is nothing. */
  readonly detected: DetectedProtocols | undefined;
  /** Its local address is the original destination, which a listener filter has found: ORIGINAL_DST clusters connect to it. */
  readonly isLocalRestored: boolean;
  /** The socket's peer; undefined if it is `remote`, and its local address is that of the socket. */
  readonly direct: Address | undefined;
  readonly #remoteKind: AddressKind;
  readonly #remotePort: number;
  /** Text with port or path, cached on first use. */
  #remoteText = '';
  #localText = '';
  /** Used only if `direct` is set. */
  #directLocalText = '';
  #isClosed = false;

  /** `isNew`: false for a connection from another process. */
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
    this.isLocalRestored = isKnown && origin.isLocalRestored === true;
    this.detected = isKnown ? origin.detected : undefined;
    this.remoteIp = remote.ip;
    this.#remoteKind = remote.kind;
    this.#remotePort = remote.port;
    this.#remoteText = remote.path;
    if (isKnown) {
      this.#localText = origin.local;
      this.#directLocalText = origin.directLocal ?? '';
    }
    const passed = isKnown ? origin.passed : undefined;
    this.filterState = passed && passedState(passed);
    this.clusterName = this.filterState?.get(CLUSTER_OBJECT)?.text ?? '';
    if (passed !== undefined) for (const [namespace, value] of passed.metadata) this.addMetadata(namespace, value);
    this.startMonotonicMs = isKnown ? origin.startMonotonicMs : transport.clock.monotonicMs;
    this.info = listener.log?.begin(this);
    if (!isNew) {
      if (logger.isDebug) logger.debug(`[C${serial}] taken over from another process, of ${this.remoteText}`);
      return;
    }
    listener.stats.increment(ListenerStats.at.downstream_cx_total);
    listener.workerStats.increment(ListenerWorkerStats.at.downstream_cx_total);
    if (logger.isDebug) logger.debug(`[C${serial}] new connection from ${this.remoteText}`);
  }

  /** Decides whether responses end the connection. */
  get drain(): ListenerDrain {
    return this.chain.drain;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** The peer. Created on demand, so that idle connections keep no object. */
  get remote(): Address {
    const kind = this.#remoteKind;
    return {
      kind,
      ip: this.remoteIp,
      port: this.#remotePort,
      path: kind >= AddressKind.Unix ? this.#remoteText : '',
    };
  }

  /** The socket's peer as text with port. */
  get directRemoteText(): string {
    return this.direct === undefined ? this.remoteText : addressText(this.direct);
  }

  /** The peer as text with port. As in Envoy, an unnamed peer of a Unix socket has the name of that socket. */
  get remoteText(): string {
    if (this.#remoteKind === AddressKind.None) return this.directLocalText;
    if (this.#remoteText === '') this.#remoteText = addressText(this.remote);
    return this.#remoteText;
  }

  /**
   * The local address as text with port. Requested from the kernel on first use, because a listener on a wildcard address has
   * many.
   */
  get localText(): string {
    if (this.#localText === '' && !this.#isClosed) this.#localText = this.#socketAddress();
    return this.#localText;
  }

  /** The socket's own address as text with port: `localText` unless a proxy has reported other addresses. */
  get directLocalText(): string {
    if (this.direct === undefined) return this.localText;
    if (this.#directLocalText === '' && !this.#isClosed) this.#directLocalText = this.#socketAddress();
    return this.#directLocalText;
  }

  #socketAddress(): string {
    const raw = this.transport.localAddress(this.id);
    return addressText(decodeSockaddr(raw, 0, raw.length));
  }

  /** Merges a structure into the dynamic metadata of the connection, and returns it. */
  addMetadata(namespace: string, value: Struct): DynamicMetadata {
    this.dynamicMetadata ??= new DynamicMetadata();
    this.dynamicMetadata.merge(namespace, value);
    return this.dynamicMetadata;
  }

  /** Bytes of the client that network filters in front have not passed on. */
  get withheldBytes(): number {
    return 0;
  }

  /** Why a network filter has ended the connection (%CONNECTION_TERMINATION_DETAILS%), or ''. */
  get terminationDetails(): string {
    return '';
  }

  /** Bytes in the send queue, which the kernel has not accepted yet. */
  get pendingBytes(): number {
    return this.#isClosed ? 0 : this.transport.pendingBytes(this.id);
  }

  /**
   * Sends memory[offset, offset + length). For filters: throws a RangeError if the range is outside the memory. Use
   * Transport.send() where it is known to be inside.
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
   * Closes after pending bytes, as long as the peer reads some of them every `flushMs`. With `lingerMs` > 0, then waits that long
   * for a peer that may still be sending, so that a reset does not discard the last response. `lateToken`, of
   * Transport.addLateHandler(), requests a notification if either takes too long; 0: none. Throws a RangeError for an invalid
   * time.
   */
  close(lingerMs: number, lateToken = 0, flushMs = FLUSH_MS): void {
    if (this.#isClosed) return;
    if (!(lingerMs >= 0 && lingerMs <= MAX_TIMER_MS))
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

  /** Called when another process has taken over the frozen connection. */
  release(): void {
    this.transport.releaseFrozen(this.id);
    if (logger.isDebug) logger.debug(`[C${this.serial}] handed over to another process`);
    this.gone();
  }

  /** Determines the local addresses before the socket is closed: the access log of an active request may need them. */
  #keepEnds(): void {
    if (this.info === undefined && (this.handler === undefined || this.handler.activeRequests === 0)) return;
    this.#localText = this.localText;
    this.#directLocalText = this.directLocalText;
    void this.security?.local;
  }

  #ended(): void {
    const { log, stats } = this.listener;
    log?.ended(this);
    stats.increment(ListenerStats.at.downstream_cx_destroy);
    stats.record(
      ListenerStats.at.downstream_cx_length_ms,
      Math.floor(this.transport.clock.monotonicMs - this.startMonotonicMs),
    );
    this.gone();
  }

  /** Called when the connection ends in this process, in any way. */
  protected gone(): void {
    this.#isClosed = true;
    const { stats, workerStats } = this.listener;
    stats.decrement(ListenerStats.at.downstream_cx_active);
    workerStats.decrement(ListenerWorkerStats.at.downstream_cx_active);
    this.listener.connectionEnded(this);
  }
}

function passedState({ objects }: PassedValues): FilterState | undefined {
  if (objects.length === 0) return undefined;
  const state = new FilterState();
  for (const [key, object] of objects) state.set(key, object);
  return state;
}
