// A session of a UDP proxy: the datagrams between one client and one host, which has a socket of its own for them.

import {
  type Cluster,
  type ClusterReference,
  ClusterStats,
  type Datagram,
  type DatagramPath,
  type DatagramReceiver,
  type DatagramSender,
  type DatagramSockets,
  type Host,
  type PathKey,
  type Scope,
  Timer,
  UdpClusterStats,
  UdpProxyStats,
  type UdpSocket,
  type WorkerContext,
} from '../../../sdk.js';
import type { UdpProxySettings } from './settings.js';

/** Counts of a session, for its log records. */
export interface SessionCounts {
  datagramsReceived: number;
  bytesReceived: number;
  datagramsSent: number;
  bytesSent: number;
  errorsSent: number;
}

/** The client's side of a session. */
export interface SessionClient {
  readonly path: DatagramPath;
  readonly socket: UdpSocket;
  readonly peerKey: PathKey;
  readonly localKey: PathKey;
}

/** A host, and its cluster: that of the route, or one of an aggregate. */
export interface PickedHost {
  readonly host: Host;
  readonly owner: Cluster;
}

/** The proxy, as its sessions use it. */
export interface SessionProxy {
  readonly settings: UdpProxySettings;
  readonly context: WorkerContext;
  readonly sockets: DatagramSockets;
  /** With UdpProxyStats. */
  readonly stats: Scope;
  /** Totals for the proxy's log record. */
  bytesSent: number;
  idleTimeouts: number;
  nextNumber(): number;
  /** Returns the scope `cluster.<name>.udp.` */
  clusterStats(name: string): Scope;
  end(session: UdpSession): void;
  log(session: UdpSession, type: 'UdpSessionEnd' | 'UdpPeriodic'): void;
}

export class UdpSession implements DatagramReceiver, DatagramSender, SessionCounts {
  readonly client: SessionClient;
  readonly reference: ClusterReference;
  readonly cluster: Cluster;
  /** Undefined: the cluster has too many sessions. */
  readonly host: Host | undefined;
  readonly startRealtimeMs: number;
  readonly startMonotonicMs: number;
  readonly number: number;
  streamId = '';
  datagramsReceived = 0;
  bytesReceived = 0;
  datagramsSent = 0;
  bytesSent = 0;
  errorsSent = 0;
  readonly #proxy: SessionProxy;
  readonly #clusterStats: Scope;
  /** The host's cluster. */
  readonly #owner: Cluster;
  /** The id of the session's socket; -1: none is open. */
  #socket = -1;
  #lastActiveMs: number;
  /** The owner's hosts when the host was last among them. */
  #checked: unknown;
  readonly #idleTimer = new Timer<UdpSession>(this, onIdle);
  readonly #logTimer = new Timer<UdpSession>(this, onLogTime);

  constructor(
    proxy: SessionProxy,
    client: SessionClient,
    reference: ClusterReference,
    cluster: Cluster,
    picked?: PickedHost,
  ) {
    const { clock } = proxy.context;
    this.client = client;
    this.reference = reference;
    this.cluster = cluster;
    this.host = picked?.host;
    this.#owner = picked?.owner ?? cluster;
    this.startRealtimeMs = clock.realtimeMs;
    this.startMonotonicMs = this.#lastActiveMs = clock.monotonicMs;
    this.number = proxy.nextNumber();
    this.#proxy = proxy;
    this.#clusterStats = proxy.clusterStats(reference.name);
    this.#checked = this.#owner.snapshot;
  }

