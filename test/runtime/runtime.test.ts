// Runtime handles: which value a key's text gives, and which random numbers a fraction hits.

import fc from 'fast-check';
import t from 'tap';
import { Random } from '../../src/common/random.js';
import type { FractionalPercent } from '../../src/config/generated/api.js';
import { Runtime } from '../../src/runtime/runtime.js';
import { setValues as set } from './values.js';

const TWO_TO_32 = 2 ** 32;
const DENOMINATORS = { HUNDRED: 100, TEN_THOUSAND: 10_000, MILLION: 1_000_000 } as const;

t.test('a handle follows its key across snapshots, and uses the fallback when the key is removed', async (t) => {
  const runtime = new Runtime();
  const limit = runtime.integer('limit', 7);
  const bias = runtime.double('bias', 1);
  t.same([limit.value, bias.value], [7, 1]);
  set(runtime, { limit: '12.9', bias: '0.25' });
  t.same([limit.value, bias.value], [12, 0.25]);
  set(runtime, { limit: 'twelve', bias: '-2' });
  t.same([limit.value, bias.value], [7, -2]);
  set(runtime, {});
  t.same([limit.value, bias.value], [7, 1]);
});

t.test('a handle without a key keeps its value', async (t) => {
  const runtime = new Runtime();
  const handles = [runtime.integer(undefined, 7), runtime.integer('', 7), runtime.double(undefined, 7)];
  const share = runtime.fraction('', { numerator: 50 });
  set(runtime, { '': '1' });
  for (const handle of handles) t.equal(handle.value, 7);
  t.ok(share.isHitBy(TWO_TO_32 / 2 - 1));
  t.notOk(share.isHitBy(TWO_TO_32 / 2));
});

t.test(
  'a fraction has its own denominator, a plain number is a percentage, and other values select the fallback',
  async (t) => {
    const runtime = new Runtime();
    const share = runtime.fraction('share', { numerator: 5, denominator: 'TEN_THOUSAND' });
    /** Returns whether `bound` is the smallest number that is not a hit. */
    const boundIs = (bound: number) => share.isHitBy(Math.ceil(bound) - 1) && !share.isHitBy(Math.ceil(bound));
    t.ok(boundIs((TWO_TO_32 * 5) / 10_000));
    set(runtime, { share: '{numerator: 3, denominator: MILLION}' });
    t.ok(boundIs((TWO_TO_32 * 3) / 1_000_000));
    set(runtime, { share: 'numerator: 20\ndenominator: "TEN_THOUSAND"' });
    t.ok(boundIs((TWO_TO_32 * 20) / 10_000));
    set(runtime, { share: '33.9' });
    t.ok(boundIs((TWO_TO_32 * 33) / 100));
    for (const everything of ['100', '101', '1e12', '{"numerator": 4000000000}']) {
      set(runtime, { share: everything });
      t.ok(share.isHitBy(TWO_TO_32 - 1), everything);
    }
    for (const none of ['true', 'many', '-1', '{numerator: -3}', '{numerator: 3, per: 4}', '{denominator: BILLION}']) {
      set(runtime, { share: none });
      t.ok(boundIs((TWO_TO_32 * 5) / 10_000), none);
    }
  },
);

t.test('a fraction is hit by exactly that fraction of the random numbers', async () => {
  const denominator = fc.constantFrom('HUNDRED', 'TEN_THOUSAND', 'MILLION');
  fc.assert(
    fc.property(fc.nat(1_100_000), denominator, fc.nat(TWO_TO_32 - 1), (numerator, denominator, random) => {
      const percent: FractionalPercent = { numerator, denominator };
      const configured = new Runtime().fraction(undefined, percent);
      const runtime = new Runtime();
      const overridden = runtime.fraction('key', { numerator: 100 });
      set(runtime, { key: JSON.stringify(percent) });
      const expected = BigInt(random) * BigInt(DENOMINATORS[denominator]) < BigInt(numerator) * BigInt(TWO_TO_32);
      return configured.isHitBy(random) === expected && overridden.isHitBy(random) === expected;
    }),
  );
});

t.test('fractions of 0 and 1 draw no random number', async (t) => {
  const runtime = new Runtime();
  const random = new Random(1);
  const untouched = new Random(1);
  t.ok(runtime.fraction(undefined, { numerator: 100 }).isHit(random));
  t.notOk(runtime.fraction(undefined, {}).isHit(random));
  t.equal(random.nextUint32(), untouched.nextUint32());
  const half = runtime.fraction(undefined, { numerator: 50 });
  let hits = 0;
  for (let i = 0; i < 10_000; i++) if (half.isHit(random)) hits++;
  t.ok(hits > 4700 && hits < 5300, `${hits} of 10000`);
});

t.test('isHitByBucket() is true exactly for the buckets below the numerator', async (t) => {
  for (const denominator of ['HUNDRED', 'TEN_THOUSAND'] as const) {
    const wrong: number[] = [];
    for (let numerator = 1; numerator < DENOMINATORS[denominator]; numerator++) {
      const share = new Runtime().fraction(undefined, { numerator, denominator });
      if (!share.isHitByBucket(numerator - 1) || share.isHitByBucket(numerator)) wrong.push(numerator);
    }
    t.strictSame(wrong, [], denominator);
  }
});
