// Shows the primary that this worker's event loop turns.

import { monotonicMs } from '../../io/time/timer-driver.js';

/** Where and how often the time is noted; plain data. */
export interface HeartbeatStart {
  /** A Float64 a worker: when its timer last fired, in milliseconds of CLOCK_MONOTONIC; 0 before. */
  readonly beats: SharedArrayBuffer;
  readonly everyMs: number;
}

/** Begins for worker `index`; the timer keeps nothing alive. */
export function startHeartbeat({ beats, everyMs }: HeartbeatStart, index: number): NodeJS.Timeout {
  const words = new Float64Array(beats);
  const timer = setInterval(() => {
    words[index] = monotonicMs();
  }, everyMs);
  return timer.unref();
}
