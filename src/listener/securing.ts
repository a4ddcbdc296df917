// An accepted connection during its TLS handshake. Its handler, which the filter chain has made, gets its events afterwards.

import { constants } from 'node:os';
import { messageOf } from '../common/errors/errors.js';
import { ConnectStep } from '../io/shim.js';
import { Timer } from '../io/time/timing-wheel.js';
import type { ConnectionHandler, PresentedCertificate } from '../io/transport/connection-handler.js';
import { getLogger } from '../log/logger.js';
import { ListenerStats } from '../stats/layouts/listener.js';
import { TlsHandshake } from '../tls/handshake.js';
import type { DownstreamConnection, DownstreamHandler } from './downstream-connection.js';
import type { ServerTls } from './server-tls.js';

const logger = getLogger('connection');

const { EPROTO } = constants.errno;

export class SecuringConnection implements ConnectionHandler {
  readonly #connection: DownstreamConnection;
  readonly #handler: DownstreamHandler;
  readonly #handshake: TlsHandshake;
  readonly #tls: ServerTls;
  readonly #timer: Timer<SecuringConnection>;

  private constructor(connection: DownstreamConnection, handler: DownstreamHandler, tls: ServerTls) {
    this.#connection = connection;
    this.#handler = handler;
    this.#tls = tls;
    this.#handshake = new TlsHandshake(tls.stats, undefined, tls.keyLog);
    this.#timer = new Timer<SecuringConnection>(this, (securing) => securing.#timedOut());
    const timeoutMs = connection.chain.overload?.timeout('TRANSPORT_SOCKET_CONNECT', tls.timeoutMs) ?? tls.timeoutMs;
    tls.timers.reschedule(this.#timer, timeoutMs);
  }

  /** Begins the handshake. Returns the handler for the transport. */
  static begin(connection: DownstreamConnection, handler: DownstreamHandler, tls: ServerTls): ConnectionHandler {
    const securing = new SecuringConnection(connection, handler, tls);
    const { id, isClosed, transport } = connection;
    // The context is released when the last worker has stopped using the chain.
    if (!isClosed && !transport.startTls(id, tls.context)) securing.#fail('');
    return securing;
  }

  onSecured(): void {
    this.#end();
    const { id, transport } = this.#connection;
    if (this.#connection.isClosed) return;
    this.#connection.security = this.#handshake.secured(transport, id, this.#connection);
    transport.setHandler(id, this.#handler);
    this.#handler.onSecured?.();
  }

  onHandshakeFailed(reasons: string): void {
    const { id, transport } = this.#connection;
    const failure = this.#handshake.failed(transport, id, this.#connection, reasons);
    if (logger.isDebug)
      logger.debug(`[C${this.#connection.serial}] TLS handshake failed: ${failure || 'the peer has ended it'}`);
    this.#fail(failure);
  }

  judgePeer(peer: PresentedCertificate): number {
    return this.#handshake.judge(peer);
  }

  onReset(errno: number, step: ConnectStep): void {
    this.#end();
    const { id, isClosed, transport } = this.#connection;
    if (isClosed) return;
    this.#handshake.abandoned(transport, id, this.#connection);
    this.#handler.onReset(errno, step);
  }

  onBlocked(): void {
    this.#handler.onBlocked();
  }

  onDrained(): void {
    this.#handler.onDrained();
  }

  onFault(error: unknown): void {
    this.#end();
    if (logger.isDebug) logger.debug(`[C${this.#connection.serial}] TLS: ${messageOf(error)}`);
    this.#handler.onFault(error);
  }

  /** No-ops: only connections to hosts connect, and only decrypted bytes are received. */
  onConnected(): void {}
  onData(): void {}
  onEnd(): void {}

  #timedOut(): void {
    const { id, isClosed, transport } = this.#connection;
    if (isClosed) return;
    this.#handshake.abandoned(transport, id, this.#connection);
    this.#connection.listener.stats.increment(ListenerStats.at.downstream_cx_transport_socket_connect_timeout);
    this.#fail('');
  }

  /** Ends the connection as if the peer had. */
  #fail(failure: string): void {
    this.#end();
    if (this.#connection.isClosed) return;
    this.#connection.transportFailure = failure;
    this.#handler.onReset(EPROTO, ConnectStep.Later);
  }

  #end(): void {
    this.#tls.timers.cancel(this.#timer);
  }
}
