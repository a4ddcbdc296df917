// A body that passes no faster than its token bucket allows. What has to wait is held here, and the sender is paused meanwhile.

import {
  DataStatus,
  HeldBytes,
  type StreamControl,
  Timer,
  type TokenBucket,
  type WorkerContext,
} from '../../../sdk.js';
import type { DirectionStats } from './stats.js';

/** Above this number of held bytes no more is read. */
const MAX_HELD_BYTES = 64 * 1024;

/** The part of a stream that concerns one direction. */
export interface Direction {
  pass(bytes: Uint8Array): void;
  continue(): void;
  pause(): void;
  resume(): void;
  /** Ends the message, whose bytes have no room. */
  onShortage(): void;
  /** Called when all bytes have passed, before the end of the message does. */
  onFinish(): void;
}

export class LimitedBody {
  /** How long the whole body took, and how much of that was waiting for tokens. */
  durationMs = 0;
  delayMs = 0;
  readonly #stream: StreamControl;
  readonly #context: WorkerContext;
  readonly #bucket: TokenBucket;
  readonly #fillMs: number;
  readonly #stats: DirectionStats;
  readonly #direction: Direction;
  readonly #held: HeldBytes;
  readonly #timer: Timer<LimitedBody>;
  #beganMs = -1;
  #isBlocked = false;
  /** The end of the message is held back. */
  #holdsEnd = false;
  #isOver = false;

  constructor(
    stream: StreamControl,
    context: WorkerContext,
    bucket: TokenBucket,
    fillMs: number,
    stats: DirectionStats,
    direction: Direction,
  ) {
    this.#stream = stream;
    this.#context = context;
    this.#bucket = bucket;
    this.#fillMs = fillMs;
    this.#stats = stats;
    this.#direction = direction;
    this.#held = new HeldBytes(context.memory);
    this.#timer = new Timer<LimitedBody>(this, onTimer);
  }

  /** Returns the status for a piece of the body. */
  write(offset: number, length: number, isLast: boolean): DataStatus {
    if (this.#beganMs < 0) this.#begin();
    this.#stats.incomingSize.set(length);
    this.#stats.incomingTotal.add(length);
    if (this.#held.isEmpty && !this.#timer.isScheduled && this.#take(length)) {
      this.#count(length, false);
      if (isLast) this.#finish();
      return DataStatus.Continue;
    }
    if (!this.#held.append(offset, length)) {
      this.destroy();
      this.#direction.onShortage();
      return DataStatus.StopNoBuffer;
    }
    if (isLast) this.#holdsEnd = true;
    if (this.#held.bytes > MAX_HELD_BYTES) this.#direction.pause();
    if (!this.#timer.isScheduled) this.#advance();
    return DataStatus.StopNoBuffer;
  }

  /** Called with trailers. Returns whether they must wait. */
  end(): boolean {
    if (this.#held.isEmpty) {
      this.#finish();
      return false;
    }
    this.#holdsEnd = true;
    return true;
  }

  blocked(): void {
    this.#isBlocked = true;
  }

  drained(): void {
    this.#isBlocked = false;
    if (!this.#held.isEmpty && !this.#timer.isScheduled) this.#advance();
  }

  destroy(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#context.timers.cancel(this.#timer);
    this.#held.clear();
    if (this.#beganMs >= 0) this.#stats.pending.decrement();
  }

  onTime(): void {
    this.#stream.run(() => {
      if (!this.#isOver) this.#advance();
    });
  }

  #begin(): void {
    this.#beganMs = this.#context.clock.monotonicMs;
    this.#stats.pending.increment();
  }

  #take(count: number): boolean {
    return count === 0 || this.#bucket.take(this.#context.clock.monotonicMs, count);
  }

  /** Passes as many held bytes as there are tokens; the rest waits for the next interval. */
  #advance(): void {
    if (this.#isBlocked) return;
    const count = Math.min(this.#held.bytes, this.#bucket.tokens(this.#context.clock.monotonicMs));
    const taken = this.#take(count) ? count : 0;
    if (taken > 0) this.#pass(taken);
    if (this.#isOver) return;
    this.#count(taken, !this.#held.isEmpty);
    if (this.#held.bytes <= MAX_HELD_BYTES / 2) this.#direction.resume();
    if (this.#isOver) return;
    // The sender may have delivered more bytes, and the end, when it was resumed.
    if (!this.#held.isEmpty) {
      if (!this.#timer.isScheduled) this.#context.timers.reschedule(this.#timer, this.#fillMs);
    } else if (this.#holdsEnd) {
      this.#finish();
      this.#direction.continue();
    }
  }

  #pass(count: number): void {
    const { bytes } = this.#context.memory;
    while (count > 0 && !this.#isOver) {
      const { end, start } = this.#held.front;
      const at = Math.min(end, start + count);
      count -= at - start;
      this.#held.consume(at);
      this.#direction.pass(bytes.subarray(start, at));
    }
  }

  #count(length: number, waits: boolean): void {
    this.#stats.allowedSize.set(length);
    this.#stats.allowedTotal.add(length);
    if (!waits) return;
    this.#stats.enforced.increment();
    this.delayMs += this.#fillMs;
  }

  #finish(): void {
    if (this.#isOver) return;
    if (this.#beganMs >= 0) {
      this.durationMs = Math.floor(this.#context.clock.monotonicMs - this.#beganMs);
      this.#stats.duration.record(this.durationMs);
    }
    this.destroy();
    this.#direction.onFinish();
  }
}

function onTimer(body: LimitedBody): void {
  body.onTime();
}
