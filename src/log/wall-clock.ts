// Wall-clock time with microseconds.

let offsetMs = performance.timeOrigin;

/** Milliseconds since the epoch: the monotonic clock, which follows when the wall clock has been changed. */
export function wallClockMs(): number {
  const monotonicMs = performance.now();
  const wallMs = Date.now();
  if (Math.abs(offsetMs + monotonicMs - wallMs) > 2) offsetMs = wallMs - monotonicMs;
  return offsetMs + monotonicMs;
}
