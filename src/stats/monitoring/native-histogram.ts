// Native histograms: sparse buckets whose bounds grow by a constant factor, 2^(2^-schema).

import { lowerEdge, upperEdge } from '../histograms/bins.js';
import type { Distribution } from '../histograms/distribution.js';

export interface NativeHistogram {
  readonly schema: number;
  /** Samples up to this count as zero. */
  readonly zeroThreshold: number;
  readonly zeroCount: number;
  /** Runs of buckets: `offset` buckets after the last run (for the first run: its index), then `length` buckets. */
  readonly spans: readonly { readonly offset: number; readonly length: number }[];
  /** Each bucket's count minus that of the bucket before it. */
  readonly deltas: readonly number[];
}

const FINEST_SCHEMA = 4;
const COARSEST_SCHEMA = -4;
const EMPTY_SCHEMA = 3;
/** The only whole number below this is 0. */
const ZERO_THRESHOLD = 0.5;

/**
 * Returns a histogram with the finest schema from 4 to -4 that needs at most `maxBuckets` buckets, or with -4. Samples count
 * as the middle of their bin, divided by `scale`. An empty histogram has one empty span, which marks it as native.
 */
export function nativeHistogram(samples: Distribution | undefined, scale: number, maxBuckets: number): NativeHistogram {
  const zeroThreshold = ZERO_THRESHOLD / scale;
  const values: number[] = [];
  const counts: number[] = [];
  let zeroCount = 0;
  samples?.bins.forEach((bin, i) => {
    const count = samples.counts[i]!;
    const value = (lowerEdge(bin) + upperEdge(bin)) / 2 / scale;
    if (value <= zeroThreshold) zeroCount += count;
    else if (count > 0) {
      values.push(value);
      counts.push(count);
    }
  });
  if (values.length === 0) {
    const spans = [{ offset: 0, length: 0 }];
    return { schema: EMPTY_SCHEMA, zeroThreshold, zeroCount, spans, deltas: [] };
  }
  let schema = FINEST_SCHEMA;
  while (schema > COARSEST_SCHEMA && distinct(values, schema) > maxBuckets) schema--;
  return { schema, zeroThreshold, zeroCount, ...buckets(values, counts, schema) };
}

/** Returns the bucket of a value: bucket i holds values above base^(i-1), up to base^i. */
function indexOf(value: number, schema: number): number {
  const index = Math.ceil(Math.log2(value) * 2 ** schema);
  // The logarithm of a bound may be rounded up.
  return 2 ** ((index - 1) / 2 ** schema) >= value ? index - 1 : index;
}

function distinct(values: readonly number[], schema: number): number {
  let count = 0;
  let last = Number.NaN;
  for (const value of values) {
    const index = indexOf(value, schema);
    if (index !== last) count++;
    last = index;
  }
  return count;
}

function buckets(values: readonly number[], counts: readonly number[], schema: number) {
  const spans: { offset: number; length: number }[] = [];
  const deltas: number[] = [];
  let last = 0;
  let before = 0;
  for (let i = 0; i < values.length; ) {
    const index = indexOf(values[i]!, schema);
    let count = 0;
    while (i < values.length && indexOf(values[i]!, schema) === index) count += counts[i++]!;
    const span = spans.at(-1);
    if (span !== undefined && index === last + 1) span.length++;
    else spans.push({ offset: span === undefined ? index : index - last - 1, length: 1 });
    deltas.push(count - before);
    before = count;
    last = index;
  }
  return { spans, deltas };
}
