// A try of a request: first queued in a host's pool, then a stream with its timeouts, then the backoff before a retry. It updates
// the counts of the host and the cluster. It does not buffer the request for further tries: the router does. One object serves all
// tries of all requests of a router, except tries that overlap: see Tries.

import { Protocol } from '../../../../access-log/stream/stream-info.js';
import { type CodecError, type RequestEncoder, ResetReason } from '../../../../http/codec/streams.js';
import type { ResponseStream } from '../../../../http/filters/filter.js';
import type { HeaderBlock } from '../../../../http/headers/header-block.js';
import { Timer } from '../../../../io/time/timing-wheel.js';
import type { CounterSlot } from '../../../../stats/layout.js';
import { ClusterStats } from '../../../../stats/layouts/cluster.js';
import type { Cluster, ClusterHost } from '../../../../upstream/cluster.js';
import type { HostConnection } from '../../../../upstream/connections/host-connection.js';
import { countHostConnection, countNoConnection } from '../../../../upstream/connections/host-outcomes.js';
import type { PoolRequest, RequestPool } from '../../../../upstream/connections/http-pool.js';
import type { PoolFailure } from '../../../../upstream/pool-failure.js';
import type { UpstreamThread } from '../../../../upstream/upstream-thread.js';
import type { TryMeasurement } from './try-measurement.js';
import type { TrySpan } from './try-span.js';
import { type TryTimeout, TryTimeouts } from './try-timeouts.js';

const enum State {
  None = 0,
  /** Queued in the pool. */
  Pending = 1,
  /** Has a connection: bytes of the request are sent directly. */
  Running = 2,
  /** Waiting before the next try. */
  Backoff = 3,
}

/** Bits for ResponseStream.pauseRequest(). */
export const enum Pause {
  /** There is no connection yet. */
  NoConnection = 1,
  /** The send queue of the upstream connection is above its high watermark. */
  Blocked = 2,
  /** Upstream HTTP filters wait for something. */
  Filters = 4,
  /** An upstream HTTP filter passes on what it held. */
  Release = 8,
}

/** The callbacks of a try, `current`, to its router. */
export interface TryListener {
  /** Called when the try has a connection, on which the request begins now. May be called within UpstreamTry.wait(). */
  tryConnected(current: UpstreamTry, encoder: RequestEncoder, connection: HostConnection): void;
  /** Called when the try gets no connection, and has ended. `detail`: see PoolRequest. */
  tryUnconnected(current: UpstreamTry, reason: PoolFailure, detail: string): void;
  /** Called for a 1xx response. */
  tryInformed(current: UpstreamTry, headers: HeaderBlock): void;
  /** Called for the response's head. */
  tryResponded(current: UpstreamTry, headers: HeaderBlock, endStream: boolean): void;
  /** Called for body and trailers of the response whose head was accepted. */
  tryReceived(offset: number, length: number, endStream: boolean): void;
  tryEnded(trailers: HeaderBlock): void;
  /** Called when the stream was reset. The try has ended. */
  tryReset(current: UpstreamTry, reason: ResetReason): void;
  /** Called when a timeout fired. The try continues until the router aborts it. Must not throw. */
  tryTimedOut(current: UpstreamTry, timeout: TryTimeout): void;
  /** Called when the backoff is over. Must not throw. */
  nextTry(): void;
}

export class UpstreamTry implements PoolRequest {
  pendingPrev: PoolRequest | undefined = undefined;
  pendingNext: PoolRequest | undefined = undefined;
  /** The host of this try or of the previous one. */
  host: ClusterHost | undefined = undefined;
  /** When the try got its connection. */
  startMs = 0;
  /** The span of the try, if its request is traced. */
  span: TrySpan | undefined = undefined;
  /** Another try has begun because this one has timed out: it causes no further one. */
  isRetried = false;
  /** A timeout is recorded for outlier detection; the try went on. */
  isSlow = false;
  /** Defined while running. */
  connection: HostConnection | undefined = undefined;
  #isSent = false;
  readonly #stream: ResponseStream;
  readonly #thread: UpstreamThread;
  readonly #listener: TryListener;
  #state: State = State.None;
  #cluster!: Cluster;
  #pool: RequestPool | undefined;
  #encoder: RequestEncoder | undefined;
  /** Undefined: the cluster does not track its requests. */
  #measurement: TryMeasurement | undefined;
  /** Created by the first request that has a timeout per try. */
  #timeouts: TryTimeouts | undefined;
  /** Created by the first retry. */
  #backOffTimer: Timer<UpstreamTry> | undefined;

