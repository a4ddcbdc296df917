// Checks a host by requests on an HTTP connection, for any protocol and any judgement of the response.

import { messageOf } from '../../common/errors/errors.js';
import { Priority } from '../../common/priority.js';
import type { ClientProtocol } from '../../http/codec/connections.js';
import { type CodecError, type RequestEncoder, ResetReason, type ResponseDecoder } from '../../http/codec/streams.js';
import { type HeaderBlock, headerBlocks } from '../../http/headers/header-block.js';
import { Timer } from '../../io/time/timing-wheel.js';
import type { CallingThread } from '../calling-thread.js';
import type { ConnectOptions } from '../connections/connect-options.js';
import { type ConnectionPool, type RequestedCluster, UpstreamConnection } from '../connections/upstream-connection.js';
import type { Host } from '../hosts/host.js';
import { PoolFailure } from '../pool-failure.js';
import type { UpstreamThread } from '../upstream-thread.js';
import type { CheckTarget } from './check-target.js';
import type { Checker, OnChecked } from './checker.js';
import { Outcome } from './host-health.js';

export abstract class StreamChecker implements Checker, ConnectionPool, ResponseDecoder {
  readonly cluster: RequestedCluster;
  readonly host: Host;
  readonly priority = Priority.Default;
  readonly protocol: ClientProtocol;
  readonly options: ConnectOptions;
  streamsPerConnection = 1;
  activeRequests = 0;
  readonly isDraining = false;
  readonly #caller: CallingThread;
  readonly #timeoutMs: number;
  readonly #onChecked: OnChecked;
  readonly #timer = new Timer<StreamChecker>(this, onTimeout);
  #connection: UpstreamConnection | undefined;
  #isIdle = false;
  #isChecking = false;
  /**
   * The request was sent on the previous check's connection. If that ends, the host may not have received the request, which is
   * sent again.
   */
  #canRetry = false;

  constructor(
    caller: CallingThread,
    { cluster, host, options, protocol }: CheckTarget,
    timeoutMs: number,
    onChecked: OnChecked,
  ) {
    this.#caller = caller;
    this.cluster = cluster;
    this.host = host;
    this.options = options;
    this.protocol = protocol;
    this.#timeoutMs = timeoutMs;
    this.#onChecked = onChecked;
  }

  /** Writes the head of the request, and sends it, perhaps with a body. */
  protected abstract request(head: HeaderBlock, encoder: RequestEncoder): void;
  /** Called with the head of the response. */
  protected abstract responded(headers: HeaderBlock, endStream: boolean): void;
  abstract onData(offset: number, length: number, endStream: boolean): void;
  abstract onTrailers(trailers: HeaderBlock): void;

  get thread(): UpstreamThread {
    return this.cluster.thread;
  }

  begin(): void {
    this.#caller.begin();
    this.#isChecking = true;
    this.thread.wheel.schedule(this.#timer, this.#timeoutMs);
    try {
      this.#canRetry = this.#connection !== undefined && this.#isIdle;
      if (this.#canRetry) return this.#send(this.#connection!);
      this.disconnect();
      this.#connection = new UpstreamConnection(this);
    } catch (error) {
      this.#failed(error);
    }
  }

  close(): void {
    this.#caller.begin();
    this.#isChecking = false;
    this.thread.wheel.cancel(this.#timer);
    this.disconnect();
  }

  /** Called when no response came in time. */
  timedOut(): void {
    this.disconnect();
    this.ended(Outcome.Timeout, 'it does not answer in time');
  }

  // ── The connection ───────────────────────────────────────────────────────────────────────────────────────────────

  connectionReady(connection: UpstreamConnection, wasConnecting: boolean): void {
    this.#isIdle = connection.isIdle;
    if (wasConnecting && this.#isChecking) this.#send(connection);
  }

  connectFailed(failure: PoolFailure, detail: string): void {
    this.#connection = undefined;
    if (failure === PoolFailure.ConnectTimeout) this.timedOut();
    else this.ended(Outcome.NetworkFailure, detail);
  }

  /** The host ends the connection after the request in flight. */
  connectionEnding(connection: UpstreamConnection): void {
    if (connection === this.#connection) this.#isIdle = false;
  }

  connectionClosed(connection: UpstreamConnection): void {
    if (connection !== this.#connection) return;
    this.#connection = undefined;
    this.#isIdle = false;
    if (!this.#isChecking || !this.#canRetry) return this.ended(Outcome.NetworkFailure, CLOSED);
    this.#canRetry = false;
    try {
      this.#connection = new UpstreamConnection(this);
    } catch (error) {
      this.#failed(error);
    }
  }

  // ── The response ─────────────────────────────────────────────────────────────────────────────────────────────────

  onInformational(): void {}

  onHeaders(headers: HeaderBlock, endStream: boolean): void {
    this.#canRetry = false;
    this.responded(headers, endStream);
  }

  onReset(reason: ResetReason, error: CodecError | undefined): void {
    // When the host has ended the connection, connectionClosed() follows.
    if (reason === ResetReason.ConnectionTermination || (reason === ResetReason.ProtocolError && error === undefined))
      return;
    const version = this.protocol.streamsPerConnection > 1 ? 'HTTP/2' : 'HTTP/1.1';
    const what =
      error !== undefined && reason === ResetReason.ProtocolError
        ? `its answer is no ${version} (${error.detail})`
        : RESET;
    this.ended(Outcome.NetworkFailure, what);
  }

  onWriteBlocked(): void {}

  onWriteDrained(): void {}

  // ── For subclasses ───────────────────────────────────────────────────────────────────────────────────────────────

  /** Closes the connection: the rest of the response is not needed. */
  protected disconnect(): void {
    const connection = this.#connection;
    this.#connection = undefined;
    this.#isIdle = false;
    connection?.close();
  }

  /** Ends the check. `status`: that of the response. */
  protected ended(outcome: Outcome, reason: string, status?: number): void {
    if (!this.#isChecking) return;
    this.#isChecking = false;
    this.thread.wheel.cancel(this.#timer);
    this.#onChecked(outcome, reason, status);
  }

  // ── Inside ───────────────────────────────────────────────────────────────────────────────────────────────────────

  #send(connection: UpstreamConnection): void {
    this.#isIdle = false;
    const encoder = connection.startRequest(this);
    const head = headerBlocks(this.thread.memory).take();
    if (connection.security !== undefined) head.scheme = 'https';
    try {
      this.request(head, encoder);
    } finally {
      head.drop();
    }
  }

  #failed(error: unknown): void {
    this.disconnect();
    this.ended(Outcome.NetworkFailure, messageOf(error));
  }
}

function onTimeout(checker: StreamChecker): void {
  checker.timedOut();
}

/** As in Envoy: hosts recognise checks by it and omit them from their logs. */
export const CHECKS_USER_AGENT = 'Envoy/HC';
const CLOSED = 'it has closed the connection without an answer';
const RESET = 'it has reset the request';
