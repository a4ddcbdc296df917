import fc from 'fast-check';
import t from 'tap';
import { binOf, lowerEdge, upperEdge } from '../../../src/stats/histograms/bins.js';
import { Distribution } from '../../../src/stats/histograms/distribution.js';
import { nativeHistogram } from '../../../src/stats/monitoring/native-histogram.js';

const values = fc.oneof(fc.nat(100), fc.nat(1_000_000), fc.double({ min: 0, max: 1e9, noNaN: true }));
const samples = fc.array(values, { minLength: 1, maxLength: 200 });

function distributionOf(numbers: readonly number[]): Distribution {
  const counts = new Map<number, number>();
  for (const number of numbers) counts.set(binOf(number), (counts.get(binOf(number)) ?? 0) + 1);
  const bins = [...counts.keys()].toSorted((a, b) => a - b);
  return new Distribution(
    bins,
    bins.map((bin) => counts.get(bin)!),
  );
}

t.test('every sample lies in its bucket, and the schema is the finest that the limit allows', async (t) => {
  fc.assert(
    fc.property(samples, fc.integer({ min: 1, max: 40 }), fc.constantFrom(1, 1_000_000), (numbers, limit, scale) => {
      const distribution = distributionOf(numbers);
      const native = nativeHistogram(distribution, scale, limit);
      const counted = bucketsOf(native);
      let zero = 0;
      const expected = new Map<number, number>();
      distribution.bins.forEach((bin, i) => {
        const value = (lowerEdge(bin) + upperEdge(bin)) / 2 / scale;
        const count = distribution.counts[i]!;
        if (value <= 0.5 / scale) zero += count;
        else {
          const { index } = counted.find(({ lower, upper }) => value > lower && value <= upper)!;
          expected.set(index, (expected.get(index) ?? 0) + count);
        }
      });
      t.equal(native.zeroCount, zero);
      t.same(
        counted.map(({ index, count }) => [index, count]),
        [...expected].toSorted((a, b) => a[0] - b[0]),
      );
      if (native.schema > -4) t.ok(counted.length <= limit);
      if (native.schema < 4 && counted.length > 0) {
        const finer = nativeHistogram(distribution, scale, Number.MAX_SAFE_INTEGER);
        t.ok(finer.deltas.length > limit, 'a finer schema takes too many buckets');
      }
    }),
    { numRuns: 200 },
  );
});

t.test('a histogram of zeros has no buckets', async (t) => {
  const spans = [{ offset: 0, length: 0 }];
  const empty = { schema: 3, zeroThreshold: 0.5, zeroCount: 0, spans, deltas: [] };
  t.same(nativeHistogram(undefined, 1, 20), empty);
  t.same(nativeHistogram(new Distribution([0], [5]), 1, 20), { ...empty, zeroCount: 5 });
});

t.test('a power of two is the upper bound of its bucket', async (t) => {
  // The middle of the bin of 0.5 million percent units, which begins at 500,000, is 505,000.
  const { schema, spans } = nativeHistogram(new Distribution([binOf(500_000)], [1]), 505_000 / 64, 20);
  t.equal(schema, 4);
  t.same(spans, [{ offset: 6 * 16, length: 1 }]);
});

function bucketsOf({ schema, spans, deltas }: ReturnType<typeof nativeHistogram>) {
  const buckets: { index: number; lower: number; upper: number; count: number }[] = [];
  let index = 0;
  let count = 0;
  let next = 0;
  for (const span of spans) {
    index += span.offset;
    for (let i = 0; i < span.length; i++, index++) {
      count += deltas[next++]!;
      const bound = (at: number) => 2 ** (at / 2 ** schema);
      buckets.push({ index, lower: bound(index - 1), upper: bound(index), count });
    }
  }
  return buckets;
}
