// The random number generator.

import t from 'tap';
import { Random } from '../../src/common/random.js';

t.test('the numbers are those of xoshiro128**', async (t) => {
  const reference = new Random(Int32Array.of(1, 2, 3, 4));
  t.same(
    Array.from({ length: 4 }, () => reference.nextUint32()),
    [11520, 0, 5927040, 70819200],
  );
  const random = new Random(42);
  const copy = new Random(42);
  const first = Array.from({ length: 8 }, () => random.nextUint32());
  t.same(
    Array.from({ length: 8 }, () => copy.nextInt32() >>> 0),
    first,
    'a seed repeats its numbers',
  );
  t.notSame(
    Array.from({ length: 8 }, () => new Random(43).nextUint32()),
    first,
  );
});

t.test('below(n) returns every number below n, evenly', async (t) => {
  const random = new Random(7);
  const counts = new Array<number>(10).fill(0);
  for (let i = 0; i < 100_000; i++) counts[random.below(10)]!++;
  t.equal(counts.length, 10);
  for (const count of counts) t.ok(Math.abs(count - 10_000) < 500, String(count));
  t.equal(random.below(1), 0);
  for (let i = 0; i < 1000; i++) t.ok(random.below(2 ** 32) < 2 ** 32);
});

t.test('bits are balanced, and fractions lie in [0, 1)', async (t) => {
  const random = new Random(1);
  const ones = new Array<number>(32).fill(0);
  for (let i = 0; i < 20_000; i++) {
    const bits = random.nextInt32();
    for (let bit = 0; bit < 32; bit++) ones[bit]! += (bits >>> bit) & 1;
    const fraction = random.fraction();
    if (fraction < 0 || fraction >= 1) t.fail(String(fraction));
  }
  for (const count of ones) t.ok(Math.abs(count - 10_000) < 500, String(count));
});

t.test('two generators without a seed differ', async (t) => {
  const a = new Random();
  const b = new Random();
  t.notSame([a.nextInt32(), a.nextInt32(), a.nextInt32()], [b.nextInt32(), b.nextInt32(), b.nextInt32()]);
});
