// A connection to a host of a cluster, for any protocol. This is the only code that connects to hosts: it enforces the connect
// timeout and counts the connection, its bytes and its end. Subclasses do the rest.

import { shownName } from '../../common/text/shown.js';
import { addressOfText, INTERNAL_CLIENT } from '../../io/addresses/address.js';
import type { BufferedBytes } from '../../io/buffered-bytes.js';
import type { ConnectStep } from '../../io/shim.js';
import { Timer } from '../../io/time/timing-wheel.js';
import type { ConnectionSecurity } from '../../io/tls/connection-security.js';
import type { ConnectionHandler } from '../../io/transport/connection-handler.js';
import type { Transport } from '../../io/transport/transport.js';
import { getLogger } from '../../log/logger.js';
import { ClusterStats, HostStats } from '../../stats/layouts/cluster.js';
import type { Scope } from '../../stats/thread-stats.js';
import type { Host } from '../hosts/host.js';
import { PoolFailure } from '../pool-failure.js';
import { addressOrder } from './address-order.js';
import { AddressRace } from './address-race.js';
import { type ConnectOptions, NO_CONNECT_OPTIONS } from './connect-options.js';
import { type ConnectingCluster, type DialEvents, HostDial, localTextOf } from './host-dial.js';

export type { ConnectingCluster };

const logger = getLogger('upstream');

/** A connection that another process has made and frozen. */
export interface TakenOverConnection {
  readonly id: number;
  /** When it began to connect (monotonic). */
  readonly startMs: number;
}

/** Which side ended a connection. */
export const enum EndedBy {
  Local = 0,
  Remote = 1,
  /** Neither side: another process continues it. */
  HandOver = 2,
}

/** Until the first of the host's addresses is connected. */
const NO_ID = -1;

const enum State {
  Connecting = 0,
  Connected = 1,
  Closed = 2,
}

export abstract class HostConnection implements ConnectionHandler, DialEvents {
  readonly host: Host;
  /** When it began to connect (monotonic). */
  readonly startMs: number;
  /** When it was connected; 0 before. */
  connectedMs = 0;
  /** Unique in the process, as in %UPSTREAM_CONNECTION_ID%. */
  readonly serial: number;
  protected readonly transport: Transport;
  protected readonly stats: Scope;
  protected id: number;
  /** The connect timeout. Once connected, subclasses may use it: timerFired() is called. */
  protected readonly timer: Timer<HostConnection>;
  readonly #cluster: ConnectingCluster;
  /** The host has half-closed. */
  protected hasHostEnded = false;
  #localText = '';
  #state = State.Connecting;
  /** What its TLS handshake has established; undefined without TLS. */
  security: ConnectionSecurity | undefined = undefined;
  /** The address that it goes to, that of an HTTP proxy or another one of the host; '': the host's address. */
  peerText: string;
  /** The tries of the host's addresses; undefined: it has only one, or one is connected. */
  #race: AddressRace | undefined;

  /** Begins to connect, or takes over `takenOver`. Throws, with nothing counted, when the connect cannot begin. */
  protected constructor(
    cluster: ConnectingCluster,
    host: Host,
    takenOver?: TakenOverConnection,
    options: ConnectOptions = NO_CONNECT_OPTIONS,
  ) {
    const { spec, stats, thread } = cluster;
    this.#cluster = cluster;
    this.host = host;
    this.transport = thread.transport;
    this.serial = thread.transport.serials.next();
    this.stats = stats;
    this.timer = new Timer<HostConnection>(this, onTimer);
    this.startMs = takenOver?.startMs ?? thread.clock.monotonicMs;
    const proxy = cluster.transportOf(host)?.proxyOf(host);
    this.peerText = proxy?.text ?? '';
    if (takenOver !== undefined) this.id = takenOver.id;
    else if (host.additional !== undefined && proxy === undefined) this.id = this.#startRace(options, host.additional);
    else {
      if (host.isInternal) this.#localText = INTERNAL_CLIENT;
      const target = { cluster, host, options, proxy };
      this.id = new HostDial(this, target, proxy?.sockaddr ?? host.sockaddr, this.peerText).id;
    }
    stats.increment(ClusterStats.at.upstream_cx_active);
    host.stats.increment(HostStats.at.cx_active);
    if (takenOver !== undefined) {
      this.#state = State.Connected;
      thread.transport.setHandler(takenOver.id, this);
      return;
    }
    stats.increment(ClusterStats.at.upstream_cx_total);
    host.stats.increment(HostStats.at.cx_total);
    thread.wheel.schedule(this.timer, spec.connectTimeoutMs);
  }

