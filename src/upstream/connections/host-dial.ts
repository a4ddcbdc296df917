// One attempt to connect to an address of a host, up to the end of what precedes the bytes of requests: the CONNECT of a proxy, a header
// of the PROXY protocol, and TLS.

import { addressText, decodeSockaddr, INTERNAL_CLIENT, isInternal } from '../../io/addresses/address.js';
import { ConnectStep } from '../../io/shim.js';
import type { ConnectionSecurity } from '../../io/tls/connection-security.js';
import type { BufferLimits } from '../../io/transport/buffer-limits.js';
import type { ConnectionHandler, PresentedCertificate } from '../../io/transport/connection-handler.js';
import type { Transport } from '../../io/transport/transport.js';
import { ClusterStats } from '../../stats/layouts/cluster.js';
import type { Scope } from '../../stats/thread-stats.js';
import type { TlsHandshake } from '../../tls/handshake.js';
import type { ClusterSpec } from '../cluster-config.js';
import type { Host } from '../hosts/host.js';
import { connectFailureText, PoolFailure } from '../pool-failure.js';
import type { UpstreamThread } from '../upstream-thread.js';
import type { ConnectOptions } from './connect-options.js';
import { Answer, ConnectAnswer, type ConnectProxy } from './connect-proxy.js';
import type { HostTransport } from './host-transport.js';

/** The part of a cluster that its connections use. */
export interface ConnectingCluster {
  readonly thread: UpstreamThread;
  readonly spec: ClusterSpec;
  /** cluster.<name>. */
  readonly stats: Scope;
  readonly bufferLimits: BufferLimits;
  /** Returns undefined if connections to the host are plain. */
  transportOf(host: Host): HostTransport | undefined;
}

/** What the attempts of one connection have in common. */
export interface DialTarget {
  readonly cluster: ConnectingCluster;
  readonly host: Host;
  readonly options: ConnectOptions;
  /** Undefined: the connection goes through no HTTP proxy. */
  readonly proxy: ConnectProxy | undefined;
}

/** The callbacks of an attempt. */
export interface DialEvents {
  /** Called once when requests can be sent. The owner becomes the handler of the connection. */
  dialReady(dial: HostDial): void;
  /** Called once when the attempt has failed. The owner closes its connection. `detail` is the transport's error. */
  dialFailed(dial: HostDial, failure: PoolFailure, detail: string): void;
  /** Bytes that follow the proxy's answer, after dialReady(). */
  dialReceived(offset: number, length: number): void;
  /** The send queue has risen above its high watermark, or fallen below the low one. */
  onBlocked(): void;
  onDrained(): void;
  /** Called when one of the callbacks above has thrown. */
  onFault(): void;
}

export class HostDial implements ConnectionHandler {
  readonly id: number;
  /** What its TLS handshake has established; undefined without TLS. */
  security: ConnectionSecurity | undefined = undefined;
  /** The address that it connects to, as text; '': the host's. */
  readonly peerText: string;
  private readonly target: DialTarget;
  private readonly events: DialEvents;
  private readonly isInternal: boolean;
  /** Undefined without TLS. */
  private handshake: TlsHandshake | undefined = undefined;
  /** The proxy's answer to CONNECT, as far as it has arrived; undefined: none is awaited. */
  private answer: ConnectAnswer | undefined = undefined;
  /** What the connection begins with once it is connected; undefined: nothing, or it has begun. */
  private opening: HostTransport | undefined = undefined;

  /** Begins to connect to `sockaddr`. Throws when the connect cannot begin. */
  constructor(events: DialEvents, target: DialTarget, sockaddr: Uint8Array, peerText: string) {
    const { cluster, host, options, proxy } = target;
    this.events = events;
    this.target = target;
    this.peerText = peerText;
    this.isInternal = isInternal(sockaddr);
    const transport = cluster.transportOf(host);
    this.id = this.isInternal ? this.connectWithin(transport) : this.connect(sockaddr);
    if (transport !== undefined && (transport.namesClient || proxy?.request !== undefined)) this.opening = transport;
    else this.handshake = transport?.tls?.begin(this.transport, this.id, host, options);
  }

  /** The local address with port as text. */
  get localText(): string {
    return this.isInternal ? INTERNAL_CLIENT : localTextOf(this.transport, this.id);
  }

  /** The address of the host with port, as text. */
  get remoteText(): string {
    const { host, proxy } = this.target;
    return proxy === undefined ? this.peerText || host.address : host.address;
  }