  constructor(stream: ResponseStream, thread: UpstreamThread, listener: TryListener) {
    this.#stream = stream;
    this.#thread = thread;
    this.#listener = listener;
  }

  get isPending(): boolean {
    return this.#state === State.Pending;
  }

  get isRunning(): boolean {
    return this.#state === State.Running;
  }

  /** Waiting before the next try. */
  get isBackingOff(): boolean {
    return this.#state === State.Backoff;
  }

  /** The try may still get a response, or begin. */
  get isActive(): boolean {
    return this.#state !== State.None;
  }

  /** The try has had a connection: the host may have received a part of the request. */
  get isSent(): boolean {
    return this.#isSent;
  }

  /** Defined while running. */
  get encoder(): RequestEncoder | undefined {
    return this.#encoder;
  }

  /** Begins a request. The timeouts apply to each try; 0: none. */
  reset(responseMs: number, idleMs: number, streamMs: number): void {
    this.#isSent = false;
    this.isRetried = this.isSlow = false;
    this.host = undefined;
    if (responseMs > 0 || idleMs > 0 || streamMs > 0) {
      this.#timeouts ??= new TryTimeouts(this.#thread.wheel, (timeout) => this.#listener.tryTimedOut(this, timeout));
    }
    this.#timeouts?.set(responseMs, idleMs, streamMs);
  }

  /** Reads whether a response marks its host as failed. The host's cluster is not the route's if that is an aggregate. */
  observeHealthHeader(headers: HeaderBlock): void {
    if (this.#cluster.spec.isHealthChecked) this.#cluster.observeHealthHeader(this.host!, headers);
  }

  // ── From try to try ──────────────────────────────────────────────────────────────────────────────────────────────

  /** Begins a try on `host`. */
  begin(cluster: Cluster, host: ClusterHost): void {
    this.#cluster = cluster;
    this.host = host;
    this.#isSent = this.isSlow = false;
  }

  /** Measures this try. */
  measure(measurement: TryMeasurement): void {
    this.#measurement = measurement;
  }

  /** Called when the timeout of the whole request fires. */
  wholeTimeout(): void {
    this.#measurement?.wholeTimeout();
  }

  #endMeasurement(): void {
    this.#measurement?.end(this.#thread.clock.monotonicMs);
    this.#measurement = undefined;
  }

  /** Requests a connection from the pool. It may be assigned within this call. */
  wait(pool: RequestPool): void {
    this.#pool = pool;
    this.#state = State.Pending;
    pool.start(this);
  }

  onPoolReady(encoder: RequestEncoder, connection: HostConnection): void {
    this.#state = State.Running;
    this.#isSent = true;
    this.#encoder = encoder;
    this.connection = connection;
    this.startMs = this.#thread.clock.monotonicMs;
    if (!this.#pool!.countsItself) {
      this.#cluster.requestBegan(this.host!);
      countHostConnection(this.host!);
    }
    this.#timeouts?.begin();
    this.#listener.tryConnected(this, encoder, connection);
  }