  get isConnected(): boolean {
    return this.#state === State.Connected;
  }

  get isClosed(): boolean {
    return this.#state === State.Closed;
  }

  /** The local address with port as text. The first call reads it from the kernel. */
  get localText(): string {
    this.#localText ||= localTextOf(this.transport, this.id);
    return this.#localText;
  }

  /** Sent bytes that the kernel has not accepted yet. */
  get pendingBytes(): number {
    return this.isConnected ? this.transport.pendingBytes(this.id) : 0;
  }

  /** Queues memory[offset, offset + length). The caller guarantees that the range is valid. */
  send(offset: number, length: number): void {
    this.stats.addBytes(ClusterStats.at.upstream_cx_tx_bytes_total, length);
    this.transport.send(this.id, offset, length);
  }

  // ── For subclasses ───────────────────────────────────────────────────────────────────────────────────────────────

  protected abstract connected(): void;
  /** Called after a failed connect, after ended(). `detail` is the transport's error, '' after a timeout. */
  protected abstract connectFailed(failure: PoolFailure, detail: string): void;
  protected abstract received(offset: number, length: number): void;
  /** Called when the host has half-closed. */
  protected abstract hostEnded(): void;
  /** Called when the host ended the connection, after ended(). */
  protected abstract broken(): void;
  /** Called when the connection has closed. Releases what the subclass holds. */
  protected abstract ended(by: EndedBy, wasConnected: boolean): void;
  /** Called when the timer fires after connected(). */
  protected abstract timerFired(): void;

  /**
   * Closes after the pending bytes are sent; the host must accept some of them every `flushMs`. A host that is still sending gets
   * `lingerMs` to half-close. `gone` is called when the connection has closed. `by`: whose end of a direction has ended it; by
   * default the host's, if it has half-closed.
   */
  protected closeInOrder(flushMs: number, lingerMs: number, gone?: () => void, by?: EndedBy): void {
    this.#endLocally(by);
    this.transport.close(this.id, flushMs, lingerMs, gone);
  }

  /** Counts the end of a connection with an active request. */
  protected countInterrupted(by: EndedBy): void {
    const { at } = ClusterStats;
    this.stats.increment(at.upstream_cx_destroy_with_active_rq);
    const side =
      by === EndedBy.Remote
        ? at.upstream_cx_destroy_remote_with_active_rq
        : at.upstream_cx_destroy_local_with_active_rq;
    this.stats.increment(side);
  }

  /** Ends a connect in which an exception was thrown. A no-op afterwards. */
  protected abandonConnect(): void {
    if (this.#state === State.Connecting) this.#connectFailed(PoolFailure.ConnectFailed, 'internal error');
  }

  /** Resets the connection. */
  protected abort(): void {
    this.#endLocally();
    this.transport.reset(this.id);
  }

  /** Called when the host has ended the connection. */
  protected closedByHost(): void {
    this.stats.increment(ClusterStats.at.upstream_cx_destroy_remote);
    this.#end(EndedBy.Remote);
    this.transport.close(this.id, 0, 0);
    this.broken();
  }

  /** Releases the frozen connection, which another process continues. */
  protected handOver(): void {
    this.transport.releaseFrozen(this.id);
    this.#end(EndedBy.HandOver);
  }

  // ── ConnectionHandler ────────────────────────────────────────────────────────────────────────────────────────────

  /** No-op: a connection becomes its own handler when it is connected. */
  onConnected(): void {}

  /** Tries the host's addresses. */
  #startRace(options: ConnectOptions, additional: readonly string[]): number {
    const cluster = this.#cluster;
    const { host } = this;
    const addresses = [host.address, ...additional].map(addressOfText);
    const target = { cluster, host, options, proxy: undefined };
    this.#race = new AddressRace(this, target, addressOrder(addresses, cluster.spec.addressPreference));
    return NO_ID;
  }

  // ── DialEvents ───────────────────────────────────────────────────────────────────────────────────────────────────

