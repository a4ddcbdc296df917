// A distribution as statsd samples: every server reads the same counts from them, and the same shape.
//
// Statsd has samples, Baton has counts by bin. Up to SAMPLES of an interval go out as what they are, one line each, at the
// middle of their bin. Of more, each bin gets its part of SAMPLES lines, at least one, with a sample rate (`|@0.01`) that
// makes its count whole again: the distribution stays right in servers that count a line as often as its rate says, and,
// to within a line, in those that use the rate for the count alone.

import { type Distribution, lowerEdge, upperEdge, widthOf } from '../../sdk.js';

/** Lines that a histogram's interval takes at most, beside one for each of its bins. */
export const SAMPLES = 100;

/** Calls `put` for each line: the value and what stands behind the type, '' or `|@rate`. */
export function eachSample(distribution: Distribution, put: (value: number, rate: string) => void): void {
  const { bins, counts } = distribution;
  const total = distribution.count();
  for (let i = 0; i < bins.length; i++) {
    const count = counts[i]!;
    if (count === 0) continue;
    const value = middleOf(bins[i]!);
    const lines = total <= SAMPLES ? count : Math.max(1, Math.floor((count / total) * SAMPLES));
    const weight = Math.floor(count / lines);
    const heavier = count - weight * lines;
    for (let line = 0; line < lines; line++) put(value, rateText(line < heavier ? weight + 1 : weight));
  }
}

/** Whole numbers below 100 have bins of their own; others are taken as the middle of theirs. */
function middleOf(bin: number): number {
  const lower = lowerEdge(bin);
  return widthOf(bin) <= 1 ? lower : (lower + upperEdge(bin)) / 2;
}

/** A rate of which even a server that cuts 1 / rate to a whole number makes `weight` again. */
function rateText(weight: number): string {
  if (weight === 1) return '';
  let rate = 1 / weight;
  while (1 / rate < weight) rate *= 1 - Number.EPSILON;
  return `|@${rate}`;
}
