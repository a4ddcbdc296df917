import fc from 'fast-check';
import t from 'tap';
import { BINS, binOf, lowerEdge, upperEdge, widthOf } from '../../../src/stats/histograms/bins.js';

function edges(value: number): [number, number] {
  const bin = binOf(value);
  return [lowerEdge(bin), upperEdge(bin)];
}

t.test('bins have two significant digits', async (t) => {
  t.same(edges(0), [0, 0]);
  t.same(edges(7), [7, 7.1]);
  t.same(edges(10), [10, 11]);
  t.same(edges(99), [99, 100]);
  t.same(edges(100), [100, 110]);
  t.same(edges(115), [110, 120]);
  t.same(edges(1234), [1200, 1300]);
  t.same(edges(0.29), [0.29, 0.3]);
  t.same(edges(-5), [0, 0]);
  t.same(edges(Number.NaN), [0, 0]);
  t.equal(binOf(Number.POSITIVE_INFINITY), BINS - 1);
  t.equal(binOf(Number.MAX_VALUE), BINS - 1);
});

t.test('every lower edge belongs to its bin', async (t) => {
  const wrong: number[] = [];
  for (let bin = 0; bin < BINS; bin++) {
    if (binOf(lowerEdge(bin)) !== bin) wrong.push(bin);
    if (bin > 0 && bin < BINS - 1 && lowerEdge(bin + 1) !== upperEdge(bin)) wrong.push(bin);
  }
  t.same(wrong, []);
});

t.test('every value lies in its bin, and larger values never in a lower bin', async () => {
  const value = fc.double({ min: 0.01, max: 9e13, noNaN: true });
  fc.assert(
    fc.property(value, (v) => {
      const bin = binOf(v);
      // A value within a billionth of a bin below an edge counts as the edge.
      return v >= lowerEdge(bin) - widthOf(bin) * 1e-6 && v < upperEdge(bin);
    }),
  );
  fc.assert(fc.property(value, value, (a, b) => a > b || binOf(a) <= binOf(b)));
  fc.assert(fc.property(fc.nat(), (n) => lowerEdge(binOf(n)) <= n && (n === 0 || n < upperEdge(binOf(n)))));
});
