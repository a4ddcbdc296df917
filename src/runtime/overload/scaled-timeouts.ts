// Timeouts that become shorter under overload (reduce_timeouts).

import type { TimeoutMinimum } from './overload-state.js';

/** Returns the timeout under a pressure from 0 to 1. 0 stays 0: there is none. */
export function scaled(ms: number, minimum: TimeoutMinimum | undefined, pressure: number): number {
  if (minimum === undefined || pressure === 0 || ms === 0) return ms;
  const least = 'ms' in minimum ? Math.min(ms, minimum.ms) : ms * minimum.scale;
  return Math.max(1, ms - (ms - least) * pressure);
}
