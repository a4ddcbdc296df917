// The tries of one request. Usually there is one at a time. With hedging (HedgePolicy.hedge_on_per_try_timeout) a try that times out goes on
// beside the next one, and the first good response wins.

import type { ResetReason } from '../../../../http/codec/streams.js';
import type { ResponseStream } from '../../../../http/filters/filter.js';
import type { UpstreamThread } from '../../../../upstream/upstream-thread.js';
import type { RequestTimeouts } from './request-timeouts.js';
import { recordConnection } from './try-record.js';
import { type TryListener, UpstreamTry } from './upstream-try.js';

const NONE: readonly UpstreamTry[] = [];

export class Tries {
  /** The newest one, or the one whose response is passed on. */
  current: UpstreamTry;
  /** The others, which have timed out and wait for their response: the oldest first. */
  #others: UpstreamTry[] | undefined;
  /** Tries of this request that had a host. */
  attempts = 0;
  #idleMs = 0;
  #timeouts!: RequestTimeouts;
  readonly #stream: ResponseStream;
  readonly #thread: UpstreamThread;
  readonly #listener: TryListener;

  constructor(stream: ResponseStream, thread: UpstreamThread, listener: TryListener) {
    this.#stream = stream;
    this.#thread = thread;
    this.#listener = listener;
    this.current = new UpstreamTry(stream, thread, listener);
  }

  get others(): readonly UpstreamTry[] {
    return this.#others ?? NONE;
  }

  /** Begins a request. `idleMs`: a try ends after that time without progress; 0: none. */
  reset(timeouts: RequestTimeouts, idleMs: number): void {
    this.attempts = 0;
    this.#timeouts = timeouts;
    this.#idleMs = idleMs;
    this.current.reset(timeouts.perTryMs, idleMs, timeouts.streamMs);
  }

  /** Lets `current` go on beside a new one, which takes its place. */
  addAnother(): void {
    const { perTryMs, streamMs } = this.#timeouts;
    this.#others ??= [];
    this.#others.push(this.current);
    this.current.isRetried = true;
    this.current = new UpstreamTry(this.#stream, this.#thread, this.#listener);
    this.current.reset(perTryMs, this.#idleMs, streamMs);
  }

  /** Returns whether another try than `ended` may still get a response. */
  hasOther(ended: UpstreamTry): boolean {
    if (this.#others === undefined || this.#others.length === 0) return false;
    return this.#others.length > 1 || this.#others[0] !== ended || this.current.isActive;
  }

  /** Drops a try that has ended. The others go on. */
  drop(ended: UpstreamTry): void {
    const others = this.#others!;
    if (ended === this.current) this.current = others.pop()!;
    else others.splice(others.indexOf(ended), 1);
  }

  /** Ends all tries but `winner`, whose response is passed on. */
  settleOn(winner: UpstreamTry): void {
    const others = this.#others;
    if (others === undefined) return;
    this.#others = undefined;
    if (winner !== this.current) {
      others.splice(others.indexOf(winner), 1);
      others.push(this.current);
      this.current = winner;
    }
    // A later try may have been dropped.
    this.#recordAgain(winner);
    for (const loser of others) this.#end(loser);
  }

  /** Ends all tries but `current`. */
  endOthers(reason?: ResetReason): void {
    const others = this.#others;
    if (others === undefined) return;
    this.#others = undefined;
    for (const other of others) this.#end(other, reason);
  }

  #end(loser: UpstreamTry, reason?: ResetReason): void {
    loser.span?.abandoned(0, this.#thread.clock.monotonicMs);
    loser.abort(reason);
  }

  /** The request's record has the host and the connection of a later try. */
  #recordAgain(winner: UpstreamTry): void {
    const { info } = this.#stream;
    if (info.host !== winner.host || info.upstreamConnectionId !== winner.connection!.serial)
      info.returnToTry(winner.host, winner.connection!.serial);
    recordConnection(info, winner, winner.encoder!, winner.connection!);
  }
}
