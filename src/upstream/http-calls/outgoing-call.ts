// One request that Baton itself sends to a host of a cluster: from the choice of the host to the end of the stream. Pools, load
// balancing, circuit breakers and stats are those of the cluster, as for forwarded requests. Subclasses write the request and
// receive the response.

import { ResponseFlag } from '../../access-log/stream/response-flags.js';
import { Protocol } from '../../access-log/stream/stream-info.js';
import { Priority } from '../../common/priority.js';
import { type CodecError, type RequestEncoder, ResetReason } from '../../http/codec/streams.js';
import { type HeaderBlock, headerBlocks } from '../../http/headers/header-block.js';
import { RetryReset } from '../../http/routing/retries/retry-state.js';
import { Timer } from '../../io/time/timing-wheel.js';
import { ClusterStats } from '../../stats/layouts/cluster.js';
import type { CallingThread } from '../calling-thread.js';
import type { Cluster, ClusterHost } from '../cluster.js';
import type { ConnectionTraits } from '../connections/connect-options.js';
import {
  countHostConnection,
  countHostReset,
  countHostResponse,
  countHostTimeout,
  countNoConnection,
  countRetriedResponse,
} from '../connections/host-outcomes.js';
import type { HttpPool, PoolRequest } from '../connections/http-pool.js';
import { PoolFailure } from '../pool-failure.js';
import { isCanaryResponse } from '../response-stats.js';
import type { UpstreamThread } from '../upstream-thread.js';
import type { RetriedCall } from './retried-call.js';

/** Piece size of the body, and pieces per turn: onWriteBlocked() comes in a later turn, so one turn must not send everything. */
const PIECE = 16 * 1024;
const PIECES_PER_TURN = 8;

/** Why a call ended without a complete response. */
export const enum CallFailure {
  /** There is no connection; the detail says why. */
  NoConnection = 1,
  Timeout = 2,
  /** The connection has ended. */
  ConnectionEnded = 3,
  /** The host has reset the stream. */
  StreamReset = 4,
  /** The host has not processed the request. */
  Refused = 5,
  /** The response is invalid. */
  Invalid = 6,
}

const enum State {
  Pending = 0,
  Running = 1,
  Finished = 2,
}

export abstract class OutgoingCall implements PoolRequest {
  pendingPrev: PoolRequest | undefined = undefined;
  pendingNext: PoolRequest | undefined = undefined;
  protected readonly cluster: Cluster;
  protected readonly host: ClusterHost;
  /** The status of the response; 0 before it. */
  protected status = 0;
  readonly #thread: CallingThread;
  /** Decides whether another call follows in place of this one; undefined: none does. */
  readonly #retries: RetriedCall | undefined;
  /** Undefined before start(). */
  #pool: HttpPool | undefined;
  readonly #timer = new Timer<OutgoingCall>(this, onTimeout);
  readonly #startMs: number;
  #encoder: RequestEncoder | undefined;
  #state: State = State.Pending;
  #isBlocked = false;
  /** The rest of the body will be sent in a later turn. */
  #isScheduled = false;
  /** Parts of the body that were not sent completely, and the position in the first one. */
  readonly #parts: Uint8Array[] = [];
  #at = 0;
  #queuedBytes = 0;
  #sentBytes = 0;
  /** No part follows; the last one was sent. */
  #isBodyComplete = false;
  #isBodySent = false;
  /** The response is a canary's. */
  #isCanary = false;
  /** The timer limits this try, not all of them. */
  #isTryLimited = false;

  protected constructor(
    thread: CallingThread,
    cluster: Cluster,
    host: ClusterHost,
    retries: RetriedCall | undefined = undefined,
  ) {
    this.#thread = thread;
    this.#retries = retries;
    this.cluster = cluster;
    this.host = host;
    this.#startMs = cluster.thread.clock.monotonicMs;
  }

  /** Aborts the call; no event follows. */
  cancel(): void {
    this.#thread.begin();
    this.abort();
  }

  // ── For subclasses ───────────────────────────────────────────────────────────────────────────────────────────────

  /** Writes method, path and fields of the request, including host. Called twice if the connection depends on the host. */
  protected abstract writeHead(head: HeaderBlock): void;
  /** Called when the response head has arrived, which is counted. */
  protected abstract responded(headers: HeaderBlock, endStream: boolean): void;
  /** Called at the end of a call without a complete response. */
  protected abstract failed(failure: CallFailure, detail: string): void;
  abstract onData(offset: number, length: number, endStream: boolean): void;
  abstract onTrailers(trailers: HeaderBlock): void;

