// Whether a response ends its connection while a listener drains: a decision of values alone.

import type { Random } from '../common/random.js';

/** gradual: a share of responses that grows with time; immediate: every response, from the start. */
export type DrainStrategy = 'gradual' | 'immediate';

/** The time in which connections are asked to end. */
export interface DrainWindow {
  /** Monotonic. */
  readonly startMs: number;
  readonly timeMs: number;
  readonly strategy: DrainStrategy;
}

/**
 * Whether the response that is sent at `nowMs` (monotonic) is the last on its connection (FACTS §9). With gradual that is
 * so for elapsed / drain time of them, where the elapsed time is rounded up to whole seconds, and for all from the end on.
 */
export function closesConnection(window: DrainWindow, nowMs: number, random: Pick<Random, 'below'>): boolean {
  const { startMs, strategy, timeMs } = window;
  const remainingMs = startMs + timeMs - nowMs;
  if (strategy === 'immediate' || remainingMs <= 0) return true;
  const seconds = Math.ceil(timeMs / 1000);
  return seconds - Math.floor(remainingMs / 1000) > random.below(seconds);
}

/** Of two windows for one listener the one that is over first: what has been asked of connections is not taken back. */
export function moreUrgent(one: DrainWindow | undefined, other: DrainWindow): DrainWindow {
  if (one === undefined) return other;
  if (one.strategy !== other.strategy) return one.strategy === 'immediate' ? one : other;
  return other.startMs + other.timeMs < one.startMs + one.timeMs ? other : one;
}
