// Renders a distribution as statsd samples. Servers compute the same counts and the same shape from them.
//
// Statsd has samples; Baton has counts per bin. Up to SAMPLES of an interval are sent as one line each, with the middle of their
// bin as value. If there are more, each bin gets its proportion of SAMPLES lines, at least one, with a sample rate (`|@0.01`)
// that restores its count. The distribution is then exact in servers that weight each line by 1 / rate. In servers that use the
// rate only for the count it is exact to within one line per bin.

import { type Distribution, lowerEdge, upperEdge, widthOf } from '../../sdk.js';

/** Maximum lines for a histogram's interval, plus one for each of its bins. */
export const SAMPLES = 100;

/** Calls `put` for each line with the value and the suffix after the type: '' or `|@rate`. */
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

/**
 * Returns the value that stands for a bin. Integers below 100 have their own bins; other bins are represented by their middle.
 */
function middleOf(bin: number): number {
  const lower = lowerEdge(bin);
  return widthOf(bin) <= 1 ? lower : (lower + upperEdge(bin)) / 2;
}

/** Returns the rate suffix for `weight`. A server that truncates 1 / rate to an integer still gets `weight`. */
function rateText(weight: number): string {
  if (weight === 1) return '';
  let rate = 1 / weight;
  while (1 / rate < weight) rate *= 1 - Number.EPSILON;
  return `|@${rate}`;
}