  /**
   * Begins the call, which ends after `timeoutMs` at the latest (0: never); a retry, after the rest of that. failed() may be called before
   * this returns. Throws what writeHead() throws if that is called at once, and what HttpPool.start() throws: then the call has ended without
   * an event.
   */
  protected start(timeoutMs: number): void {
    this.#retries?.began(this);
    try {
      this.endWithin(this.#retries === undefined ? timeoutMs : this.#retries.remainingMs);
      this.#pool = this.cluster.pool(this.host, Priority.Default, undefined, this.#traits());
      if (this.#pool === undefined) this.onPoolFailure(PoolFailure.Overflow, '');
      else this.#pool.start(this);
    } catch (error) {
      // The caller gets no call to cancel: without this it would stay in the pool's queue, or its connection would wait for the
      // rest of the request.
      if (!this.isOver) this.abort();
      throw error;
    }
  }

  /** Ends the call after `timeoutMs` from now at the latest; 0: a no-op. */
  protected endWithin(timeoutMs: number): void {
    if (timeoutMs > 0 && !this.isOver) this.cluster.thread.wheel.schedule(this.#timer, timeoutMs);
  }

  protected get isOver(): boolean {
    return this.#state === State.Finished;
  }

  /** The stream, while it is open. */
  protected get encoder(): RequestEncoder | undefined {
    return this.#encoder;
  }

  /** The body was sent. */
  protected get isBodySent(): boolean {
    return this.#isBodySent;
  }

  /** Bytes of the body that were passed to the connection. */
  get sentBytes(): number {
    return this.#sentBytes;
  }

  /** Bytes of the body that were not sent yet, and the number of their parts. */
  get queuedBytes(): number {
    return this.#queuedBytes;
  }
  get queuedParts(): number {
    return this.#parts.length;
  }

  /** Queues a part of the body, which is not empty. The caller must not change it any more. */
  protected enqueue(part: Uint8Array): void {
    this.#parts.push(part);
    this.#queuedBytes += part.length;
  }

  /** Ends the body after the queued parts. */
  protected completeBody(): void {
    this.#isBodyComplete = true;
  }

  /** Sends queued parts. Required after enqueue() and completeBody(), except before start(). */
  protected sendBody(): void {
    if (this.#state !== State.Running || this.#isScheduled) return;
    for (let sent = 0; this.#state === State.Running && !this.#isBlocked && this.#parts.length > 0; sent++) {
      if (sent === PIECES_PER_TURN) return this.#sendBodyLater();
      this.#sendPiece(this.#parts[0]!);
    }
    if (this.#isBodyComplete && !this.#isBodySent && this.#parts.length === 0) this.#sendEnd();
  }

  /** Called when all queued parts were sent. */
  protected bodyDrained(): void {}

  /** Counts what the response head shows about the host. */
  protected countResponse(headers: HeaderBlock, _endStream: boolean): void {
    countHostResponse(this.host, headers);
  }

  /** Ends the call after its response. The rest of the body is not needed then. */
  protected complete(): void {
    const durationMs = Math.floor(this.cluster.thread.clock.monotonicMs - this.#startMs);
    this.cluster.responses.recordTime(durationMs, true, this.host, this.#isCanary);
    if (this.#isBodySent) this.#finish();
    else this.abort();
  }

  /** Ends the call: leaves the pool's queue, or resets the stream. */
  protected abort(): void {
    const state = this.#state;
    const encoder = this.#encoder;
    this.#finish();
    if (state === State.Pending) return this.#pool?.cancel(this);
    if (state === State.Finished) return;
    // A stream of HTTP/1 is not reset but its connection closed.
    if (encoder!.protocol >= Protocol.Http2) this.cluster.stats.increment(ClusterStats.at.upstream_rq_tx_reset);
    encoder!.reset(ResetReason.LocalReset);
  }

  // ── The pool ─────────────────────────────────────────────────────────────────────────────────────────────────────

  onPoolReady(encoder: RequestEncoder): void {
    this.#state = State.Running;
    this.#encoder = encoder;
    countHostConnection(this.host);
    this.cluster.requestBegan(this.host);
    if (this.#retries !== undefined && this.#isBodyComplete) this.#limitTry(this.#retries);
    this.#sendHead(encoder);
    this.sendBody();
  }

  onPoolFailure(reason: PoolFailure, detail: string): void {
    countNoConnection(this.host, reason);
    if (this.#isRetried(noConnection(reason), false)) return this.#finish();
    countUnanswered(this.cluster, this.host, 503);
    this.#finish();
    this.failed(CallFailure.NoConnection, poolFailureText(reason, detail));
  }

  // ── The response ─────────────────────────────────────────────────────────────────────────────────────────────────

  onInformational(_headers: HeaderBlock): void {}

  onHeaders(headers: HeaderBlock, endStream: boolean): void {
    const { cluster, host } = this;
    if (cluster.spec.isHealthChecked) cluster.observeHealthHeader(host, headers);
    if (this.#retries?.grantForResponse(headers, cluster, host) === true) {
      countRetriedResponse(host, headers);
      cluster.responses.countRetried(headers.status);
      if (endStream && this.#isBodySent) this.#finish();
      else this.abort();
      return;
    }
    if (this.#isTryLimited) this.#limitCall(this.#retries!);
    this.status = headers.status;
    this.countResponse(headers, endStream);
    this.#isCanary = isCanaryResponse(headers, host);
    cluster.responses.countResponse(headers.status, true, host, this.#isCanary);
    this.responded(headers, endStream);
  }

  onReset(reason: ResetReason, error: CodecError | undefined): void {
    // An event has thrown, which ends the connection.
    if (this.isOver) return;
    countHostReset(this.host, this.status !== 0);
    if (reason === ResetReason.RemoteReset || reason === ResetReason.RefusedStream)
      this.cluster.stats.increment(ClusterStats.at.upstream_rq_rx_reset);
    const kind = reason === ResetReason.RefusedStream ? RetryReset.RefusedStream : RetryReset.Reset;
    if (this.#isRetried(kind, true)) return this.#finish();
    if (this.status === 0) countUnanswered(this.cluster, this.host, reason === ResetReason.ProtocolError ? 502 : 503);
    this.#finish();
    this.failed(failureOf(reason, error), error?.detail ?? '');
  }

  onWriteBlocked(): void {
    this.#isBlocked = true;
    this.cluster.stats.increment(ClusterStats.at.upstream_flow_control_backed_up_total);
  }

  onWriteDrained(): void {
    this.#isBlocked = false;
    this.cluster.stats.increment(ClusterStats.at.upstream_flow_control_drained_total);
    this.sendBody();
  }

  /** Called when no response came in time. */
  timedOut(): void {
    if (this.isOver) return;
    const { upstream_rq_per_try_timeout: ofTry, upstream_rq_timeout: ofCall } = ClusterStats.at;
    this.cluster.stats.increment(this.#isTryLimited ? ofTry : ofCall);
    if (this.#state === State.Running) countHostTimeout(this.host, this.status !== 0);
    if (this.#isTryLimited && this.#isRetried(RetryReset.Local, true)) return this.abort();
    if (this.status === 0) countUnanswered(this.cluster, this.host, 504);
    this.abort();
    this.failed(CallFailure.Timeout, '');
  }

  // ── Inside ───────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Returns the host that the request names, if its connection depends on it. */
  #traits(): ConnectionTraits | undefined {
    if (!this.cluster.connectsByName) return undefined;
    const head = headerBlocks(this.cluster.thread.memory).take();
    try {
      this.writeHead(head);
      return this.cluster.traitsOf(head, undefined, undefined);
    } finally {
      head.drop();
    }
  }

  #sendHead(encoder: RequestEncoder): void {
    const head = headerBlocks(this.cluster.thread.memory).take();
    try {
      this.writeHead(head);
      if (head.methodEnd === head.methodStart || head.pathEnd === head.pathStart)
        throw new Error('writeHead() of a call has set no method or no path: setMethod(), setPath()');
      const isComplete = this.#isBodyComplete && this.#parts.length === 0;
      this.#isBodySent = isComplete;
      encoder.headers(head, isComplete);
    } finally {
      head.drop();
    }
  }

  /** As in Envoy, the limit of a try begins when it has a connection, if the request is complete. */
  #limitTry({ remainingMs, tryTimeoutMs }: RetriedCall): void {
    this.#isTryLimited = tryTimeoutMs > 0 && tryTimeoutMs !== remainingMs;
    if (this.#isTryLimited) this.cluster.thread.wheel.reschedule(this.#timer, tryTimeoutMs);
  }

  /** As in Envoy, the limit of a try ends with the response head. */
  #limitCall({ remainingMs }: RetriedCall): void {
    this.#isTryLimited = false;
    this.cluster.thread.wheel.cancel(this.#timer);
    this.endWithin(remainingMs);
  }

  /** Returns whether another try follows this one, which has no response. */
  #isRetried(kind: RetryReset, isSent: boolean): boolean {
    if (this.#retries === undefined || this.status !== 0) return false;
    return this.#retries.grantForFailure(kind, this.cluster, this.host, isSent);
  }

  #sendBodyLater(): void {
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      this.#thread.begin();
      this.sendBody();
    });
  }

  #sendPiece(part: Uint8Array): void {
    const { memory } = this.cluster.thread;
    const piece = part.subarray(this.#at, this.#at + PIECE);
    const offset = memory.scratch(piece.length);
    memory.bytes.set(piece, offset);
    this.#at += piece.length;
    this.#queuedBytes -= piece.length;
    this.#sentBytes += piece.length;
    if (this.#at === part.length) {
      this.#parts.shift();
      this.#at = 0;
    }
    const isLast = this.#parts.length === 0;
    this.#isBodySent = isLast && this.#isBodyComplete;
    this.#encoder!.data(offset, piece.length, this.#isBodySent);
    if (isLast && !this.isOver) this.bodyDrained();
  }

  #sendEnd(): void {
    this.#isBodySent = true;
    this.#encoder!.data(0, 0, true);
  }

  #finish(): void {
    const state = this.#state;
    this.#state = State.Finished;
    this.#encoder = undefined;
    this.cluster.thread.wheel.cancel(this.#timer);
    if (state === State.Finished) return;
    this.#retries?.tryEnded();
    if (state === State.Running) this.cluster.requestEnded(this.host);
  }
}

/** Returns a host for a call, or why none may be called; that is counted, and the call has ended. */
export function chooseHost(
  thread: UpstreamThread,
  cluster: Cluster | undefined,
  retries?: RetriedCall,
): ClusterHost | string {
  const host = pickHost(thread, cluster, retries);
  if (typeof host === 'string') retries?.settle();
  return host;
}

function pickHost(
  thread: UpstreamThread,
  cluster: Cluster | undefined,
  retries: RetriedCall | undefined,
): ClusterHost | string {
  if (cluster?.maintenance.isHit(thread.random)) {
    cluster.stats.increment(ClusterStats.at.upstream_rq_maintenance_mode);
    countUnanswered(cluster, undefined, 503);
    return 'the cluster is in maintenance mode';
  }
  if (cluster !== undefined && cluster.dropRatio > 0 && cluster.dropsRequest()) {
    countUnanswered(cluster, undefined, 503);
    return 'the request is dropped, as the load assignment of the cluster demands';
  }
  const host = cluster !== undefined && retries !== undefined ? retries.pickHost(cluster) : cluster?.pickHost();
  if (host !== undefined) return host;
  if (cluster !== undefined) countUnanswered(cluster, undefined, 503);
  return 'the cluster has no host';
}

/** Counts the local reply that a forwarded request would get. */
function countUnanswered({ responses }: Cluster, host: ClusterHost | undefined, status: number): void {
  responses.countResponse(status, true, host, host?.isCanary ?? false);
}

function onTimeout(call: OutgoingCall): void {
  call.timedOut();
}

function failureOf(reason: ResetReason, error: CodecError | undefined): CallFailure {
  switch (reason) {
    case ResetReason.ProtocolError:
      // A ping was not answered.
      if (error?.flags === ResponseFlag.DownstreamConnectionTermination) return CallFailure.ConnectionEnded;
      return CallFailure.Invalid;
    case ResetReason.RemoteReset:
      return CallFailure.StreamReset;
    case ResetReason.RefusedStream:
      return CallFailure.Refused;
    default:
      return CallFailure.ConnectionEnded;
  }
}

function noConnection(reason: PoolFailure): RetryReset {
  const isOverflow = reason === PoolFailure.Overflow || reason === PoolFailure.PendingOverflow;
  return isOverflow ? RetryReset.Overflow : RetryReset.ConnectFailure;
}

function poolFailureText(reason: PoolFailure, detail: string): string {
  if (reason === PoolFailure.Overflow || reason === PoolFailure.PendingOverflow)
    return "the cluster's circuit breaker is open";
  return detail || 'the connect timed out';
}
