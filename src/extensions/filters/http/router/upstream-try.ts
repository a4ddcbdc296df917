// A try of a request: its place in the line of a host's pool, then its stream with what limits the time of that, or the wait until the
// next try. It counts what host and cluster have to do with it, and knows nothing of the request but how far it is; what becomes of the
// request is its router's to decide. One object serves one try after another, of one request after another.

import { type CodecError, type RequestEncoder, ResetReason } from '../../../../http/codec/streams.js';
import type { ResponseStream } from '../../../../http/filters/filter.js';
import type { HeaderBlock } from '../../../../http/headers/header-block.js';
import { Timer } from '../../../../io/time/timing-wheel.js';
import { ClusterStats } from '../../../../stats/layouts/cluster.js';
import type { Cluster, ClusterHost } from '../../../../upstream/cluster.js';
import { countHostConnection, countNoConnection } from '../../../../upstream/connections/host-outcomes.js';
import type { HttpPool, PoolRequest } from '../../../../upstream/connections/http-pool.js';
import type { UpstreamConnection } from '../../../../upstream/connections/upstream-connection.js';
import type { PoolFailure } from '../../../../upstream/pool-failure.js';
import type { UpstreamThread } from '../../../../upstream/upstream-thread.js';
import { type TryTimeout, TryTimeouts } from './try-timeouts.js';

const enum State {
  None = 0,
  /** Waits in the pool's line. */
  Pending = 1,
  /** Has a connection: the request's bytes go straight to the host. */
  Running = 2,
  /** Waits before the next try. */
  Backoff = 3,
}

/** Bits for ResponseStream.pauseRequest(). */
export const enum Pause {
  /** There is no connection yet. */
  NoConnection = 1,
  /** The upstream connection takes no more. */
  Blocked = 2,
}

/** What a try tells its router. */
export interface TryListener {
  /** It has a connection, on which the request begins now. May be called from within UpstreamTry.wait(). */
  tryConnected(encoder: RequestEncoder, connection: UpstreamConnection): void;
  /** It gets none, and is over; `detail` as in PoolRequest. */
  tryUnconnected(reason: PoolFailure, detail: string): void;
  tryInformed(headers: HeaderBlock): void;
  tryResponded(headers: HeaderBlock, endStream: boolean): void;
  tryReceived(offset: number, length: number, endStream: boolean): void;
  tryEnded(trailers: HeaderBlock): void;
  /** Its stream was reset, and it is over. */
  tryReset(reason: ResetReason): void;
  /** It goes on until the router aborts it. Nothing is thrown. */
  tryTimedOut(timeout: TryTimeout): void;
  /** It is time for the next one. Nothing is thrown. */
  nextTry(): void;
}

export class UpstreamTry implements PoolRequest {
  pendingPrev: PoolRequest | undefined = undefined;
  pendingNext: PoolRequest | undefined = undefined;
  /** Of this try, or of the last one. */
  host: ClusterHost | undefined = undefined;
  /** When it got its connection. */
  startMs = 0;
  #attempts = 0;
  #isSent = false;
  readonly #stream: ResponseStream;
  readonly #thread: UpstreamThread;
  readonly #listener: TryListener;
  #state: State = State.None;
  #cluster!: Cluster;
  #pool: HttpPool | undefined;
  #encoder: RequestEncoder | undefined;
  /** Made by the first request that has such a time. */
  #timeouts: TryTimeouts | undefined;
  /** Made by the first request that has another try. */
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

  /** The next one is waited for. */
  get isBackingOff(): boolean {
    return this.#state === State.Backoff;
  }

  /** How many the request has had, with this one. */
  get attempts(): number {
    return this.#attempts;
  }

  /** It has had a connection: the host may have something of the request. */
  get isSent(): boolean {
    return this.#isSent;
  }

  /** While it is running. */
  get encoder(): RequestEncoder | undefined {
    return this.#encoder;
  }

  /** A request begins, each of whose tries may take so long; 0: for ever. */
  reset(responseMs: number, idleMs: number, streamMs: number): void {
    this.#attempts = 0;
    this.#isSent = false;
    this.host = undefined;
    if (responseMs > 0 || idleMs > 0 || streamMs > 0) {
      this.#timeouts ??= new TryTimeouts(this.#thread.wheel, (timeout) => this.#listener.tryTimedOut(timeout));
    }
    this.#timeouts?.set(responseMs, idleMs, streamMs);
  }

