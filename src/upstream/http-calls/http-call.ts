// One HTTP/1.1 request that Baton itself sends to a host of a cluster, and its response. Pools, load balancing, timeouts, circuit
// breakers and stats are those of the cluster, as for forwarded requests.

import { Priority } from '../../common/priority.js';
import { headerKey } from '../../common/text/header-names.js';
import { type CodecError, type RequestEncoder, ResetReason } from '../../http/codec/streams.js';
import { type HeaderBlock, headerBlocks } from '../../http/headers/header-block.js';
import { Timer } from '../../io/time/timing-wheel.js';
import { ClusterStats } from '../../stats/layouts/cluster.js';
import type { CallingThread } from '../calling-thread.js';
import type { Cluster, ClusterHost } from '../cluster.js';
import {
  countHostConnection,
  countHostReset,
  countHostResponse,
  countHostTimeout,
  countNoConnection,
} from '../connections/host-outcomes.js';
import type { HttpPool, PoolRequest } from '../connections/http-pool.js';
import { PoolFailure } from '../pool-failure.js';
import { isCanaryResponse } from '../response-stats.js';

/** Piece size of the body, and pieces per turn: onWriteBlocked() comes in a later turn, so one turn must not send everything. */
const PIECE = 16 * 1024;
const PIECES_PER_TURN = 8;
/** A longer response is rejected. */
const MAX_ANSWER_BYTES = 64 * 1024;

export interface HttpCallRequest {
  /** Writes method, path and fields, including host, when there is a connection. The call adds content-length. */
  writeHead(head: HeaderBlock): void;
  /** Pieces of the body, none of them empty; no piece: no body. */
  readonly body: readonly Uint8Array[];
  /** From the start of the call to the end of the response. */
  readonly timeoutMs: number;
}

export interface HttpCallAnswer {
  readonly status: number;
  /** Empty when there is none. */
  readonly contentType: string;
  readonly body: Buffer;
}

/** onAnswer() or onFailure() is called exactly once, perhaps before HttpCall.start() returns, but never after cancel(). */
export interface HttpCallEvents {
  /** Called when the response head has arrived. It is valid until this returns. */
  onHead?(headers: HeaderBlock): void;
  onAnswer(answer: HttpCallAnswer): void;
  /** Called when there is no complete response; `reason` is for the log. */
  onFailure(reason: string): void;
}

const enum State {
  Pending = 0,
  Running = 1,
  Finished = 2,
}

export class HttpCall implements PoolRequest {
  pendingPrev: PoolRequest | undefined = undefined;
  pendingNext: PoolRequest | undefined = undefined;
  readonly #thread: CallingThread;
  readonly #cluster: Cluster;
  readonly #host: ClusterHost;
  readonly #pool: HttpPool;
  readonly #request: HttpCallRequest;
  readonly #events: HttpCallEvents;
  readonly #timer = new Timer<HttpCall>(this, onTimeout);
  readonly #startMs: number;
  #encoder: RequestEncoder | undefined;
  #state: State = State.Pending;
  #isBlocked = false;
  /** The rest of the body will be sent in a later turn. */
  #isScheduled = false;
  /** Position of the next piece in the body. */
  #chunk = 0;
  #at = 0;
  #status = 0;
  /** The response is a canary's. */
  #isCanary = false;
  #contentType = '';
  readonly #answer: Buffer[] = [];
  #answerBytes = 0;

