// One gRPC call to a host of a cluster, unary or streaming (https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md).

import { headerKey } from '../common/text/header-names.js';
import { callStatus } from '../http/headers/grpc-outcome.js';
import { setGrpcTimeout } from '../http/headers/grpc-timeout.js';
import { type HeaderBlock, Method } from '../http/headers/header-block.js';
import type { CallingThread } from '../upstream/calling-thread.js';
import type { Cluster, ClusterHost } from '../upstream/cluster.js';
import { countHostCall, countHostCallHead } from '../upstream/connections/host-outcomes.js';
import { CallFailure, chooseHost, OutgoingCall } from '../upstream/http-calls/outgoing-call.js';
import type { RetriedCall } from '../upstream/http-calls/retried-call.js';
import { framed, MessageReader } from './message-reader.js';
import { GrpcCode, type GrpcStatus, statusIn, statusOfHead } from './status.js';

/** Limit of informational responses, which a host may repeat without end. */
const MAX_INFORMATIONAL = 100;
/** Received bytes beyond which a paused call is not read. */
const MAX_HELD_BYTES = 64 * 1024;

export interface GrpcCallRequest {
  /** `/package.Service/Method` */
  readonly path: string;
  /** Adds host and metadata; the call adds the rest. `timeoutMs`: of this try; 0: none. */
  writeMetadata(head: HeaderBlock, timeoutMs: number): void;
  /** From the start of the call to its end; 0: no limit. */
  readonly timeoutMs: number;
  /** Limit of one received message. */
  readonly maxMessageBytes: number;
}

/** The state in which a call begins, if it has one. */
export interface GrpcOpening {
  /** The first messages. */
  readonly messages: readonly Uint8Array[];
  /** No other message follows. */
  readonly isComplete: boolean;
  /** See GrpcCall.pause(). */
  readonly isPaused: boolean;
}

/** onEnd() is called exactly once, perhaps before GrpcCall.start() returns, but never after cancel(). No other event follows. */
export interface GrpcCallEvents {
  /** Called when the call has a connection. */
  onConnected?(): void;
  /** Called with the head of a response whose messages follow. It is valid until this returns. */
  onHead?(headers: HeaderBlock): void;
  onMessage(message: Buffer): void;
  /** Called when all written messages were passed to the connection. */
  onDrained?(): void;
  onEnd(status: GrpcStatus): void;
  /** onEnd() follows the messages that a paused call holds back. Otherwise the end is reported at once, and they are lost. */
  readonly endsInOrder?: boolean;
}

export class GrpcCall extends OutgoingCall {
  readonly #thread: CallingThread;
  readonly #request: GrpcCallRequest;
  readonly #events: GrpcCallEvents;
  readonly #retries: RetriedCall | undefined;
  readonly #reader: MessageReader;
  #informational = 0;
  /** The trailers decide what the call shows about its host. */
  #awaitsStatus = false;
  #isPaused = false;
  #isDelivering = false;
  /** How a paused call has ended that holds messages back. */
  #ending: GrpcStatus | undefined;
  /** onEnd() was called, or the call was cancelled. */
  #isDone = false;

  /**
   * Begins a call to a host of the cluster. Returns undefined, after onEnd(), when it has ended already. Throws what
   * OutgoingCall.start() throws: then it has ended without an event.
   */
  static start(
    caller: CallingThread,
    cluster: Cluster | undefined,
    request: GrpcCallRequest,
    events: GrpcCallEvents,
    opening?: GrpcOpening,
    retries?: RetriedCall,
  ): GrpcCall | undefined {
    const thread = caller.begin();
    cluster = cluster?.clusterOfHost();
    const host = chooseHost(thread, cluster, retries);
    if (typeof host === 'string') {
      events.onEnd({ code: GrpcCode.Unavailable, details: host });
      return undefined;
    }
    const call = new GrpcCall(caller, cluster!, host, request, events, retries);
    if (opening !== undefined) call.#open(opening);
    call.start(request.timeoutMs);
    return call.#isDone ? undefined : call;
  }

  private constructor(
    caller: CallingThread,
    cluster: Cluster,
    host: ClusterHost,
    request: GrpcCallRequest,
    events: GrpcCallEvents,
    retries: RetriedCall | undefined,
  ) {
    super(caller, cluster, host, retries);
    this.#retries = retries;
    this.#thread = caller;
    this.#request = request;
    this.#events = events;
    this.#reader = new MessageReader(request.maxMessageBytes);
  }

  /** Queues a message. The caller limits queuedBytes. A no-op after the end of the call. */
  write(message: Uint8Array): void {
    if (this.isOver) return;
    this.#thread.begin();
    this.enqueue(framed(message));
    this.sendBody();
  }

  /** Ends the request after the written messages. */
  end(): void {
    if (this.isOver) return;
    this.#thread.begin();
    this.completeBody();
    this.sendBody();
  }

  override cancel(): void {
    this.#isDone = true;
    super.cancel();
  }

  /**
   * Stops onMessage() until resume(). Meanwhile the host can send little more than a window. See GrpcCallEvents.endsInOrder for
   * messages that are held back at the end of the call.
   */
  pause(): void {
    this.#isPaused = true;
    this.#limitReading();
  }

