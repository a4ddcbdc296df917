import fc from 'fast-check';
import t from 'tap';
import { binOf } from '../../../src/stats/histograms/bins.js';
import { DEFAULT_BOUNDS, Distribution, QUANTILES } from '../../../src/stats/histograms/distribution.js';

function of(samples: readonly number[]): Distribution {
  const counts = new Map<number, number>();
  for (const sample of samples) counts.set(binOf(sample), (counts.get(binOf(sample)) ?? 0) + 1);
  const bins = [...counts.keys()].sort((a, b) => a - b);
  return new Distribution(
    bins,
    bins.map((bin) => counts.get(bin)!),
  );
}

t.test('a single sample stands in the middle of its bin at every share, as in Envoy', async (t) => {
  t.same(of([115]).quantiles([0, 0.25, 0.5, 0.9, 0.99, 0.999, 1]), Array(7).fill(115));
});

t.test('the samples of a bin divide it into equal parts, as in Envoy', async (t) => {
  const samples = [...Array(7).fill(0), ...Array(8).fill(1), 32];
  const expected = [0, 0, 1.011111111111111, 1.0555555555555556, 1.0888888888888888, 32.5, 32.5, 32.5, 32.5, 32.5];
  t.same(of(samples).quantiles(QUANTILES), expected);
});

t.test('a share counts whole samples, and empty bins are skipped', async (t) => {
  t.same(of([10, 20]).quantiles([0, 0.5, 0.75, 1]), [10.5, 10.5, 20.5, 20.5]);
  t.same(of([0, 0, 0]).quantiles([0, 0.5, 1]), [0, 0, 0]);
  t.same(new Distribution([5, 20, 40], [0, 1, 0]).quantiles([0, 1]), new Distribution([20], [1]).quantiles([0, 1]));
});

t.test('without samples, quantiles are NaN and sum and count are 0', async (t) => {
  t.ok(of([]).quantiles(QUANTILES).every(Number.isNaN));
  t.equal(of([]).sum(), 0);
  t.equal(of([]).count(), 0);
  t.ok(
    of([])
      .countsBelow(DEFAULT_BOUNDS)
      .every((count) => count === 0),
  );
});

t.test('the sum counts each sample as the harmonic mean of the edges of its bin', async (t) => {
  t.equal(of([115]).sum(), (2 * 110 * 120) / 230);
  t.equal(of([112, 118, 0]).sum(), (4 * 110 * 120) / 230);
});

t.test('whole numbers count for every bound that they do not exceed', async (t) => {
  const counts = of([0, 1, 5, 10, 25, 50, 115]).countsBelow(DEFAULT_BOUNDS);
  t.same(counts.slice(0, 9), [1, 2, 3, 4, 5, 6, 6, 7, 7]);
  t.equal(counts.at(-1), 7);
});

t.test('quantiles and bucket counts never decrease, and lie within the range of the samples', async () => {
  const samples = fc.array(fc.oneof(fc.nat(200), fc.nat(10_000_000)), { minLength: 1, maxLength: 200 });
  fc.assert(
    fc.property(samples, (values) => {
      const distribution = of(values);
      const quantiles = distribution.quantiles(QUANTILES);
      const counts = distribution.countsBelow(DEFAULT_BOUNDS);
      return (
        isAscending(quantiles) &&
        isAscending(counts) &&
        counts.at(-1)! <= values.length &&
        quantiles[0]! <= Math.min(...values) * 1.1 + 0.1 &&
        quantiles.at(-1)! >= Math.max(...values) / 1.1 &&
        quantiles.at(-1)! <= Math.max(1, Math.max(...values)) * 1.1 + 0.1
      );
    }),
  );
});

function isAscending(values: readonly number[]): boolean {
  return values.every((value, i) => i === 0 || value >= values[i - 1]!);
}