  // ── ConnectionHandler ────────────────────────────────────────────────────────────────────────────────────────────

  onConnected(): void {
    if (this.opening !== undefined) this.open(this.opening);
    if (this.handshake === undefined && this.answer === undefined) this.events.dialReady(this);
  }

  onSecured(): void {
    this.security = this.handshake?.secured(this.transport, this.id, this);
    this.events.dialReady(this);
  }

  onHandshakeFailed(reasons: string): void {
    const detail = this.handshake?.failed(this.transport, this.id, this, reasons) ?? '';
    this.events.dialFailed(this, PoolFailure.ConnectFailed, detail);
  }

  judgePeer(peer: PresentedCertificate): number {
    return this.handshake!.judge(peer);
  }

  onData(offset: number, length: number): void {
    if (this.answer !== undefined) return this.answered(this.answer, offset, length);
    this.target.cluster.stats.addBytes(ClusterStats.at.upstream_cx_rx_bytes_total, length);
    this.refused();
  }

  onEnd(): void {
    this.refused();
  }

  onReset(errno: number, step: ConnectStep): void {
    const failure = step === ConnectStep.Bind ? PoolFailure.BindFailed : PoolFailure.ConnectFailed;
    this.events.dialFailed(this, failure, connectFailureText(this.target.cluster.spec, errno, step));
  }

  onBlocked(): void {
    this.events.onBlocked();
  }

  onDrained(): void {
    this.events.onDrained();
  }

  onFault(): void {
    this.events.onFault();
  }

  // ── Inside ───────────────────────────────────────────────────────────────────────────────────────────────────────

  private get transport(): Transport {
    return this.target.cluster.thread.transport;
  }

  private connect(sockaddr: Uint8Array): number {
    const { bufferLimits, spec, thread } = this.target.cluster;
    return thread.transport.connect(sockaddr, spec, bufferLimits, this);
  }

  /** Connects to a listener of this process. */
  private connectWithin(transport: HostTransport | undefined): number {
    const { cluster, host, options } = this.target;
    const { bufferLimits, spec, thread } = cluster;
    const passed = transport?.passthrough?.values(host.metadata, spec.metadata, options.traits?.shared);
    const { internal } = thread;
    const address = this.peerText || host.address;
    return thread.transport.within.connect(
      bufferLimits,
      internal?.bufferBytes,
      this,
      (fd) => internal?.listeners?.acceptWithin(fd, address, passed) ?? false,
    );
  }

  private open(transport: HostTransport): void {
    const { host, options, proxy } = this.target;
    if (proxy?.request !== undefined) {
      this.answer = new ConnectAnswer();
      this.send(proxy.request);
      return;
    }
    this.opening = undefined;
    const own = () => ({ localText: this.remoteText, remoteText: this.localText });
    this.send(transport.opening(options.traits?.client, own));
    this.handshake = transport.tls?.begin(this.transport, this.id, host, options);
  }

  private send(bytes: Uint8Array): void {
    const { stats, thread } = this.target.cluster;
    const offset = thread.memory.scratch(bytes.length);
    thread.memory.bytes.set(bytes, offset);
    stats.addBytes(ClusterStats.at.upstream_cx_tx_bytes_total, bytes.length);
    thread.transport.send(this.id, offset, bytes.length);
  }

  /** Receives the proxy's answer to CONNECT. */
  private answered(answer: ConnectAnswer, offset: number, length: number): void {
    const { cluster, host, options } = this.target;
    const { bytes } = cluster.thread.memory;
    const taken = answer.receive(bytes.subarray(offset, offset + length));
    if (taken === Answer.Incomplete) return;
    const transport = this.opening!;
    // A host that is spoken to by TLS says nothing first.
    if (taken === Answer.Refused || (transport.tls !== undefined && taken < length)) return this.refused();
    this.answer = this.opening = undefined;
    this.handshake = transport.tls?.begin(this.transport, this.id, host, options);
    if (this.handshake !== undefined) return;
    this.events.dialReady(this);
    if (taken < length) this.events.dialReceived(offset + taken, length - taken);
  }

  /** Called when the host sends or ends before the connection is ready. */
  private refused(): void {
    this.onHandshakeFailed('');
  }
}

/** Reads the local address of a connection from the kernel. */
export function localTextOf(transport: Transport, id: number): string {
  const raw = transport.localAddress(id);
  return addressText(decodeSockaddr(raw, 0, raw.length));
}