  resume(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    this.#thread.begin();
    this.#deliver();
    this.#limitReading();
    if (this.#ending !== undefined && !this.#isPaused) this.#done(this.#ending);
  }

  // ── OutgoingCall ─────────────────────────────────────────────────────────────────────────────────────────────────

  protected writeHead(head: HeaderBlock): void {
    const { path, timeoutMs } = this.#request;
    head.setMethod(Method.Post, 'POST');
    head.setPath(path);
    if (timeoutMs > 0) setGrpcTimeout(head, timeoutMs);
    head.add(TE, 'trailers');
    head.add(CONTENT_TYPE, 'application/grpc');
    this.#request.writeMetadata(head, this.#retries === undefined ? timeoutMs : this.#retries.tryTimeoutMs);
  }

  override onPoolReady(encoder: Parameters<OutgoingCall['onPoolReady']>[0]): void {
    super.onPoolReady(encoder);
    if (!this.isOver) this.#events.onConnected?.();
  }

  protected override bodyDrained(): void {
    this.#events.onDrained?.();
  }

  override onInformational(): void {
    if (++this.#informational > MAX_INFORMATIONAL)
      this.#fail({ code: GrpcCode.Internal, details: 'the server sends informational responses without end' });
  }

  protected override countResponse(headers: HeaderBlock, endStream: boolean): void {
    this.#awaitsStatus = countHostCallHead(this.host, headers, endStream);
  }

  protected responded(headers: HeaderBlock, endStream: boolean): void {
    const status = statusOfHead(headers, endStream);
    if (status === undefined) return this.#events.onHead?.(headers);
    if (endStream) this.#complete(status);
    else this.#fail(status);
  }

  onData(offset: number, length: number, endStream: boolean): void {
    if (length > 0) this.#reader.push(this.cluster.thread.memory.bytes.subarray(offset, offset + length));
    if (endStream) this.#complete({ code: GrpcCode.Unknown, details: 'the server ended the stream without a status' });
    else {
      this.#deliver();
      this.#limitReading();
    }
  }

  onTrailers(trailers: HeaderBlock): void {
    if (this.#awaitsStatus) this.#count(callStatus(trailers));
    this.#complete(statusIn(trailers));
  }

  protected failed(failure: CallFailure, detail: string): void {
    if (this.#awaitsStatus) this.#count(0);
    this.#done(statusOfFailure(failure, detail));
  }

  // ── Inside ───────────────────────────────────────────────────────────────────────────────────────────────────────

  #open({ isComplete, isPaused, messages }: GrpcOpening): void {
    for (const message of messages) this.enqueue(framed(message));
    if (isComplete) this.completeBody();
    this.#isPaused = isPaused;
  }

  /** Called when the response is complete. */
  #complete(status: GrpcStatus): void {
    if (this.#awaitsStatus) this.#count(0);
    this.complete();
    this.#deliver();
    if (this.#isPaused && this.#events.endsInOrder === true && this.#reader.bufferedBytes > 0) this.#ending = status;
    else this.#done(status);
  }

  /** Ends the call because of its response, the rest of which is not read. */
  #fail(status: GrpcStatus): void {
    if (this.#awaitsStatus) this.#count(0);
    this.abort();
    this.#done(status);
  }

  /** Delivers messages. onMessage() may pause or cancel the call. */
  #deliver(): void {
    if (this.#isDelivering) return;
    this.#isDelivering = true;
    try {
      while (!this.#isPaused && !this.#isDone) {
        const next = this.#reader.next();
        if (next === undefined) break;
        if (!Buffer.isBuffer(next)) return this.#fail(next);
        this.#events.onMessage(next);
      }
    } finally {
      this.#isDelivering = false;
    }
  }

  /** Reads on while little is held back: otherwise the end of a call would not be observed. */
  #limitReading(): void {
    if (this.#isPaused && this.#reader.bufferedBytes >= MAX_HELD_BYTES) this.encoder?.pauseReading();
    else this.encoder?.resumeReading();
  }

  #done(status: GrpcStatus): void {
    if (this.#isDone) return;
    this.#isDone = true;
    this.#events.onEnd(status);
  }

  #count(status: number): void {
    this.#awaitsStatus = false;
    countHostCall(this.host, status);
  }
}

function statusOfFailure(failure: CallFailure, detail: string): GrpcStatus {
  const because = detail === '' ? '' : ` (${detail})`;
  switch (failure) {
    case CallFailure.NoConnection:
      return { code: GrpcCode.Unavailable, details: detail };
    case CallFailure.Timeout:
      return { code: GrpcCode.DeadlineExceeded, details: 'the call did not end in time' };
    case CallFailure.ConnectionEnded:
      return { code: GrpcCode.Unavailable, details: `the connection has ended${because}` };
    case CallFailure.StreamReset:
      return { code: GrpcCode.Internal, details: 'the server has reset the stream' };
    case CallFailure.Refused:
      return { code: GrpcCode.Unavailable, details: 'the server has refused the call' };
    case CallFailure.Invalid:
      return { code: GrpcCode.Internal, details: `the peer sent invalid HTTP/2${because}` };
  }
}

const CONTENT_TYPE = headerKey('content-type');
const TE = headerKey('te');
