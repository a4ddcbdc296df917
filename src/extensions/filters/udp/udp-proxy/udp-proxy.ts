// The UDP proxy of one listener on one worker: gives each client a session, and each session a host.

import {
  type ClusterReference,
  ClusterStats,
  type Datagram,
  type DatagramSockets,
  encodeIp,
  forEachGuarded,
  getLogger,
  type Host,
  LimitKind,
  messageOf,
  OccasionalLog,
  type Scope,
  type SocketOption,
  StreamInfo,
  UdpClusterStats,
  type UdpListenerFilter,
  UdpProxyStats,
  type UdpSocket,
  Word64,
  type WorkerContext,
} from '../../../sdk.js';
import { describeClient } from '../common/describe-client.js';
import { logProxy, logSession, type ProxyTotals } from './records.js';
import { type PickedHost, type SessionClient, type SessionProxy, UdpSession } from './session.js';
import { SessionTable } from './session-table.js';
import type { UdpProxySettings } from './settings.js';

const logger = getLogger('udp');

export class UdpProxy implements UdpListenerFilter, SessionProxy, ProxyTotals {
  readonly settings: UdpProxySettings;
  readonly context: WorkerContext;
  readonly sockets: DatagramSockets;
  readonly stats: Scope;
  bytesReceived = 0;
  bytesSent = 0;
  idleTimeouts = 0;
  noRoutes = 0;
  receiveErrors = 0;
  sessionTotal = 0;
  readonly ended = { datagramsReceived: 0, bytesReceived: 0, datagramsSent: 0, bytesSent: 0, errorsSent: 0 };
  readonly startRealtimeMs: number;
  readonly startMonotonicMs: number;
  readonly #clusterStats = new Map<string, Scope>();
  readonly #sessions = new SessionTable<UdpSession>();
  /** The sessions of each host, if a host is picked for each datagram. */
  readonly #byHost = new Map<Host, SessionTable<UdpSession>>();
  readonly #info = new StreamInfo();
  readonly #failures: OccasionalLog;
  #numbers = 0;

  constructor(settings: UdpProxySettings, context: WorkerContext, stats: Scope) {
    this.settings = settings;
    this.context = context;
    this.sockets = context.datagrams.open();
    this.stats = stats;
    this.startRealtimeMs = context.clock.realtimeMs;
    this.startMonotonicMs = context.clock.monotonicMs;
    this.#failures = new OccasionalLog((text) => logger.warning(text));
  }

  onDatagram(datagram: Datagram, from: UdpSocket): boolean {
    this.bytesReceived += datagram.length;
    const session = this.settings.picksPerDatagram
      ? this.#sessionOfDatagram(datagram, from)
      : this.#sessionOfClient(datagram, from);
    session?.forward(datagram);
    return false;
  }

  onReceiveError(): void {
    this.receiveErrors++;
    this.stats.increment(UdpProxyStats.at.downstream_sess_rx_errors);
  }

  get openSessions(): number {
    let sum = this.#sessions.size;
    for (const table of this.#byHost.values()) sum += table.size;
    return sum;
  }

  close(): void {
    forEachGuarded(this.#all(), 'internal error: a UDP session was not ended', (session) => this.end(session));
    const { periodicLogs, proxyLogs, sessionLogs } = this.settings;
    logProxy(this, this.settings, this.#info, this.context.clock);
    for (const log of [...sessionLogs, ...periodicLogs, ...proxyLogs]) log.close();
  }

  nextNumber(): number {
    return this.#numbers++;
  }

  /** Returns the scope `cluster.<name>.udp.` */
  clusterStats(name: string): Scope {
    let scope = this.#clusterStats.get(name);
    if (scope === undefined) {
      scope = this.context.scope(udpClusterPrefix(name), UdpClusterStats);
      this.#clusterStats.set(name, scope);
    }
    return scope;
  }

  /** Ends a session. */
  end(session: UdpSession): void {
    const { client, cluster, host } = session;
    const table = this.#tableOf(host!);
    table.delete(client.localKey, client.peerKey);
    if (table.size === 0) this.#byHost.delete(host!);
    this.stats.decrement(UdpProxyStats.at.downstream_sess_active);
    cluster.limits.release(LimitKind.Connections);
    this.#finish(session);
  }

  log(session: UdpSession, type: 'UdpSessionEnd' | 'UdpPeriodic'): void {
    const { periodicLogs, sessionLogs } = this.settings;
    logSession(session, type === 'UdpPeriodic' ? periodicLogs : sessionLogs, type, this.#info, this.context.clock);
  }

  /** Returns the client's session, if each client has one. */
  #sessionOfClient(datagram: Datagram, from: UdpSocket): UdpSession | undefined {
    const known = this.#sessions.find(datagram);
    if (known === undefined) return this.#begin(datagram, from);
    if (!known.isCurrent) {
      this.end(known);
      return this.#begin(datagram, from);
    }
    // As in Envoy, a client moves to another host only if that one is healthy.
    if (!known.host!.isFailing) return known;
    const picked = this.#pick(known.reference, known.client);
    if (picked === undefined || picked.host.isFailing || picked.host === known.host) return known;
    const { client, reference } = known;
    this.end(known);
    return this.#start(client, reference, picked);
  }

  #begin(datagram: Datagram, from: UdpSocket): UdpSession | undefined {
    const client = clientOf(datagram, from);
    const reference = this.#route(client);
    const picked = reference && this.#pick(reference, client);
    return picked && this.#start(client, reference!, picked);
  }

  /** Picks a host for the datagram, and returns the client's session with it. */
  #sessionOfDatagram(datagram: Datagram, from: UdpSocket): UdpSession | undefined {
    const client = clientOf(datagram, from);
    const reference = this.#route(client);
    const picked = reference && this.#pick(reference, client);
    if (picked === undefined) return undefined;
    const known = this.#byHost.get(picked.host)?.find(datagram);
    if (known?.isCurrent) return known;
    if (known !== undefined) this.end(known);
    return this.#start(client, reference!, picked);
  }

  /** Returns the cluster for a client; undefined: there is none. */
  #route(client: SessionClient): ClusterReference | undefined {
    this.#info.reset(0, 0);
    this.#info.downstream = describeClient(client);
    const reference = this.settings.route(this.#info);
    if (reference?.current !== undefined) return reference;
    this.noRoutes++;
    this.stats.increment(UdpProxyStats.at.downstream_sess_no_route);
    return undefined;
  }

  #pick(reference: ClusterReference, { path }: SessionClient): PickedHost | undefined {
    const cluster = reference.current!;
    const setHash = cluster.picksByHash || cluster.isAggregate ? this.settings.hash : undefined;
    setHash?.(path.peer.ip, hash);
    const picksBy = setHash && hash;
    const owner = cluster.clusterOfHost(picksBy);
    const host = owner.pickHost(picksBy);
    return host && { host, owner };
  }