  /** Begins to serve. `socket`: the ID of its socket, which it owns. */
  open(socket: number): void {
    const { settings, context } = this.#proxy;
    this.#socket = socket;
    context.timers.reschedule(this.#idleTimer, settings.idleMs);
    if (settings.logIntervalMs > 0) context.timers.reschedule(this.#logTimer, settings.logIntervalMs);
  }

  /** The socket's own address, raw. */
  get localAddress(): Uint8Array | undefined {
    return this.#socket < 0 ? undefined : this.#proxy.sockets.localAddress(this.#socket);
  }

  /** Its cluster is still in use, and its host is one of the cluster's. */
  get isCurrent(): boolean {
    const { cluster, host, reference } = this;
    const owner = this.#owner;
    if (reference.built !== cluster) return false;
    if (owner !== cluster && this.#proxy.context.clusters.find(owner.name)?.built !== owner) return false;
    if (this.#checked === owner.snapshot) return true;
    if (!owner.has(host!)) return false;
    this.#checked = owner.snapshot;
    return true;
  }

  /** Forwards a datagram of the client. */
  forward({ length, offset }: Datagram): void {
    const { sockets, stats, context } = this.#proxy;
    this.#lastActiveMs = context.clock.monotonicMs;
    this.datagramsReceived++;
    this.bytesReceived += length;
    stats.increment(UdpProxyStats.at.downstream_sess_rx_datagrams);
    stats.addBytes(UdpProxyStats.at.downstream_sess_rx_bytes, length);
    sockets.send(this.#socket, offset, length, this);
  }

  /** Called for a datagram of the host. */
  onDatagram({ length, offset }: Datagram): void {
    const { path, socket } = this.client;
    // What a removed host sends is forwarded, but does not keep the session.
    if (this.isCurrent) this.#lastActiveMs = this.#proxy.context.clock.monotonicMs;
    this.#clusterStats.increment(UdpClusterStats.at.sess_rx_datagrams);
    this.cluster.stats.addBytes(ClusterStats.at.upstream_cx_rx_bytes_total, length);
    socket.send(offset, length, path, this);
  }

  onDropped(count: number): void {
    this.#clusterStats.add(UdpClusterStats.at.sess_rx_datagrams_dropped, count);
  }

  onReceiveError(): void {
    this.#clusterStats.increment(UdpClusterStats.at.sess_rx_errors);
  }

  onSent(socket: number, length: number, errno: number): void {
    if (socket === this.#socket) return this.#sentToHost(length, errno);
    const { stats } = this.#proxy;
    if (errno !== 0) {
      this.errorsSent++;
      return stats.increment(UdpProxyStats.at.downstream_sess_tx_errors);
    }
    this.datagramsSent++;
    this.bytesSent += length;
    this.#proxy.bytesSent += length;
    stats.increment(UdpProxyStats.at.downstream_sess_tx_datagrams);
    stats.addBytes(UdpProxyStats.at.downstream_sess_tx_bytes, length);
  }

  #sentToHost(length: number, errno: number): void {
    if (errno !== 0) return this.#clusterStats.increment(UdpClusterStats.at.sess_tx_errors);
    this.#clusterStats.increment(UdpClusterStats.at.sess_tx_datagrams);
    this.cluster.stats.addBytes(ClusterStats.at.upstream_cx_tx_bytes_total, length);
  }

  /** Called when the idle time may be over. */
  checkIdle(): void {
    const { context, settings, stats } = this.#proxy;
    const remainingMs = this.#lastActiveMs + settings.idleMs - context.clock.monotonicMs;
    if (remainingMs > 0) return context.timers.reschedule(this.#idleTimer, remainingMs);
    stats.increment(UdpProxyStats.at.idle_timeout);
    this.#proxy.idleTimeouts++;
    this.#proxy.end(this);
  }

  logPeriodically(): void {
    const { context, settings } = this.#proxy;
    this.#proxy.log(this, 'UdpPeriodic');
    context.timers.reschedule(this.#logTimer, settings.logIntervalMs);
  }

  /** Closes its socket, after queued datagrams are sent. */
  close(): void {
    const { context, sockets } = this.#proxy;
    context.timers.cancel(this.#idleTimer);
    context.timers.cancel(this.#logTimer);
    if (this.#socket >= 0) sockets.remove(this.#socket);
    this.#socket = -1;
  }
}

function onIdle(session: UdpSession): void {
  session.checkIdle();
}

function onLogTime(session: UdpSession): void {
  session.logPeriodically();
}
