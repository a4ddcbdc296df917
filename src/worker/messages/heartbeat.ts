// Shows the primary that this worker's event loop is running.

import { monotonicMs } from '../../io/time/timer-driver.js';

/** Where and how often the time is recorded; plain data. */
export interface HeartbeatStart {
  /** A Float64 per worker: when its timer last fired, in ms of CLOCK_MONOTONIC; 0 before. */
  readonly beats: SharedArrayBuffer;
  readonly everyMs: number;
}

/** Starts the heartbeat of worker `index`. The timer is unreferenced. */
export function startHeartbeat({ beats, everyMs }: HeartbeatStart, index: number): NodeJS.Timeout {
  const words = new Float64Array(beats);
  const timer = setInterval(() => {
    words[index] = monotonicMs();
  }, everyMs);
  return timer.unref();
}