  /**
   * Begins a call to a host of the cluster. Returns undefined, after onFailure(), when no host may be called. Throws what
   * writeHead() throws if that is called at once, and what HttpPool.start() throws: then the call has ended without an event.
   */
  static start(
    caller: CallingThread,
    cluster: Cluster | undefined,
    request: HttpCallRequest,
    events: HttpCallEvents,
  ): HttpCall | undefined {
    const thread = caller.begin();
    if (cluster?.maintenance.isHit(thread.random)) {
      cluster.stats.increment(ClusterStats.at.upstream_rq_maintenance_mode);
      countUnanswered(cluster, undefined, 503);
      events.onFailure('the cluster is in maintenance mode');
      return undefined;
    }
    const host = cluster?.pickHost();
    if (cluster === undefined || host === undefined) {
      if (cluster !== undefined) countUnanswered(cluster, undefined, 503);
      events.onFailure('the cluster has no host');
      return undefined;
    }
    const call = new HttpCall(caller, cluster, host, request, events);
    try {
      call.#start();
    } catch (error) {
      // The caller gets no call to cancel: without this it would stay in the pool's queue, or its connection would wait for the
      // rest of the request.
      if (call.#state !== State.Finished) call.#abort();
      throw error;
    }
    return call;
  }

  private constructor(
    thread: CallingThread,
    cluster: Cluster,
    host: ClusterHost,
    request: HttpCallRequest,
    events: HttpCallEvents,
  ) {
    this.#thread = thread;
    this.#cluster = cluster;
    this.#host = host;
    this.#pool = cluster.pool(host, Priority.Default);
    this.#request = request;
    this.#events = events;
    this.#startMs = cluster.thread.clock.monotonicMs;
  }

  /** Aborts the call; no event follows. */
  cancel(): void {
    this.#thread.begin();
    this.#abort();
  }

  /** Called when no response came in time. */
  timedOut(): void {
    if (this.#state === State.Finished) return;
    this.#cluster.stats.increment(ClusterStats.at.upstream_rq_timeout);
    if (this.#state === State.Running) countHostTimeout(this.#host, this.#status !== 0);
    if (this.#status === 0) countUnanswered(this.#cluster, this.#host, 504);
    this.#abort();
    this.#events.onFailure('it does not answer in time');
  }

  // ── The pool ─────────────────────────────────────────────────────────────────────────────────────────────────────

  onPoolReady(encoder: RequestEncoder): void {
    this.#state = State.Running;
    this.#encoder = encoder;
    countHostConnection(this.#host);
    this.#cluster.requestBegan(this.#host);
    this.#sendHead(encoder);
    this.#sendBody();
  }

  onPoolFailure(reason: PoolFailure, detail: string): void {
    countNoConnection(this.#host, reason);
    countUnanswered(this.#cluster, this.#host, 503);
    this.#finish();
    this.#events.onFailure(poolFailureText(reason, detail));
  }

  // ── The response ─────────────────────────────────────────────────────────────────────────────────────────────────

  onInformational(): void {}

  onHeaders(headers: HeaderBlock, endStream: boolean): void {
    const { status } = headers;
    this.#status = status;
    this.#contentType = headers.get(CONTENT_TYPE) ?? '';
    countHostResponse(this.#host, headers);
    if (this.#cluster.spec.isHealthChecked) this.#cluster.observeHealthHeader(this.#host, headers);
    this.#isCanary = isCanaryResponse(headers, this.#host);
    this.#cluster.responses.countResponse(status, true, this.#host, this.#isCanary);
    this.#events.onHead?.(headers);
    // onHead() may have cancelled the call.
    if (endStream && this.#state !== State.Finished) this.#complete();
  }

  onData(offset: number, length: number, endStream: boolean): void {
    this.#answerBytes += length;
    if (this.#answerBytes > MAX_ANSWER_BYTES) {
      this.#abort();
      return this.#events.onFailure(`its answer is longer than ${MAX_ANSWER_BYTES} bytes`);
    }
    if (length > 0) {
      this.#answer.push(Buffer.from(this.#cluster.thread.memory.bytes.subarray(offset, offset + length)));
    }
    if (endStream) this.#complete();
  }

  onTrailers(): void {
    this.#complete();
  }

  onReset(reason: ResetReason, error: CodecError | undefined): void {
    // An event has thrown, which ends the connection.
    if (this.#state === State.Finished) return;
    const isProtocolError = reason === ResetReason.ProtocolError;
    countHostReset(this.#host, this.#status !== 0);
    if (this.#status === 0) countUnanswered(this.#cluster, this.#host, isProtocolError ? 502 : 503);
    this.#finish();
    this.#events.onFailure(resetText(isProtocolError, error));
  }

  onWriteBlocked(): void {
    this.#isBlocked = true;
    this.#cluster.stats.increment(ClusterStats.at.upstream_flow_control_backed_up_total);
  }

  onWriteDrained(): void {
    this.#isBlocked = false;
    this.#cluster.stats.increment(ClusterStats.at.upstream_flow_control_drained_total);
    this.#sendBody();
  }

  // ── Inside ───────────────────────────────────────────────────────────────────────────────────────────────────────

  #start(): void {
    this.#cluster.thread.wheel.schedule(this.#timer, this.#request.timeoutMs);
    this.#pool.start(this);
  }

  #sendHead(encoder: RequestEncoder): void {
    const head = headerBlocks(this.#cluster.thread.memory).take();
    try {
      this.#request.writeHead(head);
      if (head.methodEnd === head.methodStart || head.pathEnd === head.pathStart)
        throw new Error('writeHead() of a call has set no method or no path: setMethod(), setPath()');
      const length = this.#request.body.reduce((sum, chunk) => sum + chunk.length, 0);
      head.set(CONTENT_LENGTH, String(length));
      encoder.headers(head, length === 0);
    } finally {
      head.drop();
    }
  }

  #sendBody(): void {
    const { body } = this.#request;
    if (this.#isScheduled) return;
    for (let sent = 0; this.#state === State.Running && !this.#isBlocked && this.#chunk < body.length; sent++) {
      if (sent === PIECES_PER_TURN) return this.#sendBodyLater();
      this.#sendPiece(body[this.#chunk]!, this.#chunk === body.length - 1);
    }
  }

  #sendBodyLater(): void {
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      this.#thread.begin();
      this.#sendBody();
    });
  }

  #sendPiece(chunk: Uint8Array, isLastChunk: boolean): void {
    const { memory } = this.#cluster.thread;
    const piece = chunk.subarray(this.#at, this.#at + PIECE);
    const offset = memory.scratch(piece.length);
    memory.bytes.set(piece, offset);
    this.#at += piece.length;
    const endsChunk = this.#at === chunk.length;
    if (endsChunk) {
      this.#chunk++;
      this.#at = 0;
    }
    this.#encoder!.data(offset, piece.length, isLastChunk && endsChunk);
  }

  #complete(): void {
    const durationMs = Math.floor(this.#cluster.thread.clock.monotonicMs - this.#startMs);
    this.#cluster.responses.recordTime(durationMs, true, this.#host, this.#isCanary);
    // A host may respond before it has the whole body, the rest of which is then useless.
    if (this.#chunk < this.#request.body.length) this.#abort();
    else this.#finish();
    const answer = { status: this.#status, contentType: this.#contentType, body: Buffer.concat(this.#answer) };
    this.#events.onAnswer(answer);
  }

  #abort(): void {
    const state = this.#state;
    const encoder = this.#encoder;
    this.#finish();
    if (state === State.Pending) return this.#pool.cancel(this);
    if (state === State.Finished) return;
    encoder!.reset(ResetReason.LocalReset);
  }

  #finish(): void {
    const state = this.#state;
    this.#state = State.Finished;
    this.#encoder = undefined;
    this.#cluster.thread.wheel.cancel(this.#timer);
    if (state === State.Running) this.#cluster.requestEnded(this.#host);
  }
}

/** Counts the local reply that a forwarded request would get. */
function countUnanswered({ responses }: Cluster, host: ClusterHost | undefined, status: number): void {
  responses.countResponse(status, true, host, host?.isCanary ?? false);
}

function onTimeout(call: HttpCall): void {
  call.timedOut();
}

function resetText(isProtocolError: boolean, error: CodecError | undefined): string {
  if (!isProtocolError) return 'it has closed the connection without an answer';
  return error === undefined
    ? 'it has closed the connection amid its answer'
    : `its answer is no HTTP/1.1 (${error.detail})`;
}

function poolFailureText(reason: PoolFailure, detail: string): string {
  if (reason === PoolFailure.Overflow || reason === PoolFailure.PendingOverflow)
    return "the cluster's circuit breaker is open";
  return detail || 'the connect timed out';
}

const CONTENT_LENGTH = headerKey('content-length');
const CONTENT_TYPE = headerKey('content-type');
