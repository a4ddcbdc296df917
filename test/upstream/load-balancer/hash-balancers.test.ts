import fc from 'fast-check';
import t from 'tap';
import { Random } from '../../../src/common/random.js';
import { atOnce } from '../../../src/common/time/next-turn.js';
import { Word64, xxh64Text } from '../../../src/common/xxh64.js';
import { createHashBalancer } from '../../../src/upstream/load-balancer/create-load-balancer.js';
import { ringCounts } from '../../../src/upstream/load-balancer/hash-ring.js';
import type { HashSpec } from '../../../src/upstream/load-balancer/load-balancer.js';
import { maglevCounts } from '../../../src/upstream/load-balancer/maglev-table.js';

const RING: HashSpec = { policy: 'ring_hash', usesHostname: false, minSize: 1024, maxSize: 8 * 1024 * 1024 };
const MAGLEV: HashSpec = { policy: 'maglev', usesHostname: false, tableSize: 65537 };
const random = new Random(7);

interface TestHost {
  readonly key: string;
  readonly weight?: number;
}

/** Picks for hashes, by the keys of hosts. */
function balancerOf(spec: HashSpec, hosts: readonly TestHost[]) {
  const balancer = atOnce(
    createHashBalancer(spec, {
      hosts: Int32Array.from(hosts, (_, i) => 100 + i),
      weights: Uint32Array.from(hosts, ({ weight = 1 }) => weight),
      keys: hosts.map(({ key }) => key),
    }),
  );
  const hash = new Word64();
  const keyOf = (index: number) => hosts[index - 100]!.key;
  return {
    at: (number: bigint, attempt?: number) => {
      hash.set(Number(number >> 32n), Number(number & 0xffffffffn));
      return keyOf(balancer.pick(random, hash, attempt));
    },
    of: (text: string, attempt?: number) => {
      xxh64Text(text, hash);
      return keyOf(balancer.pick(random, hash, attempt));
    },
    any: () => keyOf(balancer.pick(random)),
  };
}

function hostsOf(count: number, weight: (index: number) => number = () => 1): TestHost[] {
  return Array.from({ length: count }, (_, i) => ({ key: `10.0.${i >> 8}.${i & 255}:80`, weight: weight(i) }));
}

const PORTS = [90, 91, 92, 93, 94, 95].map((port) => ({ key: `127.0.0.1:${port}` }));

t.test('places on a ring are where Envoy has them', async (t) => {
  const { at } = balancerOf({ ...RING, minSize: 12 }, PORTS);
  // Of test/extensions/load_balancing_policies/ring_hash/ring_hash_lb_test.cc in Envoy.
  const places: [port: number, place: bigint][] = [
    [94, 833437586790550860n],
    [92, 928266305478181108n],
    [90, 1033482794131418490n],
    [95, 3551244743356806947n],
    [93, 3851675632748031481n],
    [91, 5583722120771150861n],
    [91, 6311230543546372928n],
    [93, 7700377290971790572n],
    [95, 13144177310400110813n],
    [92, 13444792449719432967n],
    [94, 15516499411664133160n],
    [90, 16117243373044804889n],
  ];
  for (const [index, [port, place]] of places.entries()) {
    const next = places[(index + 1) % places.length]![0];
    t.equal(at(place), `127.0.0.1:${port}`);
    t.equal(at(place + 1n), `127.0.0.1:${next}`, 'behind it begins the next one');
    t.equal(at(place, 1), `127.0.0.1:${next}`, 'another attempt goes on to the next one');
  }
  t.equal(at(0n), '127.0.0.1:94');
  t.equal(at(2n ** 64n - 1n), '127.0.0.1:94');
});

t.test('entries of a table are as Envoy has them', async (t) => {
  const { at } = balancerOf({ ...MAGLEV, tableSize: 7 }, PORTS);
  const table = [92, 94, 90, 91, 95, 90, 93];
  for (let number = 0n; number < 21n; number++) {
    t.equal(at(number), `127.0.0.1:${table[Number(number % 7n)]}`);
    // Envoy's: hash ^ (2^64 - attempt).
    for (const attempt of [1, 2, 9]) {
      const other = number ^ (2n ** 64n - BigInt(attempt));
      t.equal(at(number, attempt), `127.0.0.1:${table[Number(other % 7n)]}`);
    }
  }
});

