// One request that ends here: its body goes to a host as raw bytes over a TCP connection of its own, and the host's bytes are the
// body of the response (connect_config).

import { Protocol } from '../../access-log/stream/stream-info.js';
import type { Priority } from '../../common/priority.js';
import { type RequestEncoder, ResetReason } from '../../http/codec/streams.js';
import { type HeaderBlock, headerBlocks } from '../../http/headers/header-block.js';
import type { Cluster, ClusterHost } from '../cluster.js';
import { PoolFailure } from '../pool-failure.js';
import { type ConnectionTraits, type ConnectOptions, NO_CONNECT_OPTIONS } from './connect-options.js';
import { EndedBy } from './host-connection.js';
import type { PoolRequest, RequestPool } from './http-pool.js';
import { UpstreamSocket, type UpstreamSocketEvents } from './upstream-socket.js';

/** How long the host of a tunnel that is ended in order may go on sending. */
const LINGER_MS = 5000;

export class TcpTunnel implements RequestPool, RequestEncoder, UpstreamSocketEvents {
  /** The connection is a request of its own. */
  readonly countsItself = true;
  readonly #cluster: Cluster;
  readonly #host: ClusterHost;
  readonly #options: ConnectOptions;
  readonly #priority: Priority;
  /** What precedes the bytes of the request. */
  readonly #opening: Uint8Array;
  #request: PoolRequest | undefined;
  #socket: UpstreamSocket | undefined;
  #head: HeaderBlock | undefined;
  #isRequestEnded = false;
  #isResponseEnded = false;

  constructor(
    cluster: Cluster,
    host: ClusterHost,
    priority: Priority,
    traits: ConnectionTraits | undefined,
    opening: Uint8Array,
  ) {
    this.#priority = priority;
    this.#cluster = cluster;
    this.#host = host;
    this.#options = { ...NO_CONNECT_OPTIONS, traits };
    this.#opening = opening;
  }

  // ── RequestPool ──────────────────────────────────────────────────────────────────────────────────────────────────

  start(request: PoolRequest): void {
    this.#request = request;
    this.#socket = UpstreamSocket.sheds(this.#cluster)
      ? undefined
      : UpstreamSocket.connect(this, this.#cluster, this.#host, this.#options, this.#priority);
    if (this.#socket === undefined) request.onPoolFailure(PoolFailure.PendingOverflow, '');
  }

  cancel(): void {
    this.#end();
  }

  // ── RequestEncoder ───────────────────────────────────────────────────────────────────────────────────────────────

  get protocol(): Protocol {
    return Protocol.None;
  }

  headers(_headers: HeaderBlock, endStream: boolean): void {
    const { memory, transport } = this.#cluster.thread;
    if (this.#opening.length > 0) {
      const offset = memory.scratch(this.#opening.length);
      memory.bytes.set(this.#opening, offset);
      this.data(offset, this.#opening.length, endStream);
    } else if (endStream) this.data(0, 0, true);
    // Not at once: the caller may have more to send.
    transport.defer(this.#socket!.connectedId!, () => this.#accept());
  }

  data(offset: number, length: number, endStream: boolean): void {
    if (this.#socket === undefined || this.#isRequestEnded) return;
    if (length > 0) this.#socket.sendUnchecked(offset, length);
    if (!endStream) return;
    this.#isRequestEnded = true;
    this.#socket.shutdown();
    this.#settle();
  }

  trailers(): void {
    this.data(0, 0, true);
  }

  reset(reason: ResetReason): void {
    this.#request = undefined;
    if (reason === ResetReason.LocalClose || this.#isResponseEnded) this.#socket?.close(LINGER_MS);
    else this.#socket?.reset();
    this.#end();
  }

  pauseReading(): void {
    this.#socket?.pause();
  }

  resumeReading(): void {
    this.#socket?.resume();
  }

  // ── UpstreamSocketEvents ─────────────────────────────────────────────────────────────────────────────────────────

  upstreamConnected(): void {
    this.#request?.onPoolReady(this, this.#socket!);
  }

  upstreamConnectFailed(detail: string): void {
    this.#socket = undefined;
    this.#request?.onPoolFailure(detail === '' ? PoolFailure.ConnectTimeout : PoolFailure.ConnectFailed, detail);
  }

  upstreamData(offset: number, length: number): void {
    this.#accept();
    this.#request?.onData(offset, length, false);
  }

  upstreamEnded(): void {
    this.#accept();
    this.#isResponseEnded = true;
    this.#request?.onData(0, 0, true);
    this.#settle();
  }

  upstreamReset(): void {
    this.#fail(ResetReason.ConnectionTermination);
  }

  upstreamBlocked(): void {
    this.#request?.onWriteBlocked();
  }

  upstreamDrained(): void {
    this.#request?.onWriteDrained();
  }

  upstreamFault(): void {
    this.#fail(ResetReason.InternalError);
  }

  // ── Inside ───────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Answers the request, once. */
  #accept(): void {
    if (this.#head !== undefined || this.#request === undefined) return;
    const head = headerBlocks(this.#cluster.thread.memory).take();
    this.#head = head;
    head.status = 200;
    this.#request.onHeaders(head, false);
  }

  /** Closes the connection when both directions have ended. */
  #settle(): void {
    if (!this.#isRequestEnded || !this.#isResponseEnded) return;
    this.#socket?.close(0, undefined, undefined, EndedBy.Local);
    this.#end();
  }

  #fail(reason: ResetReason): void {
    const request = this.#request;
    this.#request = undefined;
    this.#socket?.reset();
    request?.onReset(reason, undefined);
    this.#end();
  }

  #end(): void {
    const socket = this.#socket;
    this.#socket = this.#request = undefined;
    if (socket?.isClosed === false) socket.close();
    this.#head?.drop();
    this.#head = undefined;
  }
}
