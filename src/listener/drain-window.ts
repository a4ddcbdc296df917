// Decides, without I/O, whether a response ends its connection while a listener drains.

import type { Random } from '../common/random.js';

/** gradual: a fraction of responses that grows with time; immediate: every response from the start. */
export type DrainStrategy = 'gradual' | 'immediate';

/** The time in which connections drain. */
export interface DrainWindow {
  /** Monotonic. */
  readonly startMs: number;
  readonly timeMs: number;
  readonly strategy: DrainStrategy;
}

/**
 * Returns whether the response that is sent at `nowMs` (monotonic) is the last on its connection. With gradual that has the
 * probability elapsed time / drain time, with the elapsed time rounded up to whole seconds; after the drain time it is always
 * true.
 */
export function closesConnection(window: DrainWindow, nowMs: number, random: Pick<Random, 'below'>): boolean {
  const { startMs, strategy, timeMs } = window;
  const remainingMs = startMs + timeMs - nowMs;
  if (strategy === 'immediate' || remainingMs <= 0) return true;
  const seconds = Math.ceil(timeMs / 1000);
  return seconds - Math.floor(remainingMs / 1000) > random.below(seconds);
}

/** Returns the window of a listener that ends first: a drain in progress is never relaxed. */
export function moreUrgent(one: DrainWindow | undefined, other: DrainWindow): DrainWindow {
  if (one === undefined) return other;
  if (one.strategy !== other.strategy) return one.strategy === 'immediate' ? one : other;
  return other.startMs + other.timeMs < one.startMs + one.timeMs ? other : one;
}