  onPoolFailure(reason: PoolFailure, detail: string): void {
    this.#state = State.None;
    if (!this.#pool!.countsItself) countNoConnection(this.host!, reason);
    this.#pool = undefined;
    this.#endMeasurement();
    this.#listener.tryUnconnected(this, reason, detail);
  }

  /** Detaches a running try from its host; no-op in other states. */
  end(): void {
    if (this.#state !== State.Running) return;
    this.#state = State.None;
    const { bytes } = this.#encoder!;
    this.#encoder = undefined;
    this.connection = undefined;
    if (!this.#pool!.countsItself) this.#cluster.requestEnded(this.host!);
    this.#pool = undefined;
    this.#timeouts?.stop();
    this.#endMeasurement();
    this.#stream.info.tryEnded(bytes);
    this.#stream.resumeRequest(Pause.Blocked);
  }

  backOff(delayMs: number): void {
    this.#state = State.Backoff;
    this.#backOffTimer ??= new Timer<UpstreamTry>(this, onBackOffTimer);
    this.#thread.wheel.reschedule(this.#backOffTimer, delayMs);
  }

  backOffTimer(): void {
    this.#state = State.None;
    this.#listener.nextTry();
  }

  /** Abandons the try in any state: leaves the pool's queue, resets the stream, or cancels the backoff. */
  abort(reason = ResetReason.LocalReset): void {
    const state = this.#state;
    if (state === State.Pending) {
      this.#state = State.None;
      this.#pool!.cancel(this);
      this.#endMeasurement();
    } else if (state === State.Running) {
      const encoder = this.#encoder!;
      // HTTP/1 has no stream reset: its connection is closed instead.
      if (encoder.protocol >= Protocol.Http2) this.#cluster.stats.increment(ClusterStats.at.upstream_rq_tx_reset);
      this.end();
      encoder.reset(reason);
    } else if (state === State.Backoff) {
      this.#state = State.None;
      this.#thread.wheel.cancel(this.#backOffTimer!);
    }
  }

  // ── While running ────────────────────────────────────────────────────────────────────────────────────────────────

  /** Called when the request is complete: the host's timeouts begin. */
  requestCompleted(hasResponse: boolean): void {
    if (this.#state === State.Running) this.#timeouts?.start(hasResponse);
  }

  /** Starts the response timeout of an upgrade request, which is not complete before its response. */
  awaitResponse(): void {
    this.#timeouts?.awaitResponse();
  }

  /** Called when the response is complete; the request may still be in progress. */
  responseCompleted(): void {
    this.#timeouts?.stop();
  }

  /** Called before a part of the body is sent. */
  bodySent(length: number): void {
    this.#measurement?.bodySent(length);
  }

  pauseResponse(): void {
    if (this.#state !== State.Running) return;
    this.#countFlow(ClusterStats.at.upstream_flow_control_paused_reading_total);
    this.#encoder!.pauseReading();
  }

  resumeResponse(): void {
    if (this.#state !== State.Running) return;
    this.#countFlow(ClusterStats.at.upstream_flow_control_resumed_reading_total);
    this.#encoder!.resumeReading();
  }

  // ── From the host ────────────────────────────────────────────────────────────────────────────────────────────────

  onInformational(headers: HeaderBlock): void {
    this.#timeouts?.progressed();
    this.#measurement?.responded(headers);
    this.#listener.tryInformed(this, headers);
  }

  onHeaders(headers: HeaderBlock, endStream: boolean): void {
    this.#timeouts?.responseBegan();
    this.#measurement?.responded(headers);
    this.#listener.tryResponded(this, headers, endStream);
  }

  onData(offset: number, length: number, endStream: boolean): void {
    this.#timeouts?.progressed();
    this.#measurement?.bodyReceived(length);
    this.#listener.tryReceived(offset, length, endStream);
  }

  onTrailers(trailers: HeaderBlock): void {
    this.#listener.tryEnded(trailers);
  }

  onReset(reason: ResetReason, _error: CodecError | undefined): void {
    if (isResetByHost(reason)) this.#cluster.stats.increment(ClusterStats.at.upstream_rq_rx_reset);
    this.end();
    this.#listener.tryReset(this, reason);
  }

  /** Called when the send queue to the host rises above its high watermark. */
  onWriteBlocked(): void {
    this.#stream.pauseRequest(Pause.Blocked);
    this.#countFlow(ClusterStats.at.upstream_flow_control_backed_up_total);
  }

  onWriteDrained(): void {
    this.#stream.resumeRequest(Pause.Blocked);
    this.#countFlow(ClusterStats.at.upstream_flow_control_drained_total);
  }

  #countFlow(counter: CounterSlot): void {
    if (this.#pool?.countsItself !== true) this.#cluster.stats.increment(counter);
  }
}

function isResetByHost(reason: ResetReason): boolean {
  return (
    reason === ResetReason.RemoteReset || reason === ResetReason.RefusedStream || reason === ResetReason.ConnectError
  );
}

function onBackOffTimer(current: UpstreamTry): void {
  current.backOffTimer();
}
