// The least-request policy.

import t from 'tap';
import { Random } from '../../../../src/common/random.js';
import { leastRequest } from '../../../../src/extensions/load-balancing-policies/least-request/index.js';
import { balancerOf, tally } from '../hosts.js';

t.test('least request prefers the idle host, and with one choice is random', async (t) => {
  const { words, pick } = balancerOf(leastRequest, {}, [1, 1]);
  words[0] = 50;
  const [busy, idle] = tally(pick, 1000, 2) as [number, number];
  t.ok(busy > 150 && busy < 350, `the busy one only when it is drawn twice: ${busy}`);
  t.equal(busy + idle, 1000);
  const all = balancerOf(leastRequest, { choice_count: 64 }, [1, 1, 1]);
  all.words[0] = all.words[2] = 1;
  t.same(tally(all.pick, 100, 3), [0, 100, 0]);
});

t.test('least request by a full scan picks the least busy host, and any of several', async (t) => {
  for (const config of [{ selection_method: 'FULL_SCAN' }, { enable_full_scan: true }] as const) {
    const { words, pick } = balancerOf(leastRequest, config, [1, 1, 1, 1]);
    words.set([3, 1, 2, 1]);
    const counts = tally(pick, 1000, 4);
    t.same([counts[0], counts[2]], [0, 0]);
    t.ok(Math.abs(counts[1]! - 500) < 80, `${counts}`);
  }
});

t.test('least request draws each host at most a few times, regardless of choice_count', async (t) => {
  class CountedRandom extends Random {
    looks = 0;
    override below(n: number): number {
      if (++this.looks > 1000) throw new Error('too many looks');
      return super.below(n);
    }
  }
  const { pick, words } = balancerOf(leastRequest, { choice_count: 2 ** 32 - 1 }, [1, 1, 1], new CountedRandom(1));
  words.set([2, 1, 2]);
  t.equal(pick(), 1);
});

t.test('least request with weights: requests in flight lower the weight of a host', async (t) => {
  const { words, pick } = balancerOf(leastRequest, {}, [1, 3]);
  t.same(tally(pick, 400, 2), [100, 300]);
  words[1] = 5;
  for (let settle = 0; settle < 20; settle++) pick();
  const [light, heavy] = tally(pick, 300, 2) as [number, number];
  t.ok(Math.abs(light - 200) <= 2 && Math.abs(heavy - 100) <= 2, `weights 1 and 3 / 6: ${light}, ${heavy}`);
  const unbiased = balancerOf(leastRequest, { active_request_bias: { default_value: 0 } }, [1, 3]);
  unbiased.words[1] = 5;
  t.same(tally(unbiased.pick, 400, 2), [100, 300]);
  const squared = balancerOf(leastRequest, { active_request_bias: { default_value: 2 } }, [1, 4]);
  squared.words[1] = 1;
  t.same(tally(squared.pick, 400, 2), [200, 200], 'weights 1 and 4 / 2^2');
});
