// Wall-clock time with microseconds.

let offsetMs = performance.timeOrigin;

/** Returns milliseconds since the epoch, from the monotonic clock, which is readjusted when the wall clock was changed. */
export function wallClockMs(): number {
  const monotonicMs = performance.now();
  const wallMs = Date.now();
  if (Math.abs(offsetMs + monotonicMs - wallMs) > 2) offsetMs = wallMs - monotonicMs;
  return offsetMs + monotonicMs;
}