  dialReady(dial: HostDial): void {
    const { clock, wheel } = this.#cluster.thread;
    if (this.#race !== undefined) {
      this.#race = undefined;
      this.id = dial.id;
      if (dial.peerText !== this.host.address) this.peerText = dial.peerText;
    }
    this.security = dial.security;
    this.transport.setHandler(this.id, this);
    this.#state = State.Connected;
    wheel.cancel(this.timer);
    this.connectedMs = clock.monotonicMs;
    this.stats.record(ClusterStats.at.upstream_cx_connect_ms, Math.floor(clock.monotonicMs - this.startMs));
    if (logger.isDebug) this.#log('connected');
    this.connected();
  }

  dialFailed(_dial: HostDial, failure: PoolFailure, detail: string): void {
    this.#connectFailed(failure, detail);
  }

  dialReceived(offset: number, length: number): void {
    if (this.#state === State.Connected) this.onData(offset, length);
  }

  onData(offset: number, length: number): void {
    this.stats.addBytes(ClusterStats.at.upstream_cx_rx_bytes_total, length);
    this.received(offset, length);
  }

  onEnd(): void {
    this.hostEnded();
  }

  onReset(_errno: number, _step: ConnectStep): void {
    this.closedByHost();
  }

  abstract onBlocked(): void;
  abstract onDrained(): void;
  abstract onFault(): void;
  addBuffered?(sums: BufferedBytes): void;

  onTimer(): void {
    if (this.#state !== State.Connecting) return this.timerFired();
    this.stats.increment(ClusterStats.at.upstream_cx_connect_timeout);
    this.#connectFailed(PoolFailure.ConnectTimeout, '');
  }

  // ── Inside ───────────────────────────────────────────────────────────────────────────────────────────────────────

  #connectFailed(failure: PoolFailure, detail: string): void {
    const { at } = ClusterStats;
    const isRemote = failure === PoolFailure.ConnectFailed;
    this.stats.increment(isRemote ? at.upstream_cx_destroy_remote : at.upstream_cx_destroy_local);
    if (failure === PoolFailure.BindFailed) this.stats.increment(at.bind_errors);
    this.#countConnectFailure();
    if (logger.isDebug) this.#log(`connect failed: ${detail || 'timeout'}`);
    this.#end(isRemote ? EndedBy.Remote : EndedBy.Local);
    this.transport.close(this.id, 0, 0);
    this.connectFailed(failure, detail);
  }

  /** As in Envoy, a connect that is abandoned counts as failed. */
  #endLocally(by = this.hasHostEnded ? EndedBy.Remote : EndedBy.Local): void {
    const { at } = ClusterStats;
    this.stats.increment(by === EndedBy.Remote ? at.upstream_cx_destroy_remote : at.upstream_cx_destroy_local);
    if (this.#state === State.Connecting) this.#countConnectFailure();
    this.#end(by);
  }

  #countConnectFailure(): void {
    this.stats.increment(ClusterStats.at.upstream_cx_connect_fail);
    this.host.stats.increment(HostStats.at.cx_connect_fail);
  }

  #end(by: EndedBy): void {
    const { clock, wheel } = this.#cluster.thread;
    const wasConnected = this.isConnected;
    this.#state = State.Closed;
    if (this.#race !== undefined) {
      this.id = this.#race.stop();
      this.#race = undefined;
    }
    wheel.cancel(this.timer);
    this.stats.decrement(ClusterStats.at.upstream_cx_active);
    this.host.stats.decrement(HostStats.at.cx_active);
    if (by !== EndedBy.HandOver) {
      this.stats.increment(ClusterStats.at.upstream_cx_destroy);
      this.stats.record(ClusterStats.at.upstream_cx_length_ms, Math.floor(clock.monotonicMs - this.startMs));
      if (logger.isDebug) this.#log(by === EndedBy.Remote ? 'closed by the host' : 'closed');
    }
    this.ended(by, wasConnected);
  }

  #log(text: string): void {
    logger.debug(`cluster '${shownName(this.#cluster.spec.name)}', host ${this.host.address}: ${text}`);
  }
}

function onTimer(connection: HostConnection): void {
  try {
    connection.onTimer();
  } catch (error) {
    connection.onFault();
    throw error;
  }
}
