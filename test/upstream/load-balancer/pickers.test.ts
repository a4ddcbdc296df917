import fc from 'fast-check';
import t from 'tap';
import { Random } from '../../../src/common/random.js';
import { createLoadBalancer } from '../../../src/upstream/load-balancer/create-load-balancer.js';
import type { PickList, PlainSpec } from '../../../src/upstream/load-balancer/load-balancer.js';

const ROUND_ROBIN: PlainSpec = { policy: 'round_robin' };
const LEAST_REQUEST: PlainSpec = {
  policy: 'least_request',
  choiceCount: 2,
  activeRequestBias: { runtimeKey: '', value: 1 },
};
const RANDOM: PlainSpec = { policy: 'random' };

/** Hosts 100, 101 … with these weights; active requests in words 0, 1 …. */
function listOf(weights: number[]): PickList {
  return {
    hosts: Int32Array.from(weights, (_, i) => 100 + i),
    weights: Uint32Array.from(weights),
    activeWords: Int32Array.from(weights, (_, i) => i),
  };
}

function balancerOf(spec: PlainSpec, weights: number[], { seed = 1, bias = 1 } = {}) {
  const words = new Int32Array(new SharedArrayBuffer(4 * weights.length));
  const random = new Random(seed);
  const balancer = createLoadBalancer(spec, listOf(weights), words, bias, random);
  return { words, pick: () => balancer.pick(random) - 100 };
}

function tally(pick: () => number, picks: number, hosts: number): number[] {
  const counts = new Array<number>(hosts).fill(0);
  for (let i = 0; i < picks; i++) counts[pick()]!++;
  return counts;
}

t.test('round robin takes equal hosts in order, from a start that differs between workers', async (t) => {
  const starts = new Set<number>();
  for (let seed = 0; seed < 30; seed++) {
    const { pick } = balancerOf(ROUND_ROBIN, [1, 1, 1, 1], { seed });
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
        const { pick } = balancerOf(ROUND_ROBIN, weights, { seed });
        for (let skip = seed % sum; skip > 0; skip--) pick();
        return tally(pick, sum, weights.length).join() === weights.join();
      },
    ),
  );
  const { pick } = balancerOf(ROUND_ROBIN, [1, 5]);
  const picks = Array.from({ length: 60 }, pick).join('');
  t.notMatch(picks, /00/);
  t.notMatch(picks, /1{6}/);
});

t.test('least request prefers the idle host, and with one choice is random', async (t) => {
  const { words, pick } = balancerOf(LEAST_REQUEST, [1, 1]);
  words[0] = 50;
  const [busy, idle] = tally(pick, 1000, 2) as [number, number];
  t.ok(busy > 150 && busy < 350, `the busy one only when it is drawn twice: ${busy}`);
  t.equal(busy + idle, 1000);
  const all = balancerOf({ ...LEAST_REQUEST, choiceCount: 64 }, [1, 1, 1]);
  all.words[0] = all.words[2] = 1;
  t.same(tally(all.pick, 100, 3), [0, 100, 0]);
});

t.test('least request looks at each host a few times at most, whatever choice_count says', async (t) => {
  class CountedRandom extends Random {
    looks = 0;
    override below(n: number): number {
      if (++this.looks > 1000) throw new Error('too many looks');
      return super.below(n);
    }
  }
  const random = new CountedRandom(1);
  const words = new Int32Array([2, 1, 2]);
  const spec = { ...LEAST_REQUEST, choiceCount: 2 ** 32 - 1 };
  t.equal(createLoadBalancer(spec, listOf([1, 1, 1]), words, 1, random).pick(random), 101);
});

t.test('least request with weights: requests in flight lower the weight of a host', async (t) => {
  const { words, pick } = balancerOf(LEAST_REQUEST, [1, 3]);
  t.same(tally(pick, 400, 2), [100, 300]);
  words[1] = 5;
  for (let settle = 0; settle < 20; settle++) pick();
  const [light, heavy] = tally(pick, 300, 2) as [number, number];
  t.ok(Math.abs(light - 200) <= 2 && Math.abs(heavy - 100) <= 2, `weights 1 and 3 / 6: ${light}, ${heavy}`);
  const unbiased = balancerOf(LEAST_REQUEST, [1, 3], { bias: 0 });
  unbiased.words[1] = 5;
  t.same(tally(unbiased.pick, 400, 2), [100, 300]);
  const squared = balancerOf(LEAST_REQUEST, [1, 4], { bias: 2 });
  squared.words[1] = 1;
  t.same(tally(squared.pick, 400, 2), [200, 200], 'weights 1 and 4 / 2^2');
});

t.test('random choice follows the weights', async (t) => {
  for (const weights of [[1, 1, 1, 1], [1, 2, 3, 4], [10, 1, 1, 1], [1]]) {
    const sum = weights.reduce((a, b) => a + b, 0);
    const counts = tally(balancerOf(RANDOM, weights).pick, 40_000, weights.length);
    for (const [host, count] of counts.entries()) {
      const expected = (40_000 * weights[host]!) / sum;
      t.ok(Math.abs(count - expected) < 5 * Math.sqrt(expected) + 1, `${weights}: host ${host} ${count}/${expected}`);
    }
  }
});
