// The time of a thread, read once in each turn: the native shim writes it before each batch, and timers refresh it when they fire.

import { ClockWord } from '../shim.js';

export class Clock {
  /** Shared with the shim, see ClockWord. */
  readonly words = new Float64Array(2);

  constructor() {
    this.refresh();
  }

  /** CLOCK_MONOTONIC in milliseconds at the beginning of this turn. */
  get monotonicMs(): number {
    return this.words[ClockWord.Monotonic]!;
  }

  /** Milliseconds since 1970 at the beginning of this turn. */
  get realtimeMs(): number {
    return this.words[ClockWord.Realtime]!;
  }

  /** Reads the clocks, for turns that the shim did not begin. */
  refresh(): void {
    const [seconds, nanoseconds] = process.hrtime();
    this.words[ClockWord.Monotonic] = seconds * 1000 + nanoseconds / 1e6;
    this.words[ClockWord.Realtime] = Date.now();
  }
}