  // ── From one to the next ─────────────────────────────────────────────────────────────────────────────────────────

  /** A try on `host`. */
  begin(cluster: Cluster, host: ClusterHost): void {
    this.#cluster = cluster;
    this.host = host;
    this.#isSent = false;
    this.#attempts++;
  }

  /** Asks the pool for a connection, which it may get within this call. */
  wait(pool: HttpPool): void {
    this.#pool = pool;
    this.#state = State.Pending;
    pool.start(this);
  }

  onPoolReady(encoder: RequestEncoder, connection: UpstreamConnection): void {
    this.#state = State.Running;
    this.#isSent = true;
    this.#encoder = encoder;
    this.startMs = this.#thread.clock.monotonicMs;
    this.#cluster.requestBegan(this.host!);
    countHostConnection(this.host!);
    this.#timeouts?.begin();
    this.#listener.tryConnected(encoder, connection);
  }

  onPoolFailure(reason: PoolFailure, detail: string): void {
    this.#state = State.None;
    this.#pool = undefined;
    countNoConnection(this.host!, reason);
    this.#listener.tryUnconnected(reason, detail);
  }

  /** It has nothing more to do with its host. */
  end(): void {
    if (this.#state !== State.Running) return;
    this.#state = State.None;
    this.#encoder = undefined;
    this.#pool = undefined;
    this.#timeouts?.stop();
    this.#cluster.requestEnded(this.host!);
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

  /** Gives up what it has: its place in the line, its connection, or the next try. */
  abort(): void {
    const state = this.#state;
    if (state === State.Pending) {
      this.#state = State.None;
      this.#pool!.cancel(this);
    } else if (state === State.Running) {
      const encoder = this.#encoder!;
      this.#cluster.stats.increment(ClusterStats.at.upstream_rq_tx_reset);
      this.end();
      encoder.reset(ResetReason.LocalReset);
    } else if (state === State.Backoff) {
      this.#state = State.None;
      this.#thread.wheel.cancel(this.#backOffTimer!);
    }
  }

  // ── While it is running ──────────────────────────────────────────────────────────────────────────────────────────

  /** The request is complete: from now on the host is waited for. */
  requestCompleted(hasResponse: boolean): void {
    if (this.#state === State.Running) this.#timeouts?.start(hasResponse);
  }

  /** The answer to a request that upgrades is waited for before the request is complete. */
  awaitResponse(): void {
    this.#timeouts?.awaitResponse();
  }

  /** The response is here, though the request may still be under way. */
  responseCompleted(): void {
    this.#timeouts?.stop();
  }

  pauseResponse(): void {
    if (this.#state !== State.Running) return;
    this.#cluster.stats.increment(ClusterStats.at.upstream_flow_control_paused_reading_total);
    this.#encoder!.pauseReading();
  }

  resumeResponse(): void {
    if (this.#state !== State.Running) return;
    this.#cluster.stats.increment(ClusterStats.at.upstream_flow_control_resumed_reading_total);
    this.#encoder!.resumeReading();
  }

  // ── From the host ────────────────────────────────────────────────────────────────────────────────────────────────

  onInformational(headers: HeaderBlock): void {
    this.#timeouts?.progressed();
    this.#listener.tryInformed(headers);
  }

  onHeaders(headers: HeaderBlock, endStream: boolean): void {
    this.#timeouts?.responseBegan();
    this.#listener.tryResponded(headers, endStream);
  }

  onData(offset: number, length: number, endStream: boolean): void {
    this.#timeouts?.progressed();
    this.#listener.tryReceived(offset, length, endStream);
  }

  onTrailers(trailers: HeaderBlock): void {
    this.#listener.tryEnded(trailers);
  }

  onReset(reason: ResetReason, _error: CodecError | undefined): void {
    this.#cluster.stats.increment(ClusterStats.at.upstream_rq_rx_reset);
    this.end();
    this.#listener.tryReset(reason);
  }

  /** The host takes less of the request than comes. */
  onWriteBlocked(): void {
    this.#stream.pauseRequest(Pause.Blocked);
    this.#cluster.stats.increment(ClusterStats.at.upstream_flow_control_backed_up_total);
  }

  onWriteDrained(): void {
    this.#stream.resumeRequest(Pause.Blocked);
    this.#cluster.stats.increment(ClusterStats.at.upstream_flow_control_drained_total);
  }
}

function onBackOffTimer(current: UpstreamTry): void {
  current.backOffTimer();
}
