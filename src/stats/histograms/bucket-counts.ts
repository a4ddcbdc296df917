// A histogram's counts by upper bound, as /stats shows them.

import type { Distribution } from './distribution.js';
import type { HistogramValue } from './merged-histogram.js';

export interface BucketCounts {
  readonly interval: readonly number[];
  readonly cumulative: readonly number[];
}

/** Returns one count per bound: of all samples up to it, or with `disjoint` of those above the bound before. */
export function bucketCounts(
  value: HistogramValue,
  bounds: readonly number[],
  mode: 'cumulative' | 'disjoint',
): BucketCounts {
  const counts = (distribution: Distribution) => {
    const below = distribution.countsBelow(bounds);
    return mode === 'disjoint' ? differences(below) : below;
  };
  return { interval: counts(value.interval), cumulative: counts(value.cumulative) };
}

function differences(counts: readonly number[]): number[] {
  return counts.map((count, i) => count - (i === 0 ? 0 : counts[i - 1]!));
}
