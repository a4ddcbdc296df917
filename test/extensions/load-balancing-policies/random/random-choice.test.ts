// The random policy.

import t from 'tap';
import { random } from '../../../../src/extensions/load-balancing-policies/random/index.js';
import { balancerOf, tally } from '../hosts.js';

t.test('random choice follows the weights', async (t) => {
  for (const weights of [[1, 1, 1, 1], [1, 2, 3, 4], [10, 1, 1, 1], [1]]) {
    const sum = weights.reduce((a, b) => a + b, 0);
    const counts = tally(balancerOf(random, {}, weights).pick, 40_000, weights.length);
    for (const [host, count] of counts.entries()) {
      const expected = (40_000 * weights[host]!) / sum;
      t.ok(Math.abs(count - expected) < 5 * Math.sqrt(expected) + 1, `${weights}: host ${host} ${count}/${expected}`);
    }
  }
});
