// Computes the delay until the next check of a host, from its health, from pending health changes, and from whether the cluster
// has traffic. No I/O: randomness is an argument.

import type { Random } from '../../common/random.js';

/** Intervals in ms. */
export interface CheckIntervals {
  readonly interval: number;
  /** While the cluster has had no connection, when precise health is not needed. */
  readonly noTraffic: number;
  readonly noTrafficHealthy: number;
  readonly unhealthy: number;
  /** While a threshold is not yet reached. */
  readonly unhealthyEdge: number;
  readonly healthyEdge: number;
  /** Maximum random delay before the first check, and in addition to each later interval. */
  readonly initialJitter: number;
  readonly jitter: number;
  /** Percent of the interval; also added. */
  readonly jitterPercent: number;
}

/** Limits of an interval, whatever is configured. */
export interface IntervalBounds {
  readonly minMs: number;
  readonly maxMs: number;
}

/** The result of the last check. */
export interface LastCheck {
  readonly hasPassed: boolean;
  /** It counts towards a threshold that is not yet reached. */
  readonly isAtEdge: boolean;
  readonly hasTraffic: boolean;
}

/** Returns the delay until the next check in ms, at least 1. */
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

/** Returns the delay until the first check in ms; 0: at once. */
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
