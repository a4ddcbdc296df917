// Latencies in shared memory, which all workers record: buckets with two significant digits.

/** Buckets of one power of ten: 10 to 99. */
const PER_DECADE = 90;
/** Latencies of up to 1000 s, in microseconds. */
const DECADES = 9;
export const BUCKETS = PER_DECADE * DECADES;
const MAX = 10 ** DECADES - 1;

/** Adds one latency in microseconds to the buckets at `first`. */
export function recordLatency(words: Int32Array, first: number, micros: number): void {
  Atomics.add(words, first + bucketOf(micros), 1);
}

/** Empties the buckets. Returns the latency below which the share `quantile` (0 to 1) of theirs is; undefined if there is none. */
export function takeQuantile(words: Int32Array, first: number, quantile: number): number | undefined {
  const counts = new Int32Array(BUCKETS);
  let total = 0;
  for (let bucket = 0; bucket < BUCKETS; bucket++) {
    counts[bucket] = Atomics.exchange(words, first + bucket, 0);
    total += counts[bucket]!;
  }
  if (total === 0) return undefined;
  let below = 0;
  const wanted = quantile * total;
  for (let bucket = 0; bucket < BUCKETS; bucket++) {
    const count = counts[bucket]!;
    if (count === 0 || below + count < wanted) {
      below += count;
      continue;
    }
    const start = startOf(bucket);
    return Math.floor(start + ((startOf(bucket + 1) - start) * Math.max(0, wanted - below)) / count);
  }
  return MAX;
}

function bucketOf(micros: number): number {
  const value = Math.min(Math.max(micros, 1), MAX);
  let decade = 0;
  let unit = 1;
  while (value >= unit * 10) {
    unit *= 10;
    decade++;
  }
  return decade * PER_DECADE + Math.min(PER_DECADE - 1, Math.floor((value * 10) / unit) - 10);
}

function startOf(bucket: number): number {
  const decade = Math.floor(bucket / PER_DECADE);
  return ((bucket % PER_DECADE) + 10) * 10 ** (decade - 1);
}
