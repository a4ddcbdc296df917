// How long until a host is checked again: by its health, by whether that is about to change, and by whether its cluster is
// used at all. No I/O: randomness comes in.

import type { Random } from '../../common/random.js';

/** In milliseconds. */
export interface CheckIntervals {
  readonly interval: number;
  /** While the cluster has had no connection: without one nobody needs to know exactly. */
  readonly noTraffic: number;
  readonly noTrafficHealthy: number;
  readonly unhealthy: number;
  /** While a threshold is not reached. */
  readonly unhealthyEdge: number;
  readonly healthyEdge: number;
  /** Up to which a random time is waited before the first check, and before each other one in addition. */
  readonly initialJitter: number;
  readonly jitter: number;
  /** Of the interval, in percent; also added. */
  readonly jitterPercent: number;
}

/** Between which an interval stays, whatever is configured. */
export interface IntervalBounds {
  readonly minMs: number;
  readonly maxMs: number;
}

/** What the last check was like. */
export interface LastCheck {
  readonly hasPassed: boolean;
  /** It counts towards a threshold that is not reached. */
  readonly isAtEdge: boolean;
  readonly hasTraffic: boolean;
}

/** In milliseconds, at least 1. */
export function nextCheckMs(
  intervals: CheckIntervals,
  last: LastCheck,
  bounds: IntervalBounds,
  random: Random,
): number {
  const baseMs = baseInterval(intervals, last);
  const shareMs = Math.floor((intervals.jitterPercent * baseMs) / 100);
  const ms = baseMs + randomBelow(shareMs, random) + randomBelow(intervals.jitter, random);
  return within(ms, bounds);
}

/** In milliseconds; 0: at once. */
export function firstCheckMs({ initialJitter }: CheckIntervals, bounds: IntervalBounds, random: Random): number {
  return initialJitter === 0 ? 0 : within(randomBelow(initialJitter, random), bounds);
}

function baseInterval(intervals: CheckIntervals, { hasPassed, hasTraffic, isAtEdge }: LastCheck): number {
  if (!hasTraffic) return hasPassed && !isAtEdge ? intervals.noTrafficHealthy : intervals.noTraffic;
  if (hasPassed) return isAtEdge ? intervals.healthyEdge : intervals.interval;
  return isAtEdge ? intervals.unhealthyEdge : intervals.unhealthy;
}

function randomBelow(bound: number, random: Random): number {
  return bound > 0 ? random.below(bound) : 0;
}

function within(ms: number, { maxMs, minMs }: IntervalBounds): number {
  return Math.max(1, minMs, Math.min(ms, maxMs));
}
