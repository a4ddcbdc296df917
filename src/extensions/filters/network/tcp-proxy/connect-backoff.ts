// The delays between failed connects of one connection (backoff_options): random below a bound that doubles with each failure.

import { durationMs } from '../../../../common/time/duration.js';
import type { BackoffStrategy } from '../../../../config/generated/api.js';

export interface ConnectBackoff {
  readonly baseMs: number;
  readonly maxMs: number;
}

/** Returns undefined if the next connect begins at once. */
export function connectBackoff(config: BackoffStrategy | undefined): ConnectBackoff | undefined {
  if (config === undefined) return undefined;
  const baseMs = durationMs(config.base_interval!);
  return { baseMs, maxMs: config.max_interval === undefined ? 10 * baseMs : durationMs(config.max_interval) };
}

/** Returns the delay after `failures` (at least 1) in ms. `random`: in [0, 1). */
export function backoffDelayMs({ baseMs, maxMs }: ConnectBackoff, failures: number, random: number): number {
  return Math.floor(random * Math.min(baseMs * 2 ** Math.min(failures - 1, 32), maxMs));
}