for (const spec of [RING, MAGLEV]) {
  t.test(
    `${spec.policy}: a hash belongs to the same host in each thread and process, in whatever order hosts come`,
    async (t) => {
      const hosts = hostsOf(50, (i) => 1 + (i % 3));
      const first = balancerOf(spec, hosts);
      const again = balancerOf(spec, hosts);
      const reverse = balancerOf(spec, hosts.toReversed());
      let moved = 0;
      for (let i = 0; i < 2000; i++) {
        t.equal(again.of(`user-${i}`), first.of(`user-${i}`));
        if (reverse.of(`user-${i}`) !== first.of(`user-${i}`)) moved++;
      }
      // Of weights that make no whole number of places, the order says who has one place more.
      t.ok(moved <= (spec.policy === 'maglev' ? 0 : 200), `${moved} of 2000 moved`);
    },
  );

  t.test(`${spec.policy}: hosts get requests by their weights, with a hash or without`, async (t) => {
    const { of, any } = balancerOf(
      { ...spec, minSize: 65_536 } as HashSpec,
      hostsOf(4, (i) => i + 1),
    );
    for (const pick of [(i: number) => of(`user-${i}`), any]) {
      const counts = new Map<string, number>();
      for (let i = 0; i < 20_000; i++) {
        const host = pick(i);
        counts.set(host, (counts.get(host) ?? 0) + 1);
      }
      for (let i = 0; i < 4; i++) {
        const share = counts.get(`10.0.0.${i}:80`)! / 20_000;
        t.ok(Math.abs(share - (i + 1) / 10) < 0.02, `host ${i}: ${share}`);
      }
    }
  });

  t.test(`${spec.policy}: when a host goes, hardly any requests move but its own`, async (t) => {
    const hosts = hostsOf(20);
    const before = balancerOf(spec, hosts);
    const after = balancerOf(spec, hosts.slice(1));
    const gone = hosts[0]!.key;
    let others = 0;
    for (let i = 0; i < 10_000; i++) {
      const host = before.of(`user-${i}`);
      const next = after.of(`user-${i}`);
      if (host === gone) t.not(next, gone);
      else if (next !== host) others++;
    }
    // Of a ring because each of fewer hosts has more places, so that all of them have as many together.
    t.ok(others <= 500, `${others} of 10000 moved`);
  });

  t.test(`${spec.policy}: one host alone, and hosts of the same key, get all requests`, async (t) => {
    t.equal(balancerOf(spec, hostsOf(1)).of('x'), '10.0.0.0:80');
    t.equal(balancerOf(spec, hostsOf(1)).any(), '10.0.0.0:80');
    const twins = balancerOf(
      spec,
      Array.from({ length: 30 }, () => ({ key: 'twin' })),
    );
    for (let i = 0; i < 100; i++) t.equal(twins.of(`user-${i}`), 'twin');
  });
}

t.test('a ring has as many places as it may, whatever the weights', async (t) => {
  const sum = (counts: Uint32Array) => counts.reduce((total, count) => total + count, 0);
  const sizes = { minSize: 1024, maxSize: 8 * 1024 * 1024 };
  t.same(ringCounts(Uint32Array.of(1, 1, 1), sizes), Uint32Array.of(342, 342, 342));
  t.same(ringCounts(Uint32Array.of(1, 2), { minSize: 3, maxSize: 3 }), Uint32Array.of(1, 2));
  t.same(
    ringCounts(Uint32Array.of(1, 1, 1, 1), { minSize: 1, maxSize: 2 }),
    Uint32Array.of(1, 0, 1, 0),
    'too small for all',
  );
  t.equal(sum(ringCounts(new Uint32Array(10_000).fill(1), sizes)), 10_000);
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 2 ** 32 - 1 }), { minLength: 1, maxLength: 50 }), (weights) => {
      const count = sum(ringCounts(Uint32Array.from(weights), { minSize: 100, maxSize: 1000 }));
      return count >= 100 && count <= 1001;
    }),
  );
});

t.test('the numbers of entries are those that a table has', async () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 1, maxLength: 20 }),
      fc.constantFrom(2, 7, 101, 1009),
      (weights, tableSize) => {
        const hosts = hostsOf(weights.length, (i) => weights[i]!);
        const { at } = balancerOf({ ...MAGLEV, tableSize }, hosts);
        const counts = new Map(hosts.map(({ key }) => [key, 0]));
        for (let i = 0; i < tableSize; i++) counts.set(at(BigInt(i)), counts.get(at(BigInt(i)))! + 1);
        const told = maglevCounts({ weights: Uint32Array.from(weights), keys: hosts.map(({ key }) => key) }, tableSize);
        return [...counts.values()].join() === told.join();
      },
    ),
  );
});

t.test('a large ring is built in steps, and has its places in order', async (t) => {
  const hosts = hostsOf(300);
  const steps = createHashBalancer(
    { ...RING, minSize: 300_000 },
    {
      hosts: Int32Array.from(hosts, (_, i) => i),
      weights: new Uint32Array(300).fill(1),
      keys: hosts.map(({ key }) => key),
    },
  );
  let count = 0;
  let step = steps.next();
  for (; step.done !== true; step = steps.next()) count++;
  t.ok(count > 50, `${count} steps`);
  const small = { ...RING, minSize: 300_000 };
  const { at } = balancerOf(small, hosts);
  const places = hosts.flatMap(({ key }) =>
    Array.from({ length: 1000 }, (_, number) => {
      const hash = new Word64();
      xxh64Text(`${key}_${number}`, hash);
      return { key, place: (BigInt(hash.hi >>> 0) << 32n) | BigInt(hash.lo >>> 0) };
    }),
  );
  for (const { key, place } of places) if (at(place) !== key) t.fail(`${key} has no place at ${place}`);
});