  #start(client: SessionClient, reference: ClusterReference, picked: PickedHost): UdpSession | undefined {
    const { host } = picked;
    const cluster = reference.current!;
    this.sessionTotal++;
    this.stats.increment(UdpProxyStats.at.downstream_sess_total);
    if (!cluster.limits.tryAcquire(LimitKind.Connections)) {
      cluster.stats.increment(ClusterStats.at.upstream_cx_overflow);
      this.#finish(new UdpSession(this, client, reference, cluster));
      return undefined;
    }
    const session = new UdpSession(this, client, reference, cluster, picked);
    try {
      session.open(this.#connect(client, host, session));
    } catch (error) {
      cluster.limits.release(LimitKind.Connections);
      this.#failures.log(`cannot open a UDP socket for host ${host.address}: ${messageOf(error)}`);
      this.clusterStats(reference.name).increment(UdpClusterStats.at.sess_tx_errors);
      this.#finish(session);
      return undefined;
    }
    this.stats.increment(UdpProxyStats.at.downstream_sess_active);
    this.#tableOf(host).add(client.localKey, client.peerKey, session);
    return session;
  }

  #connect({ path }: SessionClient, host: Host, session: UdpSession): number {
    const { maxBytes, usesClientAddress } = this.settings;
    if (!usesClientAddress) return this.sockets.connect(host.sockaddr, undefined, undefined, maxBytes, session);
    const { ip } = path.peer;
    const options = ip.includes(':') ? TRANSPARENT_IP6 : TRANSPARENT_IP4;
    return this.sockets.connect(host.sockaddr, encodeIp(ip, 0), options, maxBytes, session);
  }

  #finish(session: UdpSession): void {
    const { ended } = this;
    ended.datagramsReceived += session.datagramsReceived;
    ended.bytesReceived += session.bytesReceived;
    try {
      this.log(session, 'UdpSessionEnd');
    } finally {
      session.close();
      ended.datagramsSent += session.datagramsSent;
      ended.bytesSent += session.bytesSent;
      ended.errorsSent += session.errorsSent;
    }
  }

  #tableOf(host: Host): SessionTable<UdpSession> {
    if (!this.settings.picksPerDatagram) return this.#sessions;
    let table = this.#byHost.get(host);
    if (table === undefined) this.#byHost.set(host, (table = new SessionTable()));
    return table;
  }

  #all(): UdpSession[] {
    return [...this.#sessions, ...[...this.#byHost.values()].flatMap((table) => [...table])];
  }
}

export function udpClusterPrefix(cluster: string): string {
  return `cluster.${cluster.replaceAll(':', '_')}.udp.`;
}

function clientOf(datagram: Datagram, socket: UdpSocket): SessionClient {
  const { localKey, peerKey } = datagram;
  return { path: datagram.path(), socket, localKey, peerKey };
}

function transparent(level: number, name: number): readonly SocketOption[] {
  return [{ level, name, value: new Uint8Array(Int32Array.of(1).buffer) }];
}

/** IP_TRANSPARENT and IPV6_TRANSPARENT allow a socket to be bound to an address of another machine. */
const TRANSPARENT_IP4 = transparent(0, 19);
const TRANSPARENT_IP6 = transparent(41, 75);

/** Reused for each pick. */
const hash = new Word64();
