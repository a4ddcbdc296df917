// The round-robin policy.

import fc from 'fast-check';
import t from 'tap';
import { Random } from '../../../../src/common/random.js';
import { roundRobin } from '../../../../src/extensions/load-balancing-policies/round-robin/index.js';
import { balancerOf, tally } from '../hosts.js';

t.test('round robin picks equal hosts in order, from a start that differs between workers', async (t) => {
  const starts = new Set<number>();
  for (let seed = 0; seed < 30; seed++) {
    const { pick } = balancerOf(roundRobin, {}, [1, 1, 1, 1], new Random(seed));
    const first = pick();
    starts.add(first);
    t.same(
      Array.from({ length: 8 }, pick),
      Array.from({ length: 8 }, (_, i) => (first + 1 + i) % 4),
    );
  }
  t.equal(starts.size, 4);
});

t.test('weighted round robin gives each host exactly its weight in every round, spread out', async (t) => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 1, max: 20 }), { minLength: 2, maxLength: 12 }),
      fc.nat(),
      (weights, seed) => {
        const sum = weights.reduce((a, b) => a + b, 0);
        const { pick } = balancerOf(roundRobin, {}, weights, new Random(seed));
        for (let skip = seed % sum; skip > 0; skip--) pick();
        return tally(pick, sum, weights.length).join() === weights.join();
      },
    ),
  );
  const { pick } = balancerOf(roundRobin, {}, [1, 5]);
  const picks = Array.from({ length: 60 }, pick).join('');
  t.notMatch(picks, /00/);
  t.notMatch(picks, /1{6}/);
});
